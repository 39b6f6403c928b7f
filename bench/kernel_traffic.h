// The bytes that a kernel moves, to compare its time with the memory's bandwidth.
#pragma once

#include <cstdint>

#include "ir/kernel/kernel_form.h"
#include "ir/program.h"
#include "ir/sizes.h"

namespace xccl {

// The bytes that the blocks of all ranks read and write in memory, flags and slots included, if no cache
// helps. `direct`: peers' buffers are mapped. Requires: no multicast groups.
int64_t KernelTraffic(const KernelForm& form, const CollectiveSizes& sizes, Protocol protocol, bool direct);

}  // namespace xccl
