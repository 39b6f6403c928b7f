#include <fmt/core.h>

#include <optional>
#include <string>

#include "base/strings.h"
#include "base/units.h"
#include "cli/flags.h"
#include "ir/machine_model.h"
#include "pipeline/arguments.h"
#include "synth/engines.h"

namespace xccl {

namespace {

struct Limit {
  const char* flag;
  std::optional<int32_t> SynthesisLimits::*value;
  const char* what;
};

}  // namespace

StatusOr<std::optional<MachineModel>> MachineOf(const std::string& name) {
  StatusOr<std::optional<MachineModel>> machine = FindMachine(name);
  if (machine.status().code() == StatusCode::kUsage) return Annotate(machine.status(), "--machine");
  return machine;
}

namespace {

constexpr Limit kLimits[] = {
    {"--chunks", &SynthesisLimits::chunks, "cut every part into this many chunks"},
    {"--steps", &SynthesisLimits::steps, "most steps of the schedule"},
    {"--rounds", &SynthesisLimits::rounds, "smt: most rounds of bandwidth in all steps together"},
};

}  // namespace

void AddSearchFlags(Command& command, PlanFlags& flags) {
  SynthesisRequest& request = flags.options.request;
  for (const Limit& limit : kLimits)
    command.AddOption(limit.flag, request.limits.*limit.value, limit.what).Between(1, 1 << 20);
  command.AddOption("--model", flags.model, "time model: pipelined or blocking").ShowDefault();
  command.AddOption("--seed", request.seed, "seed of every random choice").ShowDefault();
  command.AddFlag("--allow-divergent", request.allow_divergent,
                  "let ranks end with different roundings of one sum");
}

StatusOr<PlanOptions> PlanOptionsOf(const PlanFlags& flags, const Session& session) {
  PlanOptions options = flags.options;
  SynthesisRequest& request = options.request;
  XCCL_RETURN_IF_ERROR(FlagValue("--engine", FindEngine(options.engine)).status());
  XCCL_ASSIGN_OR_RETURN(request.size_bytes, ParseSizeFlag("--size", flags.size));
  XCCL_ASSIGN_OR_RETURN(request.model, FlagValue("--model", ParseTimeModel(flags.model)));
  std::vector<std::string> limits;
  for (const Limit& limit : kLimits)
    if (const auto& given = request.limits.*limit.value)
      limits.push_back(fmt::format("{}={}", limit.flag, *given));
  options.deadline = session.deadline;
  if (!session.time_limit.empty()) limits.push_back("--time-limit=" + session.time_limit);
  options.limits_text = Join(limits, " ");
  options.machine_of_topology = flags.machine.empty();
  if (!flags.machine.empty()) {
    XCCL_ASSIGN_OR_RETURN(options.machine, MachineOf(flags.machine));
  }
  return options;
}

void AddMachineFlag(Command& command, PlanFlags& flags, const std::string& what) {
  command.AddOption(
      "--machine", flags.machine,
      what +
          ": ampere,\n"
          "hopper, blackwell, b200 (NCCL's figures), gb300 (estimated from blackwell's), mi250x or\n"
          "mi300x (RCCL's figures; launch estimated), a machine.json, a plan book that tune wrote, or\n"
          "none: only links take time (default: that of the topology's GPUs, if known)");
}

void AddExecutionFlags(Command& command, PlanFlags& flags) {
  AddMachineFlag(command, flags,
                 "choose the program, its protocol, instances and segment by the time on this machine");
  command.AddOption("--max-ctas", flags.options.max_blocks, "threadblocks of one rank at most")
      .Between(1, 1 << 20);
  command.AddFlag("--verify-passes", flags.options.verify_passes,
                  "prove what every pass of lowering makes, not the program alone");
}

}  // namespace xccl
