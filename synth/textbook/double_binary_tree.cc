// Two binary trees over all but the root, each for half of the data, such that who is inside one is a leaf of
// the other: every port is busy both ways, at logarithmic depth (Sanders, Speck and Traeff, 2009; NCCL's
// trees). Several domains: the trees join domains, each tree enters a domain at another GPU (so over another
// NIC), and a chain serves the inside.
#include <algorithm>
#include <bit>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

// In-order binary tree over 1..m: odd numbers are leaves. Parent of each, 0 for the top.
std::vector<int32_t> InOrderParents(int32_t m) {
  std::vector<int32_t> parent(static_cast<size_t>(m) + 1, 0);
  const auto top = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(m)));
  for (int32_t v = 1; v <= m; ++v) {
    if (v == top) continue;
    // Up the levels until the number exists: where the right end is cut off, its nearest ancestor takes over.
    int32_t at = v;
    do {
      const int32_t low = at & -at;
      at = (at ^ low) | (low << 1);
    } while (at > m);
    parent[v] = at;
  }
  return parent;
}

struct Edge {
  Rank parent, child;
  int32_t depth = 0;
};

// A domain as a chain whose first rank is where a tree enters.
using Chain = std::vector<Rank>;

class TwoTrees {
 public:
  TwoTrees(const RankGraph& graph, std::span<const Rank> members, Rank root) {
    const Positions turned = StartingAt(DomainPositions(graph, members), root);
    const Positions positions = DomainPositions(graph, turned.rank);
    const bool one_domain = graph.num_domains() == 1;
    for (size_t p = 0; p < positions.rank.size(); ++p) {
      const Rank r = positions.rank[p];
      if (p == 0 || one_domain || graph.Domain(r) != graph.Domain(positions.rank[p - 1]))
        chains_.emplace_back();
      chains_.back().push_back(r);
    }
    home_ = chains_[0];
    chains_.erase(chains_.begin());
  }

  // Tree t = 0 or 1, parents before children.
  std::vector<Edge> Edges(int32_t t) const {
    std::vector<Edge> edges;
    const auto chain = [&](Chain c, int32_t depth) {
      for (size_t i = 0; i + 1 < c.size(); ++i)
        edges.push_back({c[i], c[i + 1], depth + static_cast<int32_t>(i) + 1});
    };
    chain(home_, 0);
    const int32_t m = static_cast<int32_t>(chains_.size());
    if (m == 0) return edges;
    const std::vector<int32_t> parent = InOrderParents(m);
    // The second tree is the mirror image, or, where that would make the same leaves, moved on by one.
    const auto place = [&](int32_t v) { return t == 0 ? v - 1 : m % 2 == 0 ? m - v : v % m; };
    std::vector<int32_t> order, depth(static_cast<size_t>(m) + 1, 0);
    const int32_t entry_hop = t == 1 && home_.size() > 1 ? 1 : 0;
    for (int32_t v = 1; v <= m; ++v) order.push_back(v);
    const auto low = [](int32_t v) { return v & -v; };
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return low(a) > low(b); });
    for (int32_t v : order) {
      const Chain at = Turned(chains_[place(v)], t);
      if (parent[v] == 0) {
        depth[v] = entry_hop + 1;
        edges.push_back({home_[static_cast<size_t>(entry_hop)], at[0], depth[v]});
      } else {
        const Chain above = Turned(chains_[place(parent[v])], t);
        // Left children hang below the entry, right ones below the next of the chain.
        const size_t from = parent[v] < v && above.size() > 1 ? 1 : 0;
        depth[v] = depth[parent[v]] + static_cast<int32_t>(from) + 1;
        edges.push_back({above[from], at[0], depth[v]});
      }
      chain(at, depth[v]);
    }
    return edges;
  }

 private:
  static Chain Turned(Chain c, int32_t t) {
    if (t == 1 && c.size() > 1)
      std::rotate(c.begin(), c.begin() + static_cast<std::ptrdiff_t>(c.size()) / 2, c.end());
    return c;
  }
  Chain home_;
  std::vector<Chain> chains_;
};

}  // namespace

StatusOr<Recipe> PlaceDoubleBinaryTree(const RankGraph& graph, const SynthesisRequest& request) {
  const std::vector<Rank> members(request.collective->ranks().begin(), request.collective->ranks().end());
  Recipe recipe;
  recipe.pieces = 2;
  recipe.root = members[0];
  recipe.pipelines = true;
  recipe.broadcast = [&graph, members](Rank root, ChunkRange all, Moves& moves) {
    const TwoTrees trees(graph, members, root);
    for (int32_t t = 0; t < 2; ++t)
      for (const Edge& edge : trees.Edges(t))
        moves.Add({Piece(all, t, 2), edge.parent, edge.child, edge.depth - 1});
  };
  return recipe;
}

}  // namespace xccl
