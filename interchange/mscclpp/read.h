// Reads execution plans of MSCCL++, written by interchange/mscclpp/json.h or by MSCCL++'s own language, as a
// program, and proves it. docs/msccl.md lists the plans that it accepts.
#pragma once

#include <string_view>

#include "base/status.h"
#include "interchange/common/foreign.h"

namespace xccl {

// Errors: kInvalidInput with the place of what is malformed; with the rank, threadblock and op of what
// the executor has no room for or runs wrongly, of ops that race with each other or wait forever, and of
// signals without waits; or with the rule, or the (rank, chunk), that is wrong first.
StatusOr<Imported> ReadMscclppJson(std::string_view text, const ImportOptions& options);

}  // namespace xccl
