// A tier is a number of hops from the nearest GPU. The nodes of one tier, or of a tier and all tiers above,
// fall into connected parts. Two parts look alike if their nodes have the same colours, where a node outside
// of parts has a colour of its own and a node inside has one that follows from its neighbours.
// 1. Each generator is changed to take alike parts to alike parts in the order of their nodes. Small parts of
//    the upper tiers come first, so that the nodes of a larger part are in order before the part is.
// 2. A turn takes each part to the next one of its kind, and keeps all else in its place. A generator
//    followed by a turn moves ranks as before. For each kind of parts, the larger ones first, the generator
//    that joins most orbits of links takes the turn, as often as its order allows: of 16 spines, a generator
//    of order 8 takes every second one to the next but one.
// 3. The parts that it does not take to each other are a block. Another generator may turn blocks in turn.
// SymmetryGroup::Create checks each result.
#include "topologies/turned_switches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/graph/union_find.h"
#include "topologies/symmetry_graph.h"

namespace xccl {
namespace {

using Image = std::vector<int32_t>;  // by node

// Parts of the network by kind. The i-th nodes of two parts of a kind correspond.
struct AlikeParts {
  struct Place {
    int32_t kind = -1;  // -1: in no part that another one looks like
    size_t part = 0, node = 0;
  };
  std::vector<std::vector<std::vector<int32_t>>> kinds;  // of each kind its parts, by their lowest nodes
  std::vector<Place> place;                              // by node

  // Takes each part to the next one of its block, in a ring. The parts of a kind are cut into blocks of as
  // many parts as divide both the kind and `block`; 0: the whole kind is a block.
  Image Turn(int64_t block) const {
    Image image(place.size());
    for (size_t n = 0; n < image.size(); ++n) {
      const Place& at = place[n];
      if (at.kind < 0) {
        image[n] = static_cast<int32_t>(n);
        continue;
      }
      const auto& parts = kinds[static_cast<size_t>(at.kind)];
      const auto size = static_cast<size_t>(std::gcd(static_cast<int64_t>(parts.size()), block));
      image[n] = parts[at.part / size * size + (at.part + 1) % size][at.node];
    }
    return image;
  }

  // Returns the automorphism that takes the i-th part of a kind to the i-th part of the kind's image, and all
  // else as `image` does. It commutes with Turn.
  Image InOrder(const std::vector<NodeId>& image) const {
    Image ordered;
    for (const NodeId n : image) ordered.push_back(n.value);
    for (const auto& parts : kinds)
      for (size_t i = 0; i < parts[0].size(); ++i) {
        const Place& to = place[image[static_cast<size_t>(parts[0][i])].index()];
        if (to.kind < 0 || kinds[static_cast<size_t>(to.kind)].size() != parts.size()) continue;
        for (size_t part = 0; part < parts.size(); ++part)
          ordered[static_cast<size_t>(parts[part][i])] = kinds[static_cast<size_t>(to.kind)][part][to.node];
      }
    return ordered;
  }
};

class Tiers {
 public:
  explicit Tiers(const Topology& topology) : topology_(topology), graph_(topology), hops_(Size(), -1) {
    std::vector<int32_t> queue;
    for (int32_t r = 0; r < topology.num_ranks(); ++r) {
      queue.push_back(topology.NodeOf(Rank(r)).value);
      hops_[topology.NodeOf(Rank(r)).index()] = 0;
    }
    for (size_t i = 0; i < queue.size(); ++i) {
      for (const BondedNode& next : graph_.Of(queue[i])) {
        int32_t& hops = hops_[static_cast<size_t>(next.node)];
        if (hops >= 0) continue;
        hops = hops_[static_cast<size_t>(queue[i])] + 1;
        queue.push_back(next.node);
      }
    }
  }

  int32_t highest() const { return *std::ranges::max_element(hops_); }
  bool IsNearer(NodeId a, NodeId b) const { return hops_[a.index()] < hops_[b.index()]; }

