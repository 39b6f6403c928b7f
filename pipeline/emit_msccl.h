// Writes a plan's program, as chosen for the executor (lower_for_executor.h), to a file of MSCCL or MSCCL++.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "interchange/msccl/xml.h"
#include "interchange/mscclpp/json.h"
#include "ir/plan.h"

namespace xccl {

// The sizes for which the executor selects the file, counted as the file's format counts sizes. If a limit is
// absent, the plan's limit is used (Plan::sizes). MSCCL++'s own upper limit is used instead if it is smaller.
struct AskedSizes {
  std::optional<int64_t> min_bytes, max_bytes;
};

// Writes an MSCCL XML file. Sets the sizes of `options` from `sizes`. The result includes the warnings of
// LowerFor. Errors: those of LowerFor. Requires: a program.
StatusOr<MscclXml> EmitMscclXml(const Plan& plan, MscclXmlOptions options, const AskedSizes& sizes);
// Writes an MSCCL++ JSON file. Then reads the file back and proves it by the executor's rules, for one call
// and for calls in a row. If the file is too large to be proved, adds a warning. Sets the domains of
// `options` from the plan's machine, and the sizes from `sizes`. The result includes the warnings of
// LowerFor. Errors: those of WriteMscclppJson and ReadMscclppJson; kInvalidInput if calls in a row fail.
// Requires: a program.
StatusOr<MscclppJson> EmitMscclppJson(const Plan& plan, MscclppOptions options, const AskedSizes& sizes);

}  // namespace xccl
