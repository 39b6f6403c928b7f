// A search for a schedule, which planning (pipeline.h) and repairing (repair.h) share: the request to the
// engines, the bound, and the turns of engines that make wrong plans.
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

// The moment at which searches end. The later stages get a share of the time, a larger one where they lower,
// but no more seconds than they need.
Deadline SearchDeadline(const PlanOptions& options);

// The request to an engine for one plan. Topology, collective and bound outlive it.
SynthesisRequest RequestOf(const Topology& topology, const Collective& collective, const PlanOptions& options,
                           const Bound* bound);

// The plan of an answer, and the answer's other plans behind it.
std::vector<Synthesis> PlansOf(Synthesis made);

// The engine's simulation of its plan, or a new one. Errors: kLimit where the deadline passes.
StatusOr<Simulation> SimulationOf(const Synthesis& made, const SynthesisRequest& request,
                                  const Deadline& deadline);

// One search. The request points into it, so that it is neither copied nor moved. Topology, collective and
// options outlive it.
class Search {
 public:
  Search(const Topology& topology, const Collective& collective, const PlanOptions& options);
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // Finds the lower bound, unless the options have it. Errors: those of CheckReachable and LowerBound.
  Status Begin();

  const SynthesisRequest& request() const { return request_; }
  const Bound& bound() const { return bound_; }
  // Wall time since the search was made.
  double Seconds() const;

  // The plans of an answer, of which the first is simulated. Keeps the answer's faults for WithFaults.
  // Errors: those of SimulationOf.
  StatusOr<std::vector<Synthesis>> Simulated(Synthesis made);
  // Does the status say that this engine's plan was wrong, where another engine may be asked instead? It is
  // then passed over from here on. The engine that the options name is never passed over.
  bool PassOver(const std::string& engine, const Status& status);
  // Adds the faults of the engines that made wrong plans to the result.
  StatusOr<PlanResult> WithFaults(StatusOr<PlanResult> result) const;

 private:
  const std::chrono::steady_clock::time_point began_;
  const PlanOptions& options_;
  Bound bound_;
  std::vector<std::string> faults_;
  SynthesisRequest request_;
};

}  // namespace xccl
