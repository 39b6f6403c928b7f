// What the exported functions do. Each collective goes to a plan or to NCCL; within a group, when the
// outermost one ends. Results are NCCL's.
#pragma once

#include "runtime/nccl/shim/coverage.h"
#include "runtime/nccl/shim/nccl.h"

namespace xccl::nccl_shim {

int RunCollective(const NcclCall& call, NcclComm comm);
int StartGroup();
// Ends a group. Of what an outermost group has, NCCL's part is begun first, on all ranks alike. Returns the
// first failure.
int EndGroup();
// Ends a group without running it: NCCL foretells the time of all of it.
int SimulateGroup(void* info);

int DestroyComm(NcclComm comm);
int FinalizeComm(NcclComm comm);
int AbortComm(NcclComm comm);
int RevokeComm(NcclComm comm, int flags);
int ShrinkComm(NcclComm comm, int* exclude, int count, NcclComm* made, void* config, int flags);
int AsyncErrorOf(NcclComm comm, int* error);

// Reads the environment again, for tests.
void ForgetEnvironment();

}  // namespace xccl::nccl_shim
