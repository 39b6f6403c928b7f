// 1. GpuNeighbours gives one path for each pair of neighbours. Each cable parallel to a one-link path is
//    another hop.
// 2. Index sorts the hops by source and then by destination with two counting sorts.
// 3. FindDomains groups ranks by host, or by the widest hops on a single host.
// 4. Reversed swaps the ends of every hop, reverses the order of its links and sorts again.
// 5. MostHops joins the nodes between GPUs into sets. It counts a hop from every GPU with a link into a set
//    to every GPU with a link out of the set.
// 6. Route finds distances from the source breadth-first, and walks back from the destination over the widest
//    hops.
#include "synth/common/rank_graph.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/graph/grouped.h"
#include "base/graph/union_find.h"
#include "synth/common/cost_model.h"
#include "topologies/paths.h"

namespace xccl {

namespace {

// Measured on fat-tree:k=16 (2026-11-29): a million hops of up to six links, with the tables from which they
// are made and sorted, take 300 MB and 0.4 s.
constexpr int64_t kBytesPerHop = 300;

}  // namespace

int64_t MostHops(const Topology& topology) {
  UnionFind sets(static_cast<size_t>(topology.num_nodes()));
  for (const Link& link : topology.spec().links)
    if (!topology.IsGpu(link.from) && !topology.IsGpu(link.to)) sets.Join(link.from.value, link.to.value);
  int64_t hops = 0;
  std::vector<int64_t> into(static_cast<size_t>(topology.num_nodes()), 0), out = into;  // GPUs, by set
  std::vector<int32_t> found;
  const auto count = [&](std::span<const LinkId> links, NodeId Link::*end, std::vector<int64_t>& gpus) {
    found.clear();
    for (const LinkId l : links)
      if (const NodeId n = topology.link(l).*end; !topology.IsGpu(n)) found.push_back(sets.Find(n.value));
    std::ranges::sort(found);
    const auto end_of_sets = std::unique(found.begin(), found.end());
    for (auto set = found.begin(); set != end_of_sets; ++set) ++gpus[static_cast<size_t>(*set)];
    return std::ssize(links) - static_cast<std::ptrdiff_t>(found.size());
  };
  for (int32_t r = 0; r < topology.num_ranks(); ++r) {
    const NodeId gpu = topology.NodeOf(Rank(r));
    hops += count(topology.Out(gpu), &Link::to, into);
    count(topology.In(gpu), &Link::from, out);
  }
  for (size_t set = 0; set < into.size(); ++set) hops += into[set] * out[set];
  return hops;
}

int64_t BytesOfHops(int64_t hops) { return kBytesPerHop * hops; }
int64_t WorkOfHops(int64_t hops) { return hops / kHopsPerMove; }

RankGraph::RankGraph(const Topology& topology) : topology_(&topology) {
  const NeighbourTable neighbours = GpuNeighbours(topology);
  std::vector<Hop> hops;
  std::vector<LinkId> links;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) {
    const Rank from(r);
    for (const Neighbour& n : neighbours[from]) {
      const auto add = [&](std::span<const LinkId> path) {
        Hop hop{from,
                n.rank,
                topology.link(path[0]).bandwidth_bytes_per_s,
                0,
                static_cast<int32_t>(links.size()),
                static_cast<int32_t>(path.size())};
        for (LinkId l : path) {
          const Link& link = topology.link(l);
          hop.bandwidth_bytes_per_s = std::min(hop.bandwidth_bytes_per_s, link.bandwidth_bytes_per_s);
          hop.latency_ps += link.latency_ps + link.overhead_ps;
        }
        links.insert(links.end(), path.begin(), path.end());
        hops.push_back(hop);
      };
      add(n.path);
      if (n.path.size() != 1) continue;
      for (LinkId l : topology.Out(topology.NodeOf(from)))
        if (l != n.path[0] && topology.link(l).to == topology.NodeOf(n.rank)) add(std::span(&l, 1));
    }
  }
  Index(std::move(hops), links);
  FindDomains();
}

RankGraph RankGraph::Reversed() const {
  RankGraph turned;
  turned.topology_ = topology_;
  turned.domain_ = domain_;
  turned.num_domains_ = num_domains_;
  std::vector<Hop> hops = hops_;
  std::vector<LinkId> links = links_;
  for (Hop& hop : hops) {
    std::swap(hop.from, hop.to);
    std::reverse(links.begin() + hop.first_link, links.begin() + hop.first_link + hop.num_links);
  }
  turned.Index(std::move(hops), links);
  return turned;
}

// Sorts hops by (from, to) and stores their links in the same order. Parallel hops keep their order.
void RankGraph::Index(std::vector<Hop> hops, const std::vector<LinkId>& links) {
  const size_t ranks = static_cast<size_t>(topology_->num_ranks());
  const auto counting_sort = [&](Rank Hop::*key) {
    Grouped<Hop> sorted = GroupItems<Hop>(ranks, [&](auto add) {
      for (const Hop& hop : hops) add((hop.*key).index(), hop);
    });
    hops = std::move(sorted.items);
    return std::move(sorted.first);
  };
  counting_sort(&Hop::to);
  first_ = counting_sort(&Hop::from);
  links_.reserve(links.size());
  for (Hop& hop : hops) {
    const auto begin = links.begin() + hop.first_link;
    hop.first_link = static_cast<int32_t>(links_.size());
    links_.insert(links_.end(), begin, begin + hop.num_links);
  }
  hops_ = std::move(hops);
  int64_t pairs = 0;
  for (size_t h = 0; h < hops_.size(); ++h)
    if (h == 0 || hops_[h].from != hops_[h - 1].from || hops_[h].to != hops_[h - 1].to) ++pairs;
  joins_all_ = pairs == static_cast<int64_t>(ranks) * (static_cast<int64_t>(ranks) - 1);
  Grouped<HopId> entering = GroupItems<HopId>(ranks, [&](auto add) {
    for (int32_t h = 0; h < num_hops(); ++h) add(hop(HopId(h)).to.index(), HopId(h));
  });
  in_ = std::move(entering.items);
  first_in_ = std::move(entering.first);
}

