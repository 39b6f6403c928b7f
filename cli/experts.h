// plan, compare, run, view and verify for expert dispatch and combine, whose plans are files of their own
// kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "dispatch/report.h"
#include "runtime/experts/measure.h"

namespace xccl {

// The flags of plan and compare that describe experts. Absent ones have the defaults that help shows. plan
// has
// --experts and --top-k among those of training.
struct ExpertFlags {
  std::optional<int64_t> experts, top_k;
  std::optional<int32_t> tokens, draws;
  std::optional<std::string> row, routing, aim;
};
void AddExpertFlags(Command& command, ExpertFlags& flags);
void AddExpertCounts(Command& command, ExpertFlags& flags);  // --experts and --top-k

// Whether a value of --collective is planned by PlanExperts.
bool IsExpertCall(const std::string& collective);
// Errors: kUsage for a flag of `command` that was given and does not go with `collective`.
Status CheckFlagsOfExperts(const Command& command, const std::string& collective);
Status PlanExperts(const TopologyFlags& machine, const std::string& collective, const ExpertFlags& flags,
                   uint64_t seed, const std::string& output, const Session& session);
// The routes of each machine side by side.
Status CompareExperts(const TopologiesFlags& machines, const std::string& collective,
                      const ExpertFlags& flags, uint64_t seed, const Session& session);
// A picture of a plan's routes: SVG where the output's name ends so, else a page.
Status ViewExperts(const std::string& path, const std::string& output);

// Commands of experts say with less of what they need less memory.
void HintAtMemoryOfExperts();
// Says of draws, each of whose tokens stands for so many, that they are short of tokens; empty for 1.
std::string CopiesText(int32_t copies);
// Notes that so many draws will take the seconds, where they are many and there is no time limit.
void SayLongDraws(const std::string& place, const dispatch::Sizes& sizes, int32_t draws, double seconds,
                  const Session& session);

// The two above share this with plan.
StatusOr<dispatch::PlanRequest> ExpertRequestOf(const Topology& topology, const std::string& collective,
                                                const ExpertFlags& flags, uint64_t seed);
std::string WorkText(const std::string& topology, dispatch::Call call, const dispatch::Sizes& sizes,
                     const std::string& routing);
Row RowOf(const dispatch::Facts& facts);

// Whether a file that commands are given is a plan of experts. False where it cannot be read.
bool IsExpertPlanFile(const std::string& path);
struct ExpertRunFlags {
  std::optional<std::string> routing;  // absent: uniform
  std::optional<int32_t> tokens;       // absent: as many as fit memory
};
void AddExpertRunFlags(Command& command, ExpertRunFlags& flags);
// Sets the routing and the tokens of `options` from the flags. Of a group, rank 0 shows the table.
Status RunExperts(const std::string& path, const ExpertRunFlags& flags, dispatch::MeasureOptions options,
                  const Session& session);
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
