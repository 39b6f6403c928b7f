// A plan's program for an executor of another project, which has fewer slots than XCCL's own.
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
  std::vector<std::string> warnings;  // the program is not the plan's, or the executor takes much longer
};

// Executors of MSCCL XML have few slots. Where the plan's program counts on more, and the target does not run
// it or takes over kSlower times its time, the schedule is lowered for few slots, too, and the faster program
// is taken. Both are simulated as the target runs them (AsRunByMsccl), at the plan's size and on its links.
// Errors: those of WriteMscclXml for the plan's own program. Requires: a program.
StatusOr<ExecutorProgram> LowerFor(const MscclXmlOptions& target, const Plan& plan);

// MSCCL++ runs the plan's own program. Warns where it takes over kSlower times its time with it. Requires: a
// program.
ExecutorProgram LowerFor(const MscclppOptions& target, const Plan& plan);

}  // namespace xccl
