// Reads a file that lists process groups which work at the same time: their members, collectives and sizes. A
// rank may be in many groups. The file (docs/training.md):
//   {"name":"step", "groups":[{"name":"tp0", "collective":"allreduce", "size":"64MiB", "ranks":"0-7",
//     "count":4}, ...]}
// `ranks` is a list as in --ranks, or an array; without it, all ranks are members. `pairs` ("0>1,2>3") and
// `counts` (an array) are given if the collective needs them; `root` is the first of `ranks` by default.
// `count` is the number of calls per step, 1 by default.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"

namespace xccl {

// The upper limit of a group's calls per step, far beyond any training step.
inline constexpr int64_t kMostGroupCount = 1'000'000'000;

struct ProcessGroup {
  std::string name;        // unique
  Collective collective;   // its parts are not cut into chunks
  int64_t size_bytes = 0;  // as nccl-tests counts it
  int64_t count = 1;       // calls per step
};

struct GroupRequest {
  std::string name;
  std::vector<ProcessGroup> groups;  // not empty
};

// Reads the groups in the file at `path`. Errors: those of ReadFileOfKind; kInvalidInput naming the file and
// the key.
StatusOr<GroupRequest> ReadGroups(const std::string& path, int32_t num_ranks);

}  // namespace xccl
