// The heap holds the best known path to each node, as in Dijkstra's search. When a member leaves the heap,
// the whole path to it joins the tree. Every GPU and every branching switch of the path then becomes a start
// of further paths.
#include "synth/common/tree_grower.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "synth/common/cost_model.h"

namespace xccl {

TreeGrower::TreeGrower(const Topology& topology, std::span<const Rank> members, Branching branching)
    : topology_(topology),
      label_(static_cast<size_t>(topology_.num_nodes())),
      place_(label_.size()),
      member_(label_.size()),
      branches_(label_.size()),
      num_members_(static_cast<int32_t>(members.size())) {
  for (const Rank r : members) member_[topology_.NodeOf(r).index()] = true;
  for (int32_t n = 0; n < topology_.num_nodes(); ++n) {
    const Node& node = topology_.node(NodeId(n));
    branches_[NodeId(n).index()] = (branching == Branching::kMulticast && node.multicast) ||
                                   (branching == Branching::kReduce && node.reduce);
  }
}

void TreeGrower::Start(Rank root, std::span<const double> cost, double s_per_ps) {
  cost_ = cost;
  s_per_ps_ = s_per_ps;
  std::fill(label_.begin(), label_.end(), Label{});
  std::fill(place_.begin(), place_.end(), Place{});
  heap_.clear();
  Join(topology_.NodeOf(root), {.in = true});
}

GrownTree TreeGrower::Grow(Rank root, std::span<const double> cost, double s_per_ps,
                           std::vector<LinkId>& links) {
  Start(root, cost, s_per_ps);
  GrownTree tree;
  int32_t missing = num_members_ - 1;
  while (missing > 0 && !heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Entry entry = heap_.back();
    heap_.pop_back();
    const Label label = label_[entry.node.index()];
    if (entry.key != label.key || entry.latency_ps != label.latency_ps) continue;
    if (!member_[entry.node.index()]) {
      Relax(entry.node, label.key, label.latency_ps);
    } else if (!place_[entry.node.index()].in) {
      // Walks back to the first node in the tree. If a label on the way has improved since the entry was
      // pushed, the path follows the improved label.
      path_.clear();
      for (NodeId at = entry.node; !Has(at); at = topology_.link(path_.back()).from)
        path_.push_back(label_[at.index()].via);
      Attach(path_, tree, links);
      --missing;
    }
  }
  return tree;
}

void TreeGrower::Join(NodeId node, const Place& place) {
  place_[node.index()] = place;
  Relax(node, s_per_ps_ * static_cast<double>(place.latency_ps), place.latency_ps);
}

void TreeGrower::Relax(NodeId from, double key_from, int64_t latency_ps) {
  for (const LinkId l : topology_.Out(from)) {
    const Link& link = topology_.link(l);
    if (place_[link.to.index()].in || std::isinf(cost_[l.index()])) continue;
    const int64_t hop_ps = link.latency_ps + link.overhead_ps;
    const int64_t latency_to = latency_ps + hop_ps;
    const double key = key_from + cost_[l.index()] + s_per_ps_ * static_cast<double>(hop_ps);
    Label& label = label_[link.to.index()];
    const double tie = kRounding * key;
    if (key > label.key + tie) continue;
    if (key >= label.key - tie && latency_to >= label.latency_ps) continue;
    label = {key, latency_to, l};
    heap_.push_back({key, latency_to, link.to});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
}

void TreeGrower::Attach(std::span<const LinkId> path, GrownTree& tree, std::vector<LinkId>& links) {
  const NodeId start = topology_.link(path.back()).from;
  const Place place = place_[start.index()];
  PackedArc arc;
  arc.from = topology_.IsGpu(start) ? *topology_.RankOf(start) : place.from;
  arc.trunk = place.trunk;
  arc.depth = place.depth + 1;
  arc.first_link = static_cast<int32_t>(links.size());
  int64_t latency_ps = place.latency_ps;
  for (size_t i = path.size(); i-- > 0;) {
    const Link& link = topology_.link(path[i]);
    links.push_back(path[i]);
    tree.cost += cost_[path[i].index()];
    latency_ps += link.latency_ps + link.overhead_ps;
    if (!topology_.IsGpu(link.to)) {
      const int32_t trunk = arc.trunk >= 0 ? arc.trunk : static_cast<int32_t>(tree.arcs.size());
      if (branches_[link.to.index()])
        Join(
            link.to,
            {.in = true, .depth = arc.depth - 1, .latency_ps = latency_ps, .from = arc.from, .trunk = trunk});
      continue;
    }
    arc.num_links = static_cast<int32_t>(links.size()) - arc.first_link;
    arc.to = *topology_.RankOf(link.to);
    tree.arcs.push_back(arc);
    tree.latency_ps = std::max(tree.latency_ps, latency_ps);
    Join(link.to, {.in = true, .depth = arc.depth, .latency_ps = latency_ps});
    arc.from = arc.to;
    arc.trunk = -1;
    ++arc.depth;
    arc.first_link = static_cast<int32_t>(links.size());
  }
}

}  // namespace xccl
