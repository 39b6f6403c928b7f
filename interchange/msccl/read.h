// Reads MSCCL XML (interchange/msccl/xml.h) as a program, and proves it. docs/msccl.md says what is taken.
#pragma once

#include <string_view>

#include "base/status.h"
#include "interchange/common/foreign.h"

namespace xccl {

// Files that are right in place alone get what out of place lacks: the rank's own data is read from its input
// and copied where nothing else writes it. Errors: kInvalidInput with the line of what is malformed or out of
// range, or with the rule, instruction or (rank, chunk) that is wrong first.
StatusOr<Imported> ReadMscclXml(std::string_view text, const ImportOptions& options);

}  // namespace xccl
