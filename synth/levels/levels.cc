// 1. DistancesFrom searches the links from a rank and stops at other GPUs.
// 2. FindChain grows a subgroup by one rank of rank 0's kind after another, the nearest first, in steps of
//    prime index.
// 3. Ends chooses the subgroups of the chain that end a level.
// 4. Make takes the nearest element of each coset as a peer, and the nearest rank of each other kind. PathTo
//    walks back from the peer along links that are on a shortest path, and takes the least loaded of several.
#include "synth/levels/levels.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>

namespace xccl {

namespace {

constexpr std::pair<int64_t, int32_t> kUnreached = {std::numeric_limits<int64_t>::max(), 0};

}  // namespace

LevelFinder::LevelFinder(const Topology& topology, const SymmetryGroup& group)
    : topology_(topology),
      group_(group),
      distance_(DistancesFrom(Rank(0))),
      place_(static_cast<size_t>(group.order()), -1) {
  const auto distance = [&](Rank r) { return distance_[topology_.NodeOf(r).index()]; };
  for (int32_t r = 0; r < topology_.num_ranks(); ++r)
    if (group_.OrbitOf(Rank(r)) == 0 && distance(Rank(r)) != kUnreached) nearest_.push_back(Rank(r));
  std::ranges::stable_sort(nearest_, {}, distance);
  FindChain();
}

LevelFinder::Distance LevelFinder::After(Distance before, const Link& link) {
  return {before.first + link.latency_ps + link.overhead_ps, before.second + 1};
}

LevelFinder::Distances LevelFinder::DistancesFrom(Rank r) const {
  using Entry = std::pair<Distance, int32_t>;
  Distances distances(static_cast<size_t>(topology_.num_nodes()), kUnreached);
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const NodeId start = topology_.NodeOf(r);
  distances[start.index()] = {0, 0};
  queue.push({{0, 0}, start.value});
  while (!queue.empty()) {
    const auto [distance, node] = queue.top();
    queue.pop();
    if (distance != distances[static_cast<size_t>(node)]) continue;
    if (node != start.value && topology_.IsGpu(NodeId(node))) continue;
    for (const LinkId l : topology_.Out(NodeId(node))) {
      const Distance next = After(distance, topology_.link(l));
      Distance& known = distances[topology_.link(l).to.index()];
      if (next >= known) continue;
      known = next;
      queue.push({next, topology_.link(l).to.value});
    }
  }
  return distances;
}

void LevelFinder::FindChain() {
  Append(0);
  int32_t tier = 0;
  for (size_t i = 1; i < nearest_.size(); ++i) {
    const auto distance = [&](size_t at) { return distance_[topology_.NodeOf(nearest_[at]).index()]; };
    const bool is_farther = distance(i) != distance(i - 1);
    if (is_farther && !chain_.empty() && chain_.back().tier == tier) ++tier;
    if (const int64_t e = group_.ElementOf(nearest_[i]); !Has(e, std::ssize(elements_))) Add(e, tier);
  }
}

void LevelFinder::Append(int64_t element) {
  place_[static_cast<size_t>(element)] = static_cast<int32_t>(elements_.size());
  elements_.push_back(element);
}

// Adds the element to the largest subgroup of the chain, in steps of prime index.
void LevelFinder::Add(int64_t element, int32_t tier) {
  std::vector<int64_t> powers = {0};  // until one is in the subgroup
  for (int64_t power = element; !Has(power, std::ssize(elements_)); power = group_.Compose(power, element))
    powers.push_back(power);
  int64_t index = std::ssize(powers);
  for (int64_t prime = 2; index > 1;) {
    if (index % prime != 0) {
      prime = prime * prime > index ? index : prime + 1;
      continue;
    }
    index /= prime;
    const int64_t step = powers[static_cast<size_t>(index)], before = std::ssize(elements_);
    int64_t power = step;
    for (int64_t i = 1; i < prime; ++i, power = group_.Compose(power, step))
      for (int64_t j = 0; j < before; ++j) Append(group_.Compose(power, elements_[static_cast<size_t>(j)]));
    chain_.push_back({std::ssize(elements_), tier});
  }
}

std::vector<int64_t> LevelFinder::Ends(int64_t most_peers) const {
  std::vector<int64_t> ends;
  int64_t before = 1;
  for (size_t i = 0; i < chain_.size(); ++i) {
    const bool ends_tier = i + 1 == chain_.size() || chain_[i + 1].tier != chain_[i].tier;
    if (!ends_tier && chain_[i + 1].size / before <= most_peers + 1) continue;
    ends.push_back(chain_[i].size);
    before = chain_[i].size;
  }
  return ends;
}

// The peers of a level of ranks of one kind, the farthest first, without their paths.
std::vector<Peer> LevelFinder::PeersBetween(int64_t inside, int64_t end) const {
  std::vector<Peer> peers;
  std::vector<bool> covered(static_cast<size_t>(group_.order()), false);
  const auto cover = [&](int64_t element) {
    for (const int64_t h : Subgroup(inside)) covered[static_cast<size_t>(group_.Compose(element, h))] = true;
  };
  cover(0);
  for (const Rank r : nearest_) {
    const int64_t e = group_.ElementOf(r);
    if (!Has(e, end) || covered[static_cast<size_t>(e)]) continue;
    cover(e);
    Peer& peer = peers.emplace_back();
    peer.from.assign(static_cast<size_t>(group_.num_rank_orbits()), PeerPath{.element = e, .links = {}});
  }
  std::ranges::reverse(peers);
  return peers;
}

std::vector<Rank> LevelFinder::NearestOfKinds(const Distances& distances) const {
  std::vector<Rank> nearest;
  for (int32_t k = 0; k < group_.num_rank_orbits(); ++k) nearest.push_back(group_.Representative(k));
  for (int32_t r = 0; r < topology_.num_ranks(); ++r) {
    Rank& known = nearest[static_cast<size_t>(group_.OrbitOf(Rank(r)))];
    if (distances[topology_.NodeOf(Rank(r)).index()] < distances[topology_.NodeOf(known).index()])
      known = Rank(r);
  }
  return nearest;
}

// Requires that `to` is reached.
PeerPath LevelFinder::PathTo(Rank from, Rank to, const Distances& distances, double blocks,
                             std::vector<double>& load) const {
  PeerPath path{.element = group_.ElementOf(to), .links = {}};
  const NodeId start = topology_.NodeOf(from);
  for (NodeId at = topology_.NodeOf(to); at != start;) {
    LinkId best(-1);
    double least = std::numeric_limits<double>::infinity();
    for (const LinkId l : topology_.In(at)) {
      const Link& link = topology_.link(l);
      const Distance before = distances[link.from.index()];
      const bool passes = link.from == start || !topology_.IsGpu(link.from);
      if (!passes || before == kUnreached || After(before, link) != distances[at.index()]) continue;
      const int32_t orbit = group_.OrbitOf(l);
      const double with_this =
          load[static_cast<size_t>(orbit)] +
          blocks * group_.LinkShare(orbit) / static_cast<double>(link.bandwidth_bytes_per_s);
      if (with_this >= least) continue;
      least = with_this;
      best = l;
    }
    load[static_cast<size_t>(group_.OrbitOf(best))] = least;
    path.links.push_back(best);
    path.latency_ps += topology_.link(best).latency_ps + topology_.link(best).overhead_ps;
    at = topology_.link(best).from;
  }
  std::ranges::reverse(path.links);
  return path;
}

Status LevelFinder::Unreached(std::string_view engine) const {
  int32_t reached = 0;
  for (int32_t r = 0; r < topology_.num_ranks(); ++r)
    if (distance_[topology_.NodeOf(Rank(r)).index()] != kUnreached) ++reached;
  return InvalidInput(
      fmt::format("{}: rank 0 reaches {} of {} ranks without passing another gpu; expected a rank of every "
                  "host",
                  engine, reached, topology_.num_ranks()));
}

// Sets the paths of all peers, and the elements of peers of other kinds.
Status LevelFinder::FindPaths(Levels& levels, std::string_view engine) const {
  const int32_t kinds = group_.num_rank_orbits();
  std::vector<double> load(static_cast<size_t>(group_.num_link_orbits()), 0);  // seconds × blocks ÷ bytes
  for (int32_t kind = 0; kind < kinds; ++kind) {
    const Rank from = group_.Representative(kind);
    const Distances& distances = kind == 0 ? distance_ : DistancesFrom(from);
    const std::vector<Rank> nearest = kinds > 1 ? NearestOfKinds(distances) : std::vector{from};
    for (Level& level : levels) {
      const double blocks = static_cast<double>(topology_.num_ranks()) /
                            static_cast<double>(level.inside * (std::ssize(level.peers) + 1));
      for (size_t p = level.peers.size(); p-- > 0;) {
        Peer& peer = level.peers[p];
        PeerPath& path = peer.from[static_cast<size_t>(kind)];
        const Rank to = peer.turn == 0 ? group_.Image(path.element, from)
                                       : nearest[static_cast<size_t>((kind + peer.turn) % kinds)];
        if (distances[topology_.NodeOf(to).index()] == kUnreached) return Unreached(engine);
        path = PathTo(from, to, distances, blocks, load);
      }
    }
  }
  return OkStatus();
}

StatusOr<Levels> LevelFinder::Make(std::span<const int64_t> ends, std::string_view engine,
                                   size_t inside_kinds) const {
  const int32_t kinds = group_.num_rank_orbits();
  Levels levels;
  int64_t order = 1, kinds_inside = 1;
  for (size_t i = 0; i <= ends.size(); ++i) {
    if (i == inside_kinds && kinds > 1) {
      Level& level = levels.emplace_back();
      level.inside = order;
      kinds_inside = kinds;
      for (int32_t turn = 1; turn < kinds; ++turn)
        level.peers.push_back({turn, std::vector<PeerPath>(static_cast<size_t>(kinds))});
    }
    if (i == ends.size()) break;
    Level& level = levels.emplace_back();
    level.peers = PeersBetween(order, ends[i]);
    level.inside = order * kinds_inside;
    if (std::ssize(level.peers) + 1 != ends[i] / order) return Unreached(engine);
    order = ends[i];
  }
  if (order != group_.order()) return Unreached(engine);
  XCCL_RETURN_IF_ERROR(FindPaths(levels, engine));
  return levels;
}

std::vector<std::vector<LinkId>> LevelFinder::SwitchTrees(int64_t order, bool sums) const {
  std::vector<bool> is_member(static_cast<size_t>(topology_.num_ranks()), false);
  for (const int64_t e : Subgroup(order)) is_member[group_.Image(e, Rank(0)).index()] = true;
  std::vector<std::vector<LinkId>> trees;
  std::vector<NodeId> seen;
  for (const LinkId up : topology_.Out(topology_.NodeOf(Rank(0)))) {
    const NodeId at = topology_.link(up).to;
    const Node& node = topology_.node(at);
    if (node.kind != NodeKind::kSwitch || !(sums ? node.reduce : node.multicast)) continue;
    const auto cable = static_cast<size_t>(std::ranges::count(seen, at));  // the number of this parallel one
    seen.push_back(at);
    std::vector<LinkId> tree = {up};
    std::vector<size_t> cables(is_member.size(), 0);  // by rank, seen so far
    for (const LinkId down : topology_.Out(at)) {
      const std::optional<Rank> to = topology_.RankOf(topology_.link(down).to);
      if (to && *to != Rank(0) && is_member[to->index()] && cables[to->index()]++ == cable)
        tree.push_back(down);
    }
    if (std::ssize(tree) == order) trees.push_back(std::move(tree));
  }
  return trees;
}

}  // namespace xccl
