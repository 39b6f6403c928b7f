#include "runtime/cuda/residency.h"

#include <fmt/core.h>

namespace xccl::cuda {

const std::shared_ptr<Residency>& Residency::OfProcess() {
  static const std::shared_ptr<Residency> residency = std::make_shared<Residency>();
  return residency;
}

int32_t Residency::held(int32_t device) const {
  const std::lock_guard lock(mutex_);
  const auto at = held_.find(device);
  return at == held_.end() ? 0 : at->second;
}

Reservation::~Reservation() {
  const std::lock_guard lock(residency_->mutex_);
  for (const auto& [device, held] : held_) residency_->held_[device] -= held;
}

Status Reservation::Raise(int32_t device, int32_t there_are, int32_t multiprocessors, int32_t blocks,
                          const std::string& what) {
  const std::lock_guard lock(residency_->mutex_);
  int32_t &all = residency_->held_[device], &mine = held_[device];
  if (multiprocessors <= mine) return OkStatus();
  const int32_t others = all - mine;
  if (multiprocessors > there_are - others)
    return InvalidInput(fmt::format(
        "{}: {} blocks need {} multiprocessors at once; device {} has {}, and other communicators of this "
        "process hold {}; hint: {}",
        what, blocks, multiprocessors, device, there_are, others, ctas_hint_));
  all += multiprocessors - mine;
  mine = multiprocessors;
  return OkStatus();
}

}  // namespace xccl::cuda
