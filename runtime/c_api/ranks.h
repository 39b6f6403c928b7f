// Makes ranks for the C API, and their back ends when their first books are loaded: threads of this process,
// or one rank among processes; on the CPU, or on GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/placement.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/c_api/handles.h"
#include "runtime/cuda/kernel_cache.h"

namespace xccl::c_api {

// The kernels that this process compiles.
const std::shared_ptr<cuda::KernelCache>& Kernels();

// Errors: kUsage for sizes and ranks that cannot be.
Status CheckSize(int ranks, int rank);
// All ranks, in this process, by rank. `devices`: as xcclCommInitAll's. Requires: 1 <= ranks.
std::vector<std::shared_ptr<Comm>> MakeThreads(int ranks, const int* devices);
// One rank among processes. Errors: kUsage for a size, a rank or an id that cannot be.
StatusOr<std::shared_ptr<Comm>> MakeById(int ranks, const UniqueId& id, int rank);
std::shared_ptr<Comm> MakeProcess(const Placement& placement);

}  // namespace xccl::c_api
