// A plan's program in the files of MSCCL and MSCCL++: lowered for the executor (lower_for_executor.h), then
// written.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "interchange/msccl/xml.h"
#include "interchange/mscclpp/json.h"
#include "ir/plan.h"

namespace xccl {

// The sizes that a file is to be selected for, as its format counts them. An absent limit is the plan's
// (Plan::sizes).
struct AskedSizes {
  std::optional<int64_t> min_bytes, max_bytes;
};

// Options' sizes are set from `sizes`; the file's warnings include those of LowerFor. Errors: those of
// LowerFor. Requires: a program.
StatusOr<MscclXml> EmitMscclXml(const Plan& plan, MscclXmlOptions options, const AskedSizes& sizes);
// The plan that is written is read back and proved by the executor's rules, as programs are proved after
// lowering; where it is too large for that, a warning says so. Options' domains and sizes are set from the
// plan's machine and `sizes`. Errors: those of WriteMscclppJson and ReadMscclppJson. Requires: a program.
StatusOr<MscclppJson> EmitMscclppJson(const Plan& plan, MscclppOptions options, const AskedSizes& sizes);

}  // namespace xccl
