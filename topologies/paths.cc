// Neighbours are found in two steps. From each GPU, Dijkstra on width finds the widest bottleneck to every
// GPU that it reaches through other kinds of nodes. Then, for each width that occurs, Dijkstra on (latency,
// links, link ids) runs over the links at least that wide. This gives the lexicographic optimum, which one
// search with a combined key would miss. Marks carry the number of their search, so a search costs what it
// reaches and not the size of the machine.
#include "topologies/paths.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>

namespace xccl {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

}  // namespace

const Neighbour* NeighbourTable::Find(size_t i, Rank to) const {
  const std::span<const Neighbour> row = (*this)[i];
  const auto found = std::ranges::lower_bound(row, to, {}, &Neighbour::rank);
  return found != row.end() && found->rank == to ? &*found : nullptr;
}

class NeighbourSearch {
 public:
  explicit NeighbourSearch(const Topology& topology)
      : topology_(topology), states_(static_cast<size_t>(topology.num_nodes())) {
    for (int32_t l = 1; l < topology.num_links() && one_width_; ++l)
      one_width_ = Width(LinkId(l)) == Width(LinkId(0));
  }

  // Appends the row of `from`, with its paths as offsets until Finish.
  void AddRow(Rank from);
  NeighbourTable Finish() &&;

 private:
  struct State {
    uint32_t reached = 0, settled = 0;  // the number of the last search that did so
    int64_t width = 0;                  // the widest bottleneck in row width_row
    uint32_t width_row = 0;
    int64_t latency_ps = 0;
    int32_t hops = 0;
    LinkId parent;
  };
  struct FoundPath {
    Rank rank;
    size_t path_first, path_size;
    int64_t width, latency_ps;
  };

  int64_t Width(LinkId l) const { return topology_.link(l).bandwidth_bytes_per_s; }
  bool Expands(NodeId n, NodeId source) const { return n == source || !topology_.IsGpu(n); }
  void FindWidths(NodeId source);
  void FindPaths(NodeId source, int64_t width);
  bool Better(LinkId link, const State& tail, const State& head) const;
  bool PathBefore(LinkId a, LinkId b) const;
  void Accept(NodeId node, NodeId source, int64_t width);

  const Topology& topology_;
  std::vector<State> states_;  // by node
  bool one_width_ = true;
  uint32_t row_ = 0, search_ = 0;
  std::vector<int64_t> widths_;  // the widths in this row, widest first
  std::vector<FoundPath> found_;
  std::vector<std::pair<int64_t, int32_t>> width_heap_;
  std::vector<std::tuple<int64_t, int32_t, int32_t>> heap_;
  NeighbourTable table_;
  std::vector<std::pair<size_t, size_t>> path_places_;  // first and size, of table_.items_
};

// Dijkstra on the bottleneck: sets the `width` of every node that the source reaches, and widths_.
void NeighbourSearch::FindWidths(NodeId source) {
  ++search_;
  widths_.clear();
  width_heap_.assign(1, {kUnlimited, source.value});
  states_[source.index()].width = kUnlimited;
  states_[source.index()].width_row = row_;
  while (!width_heap_.empty()) {
    const NodeId node(width_heap_.front().second);
    std::ranges::pop_heap(width_heap_);
    width_heap_.pop_back();
    State& state = states_[node.index()];
    if (state.settled == search_) continue;
    state.settled = search_;
    if (!Expands(node, source)) {
      widths_.push_back(state.width);
      continue;
    }
    for (LinkId l : topology_.Out(node)) {
      const NodeId to = topology_.link(l).to;
      State& next = states_[to.index()];
      const int64_t width = std::min(state.width, Width(l));
      if (next.settled == search_ || (next.width_row == row_ && next.width >= width)) continue;
      next.width = width;
      next.width_row = row_;
      width_heap_.emplace_back(width, to.value);
      std::ranges::push_heap(width_heap_);
    }
  }
  std::ranges::sort(widths_, std::greater<>());
  widths_.erase(std::unique(widths_.begin(), widths_.end()), widths_.end());
}

