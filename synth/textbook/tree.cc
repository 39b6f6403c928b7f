// One spanning tree: broadcasts go down the tree, gathers come up. The tree grows breadth first from the root
// along the widest hops. A rank feeds all neighbours to which it has cables of its own. Over switches, where
// copies share its port, it feeds at most two ranks of its domain and one of another, as long as that reaches
// all ranks. So every domain has a binary tree, and domains hang below different GPUs, which feed them over
// different NICs.
#include <algorithm>
#include <set>

#include "synth/textbook/engines.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

class TreeGrower {
 public:
  TreeGrower(const RankGraph& graph, std::span<const Rank> members)
      : graph_(graph), members_(members), open_(static_cast<size_t>(graph.num_ranks()), false) {}

  // Returns the tree from `root` with a round for each depth. Position i is member i.
  Rounds Grow(Rank root) {
    for (Rank r : members_) open_[r.index()] = true;
    std::vector<int32_t> place(open_.size(), -1);  // by rank
    Rounds tree{{{members_.begin(), members_.end()}, {}}, {}};
    for (Rank r : members_) {
      place[r.index()] = static_cast<int32_t>(tree.positions.member.size());
      tree.positions.member.push_back(place[r.index()]);
    }
    const auto add = [&](Rank parent, Rank child, int32_t depth) {
      if (depth > static_cast<int32_t>(tree.rounds.size())) tree.rounds.resize(static_cast<size_t>(depth));
      tree.rounds[depth - 1].push_back({place[parent.index()], place[child.index()]});
    };
    std::vector<std::pair<Rank, int32_t>> reached = {{root, 0}};
    open_[root.index()] = false;
    // The first pass limits the copies over switches. The second pass takes all neighbours that are left.
    // Members that are still left then hang below the root, over relays.
    for (bool limited : {true, false}) {
      for (size_t i = 0; i < reached.size(); ++i) {
        const auto [parent, depth] = reached[i];
        for (Rank child : Adopt(parent, limited)) {
          add(parent, child, depth + 1);
          reached.emplace_back(child, depth + 1);
        }
      }
    }
    for (Rank r : members_) {
      if (!open_[r.index()]) continue;
      open_[r.index()] = false;
      add(root, r, 1);
    }
    return tree;
  }

 private:
  // Returns the neighbours that become children of `parent`. `limited` limits their number over switches.
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
  std::vector<bool> open_;  // by rank: is a member and not yet in the tree
  std::set<int32_t> domain_reached_;
};

}  // namespace

StatusOr<Recipe> PlaceTree(const RankGraph& graph, const SynthesisRequest& request) {
  const std::vector<Rank> members(request.collective->ranks().begin(), request.collective->ranks().end());
  Recipe recipe;
  // With up to 64 members, the root of an allreduce is the member whose tree has the least depth.
  recipe.root = members[0];
  if (!request.collective->spec().root && members.size() <= 64)
    recipe.root = *std::ranges::min_element(
        members, {}, [&](Rank r) { return TreeGrower(graph, members).Grow(r).rounds.size(); });
  recipe.pipelines = true;
  recipe.broadcast = [&graph, members](Rank root, ChunkRange all, Moves& moves) {
    RoundsBroadcast(TreeGrower(graph, members).Grow(root), root, all, moves);
  };
  recipe.gather = [&graph, members](Rank root, const Blocks& blocks, Moves& moves) {
    // A gather sends from child to parent, so its tree grows on the reversed machine.
    const RankGraph turned = graph.Reversed();
    RoundsGather(TreeGrower(turned, members).Grow(root), root, blocks, moves);
  };
  return recipe;
}

}  // namespace xccl
