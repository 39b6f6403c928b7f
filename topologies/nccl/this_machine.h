// The machine that this process runs on: NCCL's own dump where libnccl.so.2 and a GPU are there, else
// nvidia-smi's matrix.
#pragma once

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

struct ThisMachineOptions {
  bool use_nccl = true;  // false: nvidia-smi alone
};

// Runs nvidia-smi, found on PATH, and loads NCCL in a child process, each with a time limit, so that neither
// can hang or crash the caller. Honours every flag of a TOPOLOGY argument. Errors: kInvalidInput "this
// machine: ...". Not for use in a process with several threads (it forks).
StatusOr<Topology> ReadThisMachine(const LoadOptions& options, const ThisMachineOptions& how = {});

}  // namespace xccl
