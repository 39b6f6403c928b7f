// Several process groups at once: who takes part in which collective, with how many bytes. A rank may be in
// many groups. In: a file; out: the groups. The file (docs/training.md):
//   {"name":"step", "groups":[{"name":"tp0", "collective":"allreduce", "size":"64MiB", "ranks":"0-7",
//     "count":4}, ...]}
// ranks is a list as in --ranks or an array (all where it is missing); root, pairs ("0>1,2>3") and counts
// (an array) as the collective needs them; count, how often per step, is 1 where it is missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"

namespace xccl {

// The largest size of a group's buffer, far beyond any machine's memory, and the most calls a step, far
// beyond any training step.
inline constexpr int64_t kMostGroupBytes = int64_t{1} << 50;
inline constexpr int64_t kMostGroupCount = 1'000'000'000;

struct ProcessGroup {
  std::string name;        // unique
  Collective collective;   // parts whole
  int64_t size_bytes = 0;  // nccl-tests'
  int64_t count = 1;       // times per step
};

struct GroupRequest {
  std::string name;
  std::vector<ProcessGroup> groups;  // not empty
};

// Errors: kInvalidInput naming the file and the key.
StatusOr<GroupRequest> ReadGroups(const std::string& path, int32_t num_ranks);

}  // namespace xccl
