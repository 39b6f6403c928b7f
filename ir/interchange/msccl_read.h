// Reads MSCCL XML (ir/interchange/msccl_xml.h) as a program, and proves it. docs/msccl.md says what is taken.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

struct MscclReadOptions {
  std::string file = "msccl.xml";                 // opens messages
  std::optional<CollectiveKind> collective = {};  // of a file that says custom
  Rank root = Rank(0);                            // of broadcast and reduce, which the format does not say
};

// The program's connections have no paths: a file names no machine. Files that are right in place alone get
// what out of place lacks: the rank's own data is read from its input and copied where nothing else writes
// it. Errors: kInvalidInput with the line of what is malformed or out of range, or with the rule, instruction
// or (rank, chunk) that is wrong first.
StatusOr<LoweredProgram> ReadMscclXml(std::string_view text, const MscclReadOptions& options);

}  // namespace xccl
