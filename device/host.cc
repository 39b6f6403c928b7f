#include "device/host.h"

#include <deque>
#include <thread>
#include <vector>

#include "device/interpret.h"

namespace xccl::device {
namespace {

// Calls visit(AnyOperator<T>) with the C++ type of the elements.
template <class Visit>
auto WithNumbers(const HostNumbers& numbers, const Visit& visit) {
  return WithType(numbers.type, [&](auto zero) {
    return visit(AnyOperator<decltype(zero)>{numbers.members, numbers.the_op});
  });
}

}  // namespace

int64_t HostNumbers::bytes() const {
  return WithNumbers(*this, [](auto n) { return n.bytes(); });
}
bool HostNumbers::scales() const {
  return WithNumbers(*this, [](auto n) { return n.scales(); });
}
bool HostNumbers::finishes() const {
  return WithNumbers(*this, [](auto n) { return n.finishes(); });
}

template <int kSources, int kDestinations>
void MoveRange(HostNumbers numbers, const char* source0, const char* source1, char* destination0,
               char* destination1, int64_t bytes, uint32_t marks, int32_t threads) {
  WithNumbers(numbers, [&](auto n) {
    MoveRange<kSources, kDestinations, decltype(n)>(n, source0, source1, destination0, destination1, bytes,
                                                    marks, threads);
  });
}
template void MoveRange<1, 1>(HostNumbers, const char*, const char*, char*, char*, int64_t, uint32_t,
                              int32_t);
template void MoveRange<1, 2>(HostNumbers, const char*, const char*, char*, char*, int64_t, uint32_t,
                              int32_t);
template void MoveRange<2, 1>(HostNumbers, const char*, const char*, char*, char*, int64_t, uint32_t,
                              int32_t);
template void MoveRange<2, 2>(HostNumbers, const char*, const char*, char*, char*, int64_t, uint32_t,
                              int32_t);

void MoveSwitchRange(HostNumbers numbers, const SwitchMove& args) {
  WithNumbers(numbers, [&](auto n) { MoveSwitchRange<decltype(n)>(n, args); });
}
void MoveGroupRange(HostNumbers numbers, const GroupMove& args) {
  WithNumbers(numbers, [&](auto n) { MoveGroupRange<decltype(n)>(n, args); });
}
bool SwitchReduces(const HostNumbers& numbers) {
  return WithNumbers(numbers, [](auto n) { return SwitchReduces<decltype(n)>(n); });
}
bool SwitchReducesBuffers(const HostNumbers& numbers) {
  return WithNumbers(numbers, [](auto n) { return SwitchReducesBuffers<decltype(n)>(n); });
}
uint64_t NeutralBits(const HostNumbers& numbers) {
  return WithNumbers(numbers, [](auto n) { return NeutralBits<decltype(n)>(n); });
}

template <bool kLocal, bool kReceive, bool kStore, bool kSend>
bool MoveLl(HostNumbers numbers, LlArgs args, const Waiter* who) {
  return WithNumbers(
      numbers, [&](auto n) { return MoveLl<kLocal, kReceive, kStore, kSend, decltype(n)>(n, args, who); });
}
template <bool kLocal, bool kReceive, bool kStore, bool kSend>
bool MoveLl128(HostNumbers numbers, LlArgs args, const Waiter* who) {
  return WithNumbers(
      numbers, [&](auto n) { return MoveLl128<kLocal, kReceive, kStore, kSend, decltype(n)>(n, args, who); });
}
bool FanInLl(HostNumbers numbers, const FanInArgs& args, const Waiter* who) {
  return WithNumbers(numbers, [&](auto n) { return FanInLl<decltype(n)>(n, args, who); });
}
bool FanInLl128(HostNumbers numbers, const FanInArgs& args, const Waiter* who) {
  return WithNumbers(numbers, [&](auto n) { return FanInLl128<decltype(n)>(n, args, who); });
}
// send, recv, recv_copy_send, recv_reduce_send, recv_reduce_copy, recv_reduce_copy_send
template bool MoveLl<true, false, false, true>(HostNumbers, LlArgs, const Waiter*);
template bool MoveLl<false, true, true, false>(HostNumbers, LlArgs, const Waiter*);
template bool MoveLl<false, true, true, true>(HostNumbers, LlArgs, const Waiter*);
template bool MoveLl<true, true, false, true>(HostNumbers, LlArgs, const Waiter*);
template bool MoveLl<true, true, true, false>(HostNumbers, LlArgs, const Waiter*);
template bool MoveLl<true, true, true, true>(HostNumbers, LlArgs, const Waiter*);
template bool MoveLl128<true, false, false, true>(HostNumbers, LlArgs, const Waiter*);
template bool MoveLl128<false, true, true, false>(HostNumbers, LlArgs, const Waiter*);
template bool MoveLl128<false, true, true, true>(HostNumbers, LlArgs, const Waiter*);
template bool MoveLl128<true, true, false, true>(HostNumbers, LlArgs, const Waiter*);
template bool MoveLl128<true, true, true, false>(HostNumbers, LlArgs, const Waiter*);
template bool MoveLl128<true, true, true, true>(HostNumbers, LlArgs, const Waiter*);

template class Block<HostConfig>;

HostKernel InterpreterOnHost(const int32_t* table, int32_t instances) {
  HostKernel kernel = {};
  kernel.info.blocks_per_rank = table[0];
  kernel.info.slots = table[1];
  kernel.info.tables = table[2];
  kernel.info.instances = instances;
  kernel.info.direct = 1;
  kernel.members = table[3];
  kernel.messages_order = true;
  kernel.run = [](HostBlock& block) { InterpretBlock<true>(block, block.args().table); };
  return kernel;
}

void RunOnHost(const HostKernel& kernel, const LaunchArgs& args, Type type, Operator op, Protocol protocol,
               HostShape shape) {
  struct BlockOnHost {
    HostBlock::Shared shared = {};
    HostTeam team;
    explicit BlockOnHost(HostShape of) : team(of.threads, of.lanes, &shared) {}
  };
  HostCheck(shape.lanes > 0 && (shape.lanes & (shape.lanes - 1)) == 0 && shape.threads % shape.lanes == 0);
  HostNumbers numbers;
  numbers.type = type;
  numbers.the_op = op;
  numbers.members = kernel.members;
  const HostConfig config = {protocol, protocol == Protocol::kSimple, kernel.info.slots,
                             kernel.info.tables != 0, kernel.messages_order};
  std::deque<BlockOnHost> blocks;
  std::vector<std::thread> threads;
  const HostGuard guard = host_guard;
  const int32_t count = args.ranks_here * kernel.info.blocks_per_rank * args.instances;
  for (int32_t b = 0; b < count; ++b) {
    HostTeam* const team = &blocks.emplace_back(shape).team;
    for (int32_t t = 0; t < shape.threads; ++t) {
      threads.emplace_back([&, team, b, t] {
        host_guard = guard;
        host_place = {team, t};
        try {
          HostBlock block(config, args, numbers, b, kernel.info.blocks_per_rank);
          kernel.run(block);
        } catch (const HostKilled&) {
          team->Kill();  // whoever set the guard knows
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace xccl::device