  // Finds the parts from tier `low` to tier `high` that look alike.
  AlikeParts PartsOf(int32_t low, int32_t high) const {
    const auto is_inside = [&](size_t n) { return low <= hops_[n] && hops_[n] <= high; };
    UnionFind connected(Size());
    for (const Link& l : topology_.spec().links)
      if (is_inside(l.from.index()) && is_inside(l.to.index())) connected.Join(l.from.value, l.to.value);
    const std::vector<uint64_t> colour = Colours(low, high);
    std::map<int32_t, std::vector<std::pair<uint64_t, int32_t>>> nodes;  // by part, with their colours
    for (size_t n = 0; n < Size(); ++n)
      if (is_inside(n))
        nodes[connected.Find(static_cast<int32_t>(n))].emplace_back(colour[n], static_cast<int32_t>(n));
    std::map<std::vector<uint64_t>, std::vector<std::vector<int32_t>>> by_colours;
    for (auto& [unused, of_part] : nodes) {
      std::ranges::sort(of_part);
      std::vector<uint64_t> key;
      std::vector<int32_t> members;
      for (const auto& [c, n] : of_part) {
        key.push_back(c);
        members.push_back(n);
      }
      by_colours[std::move(key)].push_back(std::move(members));
    }
    AlikeParts alike{{}, std::vector<AlikeParts::Place>(Size())};
    for (auto& [unused, parts] : by_colours) {
      if (parts.size() == 1) continue;
      std::ranges::sort(parts, {}, [](const std::vector<int32_t>& part) { return std::ranges::min(part); });
      const int32_t kind = static_cast<int32_t>(alike.kinds.size());
      for (size_t part = 0; part < parts.size(); ++part)
        for (size_t i = 0; i < parts[part].size(); ++i)
          alike.place[static_cast<size_t>(parts[part][i])] = {kind, part, i};
      alike.kinds.push_back(std::move(parts));
    }
    return alike;
  }

 private:
  size_t Size() const { return static_cast<size_t>(topology_.num_nodes()); }

  // Returns colours of nodes: its own for each node outside of the tiers, else one that its neighbours make.
  // A part is at most twice as wide as it has tiers.
  std::vector<uint64_t> Colours(int32_t low, int32_t high) const {
    std::vector<uint64_t> colour, next;
    std::vector<bool> outside;
    for (size_t n = 0; n < Size(); ++n) {
      outside.push_back(hops_[n] < low || hops_[n] > high);
      colour.push_back(outside[n] ? MixBits(n + 1) : FirstColour(topology_.spec().nodes[n]));
    }
    for (int32_t round = 0; round < 2 * (high - low + 1); ++round)
      RefineColours(graph_, colour, next, outside);
    return colour;
  }

