#include "synth/common/cost_model.h"

#include <algorithm>
#include <limits>

namespace xccl {

int64_t LeastUsefulBytes(int64_t bandwidth_bytes_per_s) {
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(bandwidth_bytes_per_s) *
                                                   (static_cast<double>(kMessagePs) * 1e-12)));
}

int64_t LeastUsefulBytes(const Topology& topology) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Link& link : topology.spec().links)
    least = std::min(least, LeastUsefulBytes(link.bandwidth_bytes_per_s));
  return least;
}

}  // namespace xccl
