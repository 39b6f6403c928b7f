// Follows the links from the end that has one GPU, which the rules say comes first.
#include "ir/verify/verify_path.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace xccl {

PathChecker::PathChecker(const Topology& topology)
    : topology_(topology),
      degree_(topology.num_nodes()),
      reached_(topology.num_nodes()),
      toward_root_(topology.num_nodes()) {}

PathShape PathChecker::Check(std::span<const LinkId> links) {
  PathShape shape;
  shape.error = Ends(links, shape);
  if (shape.error.empty()) {
    const bool in_tree = shape.sources.size() > 1;
    shape.error = in_tree ? Tree<true>(links) : Tree<false>(links);
    for (LinkId l : links) {
      for (NodeId n : {topology_.link(l).from, topology_.link(l).to}) {
        degree_[n.index()] = 0;
        reached_[n.index()] = false;
      }
    }
  }
  shape.ok = shape.error.empty();
  return shape;
}

std::string PathChecker::Ends(std::span<const LinkId> links, PathShape& shape) const {
  if (links.empty()) return "has no links";
  for (LinkId l : links)
    if (l.value < 0 || l.value >= topology_.num_links())
      return fmt::format("names link {}; links are 0..{}", l.value, topology_.num_links() - 1);
  const auto add = [&](std::vector<Rank>& ranks, NodeId n) {
    const std::optional<Rank> rank = topology_.RankOf(n);
    if (rank && std::find(ranks.begin(), ranks.end(), *rank) == ranks.end()) ranks.push_back(*rank);
  };
  for (LinkId l : links) {
    add(shape.sources, topology_.link(l).from);
    add(shape.destinations, topology_.link(l).to);
  }
  for (Rank r : shape.sources)
    if (std::find(shape.destinations.begin(), shape.destinations.end(), r) != shape.destinations.end())
      return fmt::format("passes {}; through a GPU it is two transfers",
                         topology_.NodeName(topology_.NodeOf(r)));
  if (shape.sources.empty())
    return fmt::format("starts at {}; expected a gpu", topology_.NodeName(topology_.link(links[0]).from));
  if (shape.destinations.empty())
    return fmt::format("ends at {}; expected a gpu", topology_.NodeName(topology_.link(links.back()).to));
  if (shape.sources.size() > 1 && shape.destinations.size() > 1)
    return fmt::format("joins {} sources with {} destinations; expected one of either", shape.sources.size(),
                       shape.destinations.size());
  return "";
}

// Checks an out-tree from its one source, with parents' links first, or an in-tree to its one
// destination. An in-tree is an out-tree when its links are walked backwards.
template <bool kInTree>
std::string PathChecker::Tree(std::span<const LinkId> links) {
  const auto inner = [&](LinkId l) { return kInTree ? topology_.link(l).to : topology_.link(l).from; };
  const auto outer = [&](LinkId l) { return kInTree ? topology_.link(l).from : topology_.link(l).to; };
  const auto nth = [&](size_t i) { return kInTree ? links[links.size() - 1 - i] : links[i]; };
  for (size_t i = 0; i < links.size(); ++i) {
    const LinkId l = nth(i);
    const NodeId n = inner(l);
    if (i == 0) reached_[n.index()] = true;
    if (i == 0 && !topology_.IsGpu(n)) return NoGpuAt(!kInTree, n);
    if (!reached_[n.index()])
      return fmt::format("link {} {}", topology_.LinkName(l),
                         kInTree ? "ends where no later link starts" : "starts where no earlier link ends");
    if (reached_[outer(l).index()]) return fmt::format("visits {} twice", topology_.NodeName(outer(l)));
    if (++degree_[n.index()] > 1 && !(kInTree ? topology_.node(n).reduce : topology_.node(n).multicast))
      return fmt::format("{} at {}, which does not {}", kInTree ? "joins" : "branches", topology_.NodeName(n),
                         kInTree ? "reduce" : "multicast");
    reached_[outer(l).index()] = true;
  }
  for (LinkId l : links)
    if (const NodeId n = outer(l); degree_[n.index()] == 0 && !topology_.IsGpu(n)) return NoGpuAt(kInTree, n);
  return "";
}

std::string PathChecker::NoGpuAt(bool start, NodeId n) const {
  return fmt::format("{} at {}; expected a gpu", start ? "starts" : "ends", topology_.NodeName(n));
}

std::vector<std::vector<LinkId>> PathChecker::Branches(std::span<const LinkId> links,
                                                       const PathShape& shape) {
  const bool in_tree = shape.sources.size() > 1;
  for (LinkId l : links) toward_root_[(in_tree ? topology_.link(l).from : topology_.link(l).to).index()] = l;
  const NodeId root = topology_.NodeOf(in_tree ? shape.destinations.front() : shape.sources.front());
  std::vector<std::vector<LinkId>> branches;
  for (Rank leaf : in_tree ? shape.sources : shape.destinations) {
    std::vector<LinkId>& branch = branches.emplace_back();
    for (NodeId at = topology_.NodeOf(leaf); at != root;) {
      const LinkId l = toward_root_[at.index()];
      branch.push_back(l);
      at = in_tree ? topology_.link(l).to : topology_.link(l).from;
    }
    if (!in_tree) std::reverse(branch.begin(), branch.end());
  }
  return branches;
}

}  // namespace xccl
