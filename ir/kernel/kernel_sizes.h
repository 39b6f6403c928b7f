// Figures that the launch of a kernel needs at given sizes: scratch, tables of begins, passes. Computed
// from a KernelForm and the element counts of the parts, by the same formulas as in device/block.h.
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

// The number of elements before each scratch run, and last the total. Requires: `sizes` were made for the
// form's collective.
std::vector<int64_t> ScratchRunBegins(const KernelForm& form, const CollectiveSizes& sizes, Rank rank);
// The number of elements before each part of a rank's input or output, by position, and last the total.
std::vector<int64_t> PartBegins(const Collective& collective, const CollectiveSizes& sizes, Rank rank,
                                BufferKind buffer);
// The size of a rank's scratch in bytes.
int64_t ScratchBytes(const KernelForm& form, const CollectiveSizes& sizes, Rank rank);
// The bytes of a slot that the largest message takes in the program's own number of passes.
int64_t LargestMessageBytes(const Program& program, const KernelForm& form, const CollectiveSizes& sizes,
                            Protocol protocol);
// The number of passes at these sizes: the program's, or more if a message would not fit `slot_bytes` with
// the protocol. All ranks make that many. Errors: kInvalidInput if one message has more chunks than a slot
// can hold.
StatusOr<int32_t> KernelPasses(const Program& program, const KernelForm& form, const CollectiveSizes& sizes,
                               int64_t slot_bytes, Protocol protocol);

int64_t RunBytes(const KernelRun& run, const CollectiveSizes& sizes);
// The bytes of a slot that a slice of so many bytes occupies.
int64_t SlotBytes(Protocol protocol, int64_t bytes);

}  // namespace xccl
