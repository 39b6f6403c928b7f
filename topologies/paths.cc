// From each GPU, Dijkstra on (latency + overhead, links, link ids) runs over the links of at least some
// width, at first that of the widest link that leaves the GPU. A GPU is accepted by the first search that
// reaches it, which has the width of its widest path. From the links that were left out, a search along
// widest paths (Prim) then finds the next GPU, whose width is that of the next search; links that lead to no
// GPU cost none. This gives the lexicographic optimum, which one search with a combined key would miss. Marks
// carry the number of their search, so a search costs what it reaches and not the size of the machine.
#include "topologies/paths.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "base/units.h"

namespace xccl {
const Neighbour* NeighbourTable::Find(size_t i, Rank to) const {
  const std::span<const Neighbour> row = (*this)[i];
  const auto found = std::ranges::lower_bound(row, to, {}, &Neighbour::rank);
  return found != row.end() && found->rank == to ? &*found : nullptr;
}

class NeighbourSearch {
 public:
  explicit NeighbourSearch(const Topology& topology)
      : topology_(topology), states_(static_cast<size_t>(topology.num_nodes())) {}

  // Appends the row of `from`.
  void AddRow(Rank from) {
    const NodeId source = topology_.NodeOf(from);
    const size_t first = found_.size();
    ++row_;
    int64_t width = 0;
    for (LinkId l : topology_.Out(source)) width = std::max(width, Width(l));
    while (width > 0 && found_.size() - first + 1 < static_cast<size_t>(topology_.num_ranks())) {
      FindPaths(source, width);
      width = NextWidth(width);
    }
    std::ranges::sort(std::span(found_).subspan(first), {}, &FoundPath::rank);
    table_.first_.push_back(found_.size());
  }

  NeighbourTable Finish() && {
    const std::span<const LinkId> paths(table_.paths_);
    table_.items_.reserve(found_.size());
    for (const FoundPath& found : found_)
      table_.items_.push_back(Neighbour{found.rank, paths.subspan(found.path_first, found.path_size),
                                        found.width, found.latency_ps});
    return std::move(table_);
  }

 private:
  struct State {
    uint32_t reached = 0, settled = 0;  // the number of the last search that did so
    uint32_t accepted = 0;              // the number of the last row that has it
    int64_t cost_ps = 0;                // latencies and overheads
    int32_t hops = 0;
    LinkId parent;
  };
  struct FoundPath {
    Rank rank;
    size_t path_first, path_size;
    int64_t width, latency_ps;
  };

  int64_t Width(LinkId l) const { return topology_.link(l).bandwidth_bytes_per_s; }

  int64_t Cost(LinkId l) const { return topology_.link(l).latency_ps + topology_.link(l).overhead_ps; }

  // Dijkstra on (cost, links, ids) over links at least `width` wide. Accepts the GPUs that the row lacks.
  void FindPaths(NodeId source, int64_t width) {
    left_out_.clear();
    ++search_;
    State& start = states_[source.index()];
    start.reached = search_;
    start.cost_ps = 0;
    start.hops = 0;
    heap_.assign(1, {0, 0, source.value});
    while (!heap_.empty()) {
      std::ranges::pop_heap(heap_, std::greater<>());
      const NodeId node(std::get<2>(heap_.back()));
      heap_.pop_back();
      State& state = states_[node.index()];
      if (state.settled == search_) continue;
      state.settled = search_;
      if (node != source && topology_.IsGpu(node)) {
        if (std::exchange(state.accepted, row_) != row_) Accept(node, source, width);
        continue;
      }
      for (LinkId l : topology_.Out(node)) {
        State& next = states_[topology_.link(l).to.index()];
        if (Width(l) < width) left_out_.emplace_back(Width(l), topology_.link(l).to.value);
        if (Width(l) < width || next.settled == search_ || !Better(l, state, next)) continue;
        next.reached = search_;
        next.cost_ps = state.cost_ps + Cost(l);
        next.hops = state.hops + 1;
        next.parent = l;
        heap_.emplace_back(next.cost_ps, next.hops, topology_.link(l).to.value);
        std::ranges::push_heap(heap_, std::greater<>());
      }
    }
  }

  // The width of the widest path to a GPU that the last search did not reach; 0: there is none.
  int64_t NextWidth(int64_t width) {
    std::ranges::make_heap(left_out_);
    while (!left_out_.empty()) {
      std::ranges::pop_heap(left_out_);
      const auto [widest, node] = left_out_.back();
      left_out_.pop_back();
      width = std::min(width, widest);
      if (std::exchange(states_[node].settled, search_) == search_) continue;
      if (topology_.IsGpu(NodeId(node))) return width;
      for (LinkId l : topology_.Out(NodeId(node))) {
        left_out_.emplace_back(Width(l), topology_.link(l).to.value);
        std::ranges::push_heap(left_out_);
      }
    }
    return 0;
  }

  bool Better(LinkId link, const State& tail, const State& head) const {
    if (head.reached != search_) return true;
    const auto key = std::pair(tail.cost_ps + Cost(link), tail.hops + 1);
    const auto old = std::pair(head.cost_ps, head.hops);
    return key != old ? key < old : PathBefore(link, head.parent);
  }

