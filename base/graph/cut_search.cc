// Dinic's phases backward from the sink: levels up to the first node with supply, or twice as far as the
// phase before, then a blocking flow, which keeps its path in an array.
//
// A source without limit is contracted away: the capacities of its arcs become supplies of their heads, and
// the arcs leave the lists when they are next met. So a switch with many certified members costs no more than
// one with few.
#include "base/graph/cut_search.h"

#include <algorithm>
#include <utility>

namespace xccl {

template <typename Amount>
CutSearch<Amount>::CutSearch(int32_t nodes, const std::vector<CapacityArc>& arcs)
    : arcs_(arcs),
      spent_(static_cast<size_t>(nodes), 0),
      level_(static_cast<size_t>(nodes), -1),
      cursor_(static_cast<size_t>(nodes), 0) {
  IndexArcs();
}

template <typename Amount>
void CutSearch<Amount>::IndexArcs() {
  flow_.resize(arcs_.size(), 0);
  incidents_ = GroupItems<Incident>(level_.size(), [&](auto add) {
    for (size_t a = 0; a < arcs_.size(); ++a) {
      const int32_t code = static_cast<int32_t>(2 * a);
      add(arcs_[a].to, Incident{code, arcs_[a].from});
      add(arcs_[a].from, Incident{code + 1, arcs_[a].to});
    }
  });
}

template <typename Amount>
void CutSearch<Amount>::Start(std::span<const int64_t> supply, Amount capacity_times, Amount supply_times) {
  ForgetFlow();
  if (flow_.size() != arcs_.size()) IndexArcs();
  supply_ = supply;
  capacity_times_ = capacity_times;
  supply_times_ = supply_times;
  left_.clear();
  for (int64_t amount : supply) left_.push_back(supply_times * amount);
  is_source_.assign(left_.size(), false);
  end_.assign(incidents_.first.begin() + 1, incidents_.first.end());
}

template <typename Amount>
void CutSearch<Amount>::MakeSource(int32_t node) {
  ForgetFlow();
  is_source_[node] = true;
  work_ += end_[node] - incidents_.first[node];
  for (int32_t at = incidents_.first[node]; at < end_[node]; ++at) {
    const Incident& incident = incidents_.items[at];
    if (incident.code & 1) left_[incident.other] += Capacity(incident.code);
  }
}

template <typename Amount>
void CutSearch<Amount>::ForgetFlow() {
  for (int32_t arc : touched_arcs_) flow_[arc] = 0;
  for (int32_t node : touched_nodes_) left_[node] += std::exchange(spent_[node], 0);
  touched_arcs_.clear();
  touched_nodes_.clear();
}

template <typename Amount>
Amount CutSearch<Amount>::Bring(int32_t sink, Amount wanted) {
  ForgetFlow();
  level_limit_ = 0;
  Amount brought = std::min(wanted, left_[sink] - supply_times_ * supply_[sink]);
  while (brought < wanted && BuildLevels(sink)) brought += Pull(sink, wanted - brought);
  return brought;
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
      if (!found && left_[incident.other] > 0) {
        found = true;
        source_level = level_[incident.other];
      }
    }
    work_ += end_[node] - incidents_.first[node];
    cursor_[node] = incidents_.first[node];
  }
  level_limit_ = std::min(static_cast<int32_t>(level_.size()), 2 * std::max(source_level, level_limit_));
  return found;
}

template <typename Amount>
void CutSearch<Amount>::AddFlow(int32_t code, Amount amount) {
  Amount& flow = flow_[static_cast<size_t>(code / 2)];
  if (flow == 0) touched_arcs_.push_back(code / 2);
  flow += code & 1 ? -amount : amount;
}

// Brings up to `wanted` to the sink along the levels; every node gives its own supply first.
template <typename Amount>
Amount CutSearch<Amount>::Pull(int32_t sink, Amount wanted) {
  path_.assign(1, {sink, wanted, 0});
  while (true) {
    Pulled& last = path_.back();
    const int32_t node = last.node, end = end_[node];
    int32_t& at = cursor_[node];
    if (last.brought < last.wanted) {
      const int32_t begin = at, next_level = level_[node] + 1;
      while (at < end &&
             (level_[incidents_.items[at].other] != next_level || Residual(incidents_.items[at].code) <= 0))
        ++at;
      work_ += at - begin + 1;
      if (at < end) {
        const Incident incident = incidents_.items[at];
        const Amount most = std::min(last.wanted - last.brought, Residual(incident.code));
        const Amount own = std::min(most, left_[incident.other]);
        if (own > 0) {
          touched_nodes_.push_back(incident.other);
          left_[incident.other] -= own;
          spent_[incident.other] += own;
        }
        path_.push_back({incident.other, most, own});
        continue;
      }
    }
    const Amount got = last.brought;
    path_.pop_back();
    if (path_.empty()) return got;
    Pulled& before = path_.back();
    int32_t& arc = cursor_[before.node];
    if (got > 0) AddFlow(incidents_.items[arc].code, got);
    before.brought += got;
    if (before.brought < before.wanted) ++arc;  // else the arc may have more
  }
}

template <typename Amount>
int64_t CutSearch<Amount>::CapacityIntoInside() const {
  int64_t capacity = 0;
  for (int32_t node : visited_)
    for (const Incident& incident : incidents_[node])
      if (!(incident.code & 1) && level_[incident.other] < 0)
        capacity += arcs_[static_cast<size_t>(incident.code / 2)].capacity;
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
      for (const Incident& incident : incidents_[queue[i]]) {
        if (seen[incident.other]) continue;
        seen[incident.other] = true;
        queue.push_back(incident.other);
      }
    }
  }
  return order;
}

template class CutSearch<int64_t>;
template class CutSearch<__int128>;

}  // namespace xccl
