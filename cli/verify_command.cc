// verify: proves both levels of a plan file again.
#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/experts.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "ir/plan.h"
#include "ir/translated.h"
#include "ir/verify/verify_plan.h"

namespace xccl {
namespace {

// The file's claim whether all ranks get the same bits, which the verifier found true; empty: no claim.
std::string BitsText(const Plan& plan) {
  if (!plan.bitwise_same || !plan.collective.Reduces()) return "";
  return *plan.bitwise_same ? ", the same bits on every rank" : ", bits may differ between ranks";
}

Status VerifyFile(const std::string& file, const Session& session) {
  if (IsExpertPlanFile(file)) return VerifyExperts(file, session);
  std::vector<Violation> violations;
  const auto read = [&](Progress&) -> StatusOr<Plan> {
    XCCL_ASSIGN_OR_RETURN(Plan plan, ReadPlanUnverified(file));
    violations = VerifyPlan(plan);
    return plan;
  };
  XCCL_ASSIGN_OR_RETURN(const Plan plan, WithProgress("verifying " + file, read));
  std::string text;
  std::vector<Row> rows;
  for (const Violation& violation : violations) {
    text += fmt::format("{}: {}\n", file, ToString(violation));
    rows.push_back({{"rule", violation.rule}, {"where", violation.where}, {"text", violation.text}});
  }
  if (violations.empty())
    text = fmt::format(
        "{}: ok: {} on {}, {} transfers{}{}\n", file, plan.collective.name(), plan.topology.name(),
        ExpandedTransfers(plan.schedule, plan.collective, plan.topology),
        plan.program ? ", schedule and program proved" : ", schedule proved, no program in the file",
        BitsText(plan));
  if (session.json) text = ToJson({{"ok", violations.empty()}}, "violations", rows);
  XCCL_RETURN_IF_ERROR(Print(text));
  if (violations.empty()) return OkStatus();
  const bool all = violations.size() < kMaxViolations;
  return InvalidInput(fmt::format("{}: {}{}; expected none", file, all ? "" : "at least ",
                                  Counted(std::ssize(violations), "violation")));
}

}  // namespace

void AddVerifyCommand(CommandLine& line, Session& session) {
  auto [command, file] = AddCommand(line, session, "verify", "Prove a plan file again", VerifyFile);
  command.AddOption("PLAN", file, "a plan file").Required();
  command.AddFlag("--json", session.json, "print the result as JSON");
  command.Footer("Example:\n  xccl-synth verify allreduce.plan.json");
}

}  // namespace xccl
