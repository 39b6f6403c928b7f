// 1. Classes: nodes of one kind, and switches also of one distance from the nearest GPU.
// 2. Slow links: links between two classes that are slower than most.
// 3. Nodes with fewer links to a class than another node of their own class lack some, and so do nodes at the
//    other end. Each lost link joins two of them that are not joined yet. Of several heads the one is taken
//    whose other tails are numbered nearest, since machines are numbered host by host and pod by pod.
#include "topologies/whole.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace xccl {
namespace {

// A machine that lacks more than a tenth of its links is another machine.
constexpr int64_t kMostLost = 10;
// Each kind of link costs a pass over the nodes. A cluster of several kinds of hosts has a few dozen.
constexpr size_t kMostJoints = 256;

// Links from a class to a class with equal latency and overhead.
using Joint = std::tuple<int32_t, int32_t, int64_t, int64_t>;

class Finder {
 public:
  explicit Finder(const Topology& topology) : topology_(topology) { FindClasses(); }

  std::optional<MissingLinks> Find() {
    FindSlow();
    Lacking tails, heads;
    if (full_.size() > kMostJoints || !FindLacking(true, tails) || !FindLacking(false, heads))
      return std::nullopt;
    Even(true, tails, heads);
    Even(false, heads, tails);
    if (tails.size() != heads.size()) return std::nullopt;
    for (const auto& [tail, joint] : tails)
      if (!Join(tail, joint, heads)) return std::nullopt;
    if (missing_.lost.empty() && missing_.slow.empty()) return std::nullopt;
    return std::move(missing_);
  }

 private:
  using Lacking = std::vector<std::pair<int32_t, int32_t>>;  // (node, joint) of each link that a node lacks

  void FindClasses() {
    const auto nodes = static_cast<size_t>(topology_.num_nodes());
    std::vector<int32_t> distance(nodes, -1), queue;
    for (int32_t r = 0; r < topology_.num_ranks(); ++r) {
      queue.push_back(topology_.NodeOf(Rank(r)).value);
      distance[static_cast<size_t>(queue.back())] = 0;
    }
    const auto reach = [&](NodeId to, int32_t from) {
      if (distance[to.index()] >= 0) return;
      distance[to.index()] = distance[static_cast<size_t>(from)] + 1;
      queue.push_back(to.value);
    };
    for (size_t i = 0; i < queue.size(); ++i) {
      for (const LinkId l : topology_.Out(NodeId(queue[i]))) reach(topology_.link(l).to, queue[i]);
      for (const LinkId l : topology_.In(NodeId(queue[i]))) reach(topology_.link(l).from, queue[i]);
    }
    std::map<std::tuple<NodeKind, bool, bool, int32_t>, int32_t> known;
    for (size_t n = 0; n < nodes; ++n) {
      const Node& node = topology_.node(NodeId(static_cast<int64_t>(n)));
      const int32_t tier = node.kind == NodeKind::kSwitch ? distance[n] : 0;
      const auto next = static_cast<int32_t>(known.size());
      class_.push_back(known.try_emplace({node.kind, node.multicast, node.reduce, tier}, next).first->second);
    }
    num_classes_ = known.size();
    std::map<Joint, int32_t> joints;
    for (const Link& link : topology_.spec().links) {
      const auto next = static_cast<int32_t>(joints.size());
      const Joint joint{class_[link.from.index()], class_[link.to.index()], link.latency_ps,
                        link.overhead_ps};
      joint_.push_back(joints.try_emplace(joint, next).first->second);
    }
    full_.resize(joints.size());
    class_at_tail_.resize(joints.size());
    class_at_head_.resize(joints.size());
    for (const auto& [joint, number] : joints) {
      class_at_tail_[static_cast<size_t>(number)] = std::get<0>(joint);
      class_at_head_[static_cast<size_t>(number)] = std::get<1>(joint);
      full_[static_cast<size_t>(number)] = {NodeId(-1), NodeId(-1), 0, std::get<2>(joint),
                                            std::get<3>(joint)};
    }
  }

  // Sets the bandwidth of each joint: that of most links.
  void FindSlow() {
    std::vector<std::map<int64_t, int64_t>> counts(full_.size());
    for (size_t l = 0; l < joint_.size(); ++l) ++counts[static_cast<size_t>(joint_[l])][Bandwidth(l)];
    for (size_t j = 0; j < full_.size(); ++j) {
      int64_t most = 0;
      for (const auto& [bandwidth, links] : counts[j]) {
        if (links < most) continue;
        most = links;
        full_[j].bandwidth_bytes_per_s = bandwidth;
      }
    }
    for (size_t l = 0; l < joint_.size(); ++l) {
      const int64_t full = full_[static_cast<size_t>(joint_[l])].bandwidth_bytes_per_s;
      if (Bandwidth(l) < full) missing_.slow.emplace_back(LinkId(static_cast<int64_t>(l)), full);
    }
  }

  int64_t Bandwidth(size_t l) const { return topology_.spec().links[l].bandwidth_bytes_per_s; }

