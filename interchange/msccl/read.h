// Reads MSCCL XML (interchange/msccl/xml.h) as a program, and proves it. docs/msccl.md lists the files that
// it accepts.
#pragma once

#include <string_view>

#include "base/status.h"
#include "interchange/common/foreign.h"

namespace xccl {

// A file that is right only in place is completed for out of place: the rank's own data is read from its
// input, and copied to its output where nothing else writes it. Errors: kInvalidInput with the line that is
// malformed or out of range, or with the rule, instruction or (rank, chunk) that is wrong first.
StatusOr<Imported> ReadMscclXml(std::string_view text, const ImportOptions& options);

}  // namespace xccl
