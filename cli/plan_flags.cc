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
  std::optional<int32_t> SynthesisLimits::*value;
  const char* what;
};
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
  command.AddOption(
      "--time-limit", flags.time_limit,
      "stop after this wall time (10s); without it limits are counted in work, so that the same\n"
      "flags give the same plan");
  command.AddFlag("--allow-divergent", request.allow_divergent,
                  "let ranks end with different roundings of one sum");
}

StatusOr<PlanOptions> PlanOptionsOf(const PlanFlags& flags) {
  PlanOptions options = flags.options;
  SynthesisRequest& request = options.request;
  XCCL_ASSIGN_OR_RETURN(request.size_bytes, ParseSizeFlag("--size", flags.size));
  XCCL_ASSIGN_OR_RETURN(request.model, FlagValue("--model", ParseTimeModel(flags.model)));
  std::vector<std::string> limits;
  for (const Limit& limit : kLimits)
    if (const auto& given = request.limits.*limit.value)
      limits.push_back(fmt::format("{}={}", limit.flag, *given));
  if (!flags.time_limit.empty()) {
    XCCL_ASSIGN_OR_RETURN(const int64_t limit_ps, FlagValue("--time-limit", ParseDuration(flags.time_limit)));
    request.limits.time_limit_s = static_cast<double>(limit_ps) / 1e12;
    limits.push_back("--time-limit=" + flags.time_limit);
  }
  options.limits_text = Join(limits, " ");
  if (flags.machine == "hopper") {
    options.machine = HopperModel();
  } else if (!flags.machine.empty()) {
    XCCL_ASSIGN_OR_RETURN(
        options.machine,
        ReadMachineModel(IsDirectory(flags.machine) ? flags.machine + "/machine.json" : flags.machine));
  }
  return options;
}

void AddExecutionFlags(Command& command, PlanFlags& flags) {
  command.AddOption(
      "--machine", flags.machine,
      "choose the program's protocol, instances and segment for this machine: a machine.json, a plan\n"
      "book that tune wrote, or hopper (NCCL's figures); without it only links take time");
  command.AddOption("--max-ctas", flags.options.max_blocks, "threadblocks of one rank at most")
      .Between(1, 1 << 20);
  command.AddFlag("--verify-passes", flags.options.verify_passes,
                  "prove what every pass of lowering makes, not the program alone");
}

}  // namespace xccl
