// plan, run and verify for expert dispatch and combine, whose plans are files of their own kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/flags.h"

namespace xccl {

// The flags of plan that describe experts, beside --experts and --top-k, which training has too. Absent ones
// have the defaults that help shows.
struct ExpertFlags {
  std::optional<int32_t> tokens, draws;
  std::optional<std::string> row, routing, aim;
};
void AddExpertFlags(Command& command, ExpertFlags& flags);

// Whether a value of --collective is planned by PlanExperts.
bool IsExpertCall(const std::string& collective);
// Errors: kUsage for a flag of `command` that was given and does not go with `collective`.
Status CheckFlagsOfExperts(const Command& command, const std::string& collective);
Status PlanExperts(const TopologyFlags& machine, const std::string& collective, const ExpertFlags& flags,
                   const TrainingFlags& numbers, uint64_t seed, const std::string& output,
                   const Session& session);

// Whether a file that commands are given is a plan of experts. False where it cannot be read.
bool IsExpertPlanFile(const std::string& path);
struct ExpertRunFlags {
  std::optional<std::string> routing;  // absent: uniform
  std::optional<int32_t> tokens;       // absent: as many as fit memory
};
void AddExpertRunFlags(Command& command, ExpertRunFlags& flags);
// type: as in run; iterations: calls; timeout: without progress.
Status RunExperts(const std::string& path, const ExpertRunFlags& flags, const std::string& type,
                  int32_t calls, const std::string& timeout, const Session& session);
// Likewise, on GPUs of this host beside threads. Requires: settings.gpus. type: of combine's rows.
Status RunExpertsOnGpus(const std::string& path, const ExpertRunFlags& flags, const RunSettings& settings,
                        DataType type, const Session& session);
// Moves the messages of drawn calls over the links, beside the times that plan predicts for them.
struct ExpertSimulateFlags {
  std::optional<std::string> routing;  // absent: uniform
  std::optional<int32_t> draws;        // absent: 1
};
void AddExpertSimulateFlags(Command& command, ExpertSimulateFlags& flags);
Status SimulateExperts(const std::string& path, const ExpertSimulateFlags& flags, const Session& session);
Status VerifyExperts(const std::string& path, const Session& session);

}  // namespace xccl
