// A trunk is an arc from whose path other arcs, its branches, leave at switches. A trunk and its branches
// become one path: the trunk's links, then the links of each branch. This is the link order of a multicast.
// On the reversed machine the path is reversed, which gives the link order of an in-switch reduction.
// A branch gets a path of its own in two cases: it would pass a node of the common path again, or it starts
// on a branch that has a path of its own.
#include "synth/common/tree_pairs.h"

#include <algorithm>
#include <map>
#include <vector>

namespace xccl {
namespace {

class PathJoiner {
 public:
  PathJoiner(const FractionalPacking& packing, const Topology& topology, PathTable& paths)
      : packing_(packing), topology_(topology), paths_(paths) {}

  // Returns the edges of the arcs. `upward`: the arcs lie on the reversed machine.
  std::vector<TreeEdge> Edges(std::span<const PackedArc> arcs, bool upward) {
    upward_ = upward;
    std::vector<std::vector<size_t>> branches(arcs.size());  // by trunk: the trunk and its branches
    for (size_t a = 0; a < arcs.size(); ++a)
      branches[arcs[a].trunk >= 0 ? static_cast<size_t>(arcs[a].trunk) : a].push_back(a);
    std::vector<TreeEdge> edges(arcs.size());
    for (const std::vector<size_t>& group : branches) {
      if (group.empty()) continue;
      links_.clear();
      entered_.clear();
      std::vector<size_t> together;
      for (const size_t a : group) {
        const std::span<const LinkId> links = packing_.Links(arcs[a]);
        edges[a] = {.parent = arcs[a].from, .child = arcs[a].to, .path = PathId(0)};
        const bool is_apart = !links_.empty() && (Revisits(links) || !Enters(Tail(links.front())));
        if (is_apart) edges[a].path = InternForward(FromGpu(links));
        for (const LinkId l : links) entered_.try_emplace(Head(l), l);
        if (is_apart) continue;
        links_.insert(links_.end(), links.begin(), links.end());
        together.push_back(a);
      }
      const PathId path = InternForward(links_);
      const size_t first = upward ? together.back() : together.front();
      for (const size_t a : together) {
        edges[a].path = path;
        edges[a].shared = a != first;
      }
    }
    return edges;
  }

 private:
  NodeId Tail(LinkId l) const { return upward_ ? topology_.link(l).to : topology_.link(l).from; }
  NodeId Head(LinkId l) const { return upward_ ? topology_.link(l).from : topology_.link(l).to; }

  // Returns whether the common path enters the node.
  bool Enters(NodeId node) const {
    return std::ranges::any_of(links_, [&](LinkId l) { return Head(l) == node; });
  }
  bool Revisits(std::span<const LinkId> links) const {
    return std::ranges::any_of(links, [&](LinkId l) { return Enters(Head(l)); });
  }

  // Returns the path from a GPU over links of the trunk and its branches to the start of `links`, and then
  // over `links`. Removes circles, because a branch may lead back through a switch that does not branch.
  std::vector<LinkId> FromGpu(std::span<const LinkId> links) const {
    std::vector<LinkId> path(links.begin(), links.end());
    while (!topology_.IsGpu(Tail(path.front()))) path.insert(path.begin(), entered_.at(Tail(path.front())));
    std::vector<LinkId> straight;
    for (const LinkId l : path) {
      const auto seen = std::ranges::find_if(straight, [&](LinkId k) { return Tail(k) == Head(l); });
      const bool comes_back = seen != straight.end();
      straight.erase(seen, straight.end());
      if (!comes_back) straight.push_back(l);
    }
    return straight;
  }

  PathId InternForward(std::vector<LinkId> links) {
    if (upward_) std::reverse(links.begin(), links.end());
    return paths_.Intern(links);
  }

  const FractionalPacking& packing_;
  const Topology& topology_;
  PathTable& paths_;
  bool upward_ = false;
  std::vector<LinkId> links_;         // the common path of a trunk and its branches
  std::map<NodeId, LinkId> entered_;  // by node: the first link of the trunk or a branch that enters it
};

}  // namespace

AllreduceTrees RoundToAllreduceTrees(const FractionalPacking& packing, std::span<const Rank> roots,
                                     const Topology& topology) {
  std::vector<double> shares;
  for (const FractionalTree& tree : packing.trees) shares.push_back(tree.weight);
  const std::vector<int64_t> weights = RoundToIntegerWeights(shares);
  AllreduceTrees made;
  PathJoiner joiner(packing, topology, made.paths);
  for (size_t t = 0; t < packing.trees.size(); ++t) {
    if (weights[t] <= 0) continue;
    AllreduceTree& tree = made.trees.emplace_back();
    tree.weight = weights[t];
    tree.root = roots[static_cast<size_t>(packing.trees[t].root)];
    tree.up = joiner.Edges(packing.trees[t].up, true);
    tree.down = joiner.Edges(packing.trees[t].arcs, false);
  }
  return made;
}

}  // namespace xccl
