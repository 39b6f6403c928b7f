#include "cli/plan_flags.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/units.h"
#include "cli/flags.h"
#include "ir/machine_model.h"

namespace xccl {

void AddSearchFlags(Command& command, PlanFlags& flags) {
  const auto count = [&](const char* name, std::optional<int32_t>& value, const char* what) {
    command.AddOption(name, value, what).Between(1, 1 << 20);
  };
  count("--chunks", flags.chunks, "cut every part into this many chunks");
  count("--steps", flags.steps, "most steps of the schedule");
  count("--rounds", flags.rounds, "smt: most rounds of bandwidth in all steps together");
  command.AddOption("--model", flags.model, "time model: pipelined or blocking").ShowDefault();
  command.AddOption("--seed", flags.seed, "of every random choice").NotNegative().ShowDefault();
  command.AddOption(
      "--time-limit", flags.time_limit,
      "stop after this wall time (10s); without it limits are counted in work, so that the same\n"
      "flags give the same plan");
  command.AddFlag("--allow-divergent", flags.allow_divergent,
                  "let ranks end with different roundings of one sum");
}

StatusOr<PlanOptions> PlanOptionsOf(const PlanFlags& flags) {
  PlanOptions options;
  options.engine = flags.engine;
  XCCL_ASSIGN_OR_RETURN(options.size_bytes, ParseSizeFlag("--size", flags.size));
  XCCL_ASSIGN_OR_RETURN(options.model, ParseModelFlag(flags.model));
  options.limits.chunks = flags.chunks;
  options.limits.steps = flags.steps;
  options.limits.rounds = flags.rounds;
  options.seed = flags.seed;
  options.allow_divergent = flags.allow_divergent;
  std::vector<std::string> limits;
  if (flags.chunks) limits.push_back(fmt::format("--chunks={}", *flags.chunks));
  if (flags.steps) limits.push_back(fmt::format("--steps={}", *flags.steps));
  if (flags.rounds) limits.push_back(fmt::format("--rounds={}", *flags.rounds));
  if (!flags.time_limit.empty()) {
    const StatusOr<int64_t> limit = ParseDuration(flags.time_limit);
    if (!limit.ok()) return FlagError(limit.status(), "--time-limit");
    options.limits.time_limit_s = static_cast<double>(*limit) / 1e12;
    limits.push_back("--time-limit=" + flags.time_limit);
  }
  for (size_t i = 0; i < limits.size(); ++i) options.limits_text += (i > 0 ? " " : "") + limits[i];
  return options;
}

void AddExecutionFlags(Command& command, ExecutionFlags& flags) {
  command.AddOption(
      "--machine", flags.machine,
      "choose the program's protocol, instances and segment for this machine: a machine.json, a plan\n"
      "book that tune wrote, or hopper (NCCL's figures); without it links are all");
  command.AddOption("--max-ctas", flags.max_ctas, "threadblocks of one rank at most").Between(1, 1 << 20);
  command.AddFlag("--verify-passes", flags.verify_passes,
                  "prove what every pass of lowering makes, not the program alone");
}

Status SetExecution(const ExecutionFlags& flags, PlanOptions& options) {
  options.max_blocks = flags.max_ctas;
  options.verify_passes = flags.verify_passes;
  if (flags.machine.empty()) return OkStatus();
  if (flags.machine == "hopper") {
    options.machine = HopperModel();
    return OkStatus();
  }
  XCCL_ASSIGN_OR_RETURN(
      options.machine,
      ReadMachineModel(IsDirectory(flags.machine) ? flags.machine + "/machine.json" : flags.machine));
  return OkStatus();
}

}  // namespace xccl
