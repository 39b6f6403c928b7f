// The identity of this process, as its launcher gives it: Open MPI's mpirun, Slurm's srun or torchrun set the
// environment. Nothing here starts processes. An environment is passed in as a function, so that this file
// reads no globals.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"

namespace xccl {

struct Placement {
  std::string launcher;  // "open-mpi", "slurm", "torchrun", "explicit"
  Rank rank;
  int32_t ranks = 1;
  int32_t local_rank = 0;  // among the ranks of this host
  int32_t local_ranks = 1;
  std::string job;  // names this run on its hosts: letters, digits, dots and dashes
  bool operator==(const Placement&) const = default;
};

using Environment = std::function<std::optional<std::string>(std::string_view name)>;
// The process's own environment.
std::optional<std::string> ProcessEnvironment(std::string_view name);

// XCCL_RANK, XCCL_SIZE (and XCCL_JOB) first, then torchrun's, Open MPI's and Slurm's variables.
// Errors: kInvalidInput naming the variable that is missing, no number or out of range; kInvalidInput with
// what was looked for where there is no launcher.
StatusOr<Placement> FindPlacement(const Environment& environment);

}  // namespace xccl
