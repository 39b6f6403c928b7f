// 1. Classes: nodes of one kind, and switches also of one distance from the nearest GPU.
// 2. Slow links: links between two classes that are slower than most.
// 3. Nodes with fewer links to a class than another node of their own class lack some, and so do nodes at the
//    other end. Where more links lack at switches than at hosts, hosts are missing: copies of a host whose
//    neighbours lack all the links that it has.
// 4. Each other lost link joins two of the nodes that are not joined yet. Of several heads the one is taken
//    whose other tails are numbered nearest, since machines are numbered host by host and pod by pod.
#include "topologies/whole.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
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
    FindHosts(tails, heads);
    Even(true, tails, heads);
    Even(false, heads, tails);
    if (tails.size() != heads.size()) return std::nullopt;
    for (const auto& [tail, joint] : tails)
      if (!Join(tail, joint, heads)) return std::nullopt;
    if (missing_.empty()) return std::nullopt;
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

  // Links that lack, by node and joint. `more` counts, by joint, how many more lack at this end than at the
  // other.
  struct Ends {
    std::map<std::pair<int32_t, int32_t>, int64_t> lacking;
    std::vector<int64_t> more;
  };

  // Adds hosts that are missing, and takes the links that they lack off the lists.
  void FindHosts(Lacking& tails, Lacking& heads) {
    Ends at_tail{.lacking = {}, .more = std::vector<int64_t>(full_.size(), 0)}, at_head = at_tail;
    std::vector<bool> damaged(static_cast<size_t>(topology_.num_hosts()), false);
    const auto damage = [&](NodeId n) {
      if (const std::optional<HostId> host = topology_.node(n).host) damaged[host->index()] = true;
    };
    for (const bool tail : {true, false})
      for (const auto& [node, joint] : tail ? tails : heads) {
        ++(tail ? at_tail : at_head).lacking[{node, joint}];
        ++(tail ? at_tail : at_head).more[static_cast<size_t>(joint)];
        --(tail ? at_head : at_tail).more[static_cast<size_t>(joint)];
        damage(NodeId(node));
      }
    for (const auto& [link, bandwidth] : missing_.slow) {
      damage(topology_.link(link).from);
      damage(topology_.link(link).to);
    }
    if (std::ranges::none_of(at_head.more, [](int64_t more) { return more > 0; })) return;
    std::vector<std::vector<LinkId>> links(damaged.size());  // by host: the links that begin or end there
    for (int32_t l = 0; l < topology_.num_links(); ++l) {
      const Link& link = topology_.link(LinkId(l));
      const std::optional<HostId> from = topology_.node(link.from).host, to = topology_.node(link.to).host;
      if (from) links[from->index()].push_back(LinkId(l));
      if (to && to != from) links[to->index()].push_back(LinkId(l));
    }
    for (const auto& [node, joint] : Lacking(heads))
      for (const LinkId l : topology_.In(NodeId(node))) {
        const std::optional<HostId> host = topology_.node(topology_.link(l).from).host;
        if (joint_[l.index()] != joint || !host || damaged[host->index()]) continue;
        if (AddHost(*host, links[host->index()], at_tail, at_head)) break;
      }
    const auto list = [](const Ends& ends, Lacking& lacking) {
      lacking.clear();
      for (const auto& [end, count] : ends.lacking)
        lacking.insert(lacking.end(), static_cast<size_t>(count), end);
    };
    list(at_tail, tails);
    list(at_head, heads);
  }

  // Adds a host like this one if all nodes that the host is joined to lack the links of one more.
  bool AddHost(HostId host, std::span<const LinkId> links, Ends& at_tail, Ends& at_head) {
    const auto is_inside = [&](NodeId n) { return topology_.node(n).host == host; };
    Ends tail_left = {.lacking = {}, .more = at_tail.more}, head_left = {.lacking = {}, .more = at_head.more};
    const auto take = [&](const Ends& before, Ends& left, NodeId n, LinkId l) {
      const std::pair<int32_t, int32_t> end{n.value, joint_[l.index()]};
      const auto found = before.lacking.find(end);
      if (found == before.lacking.end()) return false;
      int64_t& count = left.lacking.try_emplace(end, found->second).first->second;
      return --count >= 0 && --left.more[static_cast<size_t>(end.second)] >= 0;
    };
    for (const LinkId l : links) {
      const Link& link = topology_.link(l);
      if (!is_inside(link.from) && !take(at_tail, tail_left, link.from, l)) return false;
      if (!is_inside(link.to) && !take(at_head, head_left, link.to, l)) return false;
    }
    for (auto [left, all] : {std::pair(&tail_left, &at_tail), std::pair(&head_left, &at_head)}) {
      for (const auto& [end, count] : left->lacking) all->lacking[end] = count;
      all->more = left->more;
    }
    // By node of the host, its number in the copy.
    std::map<int32_t, int32_t> copy;
    for (int32_t n = 0; n < topology_.num_nodes(); ++n)
      if (is_inside(NodeId(n))) copy.emplace(n, topology_.num_nodes() + num_lost_nodes_++);
    missing_.hosts.push_back(host);
    for (const LinkId l : links) {
      Link& lost = missing_.lost.emplace_back(topology_.link(l));
      if (is_inside(lost.from)) lost.from = NodeId(copy.at(lost.from.value));
      if (is_inside(lost.to)) lost.to = NodeId(copy.at(lost.to.value));
    }
    return true;
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
  int32_t num_lost_nodes_ = 0;
};

}  // namespace

