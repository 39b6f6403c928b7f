#include "runtime/cuda/launch_orders.h"

#include <fmt/core.h>

namespace xccl::cuda {

std::mutex& LaunchOrders::Turn(Rank rank) {
  const std::lock_guard lock(mutex_);
  return orders_[rank].turn;
}

Status LaunchOrders::Follow(Rank rank, const Gpu& gpu, Stream stream, const std::string& program) {
  const std::lock_guard lock(mutex_);
  const Order& mine = orders_[rank];
  for (const auto& [other, order] : orders_) {
    // A launch of an earlier call does not wait for this one.
    if (other == rank || !order.done || order.device != gpu.id() || order.stream != stream ||
        order.launches <= mine.launches)
      continue;
    const CaptureRelaxed relaxed(gpu);
    if (gpu.driver().EventQuery(*order.done) == Result::kNotReady)
      return InvalidInput(
          fmt::format("{}: rank {} launches on the stream of rank {}, whose kernel runs there and waits for "
                      "this one; expected a stream for each rank of a device",
                      program, rank.value, other.value));
  }
  // Even on the same stream: a handle may be that of a stream made after the last one's end.
  if (!mine.done) return OkStatus();
  return gpu.Check(gpu.driver().StreamWaitEvent(stream, *mine.done, 0), "cuStreamWaitEvent");
}

void LaunchOrders::Launched(Rank rank, const Gpu& gpu, Stream stream, Event done) {
  const std::lock_guard lock(mutex_);
  Order& order = orders_[rank];
  ++order.launches;
  order.device = gpu.id();
  order.stream = stream;
  order.done = done;
}

void LaunchOrders::Captured(Rank rank) {
  const std::lock_guard lock(mutex_);
  ++orders_[rank].launches;
}

void LaunchOrders::Forget(Event done) {
  const std::lock_guard lock(mutex_);
  for (auto& [rank, order] : orders_)
    if (order.done == done) order.done.reset();
}

}  // namespace xccl::cuda
