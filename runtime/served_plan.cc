#include "runtime/served_plan.h"

namespace xccl {

std::vector<int64_t> PartsOf(const Collective& collective, const Call& call) {
  return std::vector<int64_t>(static_cast<size_t>(collective.num_parts()), call.count);
}

}  // namespace xccl
