// Dinic's phases backward from the sink: levels up to the first with a source, then a blocking flow.
#include "synth/forest/graph.h"

#include <algorithm>

namespace xccl::forest {
namespace {

constexpr int32_t kFarthest = 4096;  // levels beyond the first source: bounds the recursion

}  // namespace

int32_t CapacityGraph::ArcOf(int32_t from, int32_t to) {
  const int64_t key = int64_t{from} * num_nodes() + to;
  const auto [it, added] = arc_of_.try_emplace(key, num_arcs());
  if (added) {
    incident_[to].push_back({2 * it->second, from});
    incident_[from].push_back({2 * it->second + 1, to});
    arcs_.push_back({from, to, 0});
  }
  return it->second;
}

int64_t SlackOf(const CapacityGraph& graph, const Demands& demands, const std::vector<bool>& inside) {
  int64_t slack = -demands.total;
  for (const CapacityGraph::Arc& arc : graph.arcs())
    if (inside[arc.to] && !inside[arc.from]) slack += arc.capacity;
  for (size_t node = 0; node < inside.size(); ++node)
    if (inside[node]) slack += demands.at[node];
  return slack;
}

CutOracle::CutOracle(const CapacityGraph& graph, const std::vector<int32_t>& sinks)
    : graph_(graph), sinks_(sinks) {
  const size_t nodes = static_cast<size_t>(graph.num_nodes());
  used_.assign(nodes, 0);
  unlimited_.assign(nodes, false);
  level_.assign(nodes, -1);
  cursor_.assign(nodes, 0);
}

int64_t CutOracle::Residual(int32_t code) const {
  const size_t arc = static_cast<size_t>(code / 2);
  if (code & 1) return flow_[arc];
  return graph_.arc(code / 2).capacity - flow_[arc];
}

// Forgets the last flow; notices arcs that were added since.
void CutOracle::Prepare() {
  for (int32_t arc : touched_arcs_) flow_[arc] = 0;
  for (int32_t node : touched_nodes_) used_[node] = 0;
  touched_arcs_.clear();
  touched_nodes_.clear();
  flow_.resize(static_cast<size_t>(graph_.num_arcs()), 0);
  level_limit_ = 0;
}

bool CutOracle::BuildLevels(const Demands& demands, int32_t sink) {
  for (int32_t node : visited_) level_[node] = -1;
  visited_.assign(1, sink);
  level_[sink] = 0;
  bool found = false;
  int32_t source_level = 0;
  for (size_t i = 0; i < visited_.size(); ++i) {
    const int32_t node = visited_[i];
    if (found && level_[node] >= std::max(source_level, level_limit_)) break;
    if (unlimited_[node]) continue;
    work_ += static_cast<int64_t>(graph_.At(node).size());
    for (const CapacityGraph::Incident& incident : graph_.At(node)) {
      if (level_[incident.other] >= 0 || Residual(incident.code) <= 0) continue;
      level_[incident.other] = level_[node] + 1;
      visited_.push_back(incident.other);
      if (!found && (unlimited_[incident.other] || used_[incident.other] < demands.at[incident.other])) {
        found = true;
        source_level = level_[incident.other];
      }
    }
  }
  for (int32_t node : visited_) cursor_[node] = 0;
  level_limit_ = std::min(kFarthest, 2 * std::max(source_level, level_limit_));
  return found;
}

// Brings up to `wanted` to the node: its own, then what comes along the levels.
int64_t CutOracle::Pull(const Demands& demands, int32_t node, int64_t wanted) {
  if (unlimited_[node]) return wanted;
  int64_t brought = std::min(wanted, demands.at[node] - used_[node]);
  if (brought > 0) {
    if (used_[node] == 0) touched_nodes_.push_back(node);
    used_[node] += brought;
  } else {
    brought = 0;
  }
  const std::span<const CapacityGraph::Incident> incidents = graph_.At(node);
  for (size_t& at = cursor_[node]; brought < wanted && at < incidents.size(); ++at) {
    ++work_;
    const CapacityGraph::Incident& incident = incidents[at];
    if (level_[incident.other] != level_[node] + 1) continue;
    const int64_t residual = Residual(incident.code);
    if (residual <= 0) continue;
    const int64_t got = Pull(demands, incident.other, std::min(wanted - brought, residual));
    if (got == 0) continue;
    const int32_t arc = incident.code / 2;
    if (flow_[arc] == 0) touched_arcs_.push_back(arc);
    flow_[arc] += incident.code & 1 ? -got : got;
    brought += got;
    if (brought == wanted) break;  // the arc may have more
  }
  return brought;
}

// How much of `wanted` gets to the sink beside its own demand.
int64_t CutOracle::Bring(const Demands& demands, int32_t sink, int64_t wanted) {
  Prepare();
  used_[sink] = demands.at[sink];
  touched_nodes_.push_back(sink);
  int64_t brought = 0;
  while (brought < wanted && BuildLevels(demands, sink)) brought += Pull(demands, sink, wanted - brought);
  return brought;
}

std::vector<bool> CutOracle::LastInside() const {
  std::vector<bool> inside(level_.size(), false);
  for (int32_t node : visited_) inside[node] = true;
  return inside;
}

std::vector<Cut> CutOracle::FindViolated(const Demands& demands, int32_t most) {
  if (order_.empty()) {  // breadth first, so that certified sinks are near
    std::vector<bool> seen(level_.size(), false), is_sink(level_.size(), false);
    for (int32_t sink : sinks_) is_sink[sink] = true;
    std::vector<int32_t> queue;
    for (int32_t start : sinks_) {
      if (seen[start]) continue;
      seen[start] = true;
      queue.assign(1, start);
      for (size_t i = 0; i < queue.size(); ++i) {
        if (is_sink[queue[i]]) order_.push_back(queue[i]);
        for (const CapacityGraph::Incident& incident : graph_.At(queue[i])) {
          if (seen[incident.other]) continue;
          seen[incident.other] = true;
          queue.push_back(incident.other);
        }
      }
    }
  }
  std::vector<Cut> cuts;
  for (int32_t sink : order_) {
    const int64_t wanted = demands.total - demands.at[sink];
    const int64_t brought = Bring(demands, sink, wanted);
    if (brought < wanted) {
      cuts.push_back({LastInside(), brought - wanted});
      if (static_cast<int32_t>(cuts.size()) == most) break;
    }
    unlimited_[sink] = true;  // after a violation too: the next cut is another
  }
  unlimited_.assign(unlimited_.size(), false);
  return cuts;
}

int64_t CutOracle::LeastSlack(const Demands& demands, int32_t sink, int32_t outside, int64_t enough) {
  const int64_t wanted = demands.total - demands.at[sink];
  unlimited_[outside] = true;
  const int64_t brought = Bring(demands, sink, wanted + enough);
  unlimited_[outside] = false;
  return brought - wanted;
}

}  // namespace xccl::forest
