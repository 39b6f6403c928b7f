#include "synth/common/compose.h"

namespace xccl {

Schedule Compose(const Schedule& first, const Schedule& second) {
  XCCL_CHECK(first.num_chunks == second.num_chunks && first.symmetry == second.symmetry);
  Schedule both = first;
  both.Reserve(first.size() + second.size());
  std::vector<int32_t> path_of(static_cast<size_t>(second.paths.size()), -1);
  const int32_t steps = first.num_steps();
  for (int64_t t = 0; t < second.size(); ++t) {
    Transfer transfer = second.at(t);
    int32_t& path = path_of[transfer.path.index()];
    if (path < 0) path = both.paths.Intern(second.paths[transfer.path]).value;
    transfer.path = PathId(path);
    transfer.step += steps;
    both.Add(transfer);
  }
  Normalize(both);
  return both;
}

}  // namespace xccl
