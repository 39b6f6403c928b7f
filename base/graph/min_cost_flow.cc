// Successive shortest paths, all of one length at once. Every node has a potential, so that no arc with room
// left has a reduced cost below zero. Dijkstra's search finds the distances under reduced costs, which are
// added to the potentials. All shortest paths then consist of arcs of reduced cost zero; blocking flows
// along levels (Dinic 1970) fill them. Every addition is less by the distance of the sink, so that nodes
// which the search did not reach keep their potentials.
#include "base/graph/min_cost_flow.h"

#include <algorithm>
#include <functional>

namespace xccl {
namespace {

constexpr int64_t kUnreached = std::numeric_limits<int64_t>::max();

template <typename Entry>
void PushHeap(std::vector<Entry>& heap, Entry entry) {
  heap.push_back(entry);
  std::ranges::push_heap(heap, std::greater<>());
}

template <typename Entry>
Entry PopHeap(std::vector<Entry>& heap) {
  std::ranges::pop_heap(heap, std::greater<>());
  const Entry least = heap.back();
  heap.pop_back();
  return least;
}

}  // namespace

MinCostFlow::MinCostFlow(int32_t nodes, std::vector<CostArc> arcs) : arcs_(std::move(arcs)) {
  const auto count = static_cast<size_t>(nodes);
  incidents_ = GroupItems<Incident>(count, [&](auto add) {
    for (int32_t a = 0; a < std::ssize(arcs_); ++a) {
      const CostArc& arc = arcs_[static_cast<size_t>(a)];
      add(arc.from, Incident{2 * a, arc.to});
      add(arc.to, Incident{2 * a + 1, arc.from});
    }
  });
  end_.resize(count);
  potential_.resize(count);
  distance_.resize(count, kUnreached);
  level_.resize(count);
  cursor_.resize(count);
}

void MinCostFlow::Start(std::span<const int32_t> sources, std::span<const int32_t> sinks) {
  sources_ = sources;
  sinks_ = sinks;
  std::ranges::fill(end_, End::kNone);
  for (const int32_t node : sources_) end_[static_cast<size_t>(node)] = End::kSource;
  for (const int32_t node : sinks_) end_[static_cast<size_t>(node)] = End::kSink;
  flow_.assign(arcs_.size(), 0);
  std::ranges::fill(potential_, 0);
  source_potential_ = sink_potential_ = 0;
}

int64_t MinCostFlow::Residual(int32_t code) const {
  const auto arc = static_cast<size_t>(code / 2);
  return code % 2 == 0 ? arcs_[arc].capacity - flow_[arc] : flow_[arc];
}

int64_t& MinCostFlow::Potential(int32_t node) {
  switch (end_[static_cast<size_t>(node)]) {
    case End::kSource:
      return source_potential_;
    case End::kSink:
      return sink_potential_;
    case End::kNone:
      break;
  }
  return potential_[static_cast<size_t>(node)];
}

int64_t MinCostFlow::ReducedCost(int32_t code) {
  const CostArc& arc = arcs_[static_cast<size_t>(code / 2)];
  const bool starts = sources_.size() == 1 && arc.from == sources_[0];
  const int64_t cost = arc.cost + (starts ? arc.start_cost : 0) + Potential(arc.from) - Potential(arc.to);
  return code % 2 == 0 ? cost : -cost;
}

bool MinCostFlow::MayGo(const Incident& incident) const {
  return end_[static_cast<size_t>(incident.other)] != End::kSource && Residual(incident.code) > 0;
}

// Finds the nodes nearer than the sinks and adds their distances to the potentials. False, without a change,
// if no sink is reached, or none at less than `below`.
bool MinCostFlow::FindDistances(int64_t below) {
  const int64_t cost_so_far = sink_potential_ - source_potential_;
  sink_distance_ = kUnreached;
  heap_.clear();
  reached_.clear();
  const auto relax = [&](int32_t node, int64_t distance) {
    for (const Incident& next : incidents_[node]) {
      ++work_;
      if (!MayGo(next)) continue;
      const int64_t there = distance + ReducedCost(next.code);
      const bool is_sink = end_[static_cast<size_t>(next.other)] == End::kSink;
      int64_t& known = is_sink ? sink_distance_ : distance_[static_cast<size_t>(next.other)];
      if (there >= known || there >= sink_distance_) continue;
      if (!is_sink && known == kUnreached) reached_.push_back(next.other);
      known = there;
      if (!is_sink) PushHeap(heap_, std::pair(there, next.other));
    }
  };
  for (const int32_t source : sources_) relax(source, 0);
  while (!heap_.empty()) {
    const auto [distance, node] = PopHeap(heap_);
    if (distance >= sink_distance_ || distance >= below - cost_so_far) break;
    if (distance == distance_[static_cast<size_t>(node)]) relax(node, distance);
  }
  const bool found = sink_distance_ != kUnreached && sink_distance_ < below - cost_so_far;
  for (const int32_t node : reached_) {
    int64_t& distance = distance_[static_cast<size_t>(node)];
    if (found && distance < sink_distance_)
      potential_[static_cast<size_t>(node)] += distance - sink_distance_;
    distance = kUnreached;
  }
  if (found) source_potential_ -= sink_distance_;
  return found;
}

// Numbers the nodes by their distance from the sources in arcs of reduced cost zero, up to the first sink.
bool MinCostFlow::BuildLevels() {
  for (const int32_t node : queue_) level_[static_cast<size_t>(node)] = -1;
  queue_.assign(sources_.begin(), sources_.end());
  for (const int32_t node : queue_)
    level_[static_cast<size_t>(node)] = cursor_[static_cast<size_t>(node)] = 0;
  sink_level_ = std::numeric_limits<int32_t>::max();
  for (size_t i = 0; i < queue_.size(); ++i) {
    const int32_t node = queue_[i], next_level = level_[static_cast<size_t>(node)] + 1;
    if (next_level > sink_level_) break;
    for (const Incident& next : incidents_[node]) {
      ++work_;
      const auto other = static_cast<size_t>(next.other);
      if (level_[other] >= 0 || !MayGo(next) || ReducedCost(next.code) != 0) continue;
      if (end_[other] == End::kSink) {
        sink_level_ = next_level;
        continue;
      }
      level_[other] = next_level;
      cursor_[other] = 0;
      queue_.push_back(next.other);
    }
  }
  return sink_level_ != std::numeric_limits<int32_t>::max();
}

// A blocking flow: afterwards every path along the levels has a full arc.
int64_t MinCostFlow::PushAlongLevels() {
  int64_t pushed = 0;
  for (const int32_t source : sources_) {
    path_.clear();
    int32_t node = source;
    while (true) {
      const bool at_sink = end_[static_cast<size_t>(node)] == End::kSink;
      if (at_sink) {
        int64_t room = std::numeric_limits<int64_t>::max();
        for (const auto& [tail, code] : path_) room = std::min(room, Residual(code));
        size_t first_full = path_.size();
        for (size_t i = path_.size(); i-- > 0;) {
          const int32_t code = path_[i].second;
          flow_[static_cast<size_t>(code / 2)] += code % 2 == 0 ? room : -room;
          if (Residual(code) == 0) first_full = i;
        }
        pushed += room;
        node = path_[first_full].first;
        path_.resize(first_full);
        continue;
      }
      const std::span<const Incident> incidents = incidents_[node];
      int32_t& cursor = cursor_[static_cast<size_t>(node)];
      const int32_t next_level = level_[static_cast<size_t>(node)] + 1;
      for (; cursor < std::ssize(incidents); ++cursor) {
        ++work_;
        const Incident& next = incidents[static_cast<size_t>(cursor)];
        const auto other = static_cast<size_t>(next.other);
        const int32_t level = end_[other] == End::kSink ? sink_level_ : level_[other];
        if (level == next_level && MayGo(next) && ReducedCost(next.code) == 0) break;
      }
      if (cursor < std::ssize(incidents)) {
        const Incident& next = incidents[static_cast<size_t>(cursor)];
        path_.emplace_back(node, next.code);
        node = next.other;
      } else if (path_.empty()) {
        break;
      } else {
        node = path_.back().first;
        path_.pop_back();
        ++cursor_[static_cast<size_t>(node)];
      }
    }
  }
  return pushed;
}

std::optional<FlowStep> MinCostFlow::Next(int64_t below) {
  if (!FindDistances(below)) return std::nullopt;
  std::ranges::fill(level_, -1);
  queue_.clear();
  FlowStep step{.cost = sink_potential_ - source_potential_, .amount = 0};
  while (BuildLevels()) step.amount += PushAlongLevels();
  return step;
}

std::vector<int64_t> MinCostFlow::Costs(std::span<const int32_t> nodes, bool from) {
  std::vector<int64_t> costs(incidents_.size(), -1);
  heap_.clear();
  for (const int32_t node : nodes) PushHeap(heap_, std::pair(int64_t{0}, node));
  while (!heap_.empty()) {
    const auto [cost, settled] = PopHeap(heap_);
    if (costs[static_cast<size_t>(settled)] >= 0) continue;
    costs[static_cast<size_t>(settled)] = cost;
    for (const Incident& next : incidents_[settled]) {
      ++work_;
      if ((next.code % 2 == 0) == from && costs[static_cast<size_t>(next.other)] < 0)
        PushHeap(heap_, std::pair(cost + arcs_[static_cast<size_t>(next.code / 2)].cost, next.other));
    }
  }
  return costs;
}

}  // namespace xccl
