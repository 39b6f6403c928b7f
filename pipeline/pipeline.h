// The map of the project: topology and collective → schedule → proved, timed → program → plan, as one
// function.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/bounds/bound.h"
#include "ir/machine_model.h"
#include "ir/plan.h"
#include "ir/program.h"
#include "ir/schedule_stats.h"
#include "ir/simulate/simulate.h"
#include "synth/common/synthesizer.h"

namespace xccl {

struct PipelineOptions {
  std::string engine = "auto";
  int64_t size_bytes = 64LL << 20;
  TimeModel model = TimeModel::kPipelined;
  SynthesisLimits limits;
  std::string limits_text;  // as written on the command line, kept in the plan
  uint64_t seed = 0;
  bool allow_divergent = false;
  std::function<bool()> stopped = {};                     // ends a long search with the best so far
  std::function<void(const std::string&)> progress = {};  // told what a long search is about
  const Synthesis* start = nullptr;          // for greedy to improve; a verified plan of the same two
  const Plan* replan = nullptr;              // repaired for this machine in place of planning from nothing
  bool lower = false;                        // go on to a Program
  std::optional<MachineModel> machine = {};  // that the program is made for, and timed on
  std::optional<int32_t> max_blocks = {};    // threadblocks of one rank
};

struct PipelineResult {
  Plan plan;
  std::string note = {};   // the engine's line for people
  double synthesis_s = 0;  // wall time from topology to chosen schedule, simulation and bound included
  Simulation simulation = {};
  Bound bound = {};
  double ratio = 0;  // time ÷ bound; 1 where nothing has to be moved
  bool bitwise_same = false;
  ScheduleStats schedule_stats = {};
  std::vector<Rank> relays = {};  // ranks that are no members and carry data
  std::optional<int64_t> program_time_ps = {};
  std::optional<ProgramStats> program_stats = {};
  std::string machine = {};  // source of the machine model that the program is timed on; empty: links alone
};

StatusOr<PipelineResult> RunPipeline(const Topology& topology, const Collective& collective,
                                     const PipelineOptions& options);

// From a schedule on: proved, described and, where asked for, lowered. Requires: made.simulation.
StatusOr<PipelineResult> CompletePlan(const Topology& topology, Synthesis made, const Bound& bound,
                                      double synthesis_s, const PipelineOptions& options);

// kBug where an engine's plan is wrong.
Status CheckMade(const Synthesis& made, const Topology& topology);

// time ÷ bound, 1 where both are zero.
double RatioOf(int64_t time_ps, int64_t bound_ps);

inline constexpr const char* kVersion = "0.1.0";

}  // namespace xccl
