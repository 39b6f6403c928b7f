// One spanning tree: broadcasts go down it, gathers come up. It grows breadth first from the root along the
// widest hops. Cables of its own a rank may use all at once; over switches, where copies share the rank's
// port, it feeds two ranks of its domain and one of another: a binary tree inside every domain, and domains
// hung below different GPUs, so that different NICs feed them.
#include <algorithm>
#include <set>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

struct Tree {
  struct Edge {
    Rank parent, child;
    int32_t depth = 0;  // of the child
  };
  std::vector<Edge> edges;  // parents before their children
  int32_t depth = 0;
};

class TreeGrower {
 public:
  TreeGrower(const RankGraph& graph, std::span<const Rank> members)
      : graph_(graph), members_(members), open_(static_cast<size_t>(graph.num_ranks()), false) {}

  Tree Grow(Rank root) {
    for (Rank r : members_) open_[r.index()] = true;
    Tree tree;
    std::vector<std::pair<Rank, int32_t>> reached = {{root, 0}};
    open_[root.index()] = false;
    // Once with few copies a port, then whoever is left from anyone, then over relays.
    for (bool limited : {true, false}) {
      for (size_t i = 0; i < reached.size(); ++i) {
        const auto [parent, depth] = reached[i];
        for (Rank child : Adopt(parent, limited)) {
          tree.edges.push_back({parent, child, depth + 1});
          reached.emplace_back(child, depth + 1);
        }
      }
    }
    for (Rank r : members_) {
      if (!open_[r.index()]) continue;
      open_[r.index()] = false;
      tree.edges.push_back({root, r, 1});
    }
    for (const Tree::Edge& edge : tree.edges) tree.depth = std::max(tree.depth, edge.depth);
    return tree;
  }

 private:
  std::vector<Rank> Adopt(Rank parent, bool limited) {
    std::vector<HopId> hops;
    std::optional<Rank> last;
    for (HopId h = graph_.FirstOut(parent); h < graph_.EndOut(parent); ++h.value) {
      const Rank to = graph_.hop(h).to;
      if (open_[to.index()] && last != to) hops.push_back(h);
      last = to;
    }
    std::stable_sort(hops.begin(), hops.end(), [&](HopId a, HopId b) {
      const Hop &x = graph_.hop(a), &y = graph_.hop(b);
      if (x.bandwidth_bytes_per_s != y.bandwidth_bytes_per_s)
        return x.bandwidth_bytes_per_s > y.bandwidth_bytes_per_s;
      return x.latency_ps < y.latency_ps;
    });
    std::vector<Rank> adopted;
    int32_t inside = 0, outside = 0;
    for (HopId h : hops) {
      const Hop& hop = graph_.hop(h);
      if (limited && hop.num_links > 1) {
        const bool same = graph_.Domain(hop.to) == graph_.Domain(parent);
        if (same ? inside == 2 : outside == 1 || domain_reached_.contains(graph_.Domain(hop.to))) continue;
        ++(same ? inside : outside);
      }
      domain_reached_.insert(graph_.Domain(hop.to));
      open_[hop.to.index()] = false;
      adopted.push_back(hop.to);
    }
    return adopted;
  }

  const RankGraph& graph_;
  std::span<const Rank> members_;
  std::vector<bool> open_;  // by rank: member not yet in the tree
  std::set<int32_t> domain_reached_;
};

void TreeGather(const Tree& tree, std::span<const Rank> members, const Blocks& blocks, Moves& moves) {
  int32_t last = 0;
  for (Rank r : members) last = std::max(last, r.value);
  std::vector<std::vector<int32_t>> below(static_cast<size_t>(last) + 1);
  for (size_t i = 0; i < members.size(); ++i) below[members[i].index()].push_back(static_cast<int32_t>(i));
  // Deepest first: children before parents.
  std::vector<Tree::Edge> edges = tree.edges;
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Tree::Edge& a, const Tree::Edge& b) { return a.depth > b.depth; });
  for (const Tree::Edge& edge : edges) {
    std::vector<int32_t>& mine = below[edge.child.index()];
    SendBlocks(blocks, mine, edge.child, edge.parent, tree.depth - edge.depth, moves);
    std::vector<int32_t>& up = below[edge.parent.index()];
    up.insert(up.end(), mine.begin(), mine.end());
    mine = {};
  }
}

StatusOr<Recipe> PlaceTree(const RankGraph& graph, const SynthesisRequest& request) {
  const std::vector<Rank> members(request.collective->ranks().begin(), request.collective->ranks().end());
  Recipe recipe;
  // An allreduce meets where the farthest member is nearest.
  recipe.root = members[0];
  if (!request.collective->spec().root && members.size() <= 64) {
    int32_t least = TreeGrower(graph, members).Grow(members[0]).depth;
    for (Rank r : members) {
      const int32_t depth = TreeGrower(graph, members).Grow(r).depth;
      if (depth < least) recipe.root = r, least = depth;
    }
  }
  recipe.pipelines = true;
  recipe.broadcast = [&graph, members](Rank root, ChunkRange all, Moves& moves) {
    for (const Tree::Edge& edge : TreeGrower(graph, members).Grow(root).edges)
      moves.Add({all, edge.parent, edge.child, edge.depth - 1, TransferOp::kCopy, std::nullopt});
  };
  recipe.gather = [&graph, members](Rank root, const Blocks& blocks, Moves& moves) {
    // A gather goes against the links that the tree grows along: it grows on the machine turned round.
    const RankGraph turned = graph.Reversed();
    TreeGather(TreeGrower(turned, members).Grow(root), members, blocks, moves);
  };
  return recipe;
}

}  // namespace

const TextbookEngine& TreeEngine() {
  static const TextbookEngine engine = {
      "tree",
      "one breadth-first spanning tree of the widest links; low latency; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kBroadcast, CollectiveKind::kReduce,
       CollectiveKind::kGather, CollectiveKind::kScatter, CollectiveKind::kBarrier},
      PlaceTree};
  return engine;
}

}  // namespace xccl
