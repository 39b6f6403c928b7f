// Routes demands as flows that load the links as evenly as possible. A demand is data that is moved and not
// copied: alltoall(v), sendrecv, gather, scatter. The solver approaches the optimum of the linear program
// (maximum concurrent flow) from both sides:
// - prices of links, which prove a bound;
// - weighted trees of shortest paths for every source, which are a flow that nearly attains the bound.
// Demands are grouped by source. Links in one orbit of the symmetry share a column of the program.
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
  Demands demands;             // under a symmetry: demands of one source per orbit
  std::vector<int32_t> orbit;  // by link: the number of its orbit, dense from 0
  // By orbit. `share` × the bytes that a source sends over links of the orbit is the load that the source and
  // its translates put on each link of the orbit. `capacity` is the bandwidth of one link of the orbit in
  // bytes per second.
  std::vector<double> share, capacity;
  // By orbit, or empty: seconds in which no demand can use the orbit's links. With waits, `load_s` is the
  // least time T in which every link carries its load within T - wait, and `bound_s` is a bound on that T.
  std::vector<double> wait_s = {};
};

// Largest number of sources × orbits of links for which bounds solve the linear program: for
// BoundEffort::kExact, and for kFast.
inline constexpr int64_t kLpWork = 13'000, kFastLpWork = 2'500;

// Returns the problem under a group of translations that keeps the demands: one source per orbit, and orbits
// of links. With the trivial group every source and every link stands for itself.
FlowProblem FlowOf(const Topology& topology, const Demands& demands, const SymmetryGroup& group);

// A tree of shortest paths, at some prices of links, from a source to the nodes of its demands.
struct FlowTree {
  int32_t source = 0;        // index into Demands::sources
  double weight = 0;         // fraction of the source's demands on this tree; a source's weights sum to 1
  std::vector<LinkId> into;  // by node: the link of the tree that enters the node
};

struct ConcurrentFlow {
  double bound_s = 0;  // no flow takes less time, even if the solver is inexact
  // Load of the busiest link in seconds. Infinite, and without trees, if the solver failed.
  double load_s = 0;
  std::vector<FlowTree> trees;
  bool MeetsBound() const { return load_s <= bound_s * (1 + 1e-9); }
};

struct FlowOptions {
  double gap = 1e-9;                   // the search ends at this relative gap between load and bound
  int32_t rounds = 100;                // most rounds of cutting planes
  std::function<bool()> stopped = {};  // asked after each round; true ends the search with the result so far
};

// Solves the problem. Requires a path for every demand. Cost: rounds × (sources × links × log, and a linear
// program with one row per tree and one column per orbit and source). Memory: rounds × sources × nodes.
ConcurrentFlow SolveConcurrentFlow(const FlowProblem& problem, const FlowOptions& options);

// Returns a bound in seconds by multiplicative weights: the price of a link grows if many shortest paths use
// the link. The method is cheap and finds good prices. The first round prices all links equally.
double CrowdedFlowBound(const FlowProblem& problem, int32_t rounds);

}  // namespace xccl
