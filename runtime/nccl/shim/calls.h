// A collective, called on either side.
#pragma once

#include "runtime/nccl/shim/coverage.h"
#include "runtime/nccl/shim/member.h"
#include "runtime/nccl/shim/nccl.h"

namespace xccl::nccl_shim {

// kInvalidUsage where this NCCL has no such collective.
int CallNccl(const Nccl& nccl, const NcclCall& call, NcclComm comm);
// Requires: the member is kOurs, or was until it was aborted meanwhile. A failure's text is said.
int CallOurs(Member& member, const NcclCall& call);

}  // namespace xccl::nccl_shim
