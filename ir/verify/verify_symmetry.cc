// Checks each generator against the definition of an automorphism (nodes and links as sorted lists), then
// the group. Commuting generators make an abelian group, whose elements that keep one rank of an orbit keep
// all of it. So the group is free of order Π n_i if every orbit has that many ranks. Shares no code with
// topologies/symmetry.cc.
#include "ir/verify/verify_symmetry.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace xccl {
namespace {

// Returns the fault of one generator by itself, or "".
std::string GeneratorError(const Automorphism& generator, const Topology& topology) {
  const std::vector<NodeId>& image = generator.image;
  const int32_t nodes = topology.num_nodes();
  if (image.size() != static_cast<size_t>(nodes))
    return fmt::format("{} images; {} has {} nodes", image.size(), topology.name(), nodes);
  std::vector<bool> taken(image.size(), false);
  for (int32_t n = 0; n < nodes; ++n) {
    const NodeId to = image[static_cast<size_t>(n)];
    if (to.value < 0 || to.value >= nodes)
      return fmt::format("takes node {} to {}; nodes are 0..{}", n, to.value, nodes - 1);
    if (taken[to.index()]) return fmt::format("takes two nodes to {}", topology.NodeName(to));
    taken[to.index()] = true;
    const Node &a = topology.node(NodeId(n)), &b = topology.node(to);
    if (std::tie(a.kind, a.multicast, a.reduce) != std::tie(b.kind, b.multicast, b.reduce))
      return fmt::format("takes {} to {}, which differs", topology.NodeName(NodeId(n)),
                         topology.NodeName(to));
  }
  using Row = std::tuple<int32_t, int32_t, int64_t, int64_t, int64_t>;
  std::vector<Row> links, images;
  for (const Link& l : topology.spec().links) {
    links.emplace_back(l.from.value, l.to.value, l.bandwidth_bytes_per_s, l.latency_ps, l.overhead_ps);
    images.emplace_back(image[l.from.index()].value, image[l.to.index()].value, l.bandwidth_bytes_per_s,
                        l.latency_ps, l.overhead_ps);
  }
  std::sort(links.begin(), links.end());
  std::sort(images.begin(), images.end());
  for (size_t i = 0; i < links.size(); ++i)
    if (links[i] != images[i])
      return fmt::format("does not keep the links from {} to {}",
                         topology.NodeName(NodeId(std::get<0>(std::min(links[i], images[i])))),
                         topology.NodeName(NodeId(std::get<1>(std::min(links[i], images[i])))));
  return "";
}

// Checks that `order` applications of the generator give the identity. That fewer do not follows from
// FreeError.
std::string OrderError(const Automorphism& generator) {
  const size_t nodes = generator.image.size();
  std::vector<int64_t> lengths;
  std::vector<bool> seen(nodes, false);
  for (size_t n = 0; n < nodes; ++n) {
    if (seen[n]) continue;
    int64_t length = 0;
    for (size_t i = n; !seen[i]; i = generator.image[i].index(), ++length) seen[i] = true;
    lengths.push_back(length);
  }
  const auto divides = [](int64_t order, const std::vector<int64_t>& of) {
    return std::all_of(of.begin(), of.end(), [&](int64_t length) { return order % length == 0; });
  };
  if (generator.order < 2 || !divides(generator.order, lengths))
    return fmt::format("order {}; so often applied it does not come back", generator.order);
  return "";
}

std::vector<int32_t> RankOrbits(const std::vector<Automorphism>& generators, const Topology& topology,
                                std::vector<int64_t>& sizes) {
  std::vector<int32_t> lowest(static_cast<size_t>(topology.num_ranks()), -1);
  sizes.assign(lowest.size(), 0);
  for (int32_t first = 0; first < topology.num_ranks(); ++first) {
    if (lowest[first] >= 0) continue;
    std::vector<int32_t> orbit = {first};
    lowest[first] = first;
    for (size_t i = 0; i < orbit.size(); ++i) {
      for (const Automorphism& g : generators) {
        const int32_t to = topology.RankOf(g.image[topology.NodeOf(Rank(orbit[i])).index()])->value;
        if (lowest[to] >= 0) continue;
        lowest[to] = first;
        orbit.push_back(to);
      }
    }
    sizes[first] = static_cast<int64_t>(orbit.size());
  }
  return lowest;
}

// Where chunks go when members are permuted. Each piece belongs to a rank or to a pair of ranks. All pieces
// have `even` chunks of equal weight, or else `begin` holds the first chunk of each piece.
struct Pieces {
  std::string error;
  bool pairs = false;
  int64_t even = 0;
  std::vector<int64_t> begin;

