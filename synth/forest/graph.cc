#include "synth/forest/graph.h"

namespace xccl::forest {

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

void CutOracle::Start(const Demands& demands) {
  search_.Start(demands.at);
  if (order_.empty()) order_ = search_.NearOnesTogether(sinks_);
}

std::vector<Cut> CutOracle::FindViolated(const Demands& demands, int32_t most) {
  Start(demands);
  std::vector<Cut> cuts;
  for (int32_t sink : order_) {
    const int64_t wanted = demands.total - demands.at[sink];
    const int64_t brought = search_.Bring(sink, wanted);
    if (brought < wanted) {
      Cut& cut = cuts.emplace_back(Cut{std::vector<bool>(demands.at.size(), false), brought - wanted});
      for (int32_t node : search_.Inside()) cut.inside[node] = true;
      if (static_cast<int32_t>(cuts.size()) == most) break;
    }
    search_.MakeSource(sink);  // after a violation too: the next cut is another
  }
  return cuts;
}

int64_t CutOracle::LeastSlack(const Demands& demands, int32_t sink, int32_t outside, int64_t enough) {
  const int64_t wanted = demands.total - demands.at[sink];
  Start(demands);
  search_.MakeSource(outside);
  return search_.Bring(sink, wanted + enough) - wanted;
}

}  // namespace xccl::forest