// Compares two paths with equally many links that end with `a` and `b`: is a's sequence of link ids lower?
bool NeighbourSearch::PathBefore(LinkId a, LinkId b) const {
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

bool NeighbourSearch::Better(LinkId link, const State& tail, const State& head) const {
  if (head.reached != search_) return true;
  const auto key = std::pair(tail.latency_ps + topology_.link(link).latency_ps, tail.hops + 1);
  const auto old = std::pair(head.latency_ps, head.hops);
  return key != old ? key < old : PathBefore(link, head.parent);
}

// Dijkstra on (latency, links, ids) over links at least `width` wide. Accepts the GPUs whose widest path is
// exactly that wide.
void NeighbourSearch::FindPaths(NodeId source, int64_t width) {
  ++search_;
  State& start = states_[source.index()];
  start.reached = search_;
  start.latency_ps = 0;
  start.hops = 0;
  heap_.assign(1, {0, 0, source.value});
  while (!heap_.empty()) {
    std::ranges::pop_heap(heap_, std::greater<>());
    const NodeId node(std::get<2>(heap_.back()));
    heap_.pop_back();
    State& state = states_[node.index()];
    if (state.settled == search_) continue;
    state.settled = search_;
    if (!Expands(node, source)) {
      if (one_width_ || state.width == width) Accept(node, source, width);
      continue;
    }
    for (LinkId l : topology_.Out(node)) {
      State& next = states_[topology_.link(l).to.index()];
      if (Width(l) < width || next.settled == search_ || !Better(l, state, next)) continue;
      next.reached = search_;
      next.latency_ps = state.latency_ps + topology_.link(l).latency_ps;
      next.hops = state.hops + 1;
      next.parent = l;
      heap_.emplace_back(next.latency_ps, next.hops, topology_.link(l).to.value);
      std::ranges::push_heap(heap_, std::greater<>());
    }
  }
}

void NeighbourSearch::Accept(NodeId node, NodeId source, int64_t width) {
  const size_t first = table_.paths_.size();
  for (NodeId at = node; at != source; at = topology_.link(table_.paths_.back()).from)
    table_.paths_.push_back(states_[at.index()].parent);
  std::reverse(table_.paths_.begin() + static_cast<ptrdiff_t>(first), table_.paths_.end());
  found_.push_back(FoundPath{*topology_.RankOf(node), first, table_.paths_.size() - first, width,
                             states_[node.index()].latency_ps});
}

void NeighbourSearch::AddRow(Rank from) {
  const NodeId source = topology_.NodeOf(from);
  ++row_;
  found_.clear();
  if (one_width_) {
    if (topology_.num_links() > 0) FindPaths(source, Width(LinkId(0)));
  } else {
    FindWidths(source);
    for (int64_t width : widths_) FindPaths(source, width);
  }
  std::ranges::sort(found_, {}, &FoundPath::rank);
  for (const FoundPath& found : found_) {
    table_.items_.push_back(Neighbour{found.rank, std::span<const LinkId>(), found.width, found.latency_ps});
    path_places_.emplace_back(found.path_first, found.path_size);
  }
  table_.first_.push_back(table_.items_.size());
}

NeighbourTable NeighbourSearch::Finish() && {
  const std::span<const LinkId> paths(table_.paths_);
  for (size_t i = 0; i < path_places_.size(); ++i)
    table_.items_[i].path = paths.subspan(path_places_[i].first, path_places_[i].second);
  return std::move(table_);
}

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

Distances LeastLatency(const Topology& topology, NodeId start, std::span<const int64_t> link_ps,
                       bool backwards) {
  XCCL_CHECK(link_ps.empty() || link_ps.size() == static_cast<size_t>(topology.num_links()));
  Distances distance(static_cast<size_t>(topology.num_nodes()));
  std::vector<std::pair<int64_t, int32_t>> heap = {{0, start.value}};
  distance[start.index()] = 0;
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, std::greater<>());
    const auto [at, node] = heap.back();
    heap.pop_back();
    if (at > *distance[static_cast<size_t>(node)]) continue;
    for (LinkId l : backwards ? topology.In(NodeId(node)) : topology.Out(NodeId(node))) {
      const Link& link = topology.link(l);
      const int64_t next = at + (link_ps.empty() ? link.latency_ps + link.overhead_ps : link_ps[l.index()]);
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
class HopSearch {
 public:
  HopSearch(const Topology& topology, bool backwards)
      : topology_(topology), backwards_(backwards), seen_(static_cast<size_t>(topology.num_nodes())) {}

  // By rank; -1: unreachable.
  const std::vector<int32_t>& Run(Rank from) {
    hops_.assign(static_cast<size_t>(topology_.num_ranks()), -1);
    ++search_;
    frontier_.assign(1, topology_.NodeOf(from));
    seen_[frontier_[0].index()] = search_;
    hops_[from.index()] = 0;
    for (int32_t hop = 1; !frontier_.empty(); ++hop) {
      next_.clear();
      for (size_t i = 0; i < frontier_.size(); ++i) Expand(frontier_[i], hop);
      frontier_.swap(next_);
    }
    return hops_;
  }

 private:
  void Expand(NodeId node, int32_t hop) {
    for (LinkId l : backwards_ ? topology_.In(node) : topology_.Out(node)) {
      const NodeId to = backwards_ ? topology_.link(l).from : topology_.link(l).to;
      if (seen_[to.index()] == search_) continue;
      seen_[to.index()] = search_;
      if (const std::optional<Rank> rank = topology_.RankOf(to)) {
        hops_[rank->index()] = hop;
        next_.push_back(to);
      } else {
        frontier_.push_back(to);
      }
    }
  }

  const Topology& topology_;
  bool backwards_;
  std::vector<uint32_t> seen_;  // the last search that saw the node
  uint32_t search_ = 0;
  std::vector<int32_t> hops_;
  std::vector<NodeId> frontier_, next_;
};

std::vector<std::optional<int32_t>> RankHops(const Topology& topology, Rank rank, bool backwards) {
  HopSearch search(topology, backwards);
  std::vector<std::optional<int32_t>> hops;
  for (int32_t h : search.Run(rank)) hops.push_back(h < 0 ? std::nullopt : std::optional(h));
  return hops;
}

}  // namespace

Distances LeastLatencyFrom(const Topology& topology, NodeId from, std::span<const int64_t> link_ps) {
  return LeastLatency(topology, from, link_ps, false);
}

Distances LeastLatencyTo(const Topology& topology, NodeId to, std::span<const int64_t> link_ps) {
  return LeastLatency(topology, to, link_ps, true);
}

std::vector<std::optional<int32_t>> RankHopsFrom(const Topology& topology, Rank from) {
  return RankHops(topology, from, false);
}

std::vector<std::optional<int32_t>> RankHopsTo(const Topology& topology, Rank to) {
  return RankHops(topology, to, true);
}

std::optional<int32_t> RankDiameter(const Topology& topology) {
  HopSearch search(topology, false);
  int32_t diameter = 0;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) {
    for (int32_t h : search.Run(Rank(r))) {
      if (h < 0) return std::nullopt;
      diameter = std::max(diameter, h);
    }
  }
  return diameter;
}

}  // namespace xccl
