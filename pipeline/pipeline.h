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
// pipeline.h plans one collective. plan_front.h, groups_together.h and training.h plan fronts, several groups
// and training steps; repair.h starts from a plan. compare.h and compare_failures.h put engines side by side;
// predict.h times a plan at other sizes; emit.h, emit_msccl.h, run.h and tune.h take plans to kernels, to
// other executors, to rows and to a plan book. Nothing here prints or reads flags.
#pragma once

#include <vector>

#include "base/status.h"
#include "ir/bounds/bound.h"
#include "ir/collective.h"
#include "pipeline/plan_result.h"
#include "synth/common/synthesizer.h"
#include "topologies/topology.h"

namespace xccl {

// Synthesize, Simulate and LowerBound; then CompletePlan. Where the plan is wrong, and was made by another
// engine than the one that the options name, the search is made again without that engine. Errors: those of
// FindEngine, CheckReachable, LowerBound, the engine and CompletePlan.
StatusOr<PlanResult> MakePlan(const Topology& topology, const Collective& collective,
                              const PlanOptions& options);

// MakePlan by an engine that need not be in the table of engines.
StatusOr<PlanResult> MakePlanBy(const Engine& engine, const Topology& topology, const Collective& collective,
                                const PlanOptions& options);

// Completes the first of several schedules of one request: it is verified, lowered where asked for, verified
// and simulated again, and described. Schedules behind it that may have faster programs are lowered as well
// (lower_fastest.h); the schedule of the fastest program becomes the plan and found.front(). A plan has no
// program where the deadline passes before it is made. Errors: kBug where a stage made something wrong;
// found.front() names the engine. Requires: at least one schedule, all with their simulations.
StatusOr<PlanResult> CompletePlan(const Topology& topology, std::vector<Synthesis>& found, const Bound& bound,
                                  double synthesis_s, const PlanOptions& options);

}  // namespace xccl
