#include <fmt/core.h>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "cli/flags.h"
#include "ir/machine_model.h"

namespace xccl {

namespace {

struct Limit {
  const char* flag;
  std::optional<int32_t> PlanFlags::*value;
  const char* what;
};
constexpr Limit kLimits[] = {
    {"--chunks", &PlanFlags::chunks, "cut every part into this many chunks"},
    {"--steps", &PlanFlags::steps, "most steps of the schedule"},
    {"--rounds", &PlanFlags::rounds, "smt: most rounds of bandwidth in all steps together"},
};

}  // namespace

void AddSearchFlags(Command& command, PlanFlags& flags) {
  for (const Limit& limit : kLimits)
    command.AddOption(limit.flag, flags.*limit.value, limit.what).Between(1, 1 << 20);
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
  for (const Limit& limit : kLimits)
    if (flags.*limit.value) limits.push_back(fmt::format("{}={}", limit.flag, *(flags.*limit.value)));
  if (!flags.time_limit.empty()) {
    XCCL_ASSIGN_OR_RETURN(const int64_t limit_ps, FlagValue("--time-limit", ParseDuration(flags.time_limit)));
    options.limits.time_limit_s = static_cast<double>(limit_ps) / 1e12;
    limits.push_back("--time-limit=" + flags.time_limit);
  }
  options.limits_text = Join(limits, " ");
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