std::optional<MissingLinks> FindMissingLinks(const Topology& topology) { return Finder(topology).Find(); }

namespace {

// Adds copies of hosts without their links.
void AddHosts(std::span<const HostId> copied, TopologySpec& spec) {
  if (copied.empty()) return;
  std::vector<std::vector<Node>> nodes(spec.hosts.size());  // by host
  std::set<std::string> names;
  for (const Node& node : spec.nodes)
    if (node.host) nodes[node.host->index()].push_back(node);
  for (const Host& host : spec.hosts) names.insert(host.name);
  for (const HostId host : copied) {
    std::string name = spec.hosts[host.index()].name + "~";
    while (!names.insert(name).second) name += "~";
    for (Node node : nodes[host.index()]) {
      node.host = HostId(std::ssize(spec.hosts));
      spec.nodes.push_back(std::move(node));
    }
    spec.hosts.push_back({std::move(name)});
  }
}

}  // namespace

StatusOr<Topology> MakeWhole(const Topology& topology, const MissingLinks& missing) {
  TopologySpec spec = topology.spec();
  if (missing.hosts.size() > spec.hosts.size())
    return InvalidInput(fmt::format("{} lost hosts; expected at most {}, as the machine has",
                                    missing.hosts.size(), spec.hosts.size()));
  for (const HostId host : missing.hosts)
    if (host.value < 0 || host.value >= topology.num_hosts())
      return InvalidInput(
          fmt::format("lost host like {}; hosts are 0..{}", host.value, topology.num_hosts() - 1));
  AddHosts(missing.hosts, spec);
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

Renumbered InOrder(const Topology& whole, const MissingLinks& missing) {
  const auto lost = missing.hosts.size(), first_lost = whole.spec().hosts.size() - lost;
  // A node stands behind the last node of the host that it is a copy of, copies one after the other.
  std::vector<int32_t> last(whole.spec().hosts.size(), 0);
  for (int32_t n = 0; n < whole.num_nodes(); ++n)
    if (const std::optional<HostId> host = whole.node(NodeId(n)).host) last[host->index()] = n;
  std::vector<std::pair<int32_t, int32_t>> order;  // (node that it stands behind, node)
  for (int32_t n = 0; n < whole.num_nodes(); ++n) {
    const std::optional<HostId> host = whole.node(NodeId(n)).host;
    const bool is_lost = host && host->index() >= first_lost;
    order.emplace_back(is_lost ? last[missing.hosts[host->index() - first_lost].index()] : n, n);
  }
  std::ranges::sort(order);
  TopologySpec spec = whole.spec();
  std::vector<NodeId> place(order.size(), NodeId(0));
  for (size_t i = 0; i < order.size(); ++i) {
    place[static_cast<size_t>(order[i].second)] = NodeId(static_cast<int64_t>(i));
    spec.nodes[i] = whole.node(NodeId(order[i].second));
  }
  for (Link& link : spec.links) {
    link.from = place[link.from.index()];
    link.to = place[link.to.index()];
  }
  return {Topology::Create(std::move(spec)).value(), std::move(place)};
}

}  // namespace xccl
