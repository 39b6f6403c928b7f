// DisjointTrees. d is the number of lanes, so a host may send d times. Hosts from 1 on form blocks of d
// hosts. In tree t, only the t-th host of a block has children. Each tree is made of ranges of blocks:
// 1. The tree enters a range at the t-th host of one of its blocks, the range's head.
// 2. The head sends to the heads of up to d equal parts of the other blocks. With the sends that are left, it
//    serves hosts of its own block.
// 3. Every part leaves one send over, by induction. The left-over sends of the parts serve the rest of the
//    head's block. One of them is not needed: the send that the range leaves over.
// 4. The last hosts, fewer than d, hang below the head of all blocks as a small tree. It starts at another
//    host in each tree, so that no host sends more than d times.
//
// The edges of all trees are a bipartite graph of senders and receivers, with at most d edges at each side of
// a host. Colour finds a colouring of the edges in d colours (König, 1916) along alternating paths. The
// colours are the lanes.
//
// NestedTrees. A unit is a host or a group of units. Each tree enters a unit once, and a unit has d sends to
// other units. A host has d sends in any case. A group of n units uses DisjointTrees over n + 1 hosts: its
// units, and the sender outside, who makes d of the n × d sends that reach the units. The units' sends number
// n × d as well, so d of them are left over: the group's sends to other groups. Groups are then joined in the
// same way. The host of a unit that has the data first makes the send.
//
// Trees of disjoint inner nodes: SplitStream (Castro et al., SOSP 2003); for two trees Sanders, Speck and
// Traeff, 2009.
#include "synth/rails/trees.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace xccl {
namespace {

// The shape of the small trees of the last hosts. Tree t begins with host t × stride of these hosts.
struct RestTrees {
  int32_t fanout = 1, stride = 1;
};

class DisjointTree {
 public:
  DisjointTree(int32_t hosts, int32_t lanes, int32_t tree, RestTrees of_rest)
      : d_(lanes), tree_(tree), blocks_((hosts - 1) / lanes), rest_((hosts - 1) % lanes), of_rest_(of_rest) {
    level_.assign(static_cast<size_t>(hosts), 0);
    if (blocks_ > 0)
      AddRange(0, blocks_, 0);
    else
      AddRest(0);
  }
  std::vector<HostEdge> Take() { return std::move(edges_); }

 private:
  void Add(int32_t parent, int32_t child) {
    level_[static_cast<size_t>(child)] = level_[static_cast<size_t>(parent)] + 1;
    edges_.push_back({parent, child, 0, level_[static_cast<size_t>(child)]});
  }

  // Returns how many of the `parts` parts of the other blocks come before the head's block, if `before` of
  // the `others` other blocks do.
  static int32_t PartsBefore(int32_t before, int32_t others, int32_t parts) {
    if (before == 0) return 0;
    const auto share = static_cast<int32_t>((int64_t{before} * parts + others / 2) / others);
    return before == others ? parts : std::clamp(share, 1, std::max(1, parts - 1));
  }

