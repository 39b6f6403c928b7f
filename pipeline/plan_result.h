// The options and the result of planning: what every stage of the pipeline reads, and what callers show.
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
  SynthesisRequest request = {};  // size, model and limits; a stage adds topology, collective and bound
  std::string limits_text = {};   // as written on the command line; the plan keeps it
  bool lower = false;             // continue to a Program
  std::optional<MachineModel> machine = {};  // model that the program is made for and timed on
  bool machine_of_topology = false;          // where `machine` is absent, take the topology's GPUs', if known
  std::optional<int32_t> max_blocks = {};    // threadblocks of one rank
  bool verify_passes = false;                // prove the result of every pass of lowering
  Deadline deadline = Deadline();            // for all stages together; the search ends before it
};

// A plan of another engine, which was made and not kept.
struct RunnerUp {
  std::string engine;
  int64_t time_ps = 0;
};

struct PlanResult {
  Plan plan;
  std::string note = {};  // the engine's line for people
  // Engines that made a wrong plan and so lost their turn: bugs of XCCL that users should see.
  std::vector<std::string> faults = {};
  double synthesis_s = 0;  // wall time from topology to chosen schedule, simulation and bound included
  Simulation simulation = {};
  Bound bound = {};
  // The program's time ÷ bound, or the schedule's where there is no program; 1 where nothing has to be moved.
  double ratio = 0;
  bool exact = false;  // no plan in the stated model is better: proved, or time equals bound
  ScheduleStats schedule_stats = {};
  std::vector<Rank> relays = {};  // ranks that are no members and carry data
  std::optional<int64_t> program_time_ps = {};
  std::string loss = {};  // why the program takes over kSlower times the schedule's time; empty: it does not
  std::optional<ProgramStats> program_stats = {};
  std::string no_program = {};  // why there is none, where one was asked for
  // Source of the machine model that the program is timed on, or would be; empty: links alone.
  std::string machine = {};
  // The fastest schedule of another engine, where auto made one.
  std::optional<RunnerUp> next = {};
  // The bytes that the program's threadblocks can have in flight, beside what a GPU's links need (Little's
  // law); empty where the machine's model does not say.
  std::string in_flight = {};
};

// The ratio of times from which people are told why: of a program to its schedule, and of a file for another
// executor to its plan. Lowering is held to a ratio of 1.05 (docs/benchmarks.md), which needs no reason.
inline constexpr double kSlower = 1.1;

// With machine_of_topology, the options with that machine.
PlanOptions OnMachineOf(const Topology& topology, PlanOptions options);

// How programs are simulated: at the request's size, on the machine of the options.
SimulateOptions ProgramTiming(const PlanOptions& options);

// A wrong plan is a bug of the engine that made it, not the user's error. Errors: kBug with the engine and
// the first violations.
Status CheckProved(const std::vector<Violation>& violations, std::string_view engine);

// time ÷ bound; 1 where the bound is zero.
double RatioOf(int64_t time_ps, int64_t bound_ps);

}  // namespace xccl
