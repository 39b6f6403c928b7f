// Reads execution plans of MSCCL++, written by interchange/mscclpp/json.h or by MSCCL++'s own language, as a
// program, and proves it. docs/msccl.md lists the plans that it accepts.
#pragma once

#include <string_view>

#include "base/status.h"
#include "interchange/common/foreign.h"

namespace xccl {

// Errors: kInvalidInput with the place of a malformed value; with the rank, threadblock and op that the
// executor has no room for or runs wrongly, that races with another op or waits forever, or whose signal
// nobody waits for; or with the rule, or the (rank, chunk), that is wrong first.
StatusOr<Imported> ReadMscclppJson(std::string_view text, const ImportOptions& options);

}  // namespace xccl
