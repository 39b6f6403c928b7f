// verify: proves both levels of a plan file again.
#include <cstdio>

#include "cli/commands.h"
#include "cli/output_json.h"
#include "cli/progress.h"
#include "ir/plan.h"
#include "ir/translated.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"

namespace xccl {
namespace {

Status VerifyFile(const std::string& file, bool json) {
  std::vector<Violation> violations;
  StatusOr<Plan> plan = InvalidInput("");
  {
    const Progress progress("verifying " + file);
    plan = ReadPlanUnverified(file);
    XCCL_RETURN_IF_ERROR(plan.status());
    violations = VerifySchedule(plan->schedule, plan->collective, plan->topology);
    if (plan->program) {
      for (Violation& violation : VerifyProgram(plan->program->program, plan->program->collective))
        violations.push_back(std::move(violation));
    }
  }
  if (json) {
    std::fputs(ViolationsJson(violations).c_str(), stdout);
  } else if (violations.empty()) {
    std::printf(
        "%s: ok: %s on %s, %lld transfers%s\n", file.c_str(), plan->collective.name().c_str(),
        plan->topology.name().c_str(),
        static_cast<long long>(ExpandedTransfers(plan->schedule, plan->collective, plan->topology)),
        plan->program ? ", schedule and program proved" : ", schedule proved, no program in the file");
  } else {
    for (const Violation& violation : violations)
      std::printf("%s: %s\n", file.c_str(), ToString(violation).c_str());
  }
  const Status status = ToStatus(violations);
  return status.ok() ? status : Annotate(status, file);
}

}  // namespace

void AddVerifyCommand(CommandLine& line, Session& session) {
  auto [command, file] = AddCommand(line, session, "verify", "Prove a plan file again", VerifyFile);
  command.AddOption("PLAN", file, "a plan file").Required();
  command.AddFlag("--json", session.json, "print the result as JSON");
  command.Footer("Example:\n  xccl-synth verify allreduce.plan.json");
}

}  // namespace xccl
