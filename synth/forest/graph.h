// What forest works on: a directed graph with integer capacities, demands at some nodes, and cuts.
//
// Every node `at` with demand d must be able to send d units to every sink, all of them together: for every
// set X of nodes with a sink inside, the capacity into X is at least the demand outside X. By Edmonds'
// theorem (and, with relays, splitting off) the capacities then hold d spanning trees for each.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/graph/cut_search.h"

namespace xccl::forest {

// Arcs have distinct (from, to); capacities change, arcs stay.
class CapacityGraph {
 public:
  using Arc = CapacityArc;
  struct Incident {
    int32_t code;   // 2 × arc where this node is its head, 2 × arc + 1 where it is its tail
    int32_t other;  // the arc's other end
  };

  explicit CapacityGraph(int32_t nodes) : incident_(static_cast<size_t>(nodes)) {}
  int32_t num_nodes() const { return static_cast<int32_t>(incident_.size()); }
  int32_t num_arcs() const { return static_cast<int32_t>(arcs_.size()); }
  // The arc's id; made with capacity 0 where there is none.
  int32_t ArcOf(int32_t from, int32_t to);
  const Arc& arc(int32_t a) const { return arcs_[a]; }
  int64_t& capacity(int32_t a) { return arcs_[a].capacity; }
  const std::vector<Arc>& arcs() const { return arcs_; }
  std::span<const Incident> At(int32_t node) const { return incident_[node]; }

 private:
  std::vector<Arc> arcs_;
  std::vector<std::vector<Incident>> incident_;
  std::unordered_map<int64_t, int32_t> arc_of_;
};

struct Demands {
  std::vector<int64_t> at;  // by node
  int64_t total = 0;
};

struct Cut {
  std::vector<bool> inside;  // by node
  int64_t slack = 0;         // capacity into it − demand outside it
};
int64_t SlackOf(const CapacityGraph& graph, const Demands& demands, const std::vector<bool>& inside);

// Finds cuts of a graph whose capacities change.
class CutOracle {
 public:
  // The graph and the sinks stay with the caller and outlive this.
  CutOracle(const CapacityGraph& graph, const std::vector<int32_t>& sinks)
      : sinks_(sinks), search_(graph.num_nodes(), graph.arcs()) {}

  // Cuts with negative slack, at most `most`; none exactly when every demand can be met.
  std::vector<Cut> FindViolated(const Demands& demands, int32_t most);
  // The least slack, but at most `enough`, of the sets with `sink` inside and `outside` not.
  int64_t LeastSlack(const Demands& demands, int32_t sink, int32_t outside, int64_t enough);
  // Arcs looked at.
  int64_t work() const { return search_.work(); }

 private:
  void Start(const Demands& demands);

  const std::vector<int32_t>& sinks_;
  CutSearch<int64_t> search_;
  std::vector<int32_t> order_;
};

}  // namespace xccl::forest
