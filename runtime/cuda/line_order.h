// Protocol LL128 needs that the 128 bytes of a store arrive in order (device/ll.h). NVLink and the memory of
// one GPU of sm_70 or later keep it; PCIe does not.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "ir/program.h"
#include "runtime/cuda/device_program.h"
#include "runtime/host/exchange.h"

namespace xccl::cuda {

// Checks the connections of these ranks, if the program's protocol is LL128. All processes of the host call
// it. A peer's device that this process does not see is not checked. Errors: kInvalidInput with both ranks
// and devices; those of the driver and the exchange.
Status CheckLineOrder(const std::string& name, const Program& program, std::span<const LocalRank> ranks,
                      const Exchange& exchange);

}  // namespace xccl::cuda
