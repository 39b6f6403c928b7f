// The flags of the commands, and the values made from them. Every function reports a wrong flag as kUsage
// with the flag's name in front.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command_line.h"
#include "ir/collective.h"
#include "ir/simulate/simulate.h"
#include "pipeline/pipeline.h"
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
void AddTopologyFlags(Command& command, TopologyFlags& flags, bool required = true);

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

// A collective, and the machine as it may use it. With --no-relays that lacks the links of ranks that take no
// part. Errors: kInvalidInput where only such ranks join the members.
struct Problem {
  Topology topology;
  Collective collective;
};
StatusOr<Problem> ReadProblem(const TopologyFlags& topology, const CollectiveFlags& collective);

// The same status as a command line error, with `--flag: ` in front.
Status FlagError(const Status& status, const std::string& flag);
template <typename T>
StatusOr<T> FlagValue(const std::string& flag, StatusOr<T> value) {
  if (!value.ok()) return FlagError(value.status(), flag);
  return value;
}
StatusOr<int64_t> ParseSizeFlag(const std::string& flag, const std::string& text);
// The value of --sizes; `otherwise` where it is not given.
StatusOr<std::vector<int64_t>> ParseSizesFlag(const std::string& text, std::vector<int64_t> otherwise = {});
StatusOr<TimeModel> ParseModelFlag(const std::string& text);

// The flags that bound and steer a search.
struct PlanFlags {
  std::string engine = kDefaultEngine;
  std::string size = "64MiB";
  std::string model = "pipelined";
  std::optional<int32_t> chunks, steps, rounds;
  uint64_t seed = 0;
  std::string time_limit;
  bool allow_divergent = false;
};
// How the program of a plan is to run and to be made: --machine, --max-ctas and --verify-passes.
struct ExecutionFlags {
  std::string machine;
  std::optional<int32_t> max_ctas;
  bool verify_passes = false;
};
void AddExecutionFlags(Command& command, ExecutionFlags& flags);
Status SetExecution(const ExecutionFlags& flags, PlanOptions& options);

// Every flag except --engine and --size, which compare has in the plural.
void AddSearchFlags(Command& command, PlanFlags& flags);
StatusOr<PlanOptions> PlanOptionsOf(const PlanFlags& flags);

// The flags that only run --backend cuda has, and what it prints beside the table.
struct CudaFlags {
  int32_t ranks_per_gpu = 1;
  std::optional<int32_t> max_ctas;
  uint64_t jitter = 0;
  bool graph = false;
  bool staged = false;
  bool interpreter = false;
  bool registered = false;
  std::string memory_limit = "1GiB";
  std::string kernel_cache;  // the default directory where it is not given
};
void AddCudaFlags(Command& command, CudaFlags& flags);

StatusOr<GpuRun> GpuRunOf(const CudaFlags& flags);
// "8 CTAs of 512 threads on a rank, 2 instances, 1 CTA a multiprocessor ...": shown with every table.
std::string DescribeUsage(const cuda::DeviceUsage& usage);

// --for and the flags that describe a training job.
struct TrainingFlags {
  std::string of_interest;  // --for; empty: no training job
  std::string llm;
  std::optional<int64_t> layers, hidden, heads, kv_heads, ffn, vocab, sequence, experts, top_k, params;
  std::optional<int64_t> tp, pp, dp, ep, ulysses;
  std::optional<int64_t> micro_batch, micro_batches, bytes, grad_bytes;
};
void AddTrainingFlags(Command& command, TrainingFlags& flags);
// Requires: --for. Errors: kUsage.
StatusOr<TrainingJob> MakeTrainingJob(const TrainingFlags& flags);
// The name of a given flag that needs --for, else empty.
std::string FlagWithoutJob(const TrainingFlags& flags);

}  // namespace xccl
