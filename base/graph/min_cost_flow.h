// Flows of least cost between any two ends of a network, from the cheapest path on. A flow of least cost is
// a sum of steps: so much more can flow at so much a unit. Costs rise from step to step, and the sum of the
// first steps is cheapest for its amount (Busacker and Gowen 1960, Iri 1960).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/graph/grouped.h"

namespace xccl {

struct CostArc {
  int32_t from = 0, to = 0;
  int64_t capacity = 0;    // >= 0
  int64_t cost = 0;        // per unit of flow; >= 0
  int64_t start_cost = 0;  // added to `cost` where the arc leaves the only source; >= 0
};

struct FlowStep {
  int64_t cost = 0;    // per unit of flow
  int64_t amount = 0;  // > 0
};

class MinCostFlow {
 public:
  // Requires: all capacities together, and the costs of all arcs of any path, are below 2^62.
  MinCostFlow(int32_t nodes, std::vector<CostArc> arcs);

  // Takes effect with the next Start(). Requires: as for the constructor.
  void Change(int32_t arc, int64_t capacity, int64_t cost) {
    arcs_[static_cast<size_t>(arc)].capacity = capacity;
    arcs_[static_cast<size_t>(arc)].cost = cost;
  }

  // Forgets all flow. Flow starts at any of the sources, as much as there is room for, and ends at any of
  // the sinks. With several sources start_cost does not count, so that the most that sets of sources can send
  // is submodular. Requires: no node is both; the spans outlive the steps.
  void Start(std::span<const int32_t> sources, std::span<const int32_t> sinks);
  // The next step, if it costs less than `below`; else the flow is as it was.
  // Cost: a search by Dijkstra from the sources and blocking flows by Dinic along its shortest paths.
  std::optional<FlowStep> Next(int64_t below = std::numeric_limits<int64_t>::max());

  // The least cost of a path to each node from any of `nodes` (CostsTo: from each node to any of `nodes`); -1
  // where there is no path. The start_cost does not count.
  std::vector<int64_t> CostsFrom(std::span<const int32_t> nodes) { return Costs(nodes, true); }
  std::vector<int64_t> CostsTo(std::span<const int32_t> nodes) { return Costs(nodes, false); }

  // The number of arcs that all searches so far have looked at.
  int64_t work() const { return work_; }

 private:
  enum class End : uint8_t { kNone, kSource, kSink };
  struct Incident {
    int32_t code;   // 2 × arc where this node is its tail, 2 × arc + 1 where it is its head
    int32_t other;  // the arc's other end
  };

  int64_t Residual(int32_t code) const;
  // All sources are one node, and all sinks.
  int64_t& Potential(int32_t node);
  // The arc's cost plus the potential of its tail less that of its head, negated if flow goes back over the
  // arc; >= 0 where there is room.
  int64_t ReducedCost(int32_t code);
  // True if flow may go that way: there is room, and the arc ends at no source.
  bool MayGo(const Incident& incident) const;
  bool FindDistances(int64_t below);
  bool BuildLevels();
  int64_t PushAlongLevels();
  std::vector<int64_t> Costs(std::span<const int32_t> nodes, bool from);

  std::vector<CostArc> arcs_;
  Grouped<Incident> incidents_;  // by node
  std::span<const int32_t> sources_, sinks_;
  std::vector<End> end_;       // by node
  std::vector<int64_t> flow_;  // by arc
  int64_t source_potential_ = 0, sink_potential_ = 0;
  std::vector<int64_t> potential_, distance_;              // by node
  std::vector<int32_t> reached_, level_, cursor_, queue_;  // level_, cursor_: by node
  std::vector<std::pair<int64_t, int32_t>> heap_;          // (distance, node)
  std::vector<std::pair<int32_t, int32_t>> path_;          // (node, the code by which flow leaves it)
  int64_t sink_distance_ = 0;
  int32_t sink_level_ = 0;
  int64_t work_ = 0;
};

}  // namespace xccl
