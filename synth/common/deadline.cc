#include "synth/common/deadline.h"

#include <chrono>
#include <limits>

namespace xccl {
namespace {

int64_t NowNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Deadline::Deadline(std::optional<double> limit_s) : limit_s_(limit_s), began_ns_(NowNs()) {}

double Deadline::SecondsLeft() const {
  if (!limit_s_) return std::numeric_limits<double>::infinity();
  return *limit_s_ - static_cast<double>(NowNs() - began_ns_) * 1e-9;
}

}  // namespace xccl