std::optional<HopId> RankGraph::Find(Rank a, Rank b) const {
  const auto begin = hops_.begin() + first_[a.index()], end = hops_.begin() + first_[a.index() + 1];
  if (end - begin == num_ranks() - 1 && a != b) {
    const auto at = begin + (b.value - (b > a ? 1 : 0));
    if (at->to == b && (at == begin || std::prev(at)->to != b)) return HopId(at - hops_.begin());
  }
  const auto it = std::lower_bound(begin, end, b, [](const Hop& hop, Rank to) { return hop.to < to; });
  if (it == end || it->to != b) return std::nullopt;
  return HopId(it - hops_.begin());
}

int32_t RankGraph::Parallel(HopId h) const {
  int32_t count = 0;
  for (size_t i = h.index(); i < hops_.size() && hops_[i].from == hop(h).from && hops_[i].to == hop(h).to;
       ++i)
    ++count;
  return count;
}

// On one host, a domain is a set of ranks that the widest hops of more than one link join. All sets must have
// one size of at least 2; otherwise the host is one domain.
void RankGraph::FindDomains() {
  const int32_t ranks = num_ranks();
  domain_.assign(static_cast<size_t>(ranks), 0);
  std::vector<int32_t> label;
  if (topology_->num_hosts() > 1) {
    for (int32_t r = 0; r < ranks; ++r) label.push_back(topology_->HostOf(Rank(r)).value);
  } else {
    int64_t widest = 0;
    for (const Hop& hop : hops_)
      if (hop.num_links > 1) widest = std::max(widest, hop.bandwidth_bytes_per_s);
    label.resize(static_cast<size_t>(ranks));
    std::iota(label.begin(), label.end(), 0);
    // All ranks of a set are neighbours of each other through switches, so the lowest rank names the set.
    for (const Hop& hop : hops_)
      if (hop.num_links > 1 && hop.bandwidth_bytes_per_s == widest)
        label[hop.from.index()] = std::min(label[hop.from.index()], hop.to.value);
    std::vector<int32_t> size(static_cast<size_t>(ranks), 0);  // by label
    for (int32_t name : label) ++size[static_cast<size_t>(name)];
    const int32_t first = size[static_cast<size_t>(label[0])];
    if (first == 1 || std::ranges::any_of(size, [&](int32_t n) { return n != 0 && n != first; }))
      label.assign(label.size(), 0);
  }
  std::vector<int32_t> dense(static_cast<size_t>(std::max(ranks, topology_->num_hosts())), -1);
  for (int32_t r = 0; r < ranks; ++r) {
    int32_t& id = dense[static_cast<size_t>(label[r])];
    if (id < 0) id = num_domains_++;
    domain_[static_cast<size_t>(r)] = id;
  }
}

const std::vector<int32_t>& RankGraph::DistancesFrom(Rank a) const {
  const size_t ranks = static_cast<size_t>(num_ranks());
  if (distance_.empty() || (known_ + 1) * num_ranks() > kMostCells) {
    distance_.assign(ranks, {});
    known_ = 0;
  }
  std::vector<int32_t>& distance = distance_[a.index()];
  if (!distance.empty()) return distance;
  ++known_;
  distance.assign(ranks, -1);
  std::vector<Rank> queue = {a};
  distance[a.index()] = 0;
  // Stops once all ranks are found. If a switch joins all ranks, the first rank already finds all other
  // ranks.
  for (size_t i = 0; i < queue.size() && queue.size() < ranks; ++i) {
    const Rank at = queue[i];
    for (HopId h = FirstOut(at); h < EndOut(at); ++h.value) {
      const Rank to = hop(h).to;
      if (distance[to.index()] >= 0) continue;
      distance[to.index()] = distance[at.index()] + 1;
      queue.push_back(to);
    }
  }
  return distance;
}

std::optional<int32_t> RankGraph::Distance(Rank a, Rank b) const {
  const int32_t d = DistancesFrom(a)[b.index()];
  return d < 0 ? std::nullopt : std::optional(d);
}

std::vector<Rank> RankGraph::Route(Rank a, Rank b) const {
  const std::vector<int32_t>& distance = DistancesFrom(a);
  if (distance[b.index()] < 0) return {};
  std::vector<Rank> back = {b};
  while (back.back() != a) {
    const Rank at = back.back();
    const int32_t closer = distance[at.index()] - 1;
    int64_t widest = 0;
    std::vector<Rank> before;  // ranks that the widest hops come from
    for (int32_t i = first_in_[at.index()]; i < first_in_[at.index() + 1]; ++i) {
      const Hop& in = hop(in_[static_cast<size_t>(i)]);
      if (distance[in.from.index()] != closer || in.bandwidth_bytes_per_s < widest) continue;
      if (in.bandwidth_bytes_per_s > widest) before.clear();
      before.push_back(in.from);
      widest = in.bandwidth_bytes_per_s;
    }
    const uint32_t spread = static_cast<uint32_t>(a.value) * 7 + static_cast<uint32_t>(b.value) * 3 +
                            static_cast<uint32_t>(closer);
    back.push_back(before[spread % before.size()]);
  }
  return {back.rbegin(), back.rend()};
}

}  // namespace xccl