  // Adds the tree over blocks [low, high) and returns the host with the left-over send. If these are all
  // blocks, the last hosts take that send, and the result is meaningless.
  int32_t AddRange(int32_t low, int32_t high, int32_t parent) {
    const bool serves_rest = rest_ > 0 && low == 0 && high == blocks_;
    const int32_t left = d_ - (serves_rest ? 1 : 0);  // sends of the head to other blocks, at most
    // The heads of different trees are far apart, so that their cables to other parts of the fabric differ.
    const int32_t others = high - low - 1;
    const int32_t before = left < 2 ? 0 : static_cast<int32_t>(int64_t{others} * tree_ / d_);
    const int32_t block = low + before, head = 1 + block * d_ + tree_;
    Add(parent, head);
    if (serves_rest) AddRest(head);
    std::vector<int32_t> spares;
    const auto add_parts = [&](int32_t from, int32_t to, int32_t parts) {
      parts = std::min(parts, to - from);
      for (int32_t i = 0; i < parts; ++i)
        spares.push_back(AddRange(from + static_cast<int32_t>(int64_t{to - from} * i / parts),
                                  from + static_cast<int32_t>(int64_t{to - from} * (i + 1) / parts), head));
    };
    const int32_t parts_before = PartsBefore(before, others, left);
    add_parts(low, block, parts_before);
    add_parts(block + 1, high, left - parts_before);
    const auto parts = static_cast<int32_t>(spares.size());
    std::ranges::stable_sort(spares, {}, [&](int32_t host) { return level_[static_cast<size_t>(host)]; });
    int32_t own = d_ - parts - (serves_rest ? 1 : 0);  // sends of the head to its own block
    size_t used = 0;
    for (int32_t i = 0; i < d_; ++i) {
      if (i == tree_) continue;
      Add(own > 0 ? head : spares[used], 1 + block * d_ + i);
      own > 0 ? --own : static_cast<int32_t>(++used);
    }
    return used < spares.size() ? spares[used] : head;
  }

  // Adds the hosts behind the last block.
  void AddRest(int32_t parent) {
    const auto host = [&](int32_t i) { return 1 + blocks_ * d_ + (tree_ * of_rest_.stride + i) % rest_; };
    Add(parent, host(0));
    for (int32_t i = 1; i < rest_; ++i) Add(host((i - 1) / of_rest_.fanout), host(i));
  }

  const int32_t d_, tree_, blocks_, rest_;
  const RestTrees of_rest_;
  std::vector<int32_t> level_;  // by host
  std::vector<HostEdge> edges_;
};

// Returns the small trees of the largest fan-out with which no host sends more than `lanes` times in all
// trees. A tree begins one host after the tree before, or after all hosts that have children in that tree.
RestTrees TreesOfRest(int32_t rest, int32_t lanes) {
  for (int32_t fanout = rest; fanout > 1; --fanout) {
    for (const int32_t stride : {1, (rest - 2) / fanout + 1}) {
      std::vector<int32_t> sends(static_cast<size_t>(rest), 0);
      for (int32_t t = 0; t < lanes; ++t)
        for (int32_t i = 1; i < rest; ++i)
          ++sends[static_cast<size_t>((t * stride + (i - 1) / fanout) % rest)];
      if (*std::ranges::max_element(sends) <= lanes) return {fanout, stride};
    }
  }
  return {};
}

// Chooses the lanes (colours) so that no two edges that leave a host, and no two edges that enter a host,
// have the same colour. Requires: at most `colours` edges leave a host, and at most as many enter it.
void Colour(int32_t hosts, int32_t colours, HostTrees& trees) {
  // By host and colour: the edge that leaves, or enters, the host.
  std::vector<HostEdge*> out(static_cast<size_t>(hosts) * static_cast<size_t>(colours), nullptr), in = out;
  const auto cell = [&](int32_t host, int32_t colour) {
    return static_cast<size_t>(host) * static_cast<size_t>(colours) + static_cast<size_t>(colour);
  };
  const auto is_free = [&](const std::vector<HostEdge*>& side, int32_t host, int32_t c) {
    return side[cell(host, c)] == nullptr;
  };
  for (size_t t = 0; t < trees.trees.size(); ++t) {
    for (HostEdge& edge : trees.trees[t]) {
      // Colours that are free at both ends of the edge, at the parent, and at the child.
      int32_t both = -1, from = -1, to = -1;
      for (int32_t i = 0; i < colours && both < 0; ++i) {
        const int32_t c = (static_cast<int32_t>(t) + i) % colours;
        const bool at_parent = is_free(out, edge.parent, c), at_child = is_free(in, edge.child, c);
        if (at_parent && at_child) both = c;
        if (at_parent && from < 0) from = c;
        if (at_child && to < 0) to = c;
      }
      if (both < 0) {
        // Swaps the colours `from` and `to` along the path that enters the child on an edge of colour `from`
        // and alternates between them. The path cannot end at the parent, because the graph is bipartite.
        std::vector<HostEdge*> path;
        for (HostEdge* at = in [cell(edge.child, from)]; at != nullptr;) {
          path.push_back(at);
          at = path.size() % 2 == 1 ? out[cell(at->parent, to)] : in[cell(at->child, from)];
        }
        for (HostEdge* at : path) out[cell(at->parent, at->lane)] = in[cell(at->child, at->lane)] = nullptr;
        for (HostEdge* at : path) {
          at->lane = at->lane == from ? to : from;
          out[cell(at->parent, at->lane)] = in[cell(at->child, at->lane)] = at;
        }
        both = from;
      }
      edge.lane = both;
      out[cell(edge.parent, both)] = in[cell(edge.child, both)] = &edge;
    }
  }
}

}  // namespace

