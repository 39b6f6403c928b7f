#include "synth/common/compose.h"

#include <vector>

namespace xccl {

Schedule Compose(const Schedule& first, const Schedule& second) {
  XCCL_CHECK(first.num_chunks == second.num_chunks && first.symmetry == second.symmetry);
  Schedule both = first;
  both.Reserve(first.size() + second.size());
  std::vector<PathId> path;
  for (int32_t p = 0; p < second.paths.size(); ++p)
    path.push_back(both.paths.Intern(second.paths[PathId(p)]));
  const int32_t steps = first.num_steps();
  for (int64_t t = 0; t < second.size(); ++t) {
    Transfer transfer = second.at(t);
    transfer.path = path[transfer.path.index()];
    transfer.step += steps;
    both.Add(transfer);
  }
  Normalize(both);
  return both;
}

}  // namespace xccl
