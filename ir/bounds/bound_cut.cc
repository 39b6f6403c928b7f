// Newton's method on the ratio (Dinkelbach): for a guess T = p ÷ q, links get capacity p × bandwidth and
// supplies q × bytes; if for every sink all supplies but its own get there together, no cut is worse than T;
// else the minimum cut is, and its ratio is the next guess. T only grows, so a sink that was certified stays
// so.
//
// Sinks are taken one after another, and a certified sink becomes a source without limit: a cut that leaves
// it out is already known to be good, so only cuts that hold it are left. Taken in breadth-first order, a
// sink finds unlimited sources next to it, and its flow, searched backward from the sink, stays local. Sinks
// that a symmetry takes to each other have equally bad cuts: one is tried and certifies all.
#include "ir/bounds/bound_cut.h"

#include <algorithm>
#include <numeric>

namespace xccl {
namespace {

constexpr __int128 kLimit = static_cast<__int128>(1) << 62;
constexpr int32_t kFarthest = 4096;  // levels beyond the first source: bounds the recursion

// The topology with bandwidths and supplies divided by their common divisors.
struct Scaled {
  struct Arc {
    int32_t from, to;
    int64_t bandwidth;
  };
  std::vector<Arc> arcs;
  std::vector<int64_t> supply;
  int64_t supply_unit = 1, bandwidth_unit = 1;
  int64_t total_supply = 0, total_bandwidth = 0;
};

std::optional<Scaled> Scale(const Topology& topology, const CutProblem& problem) {
  Scaled scaled;
  int64_t bandwidth_unit = 0, supply_unit = 0;
  for (const Link& link : topology.spec().links)
    bandwidth_unit = std::gcd(bandwidth_unit, link.bandwidth_bytes_per_s);
  for (int64_t bytes : problem.supply_bytes) supply_unit = std::gcd(supply_unit, bytes);
  if (bandwidth_unit > 0) scaled.bandwidth_unit = bandwidth_unit;
  if (supply_unit > 0) scaled.supply_unit = supply_unit;
  __int128 bandwidth = 0, supply = 0, real_bandwidth = 0, real_supply = 0;
  for (const Link& link : topology.spec().links) {
    const int64_t each = link.bandwidth_bytes_per_s / scaled.bandwidth_unit;
    scaled.arcs.push_back(problem.reversed ? Scaled::Arc{link.to.value, link.from.value, each}
                                           : Scaled::Arc{link.from.value, link.to.value, each});
    bandwidth += each;
    real_bandwidth += link.bandwidth_bytes_per_s;
  }
  for (int64_t bytes : problem.supply_bytes) {
    scaled.supply.push_back(bytes / scaled.supply_unit);
    supply += scaled.supply.back();
    real_supply += bytes;
  }
  if (real_bandwidth >= kLimit || real_supply >= kLimit) return std::nullopt;
  scaled.total_bandwidth = static_cast<int64_t>(bandwidth);
  scaled.total_supply = static_cast<int64_t>(supply);
  return scaled;
}

struct Ratio {
  int64_t p = 0, q = 1;
};
bool Less(const Ratio& a, const Ratio& b) {
  return static_cast<__int128>(a.p) * b.q < static_cast<__int128>(b.p) * a.q;
}

// Amount: int64_t where p × q products fit, else __int128.
template <typename Amount>
class CutSearch {
 public:
  CutSearch(const Scaled& graph, const CutProblem& problem) : graph_(graph) {
    const std::vector<NodeId>& sinks = problem.sinks;
    const size_t nodes = graph.supply.size();
    first_.assign(nodes + 1, 0);
    for (const Scaled::Arc& arc : graph.arcs) {
      ++first_[static_cast<size_t>(arc.from) + 1];
      ++first_[static_cast<size_t>(arc.to) + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    incident_.resize(2 * graph.arcs.size());
    std::vector<int32_t> next(first_.begin(), first_.end() - 1);
    for (size_t a = 0; a < graph.arcs.size(); ++a) {
      const int32_t code = static_cast<int32_t>(a) * 2;
      incident_[next[graph.arcs[a].to]++] = {code, graph.arcs[a].from};
      incident_[next[graph.arcs[a].from]++] = {code + 1, graph.arcs[a].to};
    }
    flow_.assign(graph.arcs.size(), 0);
    used_.assign(nodes, 0);
    unlimited_.assign(nodes, false);
    level_.assign(nodes, -1);
    cursor_.assign(nodes, 0);
    is_sink_.assign(nodes, false);
    for (NodeId sink : sinks) is_sink_[sink.index()] = true;
    OrderSinks(sinks);
    number_ = problem.alike;
    for (NodeId sink : sinks) {
      if (number_.empty()) break;
      const size_t number = static_cast<size_t>(number_[sink.index()]);
      if (alike_.size() <= number) alike_.resize(number + 1);
      alike_[number].push_back(sink.value);
    }
  }

  // nullopt: a sink that some supply cannot reach.
  std::optional<Ratio> Run() {
    GuessByDegree();
    for (int32_t sink : order_) {
      if (unlimited_[sink]) continue;
      while (!Certify(sink)) {
        const Ratio cut = CutOfLastSearch();
        if (cut.q == 0) return std::nullopt;
        XCCL_CHECK(Less(guess_, cut));
        guess_ = cut;
      }
      unlimited_[sink] = true;
      if (!alike_.empty())
        for (int32_t other : alike_[number_[sink]]) unlimited_[other] = true;
    }
    return guess_;
  }

 private:
  struct Incident {
    int32_t code;   // 2 × arc where this node is its head, 2 × arc + 1 where it is its tail
    int32_t other;  // the arc's other end
  };

  std::span<const Incident> At(int32_t node) const {
    return std::span(incident_).subspan(first_[node], first_[node + 1] - first_[node]);
  }
  // How much more can flow from the other end to this one.
  Amount Residual(int32_t code) const {
    const size_t arc = static_cast<size_t>(code / 2);
    if (code & 1) return flow_[arc];
    return static_cast<Amount>(guess_.p) * graph_.arcs[arc].bandwidth - flow_[arc];
  }

  void OrderSinks(const std::vector<NodeId>& sinks) {
    std::vector<bool> seen(graph_.supply.size(), false);
    std::vector<int32_t> queue;
    for (NodeId start : sinks) {  // more than one only where the graph falls apart
      if (seen[start.index()]) continue;
      seen[start.index()] = true;
      queue.assign(1, start.value);
      for (size_t i = 0; i < queue.size(); ++i) {
        if (is_sink_[queue[i]]) order_.push_back(queue[i]);
        for (const Incident& incident : At(queue[i])) {
          if (seen[incident.other]) continue;
          seen[incident.other] = true;
          queue.push_back(incident.other);
        }
      }
    }
  }

  void GuessByDegree() {
    std::vector<int64_t> in(graph_.supply.size(), 0), out(graph_.supply.size(), 0);
    for (const Scaled::Arc& arc : graph_.arcs) {
      in[arc.to] += arc.bandwidth;
      out[arc.from] += arc.bandwidth;
    }
    const auto raise = [&](int64_t bytes, int64_t bandwidth) {
      if (bandwidth > 0 && Less(guess_, {bytes, bandwidth})) guess_ = {bytes, bandwidth};
    };
    for (size_t n = 0; n < graph_.supply.size(); ++n) {
      if (is_sink_[n]) raise(graph_.total_supply - graph_.supply[n], in[n]);
      if (!is_sink_[n] || order_.size() > 1) raise(graph_.supply[n], out[n]);
    }
  }

  bool HasSource(int32_t node) const {
    return unlimited_[node] || used_[node] < static_cast<Amount>(guess_.q) * graph_.supply[node];
  }

  // Levels backward from the sink, up to the first level with a source, or farther up to the limit.
  bool BuildLevels(int32_t sink) {
    for (int32_t node : visited_) level_[node] = -1;
    visited_.assign(1, sink);
    level_[sink] = 0;
    bool found = false;
    int32_t source_level = 0;
    for (size_t i = 0; i < visited_.size(); ++i) {
      const int32_t node = visited_[i];
      if (found && level_[node] >= std::max(source_level, level_limit_)) break;
      for (const Incident& incident : At(node)) {
        if (level_[incident.other] >= 0 || Residual(incident.code) <= 0) continue;
        level_[incident.other] = level_[node] + 1;
        visited_.push_back(incident.other);
        if (!found && HasSource(incident.other)) {
          found = true;
          source_level = level_[incident.other];
        }
      }
    }
    for (int32_t node : visited_) cursor_[node] = first_[node];
    level_limit_ = std::min(kFarthest, 2 * std::max(source_level, level_limit_));
    return found;
  }

  // Brings up to `wanted` to the node: its own, then what comes along the levels.
  Amount Pull(int32_t node, Amount wanted) {
    if (unlimited_[node]) return wanted;
    Amount brought = std::min(wanted, static_cast<Amount>(guess_.q) * graph_.supply[node] - used_[node]);
    if (brought > 0) {
      if (used_[node] == 0) touched_nodes_.push_back(node);
      used_[node] += brought;
    }
    for (int32_t& at = cursor_[node]; brought < wanted && at < first_[node + 1]; ++at) {
      const Incident& incident = incident_[at];
      if (level_[incident.other] != level_[node] + 1) continue;
      const Amount residual = Residual(incident.code);
      if (residual <= 0) continue;
      const Amount got = Pull(incident.other, std::min(wanted - brought, residual));
      if (got == 0) continue;
      const size_t arc = static_cast<size_t>(incident.code / 2);
      if (flow_[arc] == 0) touched_arcs_.push_back(static_cast<int32_t>(arc));
      flow_[arc] += incident.code & 1 ? -got : got;
      brought += got;
      if (brought == wanted) break;  // the arc may have more
    }
    return brought;
  }

  bool Certify(int32_t sink) {
    for (int32_t arc : touched_arcs_) flow_[arc] = 0;
    for (int32_t node : touched_nodes_) used_[node] = 0;
    touched_arcs_.clear();
    touched_nodes_.clear();
    Amount wanted = static_cast<Amount>(guess_.q) * (graph_.total_supply - graph_.supply[sink]);
    // The sink's own supply is no help: mark it used up.
    used_[sink] = static_cast<Amount>(guess_.q) * graph_.supply[sink];
    touched_nodes_.push_back(sink);
    level_limit_ = 0;
    while (wanted > 0 && BuildLevels(sink)) wanted -= Pull(sink, wanted);
    return wanted == 0;
  }

  // What the last search could not reach is the worse cut.
  Ratio CutOfLastSearch() const {
    Ratio cut{graph_.total_supply, 0};
    for (int32_t node : visited_) cut.p -= graph_.supply[node];
    for (const Scaled::Arc& arc : graph_.arcs)
      if (level_[arc.from] < 0 && level_[arc.to] >= 0) cut.q += arc.bandwidth;
    return cut;
  }

  const Scaled& graph_;
  std::vector<Incident> incident_;  // by node
  std::vector<int32_t> first_, order_;
  std::vector<bool> is_sink_, unlimited_;
  std::vector<int32_t> number_;              // of sinks that are alike, by node, or empty
  std::vector<std::vector<int32_t>> alike_;  // by number
  Ratio guess_;
  std::vector<Amount> flow_, used_;
  std::vector<int32_t> touched_arcs_, touched_nodes_, visited_, level_, cursor_;
  int32_t level_limit_ = 0;
};

}  // namespace

std::optional<WorstCut> FindWorstCut(const Topology& topology, const CutProblem& problem) {
  const std::optional<Scaled> scaled = Scale(topology, problem);
  if (!scaled) return std::nullopt;
  const __int128 product = static_cast<__int128>(scaled->total_supply) * scaled->total_bandwidth;
  const std::optional<Ratio> ratio = product < kLimit ? CutSearch<int64_t>(*scaled, problem).Run()
                                                      : CutSearch<__int128>(*scaled, problem).Run();
  if (!ratio) return std::nullopt;
  return WorstCut{ratio->p * scaled->supply_unit, ratio->q * scaled->bandwidth_unit};
}

}  // namespace xccl
