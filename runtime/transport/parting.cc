#include "runtime/transport/parting.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>
#include <utility>

namespace xccl {
namespace {

class Parting final : public Transport {
 public:
  Parting(std::unique_ptr<Transport> network, const NetworkMemory& memory, PartingRules rules)
      : network_(std::move(network)), memory_(memory), rules_(std::move(rules)) {}
  Parting(const Parting&) = delete;
  Parting& operator=(const Parting&) = delete;
  ~Parting() override;

  ConnectionEnd At(int32_t connection) override { return network_->At(connection); }
  void Put(int32_t connection, int64_t bytes) override { network_->Put(connection, bytes); }
  void Take(int32_t connection, bool together) override { network_->Take(connection, together); }
  void GiveBack() override { network_->GiveBack(); }
  StatusOr<bool> Progress() override { return network_->Progress(); }
  bool Flushed() const override { return network_->Flushed(); }
  std::span<const int> files() const override { return network_->files(); }
  bool PrepareToSleep() override { return network_->PrepareToSleep(); }

 private:
  bool AllTaken() const;

  const std::unique_ptr<Transport> network_;
  const NetworkMemory memory_;
  const PartingRules rules_;
};

bool Parting::AllTaken() const {
  return std::ranges::all_of(memory_.layout.connections, [&](const RemoteConnection& one) {
    const ConnectionCell& cell = memory_.cells[one.cell];
    return !one.sends ||
           cell.tail.load(std::memory_order_acquire) == cell.head.load(std::memory_order_relaxed) ||
           rules_.has_left(one.peer);
  });
}

Parting::~Parting() {
  constexpr std::chrono::microseconds kShortest(20), kLongest(1000);
  const auto began = std::chrono::steady_clock::now();
  network_->GiveBack();
  auto pause = kShortest;
  while (!rules_.failed() && std::chrono::steady_clock::now() - began < rules_.time_limit) {
    const StatusOr<bool> moved = network_->Progress();
    if (!moved.ok() || (network_->Flushed() && AllTaken())) return;
    pause = *moved ? kShortest : std::min(2 * pause, kLongest);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

std::unique_ptr<Transport> PartWhenTaken(std::unique_ptr<Transport> network, const NetworkMemory& memory,
                                         PartingRules rules) {
  return std::make_unique<Parting>(std::move(network), memory, std::move(rules));
}

}  // namespace xccl
