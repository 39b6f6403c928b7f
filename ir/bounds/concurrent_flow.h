// Demands that are moved and not copied (alltoall(v), sendrecv, gather, scatter), as flows that load the
// links as evenly as possible. Solves the linear program of the maximum concurrent flow from both sides,
// with demands grouped by source. The results are prices of links, which prove a bound, and weighted trees
// of shortest paths for every source, which are a flow that nearly attains it. Links in one orbit of the
// symmetry share a row.
//
// Source: Kelley's cutting planes (1960) on the dual (Shahrokhi and Matula, 1990), smoothed after Wentges
// (1997).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ir/bounds/demands.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

struct FlowProblem {
  const Topology* topology = nullptr;
  Demands demands;             // with symmetry: of one source per orbit
  std::vector<int32_t> orbit;  // by link, dense from 0
  // By orbit. The bytes of a source over its links × share give the load of each link after translation.
  // A capacity is that of one link of the orbit, in bytes per second.
  std::vector<double> share, capacity;
  // By orbit, or empty: the seconds in which no demand can use its links. `load_s` is then the least time T
  // in which every link gets its load within T less its seconds, and the time that the prices prove is so,
  // too.
  std::vector<double> wait_s = {};
};

// Sources × orbits of links up to which bounds ask for the optimum, and the same for BoundEffort::kFast.
inline constexpr int64_t kLpWork = 13'000, kFastLpWork = 2'500;

// The problem under a group that keeps the demands: one source per orbit, and orbits of links. With the
// trivial group, every source and every link by itself.
FlowProblem FlowOf(const Topology& topology, const Demands& demands, const SymmetryGroup& group);

// Shortest paths, at some prices, from a source to all nodes that it has demands for.
struct FlowTree {
  int32_t source = 0;        // index into Demands::sources
  double weight = 0;         // fraction of its demands that takes this tree; a source's weights sum to 1
  std::vector<LinkId> into;  // by node: the link that enters it
};

struct ConcurrentFlow {
  double bound_s = 0;  // no flow is faster, even if the solver is inexact
  // Load of the busiest link; infinite if the solver failed, and then there are no trees.
  double load_s = 0;
  std::vector<FlowTree> trees;
  bool MeetsBound() const { return load_s <= bound_s * (1 + 1e-9); }
};

struct FlowOptions {
  double gap = 1e-9;                   // stop at this relative gap between load and bound
  int32_t rounds = 100;                // rounds of cutting planes, at most
  std::function<bool()> stopped = {};  // asked after each round; true ends the search with the result so far
};

// Requires: every demand's node can be reached. Cost: rounds × (sources × links × log, and a linear program
// with one row per tree and one column per orbit and source). Memory: rounds × sources × nodes.
ConcurrentFlow SolveConcurrentFlow(const FlowProblem& problem, const FlowOptions& options);

// Only the bound, in seconds: prices grow where shortest paths crowd (multiplicative weights), a cheap
// method to good prices. The first round prices all links equally.
double CrowdedFlowBound(const FlowProblem& problem, int32_t rounds);

}  // namespace xccl
