// A plan's program as MSCCL XML.
#pragma once

#include "base/status.h"
#include "ir/interchange/msccl_xml.h"
#include "ir/plan.h"

namespace xccl {

// Where the executor has too few slots for the plan's program, the schedule is lowered again for so few; a
// warning says so. Errors: those of WriteMscclXml for the plan's own program. Requires: a program.
StatusOr<MscclXml> EmitMscclXml(const Plan& plan, const MscclXmlOptions& options);

}  // namespace xccl
