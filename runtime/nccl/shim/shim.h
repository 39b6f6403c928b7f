// The bodies of the exported functions. Each collective goes to a plan or to NCCL; within a group, when the
// outermost one ends. Results are NCCL's codes.
#pragma once

#include "runtime/nccl/shim/coverage.h"
#include "runtime/nccl/shim/nccl.h"

namespace xccl::nccl_shim {

int RunCollective(const NcclCall& call, NcclComm comm);
int StartGroup();
// Ends a group. An outermost group begins its calls of NCCL first and its plans' calls afterwards, on all
// ranks alike. Returns the first failure.
int EndGroup();
// Ends a group without running it: NCCL predicts the time of all its calls.
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
