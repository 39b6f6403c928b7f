// Cuts of a network: arcs with capacities, and supplies at nodes that must all get to a sink together. They
// do exactly when for every set of nodes that holds the sink the capacity into the set is at least the supply
// outside it (Ford and Fulkerson 1956). A search takes sinks one after another; flows that it found stay,
// so that the next sink near by costs little.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/graph/grouped.h"

namespace xccl {

struct CapacityArc {
  int32_t from, to;
  int64_t capacity;  // >= 0
};

// Amount: int64_t where capacity_times × all capacities + supply_times × all supplies stay below 2^63, else
// __int128; both are instantiated.
template <typename Amount>
class CutSearch {
 public:
  // The arcs stay with the caller, unchanged, and outlive this.
  CutSearch(int32_t nodes, const std::vector<CapacityArc>& arcs);

  // Forgets all flows and sources. `supply`, by node, outlives the calls up to the next Start(). Every
  // capacity counts capacity_times and every supply supply_times.
  void Start(std::span<const int64_t> supply, Amount capacity_times = 1, Amount supply_times = 1);
  // How much of `wanted` gets to the sink beside its own supply. Next must be MakeSource(sink) or Start().
  Amount Bring(int32_t sink, Amount wanted);
  // Makes the node a source without limit. A sink that got all supplies may become one, since every set
  // that leaves it out is known to be good.
  void MakeSource(int32_t node);
  // After Bring() returned less than was wanted: the smallest set that lets no more in. It holds the sink.
  std::span<const int32_t> Inside() const { return visited_; }
  // Capacity, counted once, of the arcs that enter Inside().
  Amount CapacityIntoInside() const;
  // Nodes of `sinks`, near ones one after another: breadth first over arcs in both directions.
  std::vector<int32_t> NearOnesTogether(std::span<const int32_t> sinks);

 private:
  struct Incident {
    int32_t code;   // 2 × arc where this node is its head, 2 × arc + 1 where it is its tail
    int32_t other;  // the arc's other end
  };
  struct Pulled {
    int32_t node;
    Amount wanted, brought;
  };

  Amount Residual(int32_t code) const;
  Amount Supply(int32_t node) const { return supply_times_ * supply_[static_cast<size_t>(node)]; }
  void Spend(int32_t node, Amount amount);
  void AddFlow(int32_t code, Amount amount);
  bool BuildLevels(int32_t sink);
  Amount Pull(int32_t sink, Amount wanted);

  const std::vector<CapacityArc>& arcs_;
  std::span<const int64_t> supply_;
  Amount capacity_times_ = 1, supply_times_ = 1;
  Grouped<Incident> incidents_;  // by node; from end_[node] on there are only sources
  std::vector<int32_t> end_;
  std::vector<Amount> flow_;   // by arc
  std::vector<Amount> spent_;  // by node: of its supply; negative where sources give it more
  std::vector<bool> is_source_;
  std::vector<int32_t> touched_arcs_, touched_nodes_, sources_;
  std::vector<int32_t> visited_, level_, cursor_;
  std::vector<Pulled> path_;
  int32_t level_limit_ = 0;
};

}  // namespace xccl
