// What a launch of a kernel needs to know at given sizes: scratch, tables of begins, passes. In: a KernelForm
// and the element counts of the parts. The same formulas as device/block.h's.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/kernel/kernel_form.h"
#include "ir/program.h"
#include "ir/sizes.h"

namespace xccl {

// Elements before each scratch run, and at last the total. Requires: sizes are those of the form's
// collective.
std::vector<int64_t> ScratchRunBegins(const KernelForm& form, const CollectiveSizes& sizes, Rank rank);
// Elements before each part of a rank's input or output, by position, and at last the total.
std::vector<int64_t> PartBegins(const Collective& collective, const CollectiveSizes& sizes, Rank rank,
                                BufferKind buffer);
// Bytes of scratch of a rank.
int64_t ScratchBytes(const KernelForm& form, const CollectiveSizes& sizes, Rank rank);
// Passes at these sizes: the program's, or more, so that every message fits `slot_bytes` with the protocol.
// The same on all ranks. Errors: kInvalidInput where one message has more chunks than a slot can hold.
StatusOr<int32_t> KernelPasses(const Program& program, const Collective& collective, const KernelForm& form,
                               const CollectiveSizes& sizes, int64_t slot_bytes, Protocol protocol);

// Bytes that all ranks' blocks read and write in memory, flags and slots included: what a kernel moves that
// misses every cache. `direct`: peers' buffers are mapped. Requires: no multicast groups.
int64_t KernelTraffic(const KernelForm& form, const CollectiveSizes& sizes, Protocol protocol, bool direct);

}  // namespace xccl
