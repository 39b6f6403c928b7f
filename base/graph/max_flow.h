// Exact maximum flow on directed multigraphs with int64 capacities (Dinic's algorithm), and the cut that
// proves it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace xccl {

class FlowNetwork {
 public:
  static constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;

  explicit FlowNetwork(int32_t nodes);
  int32_t num_nodes() const { return static_cast<int32_t>(head_.size()); }
  // Returns the arc's index (0, 1, ... in order of adding), for Flow and SetCapacity.
  // Requires: 0 <= capacity <= kInfinite.
  int32_t AddArc(int32_t from, int32_t to, int64_t capacity);
  void SetCapacity(int32_t arc, int64_t capacity);
  // The flow over the arc after the last MaxFlow.
  int64_t Flow(int32_t arc) const;
  // The largest flow from source to sink, computed from scratch; stops early at `enough`. Requires: source
  // != sink, enough <= kInfinite.
  int64_t MaxFlow(int32_t source, int32_t sink, int64_t enough = kInfinite);
  // After MaxFlow: the nodes on the source's side of a minimum cut. Meaningless if MaxFlow stopped at
  // `enough`.
  std::vector<bool> SourceSide() const;

 private:
  struct Arc {
    int32_t to, next;
    int64_t capacity, residual;
  };
  bool BuildLevels(int32_t source, int32_t sink);
  int64_t BlockingFlow(int32_t source, int32_t sink, int64_t limit);

  std::vector<int32_t> head_, level_, next_arc_, queue_, path_;
  std::vector<Arc> arcs_;  // arc 2k and its reverse 2k+1
  int32_t last_source_ = 0;
};

}  // namespace xccl
