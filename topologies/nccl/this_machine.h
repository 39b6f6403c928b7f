// The machine that this process runs on: NCCL's own dump where libnccl.so.2 and a GPU are present, else
// nvidia-smi's matrix.
#pragma once

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

// Runs nvidia-smi from PATH and loads NCCL, each in a child process with a time limit, so that neither can
// hang or crash the caller; without use_nccl, only nvidia-smi. Honours every flag of a TOPOLOGY argument.
// Errors: kInvalidInput "this machine:
// ...". Requires: a process with a single thread (it forks).
StatusOr<Topology> ReadThisMachine(const LoadOptions& options, bool use_nccl = true);

}  // namespace xccl
