#include "device/host.h"

#include <thread>
#include <type_traits>
#include <vector>

#include "device/interpret.h"

namespace xccl::device {
namespace {

// Calls visit(AnyOperator<T>) with the C++ type of the elements.
template <class Visit>
auto WithNumbers(const HostNumbers& numbers, Visit visit) {
  const auto of = [&](auto zero) {
    using T = decltype(zero);
    return visit(AnyOperator<T>{numbers.members, numbers.the_op});
  };
  switch (numbers.type) {
    case Type::kInt8:
      return of(int8_t());
    case Type::kUint8:
      return of(uint8_t());
    case Type::kInt32:
      return of(int32_t());
    case Type::kUint32:
      return of(uint32_t());
    case Type::kInt64:
      return of(int64_t());
    case Type::kUint64:
      return of(uint64_t());
    case Type::kHalf:
      return of(Half());
    case Type::kDouble:
      return of(double());
    case Type::kBfloat16:
      return of(Bfloat16());
    case Type::kFp8E4m3:
      return of(E4m3());
    case Type::kFp8E5m2:
      return of(E5m2());
    case Type::kFloat:
      break;
  }
  return of(float());
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
               char* destination1, int64_t bytes, uint32_t marks) {
  WithNumbers(numbers, [&](auto n) {
    MoveRange<kSources, kDestinations, decltype(n)>(n, source0, source1, destination0, destination1, bytes,
                                                    marks);
  });
}
template void MoveRange<1, 1>(HostNumbers, const char*, const char*, char*, char*, int64_t, uint32_t);
template void MoveRange<1, 2>(HostNumbers, const char*, const char*, char*, char*, int64_t, uint32_t);
template void MoveRange<2, 1>(HostNumbers, const char*, const char*, char*, char*, int64_t, uint32_t);
template void MoveRange<2, 2>(HostNumbers, const char*, const char*, char*, char*, int64_t, uint32_t);

void MoveGroupRange(HostNumbers numbers, const GroupMove& args) {
  WithNumbers(numbers, [&](auto n) { MoveGroupRange<decltype(n)>(n, args); });
}
void FillNeutral(HostNumbers numbers, char* slots, int64_t bytes) {
  WithNumbers(numbers, [&](auto n) { FillNeutral<decltype(n)>(n, slots, bytes); });
}
bool SwitchReduces(const HostNumbers& numbers) {
  return WithNumbers(numbers, [](auto n) { return SwitchReduces<decltype(n)>(n); });
}
uint64_t NeutralKey(const HostNumbers& numbers) {
  return WithNumbers(numbers, [](auto n) { return NeutralKey<decltype(n)>(n); });
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

namespace {

template <Protocol kProtocolOf>
struct HostConfig {
  using Numbers = HostNumbers;
  static constexpr Protocol kProtocol = kProtocolOf;
  static constexpr int32_t kEnds = 32;
  int32_t kSlots;
  bool kTables, kMessagesOrder;
};

// Calls visit with the opcode as a type.
template <class Visit>
void WithOp(Op op, Visit visit) {
  const auto with = [&]<Op kOp>() { visit(std::integral_constant<Op, kOp>()); };
  switch (op) {
    case Op::kSend:
      return with.template operator()<Op::kSend>();
    case Op::kRecv:
      return with.template operator()<Op::kRecv>();
    case Op::kRecvCopySend:
      return with.template operator()<Op::kRecvCopySend>();
    case Op::kRecvReduceSend:
      return with.template operator()<Op::kRecvReduceSend>();
    case Op::kRecvReduceCopy:
      return with.template operator()<Op::kRecvReduceCopy>();
    case Op::kRecvReduceCopySend:
      return with.template operator()<Op::kRecvReduceCopySend>();
    case Op::kCopy:
      return with.template operator()<Op::kCopy>();
    case Op::kReduce:
      return with.template operator()<Op::kReduce>();
    case Op::kNop:
      return with.template operator()<Op::kNop>();
  }
}

template <Protocol kProtocol>
class HostBlockOf final : public HostBlock {
 public:
  HostBlockOf(const HostKernel& kernel, const LaunchArgs& args, const HostNumbers& numbers, int32_t index)
      : args_(args),
        block_({kernel.info.slots, kernel.info.tables != 0, kernel.messages_order}, args, numbers, index,
               kernel.info.blocks_per_rank) {}

  const LaunchArgs& args() const override { return args_; }
  int32_t rank() const override { return block_.rank(); }
  int32_t block() const override { return block_.block(); }
  End Open(int32_t index, int32_t connection, int32_t peer) override {
    return block_.Open(index, connection, peer);
  }
  End OpenGroup(int32_t index, int32_t group) override { return block_.OpenGroup(index, group); }
  void Introduce(const End& end) override { block_.Introduce(end); }
  void Meet(const End& end) override { block_.Meet(end); }
  void Enter() override { block_.Enter(); }
  bool NextPass(int32_t instructions) override { return block_.NextPass(instructions); }
  void Drain(const End& end) override { block_.Drain(end); }
  void Leave() override { block_.Leave(); }
  void Close(const End& end) override { block_.Close(end); }
  void CloseGroup(const End& end) override { block_.CloseGroup(end); }
  int64_t Elements(int32_t part) const override { return block_.Elements(part); }
  const char* Input(int32_t position) const override { return block_.Input(position); }
  char* Output(int32_t position) const override { return block_.Output(position); }
  char* Scratch(int32_t run, int64_t before, int64_t skip) const override {
    return block_.Scratch(run, before, skip);
  }
  char* PeerInput(Direct mode, const End& end, int32_t position) const override {
    return block_.PeerInput(mode, end, position);
  }
  char* PeerOutput(Direct mode, const End& end, int32_t position) const override {
    return block_.PeerOutput(mode, end, position);
  }
  char* PeerScratch(Direct mode, const End& end, int32_t run, int64_t before, int64_t skip) const override {
    return block_.PeerScratch(mode, end, run, before, skip);
  }
  bool Reaches(Direct mode, const End& end, Buffer buffer) const override {
    return block_.Reaches(mode, end, buffer);
  }
  bool Lends(Direct mode, const End& end, Buffer buffer) const override {
    return block_.Lends(mode, end, buffer);
  }
  void Begin(int32_t threadblock, int32_t instruction) override { block_.Begin(threadblock, instruction); }
  void AwaitBlock(int32_t block, int32_t instructions, int32_t index) override {
    block_.AwaitBlock(block, instructions, index);
  }
  void AwaitMessage(const End& from) override { block_.AwaitMessage(from); }
  void AwaitSlot(const End& to, bool direct) override { block_.AwaitSlot(to, direct); }
  void AwaitMessages(const End& from) override { block_.AwaitMessages(from); }
  void AwaitSlots(const End& to) override { block_.AwaitSlots(to); }
  bool Ready() override { return block_.Ready(); }
  void MoveAny(Op op, uint32_t marks, const End& from, const End& to, const AnyChunks& run, const Places& at,
               bool lends_put, bool lends_get) override {
    WithOp(op, [&](auto constant) {
      if constexpr (constant() != Op::kNop)
        block_.template Move<constant()>(marks, from, to, run, at, lends_put, lends_get);
    });
  }
  void FinishAny(Op op, bool signals, End& from, End& to) override {
    WithOp(op, [&](auto constant) {
      signals ? block_.template Finish<constant(), true>(from, to)
              : block_.template Finish<constant(), false>(from, to);
    });
  }
  void MoveGroup(Op op, uint32_t marks, const End& from, const End& to, const AnyChunks& run,
                 const Places& at) override {
    block_.MoveGroup(op, marks, from, to, run, at);
  }
  void FinishGroup(Op op, bool signals, End& from, End& to) override {
    block_.FinishGroup(op, signals, from, to);
  }

 private:
  const LaunchArgs& args_;
  Block<HostConfig<kProtocol>> block_;
};

template <Protocol kProtocol>
void RunBlockOnHost(const HostKernel& kernel, const LaunchArgs& args, const HostNumbers& numbers,
                    int32_t index) {
  HostBlockOf<kProtocol> block(kernel, args, numbers, index);
  kernel.run(block);
}

}  // namespace

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

void RunOnHost(const HostKernel& kernel, const LaunchArgs& args, Type type, Operator op, Protocol protocol) {
  HostNumbers numbers;
  numbers.type = type;
  numbers.the_op = op;
  numbers.members = kernel.members;
  std::vector<std::thread> threads;
  const int32_t blocks = args.ranks_here * kernel.info.blocks_per_rank * args.instances;
  for (int32_t b = 0; b < blocks; ++b) {
    threads.emplace_back([&, b] {
      switch (protocol) {
        case Protocol::kSimple:
          return RunBlockOnHost<Protocol::kSimple>(kernel, args, numbers, b);
        case Protocol::kLl:
          return RunBlockOnHost<Protocol::kLl>(kernel, args, numbers, b);
        case Protocol::kLl128:
          return RunBlockOnHost<Protocol::kLl128>(kernel, args, numbers, b);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace xccl::device
