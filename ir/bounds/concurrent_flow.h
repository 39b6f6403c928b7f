// Demands that are moved, not copied (alltoall(v), sendrecv, gather, scatter), as flows that load the links
// as evenly as can be, grouped by source: the linear program of the maximum concurrent flow from both sides.
// In: demands by source; out: prices of links, which prove a bound, and for every source trees of shortest
// ways with weights, which are a flow that nearly attains it. Links that symmetry makes alike are one row.
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
  Demands demands;             // with symmetry: of one source an orbit
  std::vector<int32_t> orbit;  // by link, dense from 0
  // By orbit. Bytes over its links × share = load of each of them, once translated; capacity of each in bytes
  // per second.
  std::vector<double> share, capacity;
};

// Under a group that keeps the demands: sources that represent their orbits, orbits of links. With the
// trivial group every source and every link by itself.
FlowProblem FlowOf(const Topology& topology, const Demands& demands, const SymmetryGroup& group);

// Shortest ways from a source, at some prices, to all that it has demands for.
struct FlowTree {
  int32_t source = 0;        // index into Demands::sources
  double weight = 0;         // of its demands that go this way; a source's weights sum to 1
  std::vector<LinkId> into;  // by node: the link that enters it
};

struct ConcurrentFlow {
  double bound_s = 0;  // no flow is faster, whatever the solver returned
  double load_s = 0;   // of the busiest link; infinite where the solver failed: then there are no trees
  std::vector<FlowTree> trees;
  bool MeetsBound() const { return load_s <= bound_s * (1 + 1e-9); }
};

struct FlowOptions {
  double gap = 1e-9;                   // relative, of load to bound: then it stops
  int32_t rounds = 100;                // of the cutting planes
  std::function<bool()> stopped = {};  // asked after each round: then what there is, at least one round
};

// Requires: every demand's node can be reached. Cost: rounds × (sources × links × log, and a linear program
// of one row a tree and one column an orbit and source); memory: rounds × sources × nodes.
ConcurrentFlow SolveConcurrentFlow(const FlowProblem& problem, const FlowOptions& options);

// The bound alone, by prices that grow where shortest ways crowd: multiplicative weights, a cheap way to good
// prices. The first round prices all links alike. Seconds.
double CrowdedFlowBound(const FlowProblem& problem, int32_t rounds);

}  // namespace xccl
