// A plan's program in the files of MSCCL and MSCCL++, timed as they will run.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "interchange/msccl/xml.h"
#include "interchange/mscclpp/json.h"
#include "ir/plan.h"

namespace xccl {

// Sizes that a file is to be selected for, as its format counts them; what is absent is as the plan says
// (Plan::sizes).
struct AskedSizes {
  std::optional<int64_t> min_bytes, max_bytes;
};

// Executors have few slots. Where the plan's program counts on more, its schedule is also lowered for so few,
// and the faster file is taken; a warning says that it is another program than the plan's.
// Options' sizes are set from `sizes`. Errors: those of WriteMscclXml for the plan's own program. Requires: a
// program.
StatusOr<MscclXml> EmitMscclXml(const Plan& plan, MscclXmlOptions options, const AskedSizes& sizes);
// The plan is read back and proved by the executor's rules; where it is too large for that, a warning says
// so. Options' domains and sizes are set from the plan's machine and `sizes`. Errors: those of
// WriteMscclppJson and ReadMscclppJson. Requires: a program.
StatusOr<MscclppJson> EmitMscclppJson(const Plan& plan, MscclppOptions options, const AskedSizes& sizes);

}  // namespace xccl