int32_t HostTrees::levels() const {
  int32_t levels = 0;
  for (const std::vector<HostEdge>& tree : trees)
    for (const HostEdge& edge : tree) levels = std::max(levels, edge.level);
  return levels;
}

namespace {

HostTrees Uncoloured(int32_t hosts, int32_t lanes) {
  HostTrees made;
  const RestTrees of_rest = TreesOfRest((hosts - 1) % lanes, lanes);
  for (int32_t t = 0; t < lanes; ++t) made.trees.push_back(DisjointTree(hosts, lanes, t, of_rest).Take());
  return made;
}

// A left-over send of a unit: the host that makes it, and the part of the unit that the host is in.
struct Send {
  int32_t host = 0;
  size_t part = 0;
};

// A host, or a group of units, which are the group's parts.
struct Unit {
  int32_t first = 0;             // its first host
  std::vector<int32_t> entry;    // by tree: the host at which the tree enters the unit
  std::vector<int32_t> leaving;  // by tree: number of edges that leave the unit
  std::vector<Send> sends;
  std::vector<Unit> parts;
};

class Nest {
 public:
  Nest(int32_t hosts, int32_t lanes)
      : lanes_(lanes),
        parent_(static_cast<size_t>(lanes), std::vector<int32_t>(static_cast<size_t>(hosts), -1)) {}

  Unit HostUnit(int32_t host) const {
    const auto lanes = static_cast<size_t>(lanes_);
    return {host,
            std::vector<int32_t>(lanes, host),
            std::vector<int32_t>(lanes, 0),
            std::vector<Send>(lanes, Send{host}),
            {}};
  }

  // Joins units to a group. Adds the edges that serve all units from a sender outside the group, or from the
  // first unit if the root is in the group.
  Unit Join(std::vector<Unit> units, bool has_root) {
    const int32_t outside = has_root ? 0 : 1;  // 1: number 0 is the sender outside
    Unit group{units[0].first, units[0].entry, std::vector<int32_t>(static_cast<size_t>(lanes_), 0), {}, {}};
    if (units.size() > 1 || !has_root) {
      const HostTrees trees = Uncoloured(static_cast<int32_t>(units.size()) + outside, lanes_);
      for (size_t t = 0; t < trees.trees.size(); ++t) {
        for (const HostEdge& edge : trees.trees[t]) {
          const int32_t child = units[static_cast<size_t>(edge.child - outside)].entry[t];
          if (edge.parent < outside)
            group.entry[t] = child;
          else
            Parent(child, t) = TakeSend(t, units[static_cast<size_t>(edge.parent - outside)]);
        }
      }
    }
    for (size_t u = 0; u < units.size(); ++u)
      for (const Send& send : units[u].sends) group.sends.push_back({send.host, u});
    group.parts = std::move(units);
    return group;
  }

  // Returns the trees with levels, parents before children.
  HostTrees Trees() const {
    HostTrees made;
    for (size_t t = 0; t < parent_.size(); ++t) {
      std::vector<HostEdge>& edges = made.trees.emplace_back();
      for (int32_t h = 1; h < std::ssize(parent_[t]); ++h)
        edges.push_back({parent_[t][static_cast<size_t>(h)], h, 0, DepthOf(h, t)});
      std::ranges::stable_sort(edges, {}, &HostEdge::level);
    }
    return made;
  }

