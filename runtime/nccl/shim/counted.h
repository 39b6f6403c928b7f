// Calls that NCCL runs, counted for XCCL_LOG_CALLS (runtime/call_counter.h). Plans' calls are counted by the
// communicators that run them.
#pragma once

#include "runtime/call_counter.h"
#include "runtime/nccl/shim/coverage.h"
#include "runtime/nccl/shim/nccl.h"

namespace xccl::nccl_shim {

// The process's log; null where there is none.
CallLogFile* TheLog();
// Counts a call that NCCL has taken. Nothing is counted while NCCL is still making the communicator.
void CountNcclCall(const Nccl& nccl, const NcclCall& call, NcclComm comm, CallLogFile& log);
// For a communicator that ends; its handle may be another's afterwards.
void EndCounting(NcclComm comm);

}  // namespace xccl::nccl_shim
