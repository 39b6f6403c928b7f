// The options that every stage of planning reads, and the result of planning that callers show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/bounds/bound.h"
#include "ir/machine_model.h"
#include "ir/plan.h"
#include "ir/program.h"
#include "ir/simulate/simulate.h"
#include "ir/violation.h"
#include "synth/common/synthesizer.h"
#include "topologies/topology.h"

namespace xccl {

struct PlanOptions {
  std::string engine = kDefaultEngine;
  SynthesisRequest request = {};  // size, time model and limits; a stage adds topology, collective and bound
  std::string limits_text = {};   // limits as written on the command line; stored in the plan
  bool lower = false;             // also make a program
  std::optional<MachineModel> machine = {};  // model that the program is made for and timed on
  bool machine_of_topology = false;          // if `machine` is absent, use the model of the topology's GPUs
  std::optional<int32_t> max_blocks = {};    // most threadblocks of one rank
  bool verify_passes = false;                // prove the result of every pass of lowering
  Deadline deadline = Deadline();            // for all stages together; the search ends earlier
};

// A plan that another engine made and that was not kept.
struct RunnerUp {
  std::string engine;
  int64_t time_ps = 0;
};

struct PlanResult {
  Plan plan;
  std::string note = {};  // why this program was kept, or else the engine's remark for the user
  // Errors of engines that made a wrong plan and were skipped: bugs of XCCL that users should see.
  std::vector<std::string> faults = {};
  double synthesis_s = 0;  // wall time of the search in seconds, with simulation and bound
  Simulation simulation = {};
  Bound bound = {};
  // The program's time ÷ the bound; without a program, the schedule's time ÷ the bound. 1 if the bound is 0.
  double ratio = 0;
  bool exact = false;  // no plan is better in the time model: proved, or the time equals the bound
  ScheduleStats schedule_stats = {};
  std::vector<Rank> relays = {};  // ranks that carry data and are not members
  std::optional<int64_t> program_time_ps = {};
  std::string loss = {};  // why the program takes over kSlower times the schedule's time; empty: it does not
  std::optional<ProgramStats> program_stats = {};
  std::string no_program = {};  // why the plan has no program, if one was requested
  // Source of the machine model on which programs are timed; empty: programs are timed on links alone.
  std::string machine = {};
  // Why there is no machine model (WhyNoModel); empty: there is one, or the request is for links alone.
  std::string no_machine = {};
  // The fastest simulated schedule of another engine; absent if there is none.
  std::optional<RunnerUp> next = {};
  // A text that compares the rate at which a rank's threadblocks can move bytes with the rate of a GPU's
  // links (Little's law). Empty if there is no program, or no machine model with both rates.
  std::string in_flight = {};
};

// If a program takes more than this times its schedule's time, the user is told the reason. If an executor of
// another project takes more than this times the plan's time, the user is warned.
inline constexpr double kSlower = 1.1;

// Returns the options. If machine_of_topology is set and `machine` is absent, fills in the machine model of
// the topology's GPUs, if known.
PlanOptions OnMachineOf(const Topology& topology, PlanOptions options);

// Returns the options for simulating programs: size, time model, machine model and deadline of `options`.
SimulateOptions ProgramTiming(const PlanOptions& options);

// Returns kBug with the engine and the first violation, if there are violations. A wrong plan is a bug of the
// engine that made it, not an error of the user.
Status CheckProved(const std::vector<Violation>& violations, std::string_view engine);

// Returns time ÷ bound; 1 if the bound is 0.
double RatioOf(int64_t time_ps, int64_t bound_ps);

}  // namespace xccl
