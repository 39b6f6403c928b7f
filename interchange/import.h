// Plans of other tools, told apart by how their text begins. Every format has a reader of its own; this is
// the one place that knows them all.
#pragma once

#include <string_view>

#include "base/status.h"
#include "interchange/common/foreign.h"

namespace xccl {

// Reads and proves a plan of another tool. Errors: kInvalidInput where no reader knows the text, and the
// errors of the readers: what is malformed, or the rule, instruction or (rank, chunk) that is wrong first.
StatusOr<Imported> ReadForeign(std::string_view text, const ImportOptions& options);

}  // namespace xccl
