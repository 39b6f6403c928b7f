// Finds the number of hosts and ranks of the job that this process belongs to. Reads only the launcher's
// environment and connects to nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/status.h"
#include "runtime/bootstrap/placement.h"

namespace xccl {

struct JobShape {
  Rank rank;
  int32_t hosts = 1;
  int32_t ranks_per_host = 1;  // equal on all hosts; rank r is on host r / ranks_per_host
  bool operator==(const JobShape&) const = default;
  int32_t ranks() const { return hosts * ranks_per_host; }
};

// Returns nothing if neither a launcher nor a user by hand started this process as a rank. Errors: those of
// FindPlacement; kInvalidInput if the launcher is unusable (UnusableLauncher), if the variables do not tell
// the ranks of a host, if hosts differ in their ranks, or if ranks are dealt to hosts in turn.
StatusOr<std::optional<JobShape>> ShapeOfJob(const Environment& environment);

}  // namespace xccl
