// The flags of the commands, and the values made from them. Every function reports a wrong flag as kUsage
// with the flag's name in front.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/strings.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "ir/collective.h"
#include "ir/simulate/simulate.h"
#include "pipeline/launch.h"
#include "pipeline/plan_result.h"
#include "pipeline/run.h"
#include "runtime/cuda/run_program.h"
#include "synth/groups/training.h"
#include "topologies/load/load.h"
#include "topologies/topology.h"

namespace xccl {

// TOPOLOGY and the flags that change it.
struct TopologyFlags {
  std::string topology;
  LoadOptions load;
};
// `name`: of the flag, where the machine is not an argument of its own.
void AddTopologyFlags(Command& command, TopologyFlags& flags, bool required = true,
                      const std::string& name = "TOPOLOGY");
// TOPOLOGY, once or several times, and the flags that change them.
struct TopologiesFlags {
  std::vector<std::string> topologies;
  LoadOptions load;
};
// `several`: what several of them are.
void AddTopologiesFlags(Command& command, TopologiesFlags& flags, const std::string& several,
                        bool required = true);
// Loads the machine. Says its warnings on standard error, unless the command's result lists them.
StatusOr<Topology> ReadTopology(const TopologyFlags& flags, bool result_lists_warnings);
// "warning: TEXT" for each of the first 20 on standard error.
void SayWarnings(const std::vector<std::string>& warnings);

// The collective to plan.
struct CollectiveFlags {
  std::string collective;
  std::optional<int32_t> root;
  std::string ranks;            // "0,2,4-7"; empty: all
  std::string collective_file;  // user-defined
  std::string counts;           // CSV file
  std::string pairs;            // "0>1,2>3"
  bool no_relays = false;
};
void AddCollectiveFlags(Command& command, CollectiveFlags& flags);
StatusOr<Collective> MakeCollective(const CollectiveFlags& flags, const Topology& topology);

// Parses the values of --collectives and --root. Rooted collectives are returned once for each root; roots
// are "0,2-3", "all", or empty for rank 0.
StatusOr<std::vector<Collective>> CollectivesOf(const std::string& collectives_text,
                                                const std::string& roots_text, const Topology& topology);

// A collective, and the machine as the collective may use it. With --no-relays the machine lacks the links of
// ranks that are not members. Errors: kInvalidInput if members are connected only through such ranks.
struct Problem {
  Topology topology;
  Collective collective;
};
StatusOr<Problem> ReadProblem(const TopologyFlags& topology, const CollectiveFlags& collective,
                              bool result_lists_warnings);

// Returns the value, or turns its error into a usage error with `--flag: ` in front.
template <typename T>
StatusOr<T> FlagValue(const std::string& flag, StatusOr<T> value) {
  if (!value.ok()) return UsageError(flag + ": " + value.status().message());
  return value;
}
// The values of a list with commas between; none for an empty text.
template <typename T>
StatusOr<std::vector<T>> ListValue(const std::string& flag, const std::string& text,
                                   StatusOr<T> (*parse)(std::string_view)) {
  std::vector<T> values;
  if (text.empty()) return values;
  for (const std::string& item : Split(text, ',')) {
    XCCL_ASSIGN_OR_RETURN(T value, FlagValue(flag, parse(item)));
    values.push_back(std::move(value));
  }
  return values;
}
StatusOr<int64_t> ParseSizeFlag(const std::string& flag, const std::string& text);
// A size that is rounded down to nothing is kUsage, with the least that is not; a size of 0 is meant so.
Status CheckNotEmpty(const std::string& flag, int64_t size_bytes, const Collective& collective);
// The value of --sizes; `otherwise` where it is not given.
StatusOr<std::vector<int64_t>> ParseSizesFlag(const std::string& text, std::vector<int64_t> otherwise = {});

// The flags of a plan. Parsing fills in the options that need no further reading.
struct PlanFlags {
  PlanOptions options;
  std::string size = "64MiB", model = "pipelined", machine;
};
// The flags that bound and steer a search, except --engine and --size, which compare has in the plural.
void AddSearchFlags(Command& command, PlanFlags& flags);
// --machine, and what is done with it.
void AddMachineFlag(Command& command, PlanFlags& flags, const std::string& what);
// The machine model of a value of --machine; absent where only links take time. Errors: kUsage with "did you
// mean" for an unknown name; the errors of ReadMachineModel for a file.
StatusOr<std::optional<MachineModel>> MachineOf(const std::string& name);
// How the program of a plan is to run and to be made: --machine, --max-ctas and --verify-passes.
void AddExecutionFlags(Command& command, PlanFlags& flags);
StatusOr<PlanOptions> PlanOptionsOf(const PlanFlags& flags, const Session& session);

// The flags that only run --backend cuda has, and what it prints beside the table.
struct CudaFlags {
  GpuRun run;
  bool staged = false;
  std::string slot_memory = "1GiB";
};
void AddCudaFlags(Command& command, CudaFlags& flags);

StatusOr<GpuRun> GpuRunOf(const CudaFlags& flags);
// "8 CTAs of 512 threads on a rank, 2 instances, 1 CTA a multiprocessor ...": shown with every table.
std::string DescribeUsage(const cuda::DeviceUsage& usage);

// How the processes of a launcher meet, and what connects them.
struct LaunchFlags {
  LaunchOptions options;
  std::string network = "auto";
  std::string devices;  // "mlx5_0,mlx5_1"
};
void AddLaunchFlags(Command& command, LaunchFlags& flags);
// Null where this process was not launched as one rank of several. `time_limit`: of connecting.
StatusOr<std::unique_ptr<LaunchedGroup>> JoinGroup(const LaunchFlags& flags,
                                                   std::chrono::nanoseconds time_limit);

// --for and the flags that describe a training job.
struct TrainingFlags {
  std::string of_interest;  // --for; empty: no training job
  std::string llm;
  std::vector<std::optional<int64_t>> numbers;  // the other flags, in the order of help
};
void AddTrainingFlags(Command& command, TrainingFlags& flags);
// Requires: --for. Errors: kUsage.
StatusOr<TrainingJob> MakeTrainingJob(const TrainingFlags& flags);
// The value of one of those flags, "--experts", where it is given.
std::optional<int64_t> NumberOf(const TrainingFlags& flags, std::string_view flag);
// The name of a given flag that needs --for, else empty.
std::string FlagWithoutJob(const TrainingFlags& flags);

}  // namespace xccl
