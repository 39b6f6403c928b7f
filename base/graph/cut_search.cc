// Dinic's phases backward from the sink: levels up to the first node with supply, or twice as far as the
// phase before, then a blocking flow, which keeps its path in an array.
//
// A source without limit is contracted away: what it could send to a neighbour, new or by taking flow back,
// becomes supply of the neighbour, and its arcs leave the lists when they are next met. So a switch with many
// certified members costs no more than one with few.
#include "base/graph/cut_search.h"

#include <algorithm>

namespace xccl {

template <typename Amount>
CutSearch<Amount>::CutSearch(int32_t nodes, const std::vector<CapacityArc>& arcs)
    : arcs_(arcs),
      flow_(arcs.size(), 0),
      spent_(static_cast<size_t>(nodes), 0),
      is_source_(static_cast<size_t>(nodes), false),
      level_(static_cast<size_t>(nodes), -1),
      cursor_(static_cast<size_t>(nodes), 0) {
  incidents_ = GroupItems<Incident>(spent_.size(), [&](auto add) {
    for (size_t a = 0; a < arcs_.size(); ++a) {
      const int32_t code = static_cast<int32_t>(2 * a);
      add(arcs_[a].to, Incident{code, arcs_[a].from});
      add(arcs_[a].from, Incident{code + 1, arcs_[a].to});
    }
  });
  end_.assign(incidents_.first.begin() + 1, incidents_.first.end());
}

template <typename Amount>
void CutSearch<Amount>::Start(std::span<const int64_t> supply, Amount capacity_times, Amount supply_times) {
  for (int32_t arc : touched_arcs_) flow_[arc] = 0;
  for (int32_t node : touched_nodes_) {
    spent_[node] = 0;
    end_[node] = incidents_.first[node + 1];
  }
  for (int32_t node : sources_) is_source_[node] = false;
  touched_arcs_.clear();
  touched_nodes_.clear();
  sources_.clear();
  supply_ = supply;
  capacity_times_ = capacity_times;
  supply_times_ = supply_times;
}

// How much more can flow from the other end to this one.
template <typename Amount>
Amount CutSearch<Amount>::Residual(int32_t code) const {
  const size_t arc = static_cast<size_t>(code / 2);
  return code & 1 ? flow_[arc] : capacity_times_ * arcs_[arc].capacity - flow_[arc];
}

template <typename Amount>
void CutSearch<Amount>::Spend(int32_t node, Amount amount) {
  if (spent_[node] == 0) touched_nodes_.push_back(node);
  spent_[node] += amount;
}

template <typename Amount>
void CutSearch<Amount>::AddFlow(int32_t code, Amount amount) {
  const size_t arc = static_cast<size_t>(code / 2);
  if (flow_[arc] == 0) touched_arcs_.push_back(static_cast<int32_t>(arc));
  flow_[arc] += code & 1 ? -amount : amount;
}

template <typename Amount>
void CutSearch<Amount>::MakeSource(int32_t node) {
  is_source_[node] = true;
  sources_.push_back(node);
  touched_nodes_.push_back(node);
  for (int32_t at = incidents_.first[node]; at < end_[node]; ++at) {
    const Incident& incident = incidents_.items[at];
    if (is_source_[incident.other]) continue;
    // Touched even where it gets nothing, since its list is about to change.
    touched_nodes_.push_back(incident.other);
    spent_[incident.other] -= Residual(incident.code ^ 1);
  }
}

template <typename Amount>
bool CutSearch<Amount>::BuildLevels(int32_t sink) {
  for (int32_t node : visited_) level_[node] = -1;
  visited_.assign(1, sink);
  level_[sink] = 0;
  bool found = false;
  int32_t source_level = 0;
  for (size_t i = 0; i < visited_.size(); ++i) {
    const int32_t node = visited_[i];
    cursor_[node] = end_[node];
    if (found && level_[node] >= std::max(source_level, level_limit_)) continue;
    for (int32_t at = incidents_.first[node]; at < end_[node];) {
      const Incident incident = incidents_.items[at];
      if (is_source_[incident.other]) {
        std::swap(incidents_.items[at], incidents_.items[--end_[node]]);
        continue;
      }
      ++at;
      if (level_[incident.other] >= 0 || Residual(incident.code) <= 0) continue;
      level_[incident.other] = level_[node] + 1;
      visited_.push_back(incident.other);
      if (!found && spent_[incident.other] < Supply(incident.other)) {
        found = true;
        source_level = level_[incident.other];
      }
    }
    cursor_[node] = incidents_.first[node];
  }
  level_limit_ = std::min(static_cast<int32_t>(level_.size()), 2 * std::max(source_level, level_limit_));
  return found;
}

// Brings up to `wanted` to the sink along the levels; every node gives its own supply first.
template <typename Amount>
Amount CutSearch<Amount>::Pull(int32_t sink, Amount wanted) {
  path_.assign(1, {sink, wanted, 0});
  while (true) {
    Pulled& last = path_.back();
    const int32_t node = last.node;
    int32_t& at = cursor_[node];
    for (; last.brought < last.wanted && at < end_[node]; ++at)
      if (level_[incidents_.items[at].other] == level_[node] + 1 && Residual(incidents_.items[at].code) > 0)
        break;
    if (last.brought < last.wanted && at < end_[node]) {
      const int32_t next = incidents_.items[at].other;
      const Amount most = std::min(last.wanted - last.brought, Residual(incidents_.items[at].code));
      const Amount own = std::min(most, Supply(next) - spent_[next]);
      if (own > 0) Spend(next, own);
      path_.push_back({next, most, own});
      continue;
    }
    const Amount got = last.brought;
    path_.pop_back();
    if (path_.empty()) return got;
    Pulled& before = path_.back();
    if (got > 0) AddFlow(incidents_.items[cursor_[before.node]].code, got);
    before.brought += got;
    if (before.brought < before.wanted) ++cursor_[before.node];  // else the arc may have more
  }
}

template <typename Amount>
Amount CutSearch<Amount>::Bring(int32_t sink, Amount wanted) {
  // The sink's own supply has arrived, except for what earlier sinks took: that must be brought as well.
  Amount brought = std::min(wanted, -spent_[sink]);
  Spend(sink, Supply(sink) - spent_[sink]);
  level_limit_ = 0;
  while (brought < wanted && BuildLevels(sink)) brought += Pull(sink, wanted - brought);
  return brought;
}

template <typename Amount>
Amount CutSearch<Amount>::CapacityIntoInside() const {
  Amount capacity = 0;
  for (int32_t node : visited_)
    for (int32_t at = incidents_.first[node]; at < incidents_.first[node + 1]; ++at)
      if (!(incidents_.items[at].code & 1) && level_[incidents_.items[at].other] < 0)
        capacity += arcs_[static_cast<size_t>(incidents_.items[at].code / 2)].capacity;
  return capacity;
}

template <typename Amount>
std::vector<int32_t> CutSearch<Amount>::NearOnesTogether(std::span<const int32_t> sinks) {
  std::vector<bool> seen(level_.size(), false), is_sink(level_.size(), false);
  for (int32_t sink : sinks) is_sink[sink] = true;
  std::vector<int32_t> order, queue;
  for (int32_t start : sinks) {  // more than one only where the graph falls apart
    if (seen[start]) continue;
    seen[start] = true;
    queue.assign(1, start);
    for (size_t i = 0; i < queue.size(); ++i) {
      if (is_sink[queue[i]]) order.push_back(queue[i]);
      for (int32_t at = incidents_.first[queue[i]]; at < incidents_.first[queue[i] + 1]; ++at) {
        const int32_t other = incidents_.items[at].other;
        if (seen[other]) continue;
        seen[other] = true;
        queue.push_back(other);
      }
    }
  }
  return order;
}

template class CutSearch<int64_t>;
template class CutSearch<__int128>;

}  // namespace xccl
