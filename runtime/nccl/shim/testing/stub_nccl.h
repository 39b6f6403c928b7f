// NCCL for tests, on FakeDriver's memory: collectives of small integers among the ranks of a process, or of
// processes that were forked from the one that made the communicator. A call waits for its ranks, as NCCL's
// kernels do, and counts.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/nccl/shim/nccl.h"

namespace xccl::nccl_shim {

// The object behind a handle of NCCL. The first rank owns the memory that the ranks share.
struct StubRank;

struct StubOptions {
  int polls = 0;  // calls of CommGetAsyncError that find a communicator in progress
};

// The driver's functions, from when the process has some; ranks of other processes have their own.
void SetStubDriver(const cuda::Driver* driver);
// A communicator with rank r on devices[r]. Its handles are valid until they are destroyed or aborted.
std::vector<NcclComm> MakeStubComms(const std::vector<int>& devices, const StubOptions& options = {});
// Drops the copies of a process whose children have used them.
void ForgetStubComms(const std::vector<NcclComm>& comms);
// All the functions, including the newest NCCL's.
Nccl StubNccl();
// The number of calls since it was asked for last, of this process: by the functions' names without p.
std::map<std::string, int> TakeStubCalls();

}  // namespace xccl::nccl_shim
