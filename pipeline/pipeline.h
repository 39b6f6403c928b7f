// The map of the project. Every stage is one function that takes values and returns a value or an error. The
// functions in this folder call the stages in order:
//
//   TOPOLOGY ─LoadTopology→ Topology ┐                                       topologies/, topologies/load
//             Collective::Create ────┴─Synthesize→ Schedule ─Lower→ Program   synth/, ir/lower
//                                        │ Verify    ir/verify   │ Verify
//                                        │ Simulate  ir/simulate │ Simulate
//                                        └ LowerBound ir/bounds
//   Program ─Emit→ source text   codegen/          Program ─Run→ rows   runtime/cpu, runtime/cuda
//   FILE of another tool ─ImportPlan→ Plan      interchange
//
// pipeline.h plans one collective. plan_front.h plans a front of steps and rounds, groups_together.h several
// groups, and training.h a training step. repair.h starts from an existing plan. compare.h and
// compare_failures.h compare engines. predict.h times a plan at other sizes. emit.h writes kernels,
// emit_msccl.h files for other executors. run.h runs plans, and tune.h makes a plan book. No function here
// prints or reads flags.
#pragma once

#include <vector>

#include "base/status.h"
#include "ir/bounds/bound.h"
#include "ir/collective.h"
#include "pipeline/plan_result.h"
#include "synth/common/synthesizer.h"
#include "topologies/topology.h"

namespace xccl {

// Makes a plan: LowerBound, Synthesize and Simulate, then CompletePlan. The engine that the options name may
// take a plan from another engine, as auto does. If such a plan is wrong, the search runs again without the
// other engine. Errors: those of FindEngine, CheckReachable, LowerBound, the engine, SimulationOf (search.h)
// and CompletePlan.
StatusOr<PlanResult> MakePlan(const Topology& topology, const Collective& collective,
                              const PlanOptions& options);

// Does the same as MakePlan with an engine that need not be in the table of engines.
StatusOr<PlanResult> MakePlanBy(const Engine& engine, const Topology& topology, const Collective& collective,
                                const PlanOptions& options);

// Completes found.front() to a plan: verifies the schedule, lowers it if options.lower is set, verifies and
// simulates the program, and describes the plan. Other schedules in `found` that may have faster programs are
// lowered as well. The schedule whose program LowerFastest keeps becomes the plan and found.front(). The plan
// has no program if the program would be too large or the deadline passes first. Errors: those of
// LowerFastest (lower_fastest.h); kBug if the schedule or the program is wrong, and found.front() then names
// the engine. Requires: at least one schedule, all with simulations.
StatusOr<PlanResult> CompletePlan(const Topology& topology, std::vector<Synthesis>& found, const Bound& bound,
                                  double synthesis_s, const PlanOptions& options);

}  // namespace xccl
