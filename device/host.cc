#include "device/host.h"

#include <thread>
#include <vector>

namespace xccl::device {
namespace {

// Calls visit(AnyOperator<T>) with the C++ type of the numbers.
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

template <bool kLocal, bool kReceive, bool kStore, bool kSend>
bool MoveLl(HostNumbers numbers, LlArgs args, Waiter who) {
  return WithNumbers(
      numbers, [&](auto n) { return MoveLl<kLocal, kReceive, kStore, kSend, decltype(n)>(n, args, who); });
}
template <bool kLocal, bool kReceive, bool kStore, bool kSend>
bool MoveLl128(HostNumbers numbers, LlArgs args, Waiter who) {
  return WithNumbers(
      numbers, [&](auto n) { return MoveLl128<kLocal, kReceive, kStore, kSend, decltype(n)>(n, args, who); });
}
// send, recv, recv_copy_send, recv_reduce_send, recv_reduce_copy, recv_reduce_copy_send
template bool MoveLl<true, false, false, true>(HostNumbers, LlArgs, Waiter);
template bool MoveLl<false, true, true, false>(HostNumbers, LlArgs, Waiter);
template bool MoveLl<false, true, true, true>(HostNumbers, LlArgs, Waiter);
template bool MoveLl<true, true, false, true>(HostNumbers, LlArgs, Waiter);
template bool MoveLl<true, true, true, false>(HostNumbers, LlArgs, Waiter);
template bool MoveLl<true, true, true, true>(HostNumbers, LlArgs, Waiter);
template bool MoveLl128<true, false, false, true>(HostNumbers, LlArgs, Waiter);
template bool MoveLl128<false, true, true, false>(HostNumbers, LlArgs, Waiter);
template bool MoveLl128<false, true, true, true>(HostNumbers, LlArgs, Waiter);
template bool MoveLl128<true, true, false, true>(HostNumbers, LlArgs, Waiter);
template bool MoveLl128<true, true, true, false>(HostNumbers, LlArgs, Waiter);
template bool MoveLl128<true, true, true, true>(HostNumbers, LlArgs, Waiter);

void RunOnHost(const HostKernel& kernel, const LaunchArgs& args, Type type, Operator op, Protocol protocol) {
  HostNumbers numbers;
  numbers.type = type;
  numbers.the_op = op;
  std::vector<std::thread> threads;
  const int32_t blocks = args.ranks_here * kernel.info.blocks_per_rank * args.instances;
  for (int32_t b = 0; b < blocks; ++b)
    threads.emplace_back([&, b] { kernel.run[static_cast<int32_t>(protocol)](args, numbers, b); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace xccl::device
