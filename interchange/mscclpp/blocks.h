// The ranks of an MSCCL++ plan, made from a program. Private to the writer.
#pragma once

#include <vector>

#include "base/status.h"
#include "interchange/mscclpp/atoms.h"
#include "interchange/mscclpp/cut.h"
#include "interchange/mscclpp/file.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl::mscclpp {

// Errors: those of Atoms::CheckGroups.
StatusOr<std::vector<Gpu>> MakeGpus(const Program& program, const Collective& collective, const Cut& cut,
                                    const BlockOptions& options);

}  // namespace xccl::mscclpp
