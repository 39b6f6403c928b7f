// Dinic's algorithm: each phase builds a breadth-first level graph and finds a blocking flow in it. The
// depth-first walk keeps its path in an array, so deep graphs need no stack. O(nodes² · arcs) at worst, far
// less in practice.
#include "base/graph/max_flow.h"

#include <algorithm>

#include "base/status.h"

namespace xccl {
namespace {

constexpr int32_t kNone = -1;

}  // namespace

FlowNetwork::FlowNetwork(int32_t nodes) : head_(static_cast<size_t>(nodes), kNone) {}

int32_t FlowNetwork::AddArc(int32_t from, int32_t to, int64_t capacity) {
  XCCL_CHECK(from >= 0 && from < num_nodes() && to >= 0 && to < num_nodes());
  XCCL_CHECK(capacity >= 0 && capacity <= kInfinite);
  const auto index = static_cast<int32_t>(arcs_.size());
  arcs_.push_back(Arc{to, head_[from], capacity, capacity});
  head_[from] = index;
  arcs_.push_back(Arc{from, head_[to], 0, 0});
  head_[to] = index + 1;
  return index / 2;
}

void FlowNetwork::SetCapacity(int32_t arc, int64_t capacity) {
  XCCL_CHECK(capacity >= 0 && capacity <= kInfinite);
  arcs_[2 * static_cast<size_t>(arc)].capacity = capacity;
}

int64_t FlowNetwork::Flow(int32_t arc) const {
  const Arc& forward = arcs_[2 * static_cast<size_t>(arc)];
  return forward.capacity - forward.residual;
}

// Sets each node's level, its distance in arcs from the source. Returns false if the sink is out of reach.
// Nodes at the sink's level or beyond stay unvisited, since no shortest path uses them.
bool FlowNetwork::BuildLevels(int32_t source, int32_t sink) {
  level_.assign(head_.size(), kNone);
  level_[source] = 0;
  queue_.assign(1, source);
  for (size_t i = 0; i < queue_.size(); ++i) {
    const int32_t node = queue_[i];
    if (level_[sink] != kNone && level_[node] + 1 >= level_[sink]) break;
    for (int32_t a = head_[node]; a != kNone; a = arcs_[a].next) {
      if (arcs_[a].residual == 0 || level_[arcs_[a].to] != kNone) continue;
      level_[arcs_[a].to] = level_[node] + 1;
      queue_.push_back(arcs_[a].to);
    }
  }
  return level_[sink] != kNone;
}

int64_t FlowNetwork::BlockingFlow(int32_t source, int32_t sink, int64_t limit) {
  next_arc_ = head_;
  path_.clear();
  int64_t total = 0;
  int32_t node = source;
  while (total < limit) {
    if (node == sink) {
      int64_t width = limit - total;
      for (int32_t a : path_) width = std::min(width, arcs_[a].residual);
      size_t keep = path_.size();  // the walk resumes at the tail of the first full arc
      for (size_t i = path_.size(); i-- > 0;) {
        arcs_[path_[i]].residual -= width;
        arcs_[path_[i] ^ 1].residual += width;
        if (arcs_[path_[i]].residual == 0) keep = i;
      }
      total += width;
      if (keep == path_.size()) break;  // the limit was reached before any arc was full
      node = arcs_[path_[keep] ^ 1].to;
      path_.resize(keep);
      continue;
    }
    int32_t& a = next_arc_[node];
    while (a != kNone && (arcs_[a].residual == 0 || level_[arcs_[a].to] != level_[node] + 1))
      a = arcs_[a].next;
    if (a != kNone) {
      path_.push_back(a);
      node = arcs_[a].to;
    } else {
      if (node == source) break;
      level_[node] = kNone;  // a dead end
      node = arcs_[path_.back() ^ 1].to;
      path_.pop_back();
    }
  }
  return total;
}

int64_t FlowNetwork::MaxFlow(int32_t source, int32_t sink, int64_t enough) {
  XCCL_CHECK(source != sink && enough <= kInfinite);
  for (size_t a = 0; a < arcs_.size(); ++a) arcs_[a].residual = arcs_[a].capacity;
  last_source_ = source;
  int64_t total = 0;
  while (total < enough && BuildLevels(source, sink)) total += BlockingFlow(source, sink, enough - total);
  return total;
}

std::vector<bool> FlowNetwork::SourceSide() const {
  std::vector<bool> side(head_.size(), false);
  std::vector<int32_t> queue = {last_source_};
  side[last_source_] = true;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int32_t a = head_[queue[i]]; a != kNone; a = arcs_[a].next) {
      if (arcs_[a].residual == 0 || side[arcs_[a].to]) continue;
      side[arcs_[a].to] = true;
      queue.push_back(arcs_[a].to);
    }
  }
  return side;
}

}  // namespace xccl
