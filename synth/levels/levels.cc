// 1. DistancesFrom searches the links from a rank and stops at other GPUs.
// 2. FindChain grows a subgroup by one rank of rank 0's kind after another, the nearest first. A rank may
//    take several steps, each of which multiplies the subgroup's order by a prime.
// 3. Ends chooses the subgroups of the chain that end a level.
// 4. Make takes the nearest element of each coset as a peer, and the nearest rank of each other kind.
//    PathSearch walks back from the peer along links that are on a shortest path, with little load.
// 5. LeadAroundCrowds searches the paths again. The length of a link then grows with its load.
#include "synth/levels/levels.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <unordered_map>

namespace xccl {

namespace {

// Limits of LeadAroundCrowds: the links that all its searches look at, about two seconds of work, and its
// rounds. Each of kMostRounds rounds leads 1/64 of the paths. Even if all of these take one link, its load
// grows by little, so more rounds would gain little.
constexpr int64_t kMostSearched = 60'000'000;
constexpr int64_t kMostRounds = 64;

constexpr std::pair<int64_t, int32_t> kUnreached = {std::numeric_limits<int64_t>::max(), 0};

}  // namespace

LevelFinder::LevelFinder(const Topology& topology, const SymmetryGroup& group)
    : topology_(topology), group_(group), place_(static_cast<size_t>(group.order()), -1) {
  for (int32_t orbit = 0; orbit < group.num_link_orbits(); ++orbit) {
    const Link& link = topology.link(group.LinkRepresentative(orbit));
    latency_ps_.push_back(link.latency_ps + link.overhead_ps);
  }
  distance_ = DistancesFrom(Rank(0), latency_ps_);
  const auto distance = [&](Rank r) { return distance_[topology_.NodeOf(r).index()]; };
  for (int32_t r = 0; r < topology_.num_ranks(); ++r)
    if (group_.OrbitOf(Rank(r)) == 0 && distance(Rank(r)) != kUnreached) nearest_.push_back(Rank(r));
  std::ranges::stable_sort(nearest_, {}, distance);
  FindChain();
}

// Finds the distances by Dijkstra's algorithm. `lengths`: by orbit of links.
LevelFinder::Distances LevelFinder::DistancesFrom(Rank r, const std::vector<int64_t>& lengths) const {
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
      const Distance next = {distance.first + lengths[static_cast<size_t>(group_.OrbitOf(l))],
                             distance.second + 1};
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

// Extends the chain to the subgroup that its largest subgroup and the element generate, by prime indices.
void LevelFinder::Add(int64_t element, int32_t tier) {
  std::vector<int64_t> powers = {0};  // of the element, until a power is in the subgroup
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

// Returns the peers of a level of ranks of one kind, the farthest first, without their paths.
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

// Returns the peers of a level of all kinds, without their paths. Successive peers are in different cosets of
// the outermost subgroup. Few links join two such cosets, such as the cable between two groups of a
// dragonfly. All these links are thus in use from the start.
std::vector<Peer> LevelFinder::PeersOfAllKinds(int64_t inside, int64_t end) const {
  std::vector<int64_t> elements = {0};
  for (const Peer& peer : PeersBetween(inside, end)) elements.push_back(peer.from[0].element);
  const auto from_inside = [&](int64_t element) {
    std::vector<int64_t> digits;
    int64_t order = 1;
    for (const Prefix& prefix : chain_) {
      digits.push_back(place_[static_cast<size_t>(element)] % prefix.size / order);
      order = prefix.size;
    }
    return digits;
  };
  std::ranges::sort(elements, {}, from_inside);
  std::vector<Peer> peers;
  const int32_t kinds = group_.num_rank_orbits();
  for (int32_t turn = 0; turn < kinds; ++turn)
    for (const int64_t e : elements)
      if (turn > 0 || e != 0)
        peers.push_back(
            {turn, std::vector<PeerPath>(static_cast<size_t>(kinds), PeerPath{.element = e, .links = {}})});
  return peers;
}

double LevelFinder::SecondsOf(LinkId link, double blocks) const {
  return blocks * group_.LinkShare(group_.OrbitOf(link)) /
         static_cast<double>(topology_.link(link).bandwidth_bytes_per_s);
}

// Finds shortest paths from one rank, with little load. Requires: the ends are reached.
class LevelFinder::PathSearch {
 public:
  // `lengths` and `load` are by orbit of links. A load is in seconds, for blocks of one byte. `distances` are
  // those that DistancesFrom finds for the lengths.
  PathSearch(const LevelFinder& finder, Rank from, const std::vector<int64_t>& lengths,
             const Distances& distances, std::vector<double>& load)
      : finder_(finder),
        start_(finder.topology_.NodeOf(from)),
        lengths_(lengths),
        distances_(distances),
        load_(load) {}

  // Returns a shortest path and adds its blocks to the load. Goes back from the path's end, and takes the
  // least loaded link that leads there.
  PeerPath PathTo(Rank to, double blocks) {
    PeerPath path{.element = finder_.group_.ElementOf(to), .links = {}};
    for (NodeId at = finder_.topology_.NodeOf(to); at != start_;) {
      double least = std::numeric_limits<double>::infinity();
      LinkId best(-1);
      ForLinksTo(at, blocks, [&](LinkId l, double with_this) {
        if (with_this >= least) return;
        least = with_this;
        best = l;
      });
      at = Append(best, blocks, path);
    }
    std::ranges::reverse(path.links);
    return path;
  }

  // Returns the shortest path with the least sum of loads, and adds its blocks to the load. A path over two
  // crowded cables thus loses against a path over one cable and two less crowded links.
  PeerPath LightestPathTo(Rank to, double blocks) {
    PeerPath path{.element = finder_.group_.ElementOf(to), .links = {}};
    lightest_.clear();
    FindLightest(finder_.topology_.NodeOf(to), blocks);
    for (NodeId at = finder_.topology_.NodeOf(to); at != start_;)
      at = Append(lightest_.at(at.value).last, blocks, path);
    std::ranges::reverse(path.links);
    return path;
  }

 private:
  struct Lightest {
    double all = std::numeric_limits<double>::infinity();  // sum of the loads of a path's links
    LinkId last = LinkId(-1);
  };

  // Calls f(link, load) for the last link of each shortest path to a node. The load includes these blocks.
  template <typename F>
  void ForLinksTo(NodeId at, double blocks, F f) const {
    for (const LinkId l : finder_.topology_.In(at)) {
      const Link& link = finder_.topology_.link(l);
      const Distance before = distances_[link.from.index()];
      const bool passes = link.from == start_ || !finder_.topology_.IsGpu(link.from);
      if (!passes || before == kUnreached) continue;
      const int32_t orbit = finder_.group_.OrbitOf(l);
      if (Distance(before.first + lengths_[static_cast<size_t>(orbit)], before.second + 1) !=
          distances_[at.index()])
        continue;
      f(l, load_[static_cast<size_t>(orbit)] + finder_.SecondsOf(l, blocks));
    }
  }

  double FindLightest(NodeId at, double blocks) {
    if (at == start_) return 0;
    if (const auto known = lightest_.find(at.value); known != lightest_.end()) return known->second.all;
    Lightest best;
    ForLinksTo(at, blocks, [&](LinkId l, double with_this) {
      const double all = FindLightest(finder_.topology_.link(l).from, blocks) + with_this;
      if (all < best.all) best = {all, l};
    });
    lightest_[at.value] = best;
    return best.all;
  }

  // Adds the link to the path, which grows from its end, and the blocks to the load. Returns the
  // node before the link.
  NodeId Append(LinkId link, double blocks, PeerPath& path) {
    load_[static_cast<size_t>(finder_.group_.OrbitOf(link))] += finder_.SecondsOf(link, blocks);
    path.links.push_back(link);
    const Link& appended = finder_.topology_.link(link);
    path.latency_ps += appended.latency_ps + appended.overhead_ps;
    return appended.from;
  }

  const LevelFinder& finder_;
  const NodeId start_;
  const std::vector<int64_t>& lengths_;
  const Distances& distances_;
  std::vector<double>& load_;
  std::unordered_map<int32_t, Lightest> lightest_;  // by node
};

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
  std::vector<double> load(static_cast<size_t>(group_.num_link_orbits()), 0);
  for (int32_t kind = 0; kind < kinds; ++kind) {
    const Rank from = group_.Representative(kind);
    const Distances& distances = kind == 0 ? distance_ : DistancesFrom(from, latency_ps_);
    const std::vector<Rank> nearest = kinds > 1 ? NearestOfKinds(distances) : std::vector{from};
    PathSearch search(*this, from, latency_ps_, distances, load);
    for (Level& level : levels) {
      const double blocks = static_cast<double>(topology_.num_ranks()) /
                            static_cast<double>(level.inside * (std::ssize(level.peers) + 1));
      for (size_t p = level.peers.size(); p-- > 0;) {
        Peer& peer = level.peers[p];
        PeerPath& path = peer.from[static_cast<size_t>(kind)];
        const Rank to = group_.Image(
            path.element, peer.turn == 0 ? from : nearest[static_cast<size_t>((kind + peer.turn) % kinds)]);
        if (distances[topology_.NodeOf(to).index()] == kUnreached) return Unreached(engine);
        path = level.joins_kinds ? search.LightestPathTo(to, blocks) : search.PathTo(to, blocks);
      }
    }
  }
  return OkStatus();
}

bool LevelFinder::LeadAroundCrowds(Levels& levels) const {
  bool has_any = false;
  for (Level& level : levels) {
    has_any |= level.joins_kinds;
    if (level.joins_kinds) LeadAroundCrowds(level);
  }
  return has_any;
}

// Each round finds other paths for an equal share of the peers, one kind after the other. In this search a
// link is as long as its time for one byte × the fourth power of its load. While loads change little, the sum
// of the fifth powers of all loads decreases. The most crowded links dominate this sum.
void LevelFinder::LeadAroundCrowds(Level& level) const {
  constexpr double kLongest = 1 << 30;  // of the slowest link, if it has the most load
  const int32_t kinds = group_.num_rank_orbits();
  const auto rounds = static_cast<size_t>(
      std::clamp<int64_t>(kMostSearched / (int64_t{kinds} * topology_.num_links()), 1, kMostRounds));
  std::vector<double> load(latency_ps_.size(), 0), alone;
  for (int32_t orbit = 0; orbit < group_.num_link_orbits(); ++orbit)
    alone.push_back(SecondsOf(group_.LinkRepresentative(orbit), 1));
  const auto take = [&](const PeerPath& path, double blocks) {
    for (const LinkId l : path.links) {
      const auto orbit = static_cast<size_t>(group_.OrbitOf(l));
      load[orbit] += blocks * alone[orbit];
    }
  };
  for (const Peer& peer : level.peers)
    for (const PeerPath& path : peer.from) take(path, 1);
  const double slowest = *std::ranges::max_element(alone);
  std::vector<int64_t> lengths(load.size());
  for (size_t round = 0; round < rounds; ++round)
    for (int32_t kind = 0; kind < kinds; ++kind) {
      const double most = *std::ranges::max_element(load);
      for (size_t orbit = 0; orbit < load.size(); ++orbit)
        lengths[orbit] =
            static_cast<int64_t>(kLongest * std::pow(load[orbit] / most, 4) * alone[orbit] / slowest);
      const Rank from = group_.Representative(kind);
      const Distances distances = DistancesFrom(from, lengths);
      PathSearch search(*this, from, lengths, distances, load);
      for (size_t p = round; p < level.peers.size(); p += rounds) {
        Peer& peer = level.peers[p];
        PeerPath& path = peer.from[static_cast<size_t>(kind)];
        take(path, -1);
        path = search.LightestPathTo(
            group_.Image(path.element, group_.Representative((kind + peer.turn) % kinds)), 1);
      }
    }
}

std::vector<LevelEnd> EndsWithKinds(std::span<const int64_t> orders, size_t inside_kinds, int32_t kinds) {
  std::vector<LevelEnd> ends;
  for (size_t i = 0; i <= orders.size(); ++i) {
    if (i == inside_kinds && kinds > 1) ends.push_back({i == 0 ? 1 : orders[i - 1], true});
    if (i < orders.size()) ends.push_back({orders[i], kinds > 1 && i >= inside_kinds});
  }
  return ends;
}

StatusOr<Levels> LevelFinder::Make(std::span<const int64_t> orders, std::string_view engine,
                                   size_t inside_kinds) const {
  return Make(EndsWithKinds(orders, inside_kinds, group_.num_rank_orbits()), engine);
}

StatusOr<Levels> LevelFinder::Make(std::span<const LevelEnd> ends, std::string_view engine) const {
  const int64_t kinds = group_.num_rank_orbits();
  Levels levels;
  LevelEnd inside;
  int64_t joined = 1;
  for (const LevelEnd& end : ends) {
    const bool joins_kinds = end.has_kinds && !inside.has_kinds;
    Level& level = levels.emplace_back();
    level.inside = joined;
    level.joins_kinds = joins_kinds && end.order > inside.order;
    level.peers =
        joins_kinds ? PeersOfAllKinds(inside.order, end.order) : PeersBetween(inside.order, end.order);
    joined *= end.order / inside.order * (joins_kinds ? kinds : 1);
    if (level.inside * (std::ssize(level.peers) + 1) != joined) return Unreached(engine);
    inside = end;
  }
  if (joined != topology_.num_ranks()) return Unreached(engine);
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
    const auto cable = static_cast<size_t>(std::ranges::count(seen, at));  // links to it before `up`
    seen.push_back(at);
    std::vector<LinkId> tree = {up};
    std::vector<size_t> cables(is_member.size(), 0);  // by rank: links to it so far
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
