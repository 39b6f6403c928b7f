#include "synth/forest/trees.h"

#include <algorithm>
#include <map>
#include <optional>

namespace xccl::forest {
namespace {

class Layout {
 public:
  Layout(const Topology& topology, const Collective& collective, Network& network)
      : topology_(topology), collective_(collective), network_(network) {
    for (std::vector<Piece>& pieces : network.pieces)
      std::sort(pieces.begin(), pieces.end(),
                [](const Piece& a, const Piece& b) { return a.amount < b.amount; });
  }

  PackedTrees Run(const std::vector<LogicalTree>& trees, bool single) {
    for (const LogicalTree& tree : trees)
      for (int64_t left = tree.weight; left > 0;) left -= Lay(tree, left);
    std::stable_sort(made_.trees.begin(), made_.trees.end(),
                     [](const PackedTree& a, const PackedTree& b) { return a.part < b.part; });
    if (single) Cut();
    return std::move(made_);
  }

 private:
  // The piece that fits best: the least that is enough, or the largest.
  static Piece& Choose(std::vector<Piece>& pieces, int64_t amount) {
    Piece* best = nullptr;
    for (Piece& piece : pieces) {
      if (piece.amount == 0) continue;
      if (best == nullptr || (best->amount < amount ? piece.amount > best->amount
                                                    : piece.amount >= amount && piece.amount < best->amount))
        best = &piece;
    }
    XCCL_CHECK(best != nullptr);
    return *best;
  }

  // One tree of paths, of at most `most` of the tree's weight. Returns its weight.
  int64_t Lay(const LogicalTree& tree, int64_t most) {
    std::vector<Piece*> chosen;
    for (int32_t a : tree.arcs) {
      chosen.push_back(&Choose(network_.pieces[a], most));
      most = std::min(most, chosen.back()->amount);
    }
    const Rank root = *topology_.RankOf(NodeId(tree.root));
    PackedTree laid{.part = collective_.spec().root ? PartId(0) : PartId(*collective_.MemberIndex(root)),
                    .root = root,
                    .weight = most,
                    .arcs = {}};
    depth_.assign(static_cast<size_t>(topology_.num_ranks()), -1);
    depth_[root.index()] = 0;
    for (Piece* piece : chosen) {
      piece->amount -= most;
      AddPath(piece->path, laid.arcs);
    }
    for (PackedTree& known : made_.trees) {
      if (known.part != laid.part || known.arcs != laid.arcs) continue;
      known.weight += most;
      return most;
    }
    made_.trees.push_back(std::move(laid));
    return most;
  }

  // Cuts circles out of the path and makes an arc to every GPU on it.
  void AddPath(int32_t path, std::vector<TreeArc>& arcs) {
    links_.clear();
    network_.paths.Append(path, links_);
    std::vector<LinkId> simple;
    for (LinkId link : links_) {
      const NodeId from = topology_.link(link).from;
      for (size_t i = 0; i < simple.size(); ++i)
        if (topology_.link(simple[i]).from == from) simple.resize(i);
      simple.push_back(link);
    }
    // From the last GPU on the way that the tree has.
    size_t first = 0;
    for (size_t i = 0; i < simple.size(); ++i) {
      const std::optional<Rank> from = topology_.RankOf(topology_.link(simple[i]).from);
      if (from && depth_[from->index()] >= 0) first = i;
    }
    std::vector<LinkId> part;
    Rank from = *topology_.RankOf(topology_.link(simple[first]).from);
    for (size_t i = first; i < simple.size(); ++i) {
      part.push_back(simple[i]);
      const std::optional<Rank> to = topology_.RankOf(topology_.link(simple[i]).to);
      if (!to) continue;
      depth_[to->index()] = depth_[from.index()] + 1;
      arcs.push_back({from, *to, made_.paths.Intern(part), depth_[to->index()]});
      from = *to;
      part.clear();
    }
  }

  void Cut() {
    std::vector<PackedTree> cut;
    for (PackedTree& tree : made_.trees) {
      const int64_t weight = tree.weight;
      tree.weight = 1;
      for (int64_t i = 0; i < weight; ++i) cut.push_back(tree);
    }
    made_.trees = std::move(cut);
  }

  const Topology& topology_;
  const Collective& collective_;
  Network& network_;
  PackedTrees made_;
  std::vector<int32_t> depth_;  // of the tree at hand, by rank
  std::vector<LinkId> links_;
};

}  // namespace

PackedTrees LayOut(const Topology& topology, const Collective& collective, Network& network,
                   const std::vector<LogicalTree>& trees, bool single) {
  return Layout(topology, collective, network).Run(trees, single);
}

}  // namespace xccl::forest
