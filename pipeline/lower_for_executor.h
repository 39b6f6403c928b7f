// Chooses a program of a plan for an executor of another project, which may have fewer slots than XCCL's.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "interchange/msccl/xml.h"
#include "interchange/mscclpp/json.h"
#include "ir/plan.h"
#include "ir/program.h"

namespace xccl {

struct ExecutorProgram {
  LoweredProgram lowered;
  std::vector<std::string> warnings;  // if it is not the plan's program, or the executor is much slower
};

// Returns the plan's program, or a new program of its schedule for few slots, because executors of MSCCL XML
// have few slots. A new program is tried if the plan's program has more slots and no groups, and the target
// either does not run it or takes over kSlower times the plan's time. The faster program wins. Both programs
// are simulated as the target runs them (AsRunByMsccl), at the plan's size and on its machine model. Errors:
// those of WriteMscclXml for the plan's own program. Requires: a program.
StatusOr<ExecutorProgram> LowerFor(const MscclXmlOptions& target, const Plan& plan);

// Returns the plan's own program. Warns if MSCCL++ takes over kSlower times as long. Requires: a program.
ExecutorProgram LowerFor(const MscclppOptions& target, const Plan& plan);

}  // namespace xccl
