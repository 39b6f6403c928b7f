// PMI-1, the protocol of lines by which MPICH's Hydra, and Slurm with --mpi=pmi2, let the processes of a job
// leave values for each other. Rank 0 makes a unique id and leaves it there, with its secret token.
#pragma once

#include <memory>

#include "base/status.h"
#include "runtime/bootstrap/options.h"
#include "runtime/bootstrap/placement.h"

namespace xccl::bootstrap {

struct PmiPlacement {
  Placement placement;
  std::shared_ptr<void> id;  // the use of the id, which is served while its maker joins
};
// All ranks call it equally often. Errors: kSystem with what the process manager answered.
StatusOr<PmiPlacement> PlacementByPmi(const Placement& placement, const BootstrapOptions& options);

}  // namespace xccl::bootstrap