  const Topology& topology_;
  const SymmetryGraph graph_;
  std::vector<int32_t> hops_;  // by node: links to the nearest GPU
};

int64_t OrderOf(const Image& image) {
  int64_t order = 1;
  std::vector<bool> seen(image.size(), false);
  for (size_t x = 0; x < image.size(); ++x) {
    int64_t length = 0;
    for (size_t y = x; !seen[y]; y = static_cast<size_t>(image[y]), ++length) seen[y] = true;
    if (length > 0) order = std::lcm(order, length);
  }
  return order;
}

// Returns first, then `then` so many times.
Image Followed(const std::vector<NodeId>& first, const Image& then, int64_t times) {
  Image image;
  for (const NodeId n : first) {
    int32_t to = n.value;
    for (int64_t i = 0; i < times; ++i) to = then[static_cast<size_t>(to)];
    image.push_back(to);
  }
  return image;
}

bool Commutes(const Image& turn, const std::vector<NodeId>& generator) {
  for (size_t n = 0; n < turn.size(); ++n)
    if (generator[static_cast<size_t>(turn[n])].value != turn[generator[n].index()]) return false;
  return true;
}

using Ends = std::vector<std::pair<int32_t, int32_t>>;

// The links at nodes that a turn moves, parallel ones as one.
struct TurnedLinks {
  Ends all, below;  // `below`: those to nodes that stay in place and are nearer to the GPUs
};
TurnedLinks LinksAt(const Topology& topology, const Tiers& tiers, const Image& turn) {
  const auto is_moved = [&](NodeId n) { return turn[n.index()] != n.value; };
  TurnedLinks links;
  for (const Link& l : topology.spec().links) {
    const bool from = is_moved(l.from), to = is_moved(l.to);
    if (!from && !to) continue;
    links.all.emplace_back(l.from.value, l.to.value);
    if (from != to && (from ? tiers.IsNearer(l.to, l.from) : tiers.IsNearer(l.from, l.to)))
      links.below.push_back(links.all.back());
  }
  for (Ends* ends : {&links.all, &links.below}) {
    std::ranges::sort(*ends);
    ends->erase(std::unique(ends->begin(), ends->end()), ends->end());
  }
  return links;
}

// The number of orbits of the links under the generators, of which generator `changed` has this image.
// Requires: the generators keep the set of links.
size_t OrbitsOf(const Ends& links, std::span<const Automorphism> generators, size_t changed,
                const Image& image) {
  UnionFind sets(links.size());
  size_t orbits = links.size();
  for (size_t g = 0; g < generators.size(); ++g) {
    const auto to = [&](int32_t n) {
      return g == changed ? image[static_cast<size_t>(n)] : generators[g].image[static_cast<size_t>(n)].value;
    };
    for (size_t l = 0; l < links.size(); ++l) {
      const auto [from, end] = links[l];
      const auto moved = std::ranges::lower_bound(links, std::pair(to(from), to(end)));
      if (sets.Join(static_cast<int32_t>(l), static_cast<int32_t>(moved - links.begin()))) --orbits;
    }
  }
  return orbits;
}

// Returns the group in which the best generator is followed by the turn, or nullopt if no orbits join. Links
// below the parts come first: a generator that moves leaves spreads them over spines already, one that moves
// the GPUs of a leaf does not. Sets `block` to the parts of a block that the turned generator does not take
// to each other.
std::optional<SymmetryGroup> WithTurn(const Topology& topology, const Tiers& tiers,
                                      const SymmetryGroup& group, const Image& turn, int64_t& block) {
  std::vector<Automorphism> generators = group.generators();
  for (const Automorphism& generator : generators)
    if (!Commutes(turn, generator.image)) return std::nullopt;
  const int64_t order = OrderOf(turn);
  const TurnedLinks links = LinksAt(topology, tiers, turn);
  const auto orbits_of = [&](size_t changed, const Image& image) {
    return std::pair(OrbitsOf(links.below, generators, changed, image),
                     OrbitsOf(links.all, generators, changed, image));
  };
  auto fewest = orbits_of(generators.size(), {});
  size_t best = generators.size();
  Image best_image;
  for (size_t g = 0; g < generators.size(); ++g) {
    const int64_t common = std::gcd(order, int64_t{generators[g].order});
    if (common == 1) continue;
    Image image = Followed(generators[g].image, turn, order / common);
    const auto orbits = orbits_of(g, image);
    if (orbits >= fewest) continue;
    fewest = orbits;
    best = g;
    block = order / common;
    best_image = std::move(image);
  }
  if (best == generators.size()) return std::nullopt;
  for (size_t n = 0; n < best_image.size(); ++n) generators[best].image[n] = NodeId(best_image[n]);
  StatusOr<SymmetryGroup> turned = SymmetryGroup::Create(topology, std::move(generators));
  return turned.ok() ? std::optional(*std::move(turned)) : std::nullopt;
}

}  // namespace

SymmetryGroup TurnSwitches(const Topology& topology, const SymmetryGroup& group) {
  if (group.IsTrivial()) return group;
  const Tiers tiers(topology);
  std::vector<AlikeParts> alike;  // from the lowest tier upwards, larger parts first
  for (int32_t tier = 1; tier <= tiers.highest(); ++tier) {
    if (tier < tiers.highest()) alike.push_back(tiers.PartsOf(tier, tiers.highest()));
    alike.push_back(tiers.PartsOf(tier, tier));
  }
  std::erase_if(alike, [](const AlikeParts& parts) { return parts.kinds.empty(); });
  if (alike.empty()) return group;
  std::vector<Automorphism> ordered = group.generators();
  for (Automorphism& generator : ordered)
    for (auto parts = alike.rbegin(); parts != alike.rend(); ++parts) {
      const Image image = parts->InOrder(generator.image);
      for (size_t n = 0; n < image.size(); ++n) generator.image[n] = NodeId(image[n]);
    }
  const StatusOr<SymmetryGroup> in_order = SymmetryGroup::Create(topology, std::move(ordered));
  SymmetryGroup turned = in_order.ok() ? *in_order : group;
  for (const AlikeParts& parts : alike) {
    for (int64_t block = 0; block != 1;) {
      std::optional<SymmetryGroup> better = WithTurn(topology, tiers, turned, parts.Turn(block), block);
      if (!better) break;
      turned = *std::move(better);
    }
  }
  return turned;
}

}  // namespace xccl
