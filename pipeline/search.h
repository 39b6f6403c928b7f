// The search for a schedule; planning (pipeline.h) and repairing (repair.h) share it. Holds the request to
// the engines, the bound, and the list of engines that made wrong plans and are skipped.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "pipeline/plan_result.h"
#include "synth/common/synthesizer.h"
#include "topologies/topology.h"

namespace xccl {

// Returns the deadline of searches, which leaves time for the later stages: a share of the remaining time, up
// to a number of seconds. Both are larger if the later stages lower the plan.
Deadline SearchDeadline(const PlanOptions& options);

// Returns the request to an engine for one plan. Topology, collective and bound must outlive the request.
SynthesisRequest RequestOf(const Topology& topology, const Collective& collective, const PlanOptions& options,
                           const Bound* bound);

// Returns the engine's plan, followed by the engine's other plans.
std::vector<Synthesis> PlansOf(Synthesis made);

// Returns the simulation that the engine made of its plan, or a new simulation if there is no complete one.
// Errors: kLimit if the deadline passes or the memory does not suffice.
StatusOr<Simulation> SimulationOf(const Synthesis& made, const SynthesisRequest& request,
                                  const Deadline& deadline);

// One search. It cannot move, because the request points to its bound. The arguments must outlive the search.
class Search {
 public:
  Search(const Topology& topology, const Collective& collective, const PlanOptions& options);
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // Checks that all ranks are reachable, and computes the lower bound unless the options contain it. Errors:
  // those of CheckReachable and LowerBound.
  Status Begin();

  const SynthesisRequest& request() const { return request_; }
  const Bound& bound() const { return bound_; }
  // Returns the wall time since the search was constructed.
  double Seconds() const;

  // Returns the engine's plan, simulated, followed by its other plans. If the options lower, the other plans
  // are simulated, too, and dropped if that fails. Keeps the engine's faults for WithFaults. Errors: those of
  // SimulationOf for the first plan.
  StatusOr<std::vector<Synthesis>> Simulated(Synthesis made);
  // Skips the engine from now on, if the status says that its plan was wrong. Returns whether the engine is
  // newly skipped; the caller then searches again. The engine that the options name is never skipped.
  bool PassOver(const std::string& engine, const Status& status);
  // Returns the result with the faults of all engines that made wrong plans.
  StatusOr<PlanResult> WithFaults(StatusOr<PlanResult> result) const;

 private:
  const std::chrono::steady_clock::time_point began_;
  const PlanOptions& options_;
  Bound bound_;
  std::vector<std::string> faults_;
  SynthesisRequest request_;
};

}  // namespace xccl