  // Where the nodes at the other ends lack more links of a joint, all nodes at this end lack equally many: a
  // core switch that has none alike.
  void Even(bool tails, Lacking& here, const Lacking& there) const {
    std::vector<int64_t> more(full_.size(), 0), nodes(num_classes_, 0);
    for (const int32_t c : class_) ++nodes[static_cast<size_t>(c)];
    for (const auto& [node, joint] : there) ++more[static_cast<size_t>(joint)];
    for (const auto& [node, joint] : here) --more[static_cast<size_t>(joint)];
    for (size_t j = 0; j < more.size(); ++j) {
      const int32_t own = tails ? class_at_tail_[j] : class_at_head_[j];
      const int64_t each = more[j] / nodes[static_cast<size_t>(own)];
      for (size_t n = 0; each > 0 && n < class_.size(); ++n)
        if (class_[n] == own)
          here.insert(here.end(), static_cast<size_t>(each),
                      {static_cast<int32_t>(n), static_cast<int32_t>(j)});
    }
    std::ranges::sort(here);
  }

  // Lists the nodes that lack links, as tails or as heads: those with fewer links of a joint than the node of
  // their class that has most. Returns false if too many are lacking.
  bool FindLacking(bool tails, Lacking& lacking) const {
    std::vector<std::vector<int32_t>> nodes_of_class(num_classes_);
    for (size_t n = 0; n < class_.size(); ++n)
      nodes_of_class[static_cast<size_t>(class_[n])].push_back(static_cast<int32_t>(n));
    std::vector<std::vector<int32_t>> ends(full_.size());  // by joint: the node at the end of each link
    for (size_t l = 0; l < joint_.size(); ++l) {
      const Link& link = topology_.spec().links[l];
      ends[static_cast<size_t>(joint_[l])].push_back((tails ? link.from : link.to).value);
    }
    std::vector<int32_t> has(class_.size(), 0);
    for (size_t j = 0; j < full_.size(); ++j) {
      int32_t most = 0;
      for (const int32_t n : ends[j]) most = std::max(most, ++has[static_cast<size_t>(n)]);
      for (const int32_t n :
           nodes_of_class[static_cast<size_t>(class_[static_cast<size_t>(ends[j].front())])]) {
        if (std::ssize(lacking) > topology_.num_links() / kMostLost) return false;
        lacking.insert(lacking.end(), static_cast<size_t>(most - has[static_cast<size_t>(n)]),
                       {n, static_cast<int32_t>(j)});
        has[static_cast<size_t>(n)] = 0;
      }
    }
    std::ranges::sort(lacking);
    return std::ssize(lacking) <= topology_.num_links() / kMostLost;
  }

  // Adds a lost link from the tail to one of the heads, which is taken off the list.
  bool Join(int32_t tail, int32_t joint, Lacking& heads) {
    // Whether the head is of another host, how many links there are, and the nearest other tail or head:
    // whether it has another id, and how far it is.
    using Choice = std::tuple<bool, int64_t, bool, int64_t>;
    Choice best{true, std::numeric_limits<int64_t>::max(), true, 0};
    size_t found = heads.size();
    for (size_t h = 0; h < heads.size(); ++h) {
      const NodeId from(tail), to(heads[h].first);
      if (heads[h].second != joint || to == from || (h > 0 && heads[h] == heads[h - 1])) continue;
      const std::optional<HostId> host = topology_.node(to).host;
      const bool elsewhere = host && host != topology_.node(from).host;
      int64_t links = 0;
      std::pair<bool, int64_t> nearest{true, std::numeric_limits<int64_t>::max()};
      const auto compare = [&](LinkId l, NodeId other, NodeId own) {
        if (joint_[l.index()] != joint) return;
        const bool differs = topology_.node(other).id != topology_.node(own).id;
        nearest = std::min(nearest, {differs, std::abs(int64_t{other.value} - own.value)});
      };
      for (const LinkId l : topology_.In(to)) {
        compare(l, topology_.link(l).from, from);
        if (topology_.link(l).from == from) ++links;
      }
      for (const LinkId l : topology_.Out(from)) compare(l, topology_.link(l).to, to);
      for (const Link& link : missing_.lost)
        if (link.from == from && link.to == to) ++links;
      const Choice choice{elsewhere, links, nearest.first, nearest.second};
      if (choice >= best) continue;
      best = choice;
      found = h;
    }
    if (found == heads.size()) return false;
    Link lost = full_[static_cast<size_t>(joint)];
    lost.from = NodeId(tail);
    lost.to = NodeId(heads[found].first);
    missing_.lost.push_back(lost);
    heads.erase(heads.begin() + static_cast<std::ptrdiff_t>(found));
    return true;
  }

  const Topology& topology_;
  std::vector<int32_t> class_;  // by node
  size_t num_classes_ = 0;
  std::vector<int32_t> joint_;                          // by link
  std::vector<Link> full_;                              // by joint: a link's numbers
  std::vector<int32_t> class_at_tail_, class_at_head_;  // by joint
  MissingLinks missing_;
};

}  // namespace

std::optional<MissingLinks> FindMissingLinks(const Topology& topology) { return Finder(topology).Find(); }

StatusOr<Topology> MakeWhole(const Topology& topology, const MissingLinks& missing) {
  TopologySpec spec = topology.spec();
  for (const auto& [link, bandwidth] : missing.slow) {
    if (link.value < 0 || link.value >= topology.num_links())
      return InvalidInput(fmt::format("slow link {}; links are 0..{}", link.value, topology.num_links() - 1));
    int64_t& there = spec.links[link.index()].bandwidth_bytes_per_s;
    if (bandwidth <= there)
      return InvalidInput(fmt::format("slow link {}: {} B/s in the whole machine; expected more than {}",
                                      link.value, bandwidth, there));
    there = bandwidth;
  }
  spec.links.insert(spec.links.end(), missing.lost.begin(), missing.lost.end());
  return Topology::Create(std::move(spec));
}

}  // namespace xccl