 private:
  int32_t& Parent(int32_t host, size_t tree) { return parent_[tree][static_cast<size_t>(host)]; }

  // Returns the host's depth in the tree, as far as units are joined already.
  int32_t DepthOf(int32_t host, size_t tree) const {
    int32_t depth = 0;
    while ((host = parent_[tree][static_cast<size_t>(host)]) >= 0) ++depth;
    return depth;
  }

  // Uses up the unit's earliest left-over send, and returns the host that sends the tree to another unit. If
  // an earlier host feeds a part that no edge leaves, the two swap: the send feeds that part, and the earlier
  // host is returned.
  int32_t TakeSend(size_t tree, Unit& unit) {
    const auto next =
        std::ranges::min_element(unit.sends, {}, [&](const Send& s) { return DepthOf(s.host, tree); });
    const Send send = *next;
    unit.sends.erase(next);
    ++unit.leaving[tree];
    if (unit.parts.empty()) return send.host;
    ++unit.parts[send.part].leaving[tree];
    std::optional<int32_t> served;
    int32_t least = DepthOf(send.host, tree) + 1;
    for (const Unit& part : unit.parts) {
      const int32_t host = part.entry[tree];
      if (part.leaving[tree] > 0 || host == unit.entry[tree] || DepthOf(host, tree) >= least) continue;
      served = host;
      least = DepthOf(host, tree);
    }
    return served ? std::exchange(Parent(*served, tree), send.host) : send.host;
  }

  const int32_t lanes_;
  std::vector<std::vector<int32_t>> parent_;  // by tree, then host
};

}  // namespace

HostTrees DisjointTrees(int32_t hosts, int32_t lanes) {
  HostTrees made = Uncoloured(hosts, lanes);
  Colour(hosts, lanes, made);
  return made;
}

HostTrees NestedTrees(int32_t hosts, std::span<const std::vector<int32_t>> groups, int32_t lanes) {
  Nest nest(hosts, lanes);
  std::vector<Unit> units;
  for (int32_t h = 0; h < hosts; ++h) units.push_back(nest.HostUnit(h));
  for (const std::vector<int32_t>& group_of : groups) {
    std::vector<std::vector<Unit>> members(static_cast<size_t>(*std::ranges::max_element(group_of)) + 1);
    for (Unit& unit : units)
      members[static_cast<size_t>(group_of[static_cast<size_t>(unit.first)])].push_back(std::move(unit));
    units.clear();
    for (std::vector<Unit>& of_group : members)
      units.push_back(nest.Join(std::move(of_group), /*has_root=*/units.empty()));
  }
  nest.Join(std::move(units), /*has_root=*/true);
  HostTrees made = nest.Trees();
  Colour(hosts, lanes, made);
  return made;
}

namespace {

void AddEqual(int32_t low, int32_t high, int32_t parent, int32_t level, int32_t lane, int32_t fanout,
              std::vector<HostEdge>& edges) {
  const int32_t parts = std::min(high - low, fanout);
  for (int32_t i = 0; i < parts; ++i) {
    const int32_t from = low + static_cast<int32_t>(int64_t{high - low} * i / parts);
    const int32_t to = low + static_cast<int32_t>(int64_t{high - low} * (i + 1) / parts);
    edges.push_back({parent, from, lane, level});
    AddEqual(from + 1, to, from, level + 1, lane, fanout, edges);
  }
}

}  // namespace

HostTrees EqualTrees(int32_t hosts, int32_t lanes, int32_t fanout) {
  HostTrees made;
  for (int32_t t = 0; t < lanes; ++t) {
    made.trees.emplace_back();
    AddEqual(1, hosts, 0, 1, t, fanout, made.trees.back());
  }
  return made;
}

}  // namespace xccl