  // Compares two paths with equally many links that end with `a` and `b`: is a's sequence of link ids lower?
  bool PathBefore(LinkId a, LinkId b) const {
    bool before = a < b;
    NodeId tail_a = topology_.link(a).from, tail_b = topology_.link(b).from;
    while (tail_a != tail_b) {
      a = states_[tail_a.index()].parent;
      b = states_[tail_b.index()].parent;
      before = a < b;
      tail_a = topology_.link(a).from;
      tail_b = topology_.link(b).from;
    }
    return before;
  }

  void Accept(NodeId node, NodeId source, int64_t width) {
    const size_t first = table_.paths_.size();
    int64_t latency_ps = 0;
    for (NodeId at = node; at != source; at = topology_.link(table_.paths_.back()).from) {
      table_.paths_.push_back(states_[at.index()].parent);
      latency_ps += topology_.link(table_.paths_.back()).latency_ps;
    }
    std::reverse(table_.paths_.begin() + static_cast<ptrdiff_t>(first), table_.paths_.end());
    found_.push_back(
        FoundPath{*topology_.RankOf(node), first, table_.paths_.size() - first, width, latency_ps});
  }

  const Topology& topology_;
  std::vector<State> states_;  // by node
  uint32_t row_ = 0, search_ = 0;
  std::vector<FoundPath> found_;  // the paths of all rows
  std::vector<std::tuple<int64_t, int32_t, int32_t>> heap_;
  std::vector<std::pair<int64_t, int32_t>> left_out_;  // width and head of links too narrow for the search
  NeighbourTable table_;
};

NeighbourTable GpuNeighbours(const Topology& topology) {
  NeighbourSearch search(topology);
  for (int32_t r = 0; r < topology.num_ranks(); ++r) search.AddRow(Rank(r));
  return std::move(search).Finish();
}

NeighbourTable GpuNeighboursOf(const Topology& topology, Rank rank) {
  NeighbourSearch search(topology);
  search.AddRow(rank);
  return std::move(search).Finish();
}

namespace {

using Distances = std::vector<std::optional<int64_t>>;

Distances LeastLatency(const Topology& topology, const std::vector<NodeId>& starts,
                       std::span<const int64_t> link_ps, bool backwards) {
  XCCL_CHECK(link_ps.empty() || link_ps.size() == static_cast<size_t>(topology.num_links()));
  Distances distance(static_cast<size_t>(topology.num_nodes()));
  std::vector<std::pair<int64_t, int32_t>> heap;
  for (NodeId start : starts) {
    distance[start.index()] = 0;
    heap.emplace_back(0, start.value);
  }
  std::ranges::make_heap(heap, std::greater<>());
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, std::greater<>());
    const auto [at, node] = heap.back();
    heap.pop_back();
    if (at > *distance[static_cast<size_t>(node)]) continue;
    for (LinkId l : backwards ? topology.In(NodeId(node)) : topology.Out(NodeId(node))) {
      const Link& link = topology.link(l);
      const int64_t cost =
          link_ps.empty() ? std::min(kForeverPs, link.latency_ps) + std::min(kForeverPs, link.overhead_ps)
                          : link_ps[l.index()];
      const int64_t next = std::min(kForeverPs, at + cost);
      const NodeId to = backwards ? link.from : link.to;
      std::optional<int64_t>& known = distance[to.index()];
      if (known && *known <= next) continue;
      known = next;
      heap.emplace_back(next, to.value);
      std::ranges::push_heap(heap, std::greater<>());
    }
  }
  return distance;
}

// Breadth-first search, hop by hop: within a hop it spreads through all nodes that are not GPUs.
std::vector<std::optional<int32_t>> RankHops(const Topology& topology, Rank start, bool backwards) {
  std::vector<std::optional<int32_t>> hops(static_cast<size_t>(topology.num_ranks()));
  std::vector<bool> seen(static_cast<size_t>(topology.num_nodes()));
  std::vector<NodeId> frontier = {topology.NodeOf(start)}, next;
  seen[frontier[0].index()] = true;
  hops[start.index()] = 0;
  for (int32_t hop = 1; !frontier.empty(); ++hop) {
    for (size_t i = 0; i < frontier.size(); ++i) {
      for (LinkId l : backwards ? topology.In(frontier[i]) : topology.Out(frontier[i])) {
        const NodeId to = backwards ? topology.link(l).from : topology.link(l).to;
        if (seen[to.index()]) continue;
        seen[to.index()] = true;
        const std::optional<Rank> rank = topology.RankOf(to);
        if (rank) hops[rank->index()] = hop;
        (rank ? next : frontier).push_back(to);
      }
    }
    frontier.swap(next);
    next.clear();
  }
  return hops;
}

}  // namespace

Distances LeastLatencyFrom(const Topology& topology, const std::vector<NodeId>& from,
                           std::span<const int64_t> link_ps) {
  return LeastLatency(topology, from, link_ps, false);
}

Distances LeastLatencyTo(const Topology& topology, NodeId to) {
  return LeastLatency(topology, {to}, {}, true);
}

std::vector<std::optional<int32_t>> RankHopsFrom(const Topology& topology, Rank from) {
  return RankHops(topology, from, false);
}

std::vector<std::optional<int32_t>> RankHopsTo(const Topology& topology, Rank to) {
  return RankHops(topology, to, true);
}

std::optional<int32_t> RankDiameter(const Topology& topology) {
  int32_t diameter = 0;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) {
    for (const std::optional<int32_t> hops : RankHopsFrom(topology, Rank(r))) {
      if (!hops) return std::nullopt;
      diameter = std::max(diameter, *hops);
    }
  }
  return diameter;
}

}  // namespace xccl
