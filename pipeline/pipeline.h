// The map of the project. Every stage is one function that takes values and returns a value or an error, and
// this folder writes out how they follow each other:
//
//   TOPOLOGY ─LoadTopology→ Topology ┐                                       topologies/, topologies/load
//             Collective::Create ────┴─Synthesize→ Schedule ─Lower→ Program   synth/, ir/lower
//                                        │ Verify    ir/verify   │ Verify
//                                        │ Simulate  ir/simulate │ Simulate
//                                        └ LowerBound ir/bounds
//   Program ─Emit→ source text   codegen/          Program ─Run→ rows   runtime/cpu, runtime/cuda
//   FILE of another tool ─ImportPlan→ Plan      interchange
//
// pipeline.h plans one collective, or those of several groups, and repairs a plan; training.h plans a
// training step; compare.h and compare_failures.h put engines side by side; predict.h times a plan at other
// sizes; emit.h, run.h and tune.h take plans to kernels, to rows and to a plan book. Nothing here prints or
// reads flags.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "base/version.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/bounds/bound.h"
#include "ir/machine_model.h"
#include "ir/plan.h"
#include "ir/program.h"
#include "ir/simulate/simulate.h"
#include "ir/time_model.h"
#include "synth/common/synthesizer.h"
#include "synth/groups/groups.h"
#include "synth/groups/plan_groups.h"
#include "synth/smt/pareto.h"

namespace xccl {

struct PlanOptions {
  std::string engine = kDefaultEngine;
  SynthesisRequest request = {};  // size, model and limits; a stage adds topology, collective and bound
  std::string limits_text = {};   // as written on the command line; the plan keeps it
  bool lower = false;             // continue to a Program
  std::optional<MachineModel> machine = {};  // model that the program is made for and timed on
  bool machine_of_topology = false;          // where none is given, that of the topology's GPUs, if known
  std::optional<int32_t> max_blocks = {};    // threadblocks of one rank
  bool verify_passes = false;                // prove the result of every pass of lowering
  Deadline deadline = Deadline();            // of all stages together; the search ends before it
};

// A plan that was made and is not the one that was kept.
struct RunnerUp {
  std::string engine;
  int64_t time_ps = 0;
};

struct PlanResult {
  Plan plan;
  std::string note = {};  // the engine's line for people
  // Engines that made a wrong plan and so lost their turn: a bug of ours that users should see.
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
  std::string loss = {};  // why the program takes over a tenth longer than the schedule; empty: it does not
  std::optional<ProgramStats> program_stats = {};
  std::string no_program = {};  // why there is none, where one was asked for
  // Source of the machine model that the program is timed on, or would be; empty: links alone.
  std::string machine = {};
  // The fastest schedule by another engine, where auto made one that is not much slower.
  std::optional<RunnerUp> next = {};
  // What the program's threadblocks can have in flight, beside what a GPU's links need (Little's law); empty
  // where the machine says nothing of it.
  std::string in_flight = {};
};

// With machine_of_topology, the options with that machine.
PlanOptions OnMachineOf(const Topology& topology, PlanOptions options);

// An engine's answer to a request.
using Synthesize = std::function<StatusOr<Synthesis>(const SynthesisRequest&)>;

// Synthesize, Simulate and LowerBound; then CompletePlan. Where the plan is wrong, and was made by another
// engine than the one asked for, the request is made again with that engine among those passed over. Errors:
// those of the engine, and CompletePlan's.
StatusOr<PlanResult> PlanWith(const Topology& topology, const Collective& collective,
                              const PlanOptions& options, const Synthesize& synthesize);

// PlanWith by the engine of the options.
StatusOr<PlanResult> MakePlan(const Topology& topology, const Collective& collective,
                              const PlanOptions& options);

// Starts from a plan. On the machine that the plan is for, greedy makes it no slower. On another machine the
// plan is repaired. It is planned anew where that cannot be done, and where the repaired plan is more than 5
// % above the bound and a fresh one is faster; the note says why, or what the other would take. Errors: those
// of MakePlan, and kInvalidInput where the plan is for another collective; `place` opens the message.
StatusOr<PlanResult> RepairPlan(const Plan& from, const std::string& place, const Topology& topology,
                                const Collective& collective, const PlanOptions& options);

// Completes a schedule: it is verified, described and, where asked for, lowered, verified and simulated
// again. Where made.others has schedules faster than the program, those are lowered as well, and the fastest
// program and its schedule become the plan. A program that is not there by the deadline is left out. Errors:
// kBug where a stage made something wrong. Requires: made.simulation.
StatusOr<PlanResult> CompletePlan(const Topology& topology, Synthesis made, const Bound& bound,
                                  double synthesis_s, const PlanOptions& options);

struct GroupsResult {
  std::vector<ProcessGroup> groups;
  std::vector<GroupOutcome> outcomes;  // by group
  int64_t unaware_ps = 0;
  PlanResult result;
};
// Plans the groups together and proves the plan. Lowers it where asked for.
StatusOr<GroupsResult> PlanGroupsTogether(const Topology& topology, GroupRequest request,
                                          const PlanOptions& options);

// The front between latency and bandwidth, proved by smt.
StatusOr<smt::Front> PlanFront(const Topology& topology, const Collective& collective,
                               const PlanOptions& options);

// The request to an engine for one plan. Topology, collective and bound outlive it. Its search leaves time
// for the stages that follow.
SynthesisRequest RequestOf(const Topology& topology, const Collective& collective, const PlanOptions& options,
                           const Bound* bound);

// Verifies an engine's answer to a request, and simulates it unless the engine did. Errors: kBug for a wrong
// plan; kLimit where the deadline passes.
StatusOr<Simulation> ProvedTime(const Synthesis& made, const SynthesisRequest& request,
                                const Deadline& deadline);

// time ÷ bound, 1 where both are zero.
double RatioOf(int64_t time_ps, int64_t bound_ps);

}  // namespace xccl
