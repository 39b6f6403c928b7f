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
  if (held_ == 0) return;
  const std::lock_guard lock(residency_->mutex_);
  residency_->held_[device_] -= held_;
}

Status Reservation::Raise(int32_t multiprocessors, int32_t blocks, const std::string& what) {
  if (multiprocessors <= held_) return OkStatus();
  const std::lock_guard lock(residency_->mutex_);
  int32_t& all = residency_->held_[device_];
  const int32_t others = all - held_;
  if (multiprocessors > there_are_ - others)
    return InvalidInput(fmt::format(
        "{}: {} blocks need {} multiprocessors at once; device {} has {}, and other communicators of this "
        "process hold {}; hint: --max-ctas",
        what, blocks, multiprocessors, device_, there_are_, others));
  all += multiprocessors - held_;
  held_ = multiprocessors;
  return OkStatus();
}

}  // namespace xccl::cuda
