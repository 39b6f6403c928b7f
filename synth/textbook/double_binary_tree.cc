// Two binary trees over all ranks except the root, each for half of the data. An inner node of one tree is a
// leaf of the other. So every port is busy in both directions, and the depth is logarithmic (Sanders, Speck
// and Traeff, 2009; NCCL's trees). If there are several domains, the trees join domains. The two trees enter
// a domain at different GPUs, and so over different NICs. A chain serves the GPUs inside a domain.
#include <algorithm>
#include <bit>
#include <numeric>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

// Returns the parents in an in-order binary tree over 1..m, 0 for the top. Odd numbers are leaves.
std::vector<int32_t> InOrderParents(int32_t m) {
  std::vector<int32_t> parent(static_cast<size_t>(m) + 1, 0);
  const auto top = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(m)));
  for (int32_t v = 1; v <= m; ++v) {
    if (v == top) continue;
    // Goes up the levels of the complete tree to the first ancestor whose number is at most m.
    int32_t at = v;
    do {
      const int32_t low = at & -at;
      at = (at ^ low) | (low << 1);
    } while (at > m);
    parent[v] = at;
  }
  return parent;
}

// A domain as a chain. A tree enters the domain at the first rank of the chain.
using Chain = std::vector<Rank>;

// Returns a chain for each domain, the root's first. If there is one domain, every rank is its own chain.
std::vector<Chain> ChainsOf(const RankGraph& graph, std::span<const Rank> members, Rank root) {
  const Positions turned = StartingAt(DomainPositions(graph, members), root);
  const Positions positions = DomainPositions(graph, turned.rank);
  std::vector<Chain> chains;
  for (size_t p = 0; p < positions.rank.size(); ++p) {
    const Rank r = positions.rank[p];
    if (p == 0 || graph.num_domains() == 1 || graph.Domain(r) != graph.Domain(positions.rank[p - 1]))
      chains.emplace_back();
    chains.back().push_back(r);
  }
  return chains;
}

// Adds the moves of tree t (0 or 1), parents before children. Chain 0 is the parent of the top.
void AddTree(const std::vector<Chain>& chains, int32_t t, ChunkRange piece, Moves& moves) {
  const int32_t m = static_cast<int32_t>(chains.size()) - 1;
  const std::vector<int32_t> parent = InOrderParents(m);
  // Tree 1 is the mirror image of tree 0. If m is odd, the mirror image has the same leaves, so tree 1 is
  // tree 0 shifted by one instead.
  const auto chain_of = [&](int32_t v) {
    if (t == 0 || v == 0) return chains[v];
    Chain chain = chains[m % 2 == 0 ? m - v + 1 : v % m + 1];
    if (chain.size() > 1)
      std::rotate(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(chain.size()) / 2, chain.end());
    return chain;
  };
  std::vector<int32_t> order(chains.size()), depth(chains.size(), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin() + 1, order.end(), [](int32_t a, int32_t b) { return (a & -a) > (b & -b); });
  for (int32_t v : order) {
    const Chain chain = chain_of(v);
    if (v > 0) {
      const Chain above = chain_of(parent[v]);
      // A left child hangs below the first rank of its parent's chain, a right child below the second, if
      // there is one. The tops of trees 0 and 1 hang below the first and second rank of chain 0.
      const bool next = above.size() > 1 && (parent[v] == 0 ? t == 1 : parent[v] < v);
      depth[v] = depth[parent[v]] + (next ? 2 : 1);
      moves.Add({piece, above[next ? 1 : 0], chain[0], depth[v] - 1});
    }
    for (size_t i = 0; i + 1 < chain.size(); ++i)
      moves.Add({piece, chain[i], chain[i + 1], depth[v] + static_cast<int32_t>(i)});
  }
}

}  // namespace

StatusOr<Recipe> PlaceDoubleBinaryTree(const RankGraph& graph, const SynthesisRequest& request) {
  const std::vector<Rank> members(request.collective->ranks().begin(), request.collective->ranks().end());
  Recipe recipe;
  recipe.pieces = 2;
  recipe.root = members[0];
  recipe.pipelines = true;
  recipe.broadcast = [&graph, members](Rank root, ChunkRange all, Moves& moves) {
    const std::vector<Chain> chains = ChainsOf(graph, members, root);
    for (int32_t t = 0; t < 2; ++t) AddTree(chains, t, Piece(all, t, 2), moves);
  };
  return recipe;
}

}  // namespace xccl