  int64_t Begin(int64_t piece) const { return even > 0 ? piece * even : begin[static_cast<size_t>(piece)]; }
};

Pieces PiecesOf(const Collective& collective) {
  const CollectiveKind kind = collective.kind();
  const int32_t n = collective.num_members();
  Pieces pieces;
  pieces.pairs = kind == CollectiveKind::kAlltoall || kind == CollectiveKind::kAlltoallv;
  if (kind == CollectiveKind::kAllreduce) {
    if (collective.num_chunks() % n != 0)
      pieces.error = fmt::format("{} chunks on {} ranks; expected a multiple", collective.num_chunks(), n);
    for (int32_t m = 0; m <= n; ++m) pieces.begin.push_back(m * (collective.num_chunks() / n));
    return pieces;
  }
  if (!pieces.pairs && kind != CollectiveKind::kAllgather && kind != CollectiveKind::kAllgatherv &&
      kind != CollectiveKind::kReduceScatter && kind != CollectiveKind::kReduceScatterv)
    pieces.error = fmt::format("{} has no part for each rank", collective.name());
  if (collective.spec().counts.empty()) pieces.even = collective.even_chunks();
  for (int64_t p = 0; pieces.even == 0 && p < collective.num_parts(); ++p)
    pieces.begin.push_back(collective.FirstChunk(PartId(p)).value);
  pieces.begin.push_back(collective.num_chunks());
  return pieces;
}

// Checks that a piece has the same chunks as its image.
std::string ImageError(const Collective& collective, const Pieces& pieces, size_t from, size_t to) {
  const int64_t chunks = pieces.begin[from + 1] - pieces.begin[from];
  if (chunks != pieces.begin[to + 1] - pieces.begin[to])
    return fmt::format("part {} has {} chunks, its image {} has {}", from, chunks, to,
                       pieces.begin[to + 1] - pieces.begin[to]);
  const std::vector<int64_t>& counts = collective.spec().counts;
  if (!counts.empty() && counts[from] != counts[to])
    return fmt::format("part {} has count {}, its image {} has {}", from, counts[from], to, counts[to]);
  for (int64_t c = 0; c < chunks; ++c) {
    const ChunkId a(pieces.begin[from] + c), b(pieces.begin[to] + c);
    if (collective.Weight(a) != collective.Weight(b))
      return fmt::format("chunk {} has weight {}, its image {} has {}", a.value, collective.Weight(a),
                         b.value, collective.Weight(b));
  }
  return "";
}

// Checks the effect of a generator on the members and their pieces.
std::string MembersError(const Automorphism& generator, const Collective& collective, const Pieces& pieces,
                         const Topology& topology) {
  std::vector<size_t> image;
  for (Rank r : collective.ranks()) {
    const Rank to = *topology.RankOf(generator.image[topology.NodeOf(r).index()]);
    const std::optional<int32_t> member = collective.MemberIndex(to);
    if (!member) return fmt::format("takes rank {} to {}, which is not in the collective", r.value, to.value);
    image.push_back(static_cast<size_t>(*member));
  }
  const size_t n = image.size();
  for (size_t p = 0; pieces.even == 0 && p + 1 < pieces.begin.size(); ++p) {
    const size_t to = pieces.pairs ? image[p / n] * n + image[p % n] : image[p];
    if (std::string error = ImageError(collective, pieces, p, to); !error.empty()) return error;
  }
  return "";
}

std::string CommuteError(const std::vector<Automorphism>& generators, const Topology& topology) {
  for (size_t g = 0; g < generators.size(); ++g) {
    const std::vector<NodeId>& a = generators[g].image;
    for (size_t h = 0; h < g; ++h) {
      const std::vector<NodeId>& b = generators[h].image;
      for (size_t n = 0; n < a.size(); ++n)
        if (a[b[n].index()] != b[a[n].index()])
          return fmt::format("generators {} and {} do not commute at {}", h, g,
                             topology.NodeName(NodeId(static_cast<int64_t>(n))));
    }
  }
  return "";
}

// Checks that every orbit has as many ranks as the group has elements.
std::string FreeError(const std::vector<Automorphism>& generators, const std::vector<int64_t>& orbit_sizes) {
  int64_t order = 1;
  for (const Automorphism& g : generators) {
    if (order > static_cast<int64_t>(orbit_sizes.size())) break;  // more than there are ranks already
    order *= g.order;
  }
  for (size_t r = 0; r < orbit_sizes.size(); ++r)
    if (orbit_sizes[r] != 0 && orbit_sizes[r] != order)
      return fmt::format("{} elements take rank {} to {} ranks; expected as many", order, r, orbit_sizes[r]);
  return "";
}

}  // namespace

std::vector<bool> CheckSymmetry(const Schedule& schedule, const Collective& collective,
                                const Topology& topology,
                                const std::function<void(std::string, std::string)>& report) {
  const std::vector<Automorphism>& generators = schedule.symmetry;
  bool fine = true;
  const auto check = [&](std::string where, std::string error) {
    if (error.empty()) return;
    fine = false;
    report(std::move(where), std::move(error));
  };
  const auto name = [](size_t g) { return fmt::format("generator {}", g); };
  for (size_t g = 0; g < generators.size(); ++g) {
    std::string error = GeneratorError(generators[g], topology);
    if (error.empty()) error = OrderError(generators[g]);
    check(name(g), std::move(error));
  }
  const Pieces pieces = PiecesOf(collective);
  check("symmetry", pieces.error);
  if (!fine) return {};
  check("symmetry", CommuteError(generators, topology));
  std::vector<int64_t> orbit_sizes;
  const std::vector<int32_t> lowest = RankOrbits(generators, topology, orbit_sizes);
  check("symmetry", FreeError(generators, orbit_sizes));
  for (size_t g = 0; g < generators.size(); ++g)
    check(name(g), MembersError(generators[g], collective, pieces, topology));
  if (!fine) return {};

  std::vector<bool> represents;
  const int64_t n = std::ssize(collective.ranks()), each = pieces.pairs ? n : 1;
  for (int64_t m = 0; m < n; ++m) {
    const Rank rank = collective.ranks()[static_cast<size_t>(m)];
    if (lowest[rank.index()] != rank.value) continue;
    const int64_t begin = pieces.Begin(m * each), end = pieces.Begin((m + 1) * each);
    if (end > std::numeric_limits<int32_t>::max()) {
      report("symmetry", fmt::format("chunk {} of rank {} is of the lowest rank of its orbit; chunks are "
                                     "known up to 2^31-1",
                                     end - 1, rank.value));
      return {};
    }
    represents.resize(std::max(represents.size(), static_cast<size_t>(end)), false);
    std::fill(represents.begin() + begin, represents.begin() + end, true);
  }
  return represents;
}

}  // namespace xccl
