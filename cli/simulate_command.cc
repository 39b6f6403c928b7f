// simulate: predicts the time of a plan file at any sizes, from its schedule or its program.
#include <fmt/core.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/experts.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "ir/known_machines.h"
#include "ir/plan.h"
#include "ir/time_model.h"
#include "ir/verify/read_plan.h"
#include "pipeline/predict.h"

namespace xccl {
namespace {

struct Flags {
  std::string file;
  std::string sizes;
  std::string model;
  std::string level;  // empty: the program if its machine is known, else the schedule
  PlanFlags plan;     // --machine alone
  ExpertSimulateFlags experts;
  std::optional<Command> command = {};
};

// The model of --machine, or else of the known machine that the plan was made for. Absent at the schedule
// level, where neither names a machine, and where the plan has no program.
StatusOr<std::optional<MachineModel>> MachineFor(const Plan& plan, const Flags& flags) {
  if (flags.level == "schedule" && !flags.plan.machine.empty())
    return UsageError("--machine: only programs run on machines; hint: --level=program");
  if (flags.level == "schedule" || (flags.level.empty() && !plan.program && flags.plan.machine.empty()))
    return std::optional<MachineModel>();
  const std::string& name = flags.plan.machine.empty() ? plan.made_by.machine : flags.plan.machine;
  return name.empty() ? std::optional<MachineModel>() : MachineOf(name);
}

StatusOr<std::vector<PlanTime>> Times(const Plan& plan, const Flags& flags, PlanLevel level,
                                      const MachineModel* machine) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                        ParseSizesFlag(flags.sizes, {plan.made_by.size_bytes}));
  for (const int64_t size : sizes) XCCL_RETURN_IF_ERROR(CheckNotEmpty("--sizes", size, plan.collective));
  TimeModel model = plan.made_by.model;
  if (!flags.model.empty()) {
    XCCL_ASSIGN_OR_RETURN(model, FlagValue("--model", ParseTimeModel(flags.model)));
  }
  return Predict(plan, sizes, model, level, machine);
}

// The level of --level, or else that of the plan's time. A machine in --machine asks for the program.
StatusOr<PlanLevel> LevelFor(const Plan& plan, const Flags& flags, const MachineModel* machine) {
  const bool program =
      flags.level == "program" || (flags.level.empty() && !flags.plan.machine.empty() && machine != nullptr);
  if (program && !plan.program)
    return InvalidInput(flags.file + ": no program in the plan; hint: --level=schedule");
  if (program) return PlanLevel::kProgram;
  return flags.level.empty() ? LevelOf(plan, machine) : PlanLevel::kSchedule;
}

Status SimulateFile(const Flags& asked, const Session& session) {
  if (IsExpertPlanFile(asked.file)) {
    for (const char* flag : {"--sizes", "--model", "--level", "--machine"})
      if (asked.command->IsGiven(flag))
        return UsageError(
            fmt::format("{}: {} is a plan of expert dispatch; expected no {}", flag, asked.file, flag));
    return SimulateExperts(asked.file, asked.experts, session);
  }
  for (const char* flag : {"--routing", "--draws"})
    if (asked.command->IsGiven(flag))
      return UsageError(fmt::format("{}: only for plans of expert dispatch", flag));
  Flags flags = asked;
  // The time_us of JSON is that of the schedule on ideal links, as in plan's JSON.
  if (session.json && flags.level.empty() && flags.plan.machine.empty()) flags.level = "schedule";
  XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(flags.file));
  XCCL_ASSIGN_OR_RETURN(const std::optional<MachineModel> machine, MachineFor(plan, flags));
  const std::string source = machine ? machine->source : "";
  const MachineModel* const on = machine ? &*machine : nullptr;
  XCCL_ASSIGN_OR_RETURN(const PlanLevel level, LevelFor(plan, flags, on));
  XCCL_ASSIGN_OR_RETURN(
      const std::vector<PlanTime> times,
      WithProgress("simulating " + flags.file, [&](Progress&) { return Times(plan, flags, level, on); }));
  const std::string model = flags.model.empty() ? std::string(ToString(plan.made_by.model)) : flags.model;
  if (session.json)
    return Print(ToJson(ToRows(times, {plan.collective.name(), plan.topology.name(), model, source})));
  const std::string by = plan.made_by.engine.empty() ? "" : " by " + plan.made_by.engine;
  const std::string no_machine = flags.plan.machine.empty() ? WhyNoModel(plan.topology.gpu_arch()) : "";
  return Print(fmt::format("{} on {}{}, {} simulated, {} model\n{}\n{}", plan.collective.name(),
                           plan.topology.name(), by, level == PlanLevel::kProgram ? "program" : "schedule",
                           model, WhatTimesAreOf(source, no_machine), TimesText(times)));
}

}  // namespace

void AddSimulateCommand(CommandLine& line, Session& session) {
  auto [command, flags] =
      AddCommand(line, session, "simulate", "Predict the time of a plan file at any sizes", SimulateFile);
  flags.command = command;
  command.AddOption("PLAN", flags.file, "a plan file").Required();
  command.AddOption("--sizes", flags.sizes, "1KiB,1MiB or 1KiB:1GiB:x4 (default: the plan's size)");
  command.AddOption("--model", flags.model, "time model: pipelined or blocking (default: the plan's)");
  command
      .AddOption("--level", flags.level,
                 "what is simulated: schedule or program (default: the program, if the plan has one and its\n"
                 "machine is known; else, and with --json, the schedule)")
      .OneOf({"schedule", "program"});
  AddExpertSimulateFlags(command, flags.experts);
  AddMachineFlag(command, flags.plan, "run the program on this machine");
  command.AddFlag("--json", session.json, "print the result as JSON");
  command.Footer("Example:\n  xccl-synth simulate allreduce.plan.json --sizes 1KiB:1GiB:x4");
}

}  // namespace xccl
