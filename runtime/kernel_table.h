// A Program as the interpreter kernel reads it: the words that device/interpret.h describes. In: a KernelForm
// made without merging, so that a block has at most one end of each kind.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/kernel/kernel_form.h"
#include "ir/program.h"

namespace xccl {

// Requires: form = MakeKernelForm(program, collective, /*merge=*/false). Errors: kInvalidInput above 2^31
// words.
StatusOr<std::vector<int32_t>> KernelTable(const Program& program, const KernelForm& form);

}  // namespace xccl
