// The bound counts the copies of each byte that must leave a set A of nodes. A holder of the byte is in A; D
// is a set of ranks outside A that need the byte. The way to a node is the least latency of a path to it.
// 1. A rank of D gets the byte over a path that leaves A for the last time over some link a -> b. From b the
//    byte goes on to the first node v that can copy: a GPU, or a switch that multicasts. No other node makes
//    two messages of one.
// 2. If the byte leaves a when a time u is left until the plan's end, it can only serve ranks of D that are
//    near enough to v. Their number is at most
//   c(a -> b, u) = the number of ranks of D at most u - (way from a to v) away from v, for the best v.
// 3. The messages that carry the byte over the links out of A must together serve all of D. So the sum of
//    their c is at least |D|, for every byte that A holds:
//   Σ over links out of A: bandwidth × ∫ c(link, T - t) dt  >=  |D| × bytes.
// Here t runs from the way to the link's tail to the plan's time T.
// 4. The left side is piecewise linear in T and grows with T. The T at which both sides are equal is the
//    bound.
//
// If D is one rank, the bound is one cut of a flow over time. A larger D counts the copies. For example, let
// a switch have one port for each of n ranks. Then the root of a broadcast must send the bytes of the last
// alpha n - 1 times.
//
// A sum for many ranks is the mirror image: all links and the time are reversed, and nodes that reduce take
// the place of nodes that copy. An allreduce obeys both bounds. The bytes of one rank go to all other ranks,
// alone or in sums, and the sum that one rank gets comes from all ranks.
#include "ir/bounds/bound_copies.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/graph/min_cost_flow.h"
#include "base/units.h"
#include "ir/bounds/bound_over_time.h"
#include "ir/bounds/node_cuts.h"

namespace xccl {
namespace {

// The most sets D that are tried for one set A, and the most distances from a rank at which a set A around
// the rank ends.
constexpr size_t kSets = 4;
// A set A is tried only if the work that is left is enough for this number of sets of equal cost. So one
// costly set does not use up the work of all later sets.
constexpr int64_t kSearches = 8;

using NodeSet = std::vector<bool>;  // by node

// Returns at most `so_many` of the values, evenly spaced, beginning with the first.
std::vector<int64_t> Spread(const std::set<int64_t>& values, size_t so_many) {
  const std::vector<int64_t> all(values.begin(), values.end());
  const size_t count = std::min(all.size(), so_many);
  std::vector<int64_t> kept;
  for (size_t i = 0; i < count; ++i) kept.push_back(all[i * all.size() / count]);
  return kept;
}

class WorstCopies {
 public:
  // `bytes` gives for each member the bytes that the member holds and all other members need. With `is_sum`,
  // the bytes of several members count as the bytes of one member, because one message may carry their sum.
  WorstCopies(const Topology& topology, TimeModel model, bool mirrored, const Collective& collective,
              std::vector<int64_t> bytes, bool is_sum, int64_t most_work)
      : arcs_(Arcs(topology, model, mirrored)),
        copies_(Copiers(topology, mirrored)),
        anywhere_(topology.num_nodes(), arcs_),
        uncopied_(topology.num_nodes(), FromOthers(arcs_, copies_)),
        bytes_(std::move(bytes)),
        is_sum_(is_sum),
        work_of_pass_(topology.num_ranks() >= kLargeMachine ? topology.num_nodes() + topology.num_links()
                                                            : 0),
        most_work_(most_work),
        from_(copies_.size()),
        reach_(copies_.size()) {
    for (const Rank r : collective.ranks()) members_.push_back(topology.NodeOf(r).value);
  }

  // Returns the larger of `best` and the bound that the links out of the set A = `inside` give.
  int64_t Raise(int64_t best, const NodeSet& inside) {
    work_ += work_of_pass_;
    std::vector<int32_t> holders, outside;
    __int128 held = 0;
    for (size_t m = 0; m < members_.size(); ++m) {
      if (!inside[Index(members_[m])]) {
        outside.push_back(members_[m]);
      } else if (bytes_[m] > 0) {
        holders.push_back(members_[m]);
        held = is_sum_ ? bytes_[m] : held + bytes_[m];
      }
    }
    if (held == 0 || outside.size() < 2) return best;
    if (work_of_pass_ > 0 && ReachesFor(inside) > WorkLeft() / kSearches) return best;
    if (SearchesFor(inside) > WorkLeft() / kSearches) return best;
    const std::vector<int64_t> way = anywhere_.CostsFrom(holders);
    std::set<int64_t> ways;
    for (const int32_t n : outside) ways.insert(way[Index(n)]);
    for (const int64_t least : Spread(ways, kSets)) {
      std::vector<int32_t> served = outside;
      std::erase_if(served, [&](int32_t n) { return way[Index(n)] < least; });
      work_ += work_of_pass_;
      if (HasTime()) best = std::max(best, LeastTime(inside, way, served, held));
    }
    return best;
  }

  // Returns sets of nodes around `node`: first the node alone, then for each of some distances all nodes that
  // are nearer than the distance.
  std::vector<NodeSet> Around(int32_t node) {
    const std::vector<int64_t>& way = From(node);
    std::set<int64_t> ways;
    for (const int32_t member : members_)
      if (member != node) ways.insert(way[Index(member)]);
    std::vector<NodeSet> made(1, NodeSet(copies_.size()));
    made.front()[Index(node)] = true;
    for (const int64_t below : Spread(ways, kSets)) {
      made.emplace_back(copies_.size());
      for (size_t n = 0; n < copies_.size(); ++n) made.back()[n] = way[n] >= 0 && way[n] < below;
      if (made.back() == made.front()) made.pop_back();
    }
    return made;
  }

  bool HasTime() const { return WorkLeft() > 0; }

 private:
  struct Step {
    int64_t time_ps;
    int64_t count;  // ranks served from that time on
  };

  int64_t WorkLeft() const { return most_work_ - work_ - anywhere_.work() - uncopied_.work(); }
  static size_t Index(int32_t node) { return static_cast<size_t>(node); }

  static std::vector<CostArc> Arcs(const Topology& topology, TimeModel model, bool mirrored) {
    std::vector<CostArc> arcs = ArcsOf(topology, model);
    for (CostArc& arc : arcs) {
      arc.start_cost = 0;
      if (mirrored) std::swap(arc.from, arc.to);
    }
    return arcs;
  }
  static NodeSet Copiers(const Topology& topology, bool mirrored) {
    NodeSet copies;
    for (int32_t n = 0; n < topology.num_nodes(); ++n) {
      const Node& node = topology.node(NodeId(n));
      copies.push_back(topology.IsGpu(NodeId(n)) || (mirrored ? node.reduce : node.multicast));
    }
    return copies;
  }
  static std::vector<CostArc> FromOthers(std::vector<CostArc> arcs, const NodeSet& copies) {
    std::erase_if(arcs, [&](const CostArc& arc) { return copies[Index(arc.from)]; });
    return arcs;
  }

  const std::vector<int64_t>& From(int32_t node) {
    if (from_[Index(node)].empty()) from_[Index(node)] = anywhere_.CostsFrom(std::span(&node, 1));
    return from_[Index(node)];
  }
  // Returns the copying nodes that a message can reach from `node` without passing another copying node, and
  // the way to each of them.
  const std::vector<std::pair<int32_t, int64_t>>& Reach(int32_t node) {
    auto& reach = reach_[Index(node)];
    if (!reach.empty()) return reach;
    if (copies_[Index(node)]) return reach = {{node, 0}};
    const std::vector<int64_t> way = uncopied_.CostsFrom(std::span(&node, 1));
    for (size_t n = 0; n < way.size(); ++n)
      if (copies_[n] && way[n] >= 0) reach.emplace_back(static_cast<int32_t>(n), way[n]);
    return reach;
  }

  // Returns the work, in arcs looked at, of the calls of Reach() that the links out of the set still need.
  int64_t ReachesFor(const NodeSet& inside) const {
    std::set<int32_t> nodes;
    for (const CostArc& arc : arcs_)
      if (inside[Index(arc.from)] && !inside[Index(arc.to)] && !copies_[Index(arc.to)] &&
          reach_[Index(arc.to)].empty())
        nodes.insert(arc.to);
    return std::ssize(nodes) * work_of_pass_;
  }

  // Returns the work, in arcs looked at, of the path searches that the links out of the set still need.
  int64_t SearchesFor(const NodeSet& inside) {
    std::set<int32_t> nodes;
    for (const CostArc& arc : arcs_) {
      if (!inside[Index(arc.from)] || inside[Index(arc.to)]) continue;
      for (const auto& [node, on] : Reach(arc.to))
        if (!inside[Index(node)] && from_[Index(node)].empty()) nodes.insert(node);
    }
    return std::ssize(nodes) * std::ssize(arcs_);
  }

  // Returns how many nodes of `served` are within a time of `node`, as a step function of that time.
  std::vector<Step> Near(int32_t node, const std::vector<int32_t>& served) {
    const std::vector<int64_t>& way = From(node);
    std::vector<int64_t> ways;
    for (const int32_t n : served)
      if (way[Index(n)] >= 0) ways.push_back(way[Index(n)]);
    work_ += std::ssize(served);
    std::ranges::sort(ways);
    std::vector<Step> near;
    for (size_t i = 0; i < ways.size(); ++i)
      if (i + 1 == ways.size() || ways[i + 1] != ways[i])
        near.push_back({ways[i], static_cast<int64_t>(i) + 1});
    return near;
  }

  // Returns the T of step 4 above, for the set D = `served`.
  int64_t LeastTime(const NodeSet& inside, const std::vector<int64_t>& way,
                    const std::vector<int32_t>& served, __int128 bytes) {
    std::vector<std::vector<Step>> near(copies_.size());
    std::vector<std::pair<int64_t, __int128>> rises;  // time, growth of the left side's slope there
    for (const CostArc& arc : arcs_) {
      if (!inside[Index(arc.from)] || inside[Index(arc.to)] || way[Index(arc.from)] < 0) continue;
      std::vector<Step> steps;
      for (const auto& [node, on] : Reach(arc.to)) {
        if (inside[Index(node)]) continue;
        if (near[Index(node)].empty()) near[Index(node)] = Near(node, served);
        for (const Step& step : near[Index(node)]) steps.push_back({on + step.time_ps, step.count});
      }
      work_ += std::ssize(steps);
      std::ranges::sort(steps, {}, &Step::time_ps);
      int64_t most = 0;
      for (const auto& [time, count] : steps) {
        if (count <= most) continue;
        rises.emplace_back(way[Index(arc.from)] + arc.cost + time,
                           static_cast<__int128>(count - most) * arc.capacity);
        most = count;
      }
    }
    std::ranges::sort(rises);
    __int128 left = bytes * std::ssize(served) * kPsPerSecond, slope = 0;
    int64_t now = 0;
    for (const auto& [time, rise] : rises) {
      if (slope > 0 && left / slope < time - now) break;
      left -= slope * (time - now);
      now = time;
      slope += rise;
    }
    return slope == 0 ? 0 : static_cast<int64_t>(std::min<__int128>(left / slope + now, kForeverPs));
  }

  std::vector<CostArc> arcs_;
  NodeSet copies_;
  MinCostFlow anywhere_, uncopied_;  // uncopied_: without links that leave a node that can copy
  std::vector<int32_t> members_;     // nodes of the members
  std::vector<int64_t> bytes_;
  bool is_sum_;
  int64_t work_of_pass_, most_work_, work_ = 0;
  std::vector<std::vector<int64_t>> from_;                       // by node: the way to every node
  std::vector<std::vector<std::pair<int32_t, int64_t>>> reach_;  // by node: Reach()
};

// Returns for each member the bytes that the member holds and all other members need. In a reduction these
// are the bytes that the member needs and all other members hold.
std::vector<int64_t> BytesOf(const Collective& collective, const CollectiveSizes& sizes) {
  std::vector<int64_t> bytes;
  const bool by_member = TraitsOf(collective.kind()).parts == KindTraits::Parts::kPerMember;
  for (int32_t i = 0; i < collective.num_members(); ++i) {
    const bool holds =
        !IsRooted(collective.kind()) || collective.ranks()[static_cast<size_t>(i)] == *collective.spec().root;
    bytes.push_back(holds ? sizes.PartBytes(PartId(by_member ? i : 0)) : 0);
  }
  return bytes;
}

// Returns the groups, ascending, that contain at least one of the ranks.
std::set<int32_t> GroupsOf(std::span<const Rank> ranks, const Topology& topology,
                           const NodeGroups& group_of) {
  std::set<int32_t> groups;
  for (const Rank r : ranks)
    if (const int32_t g = group_of[topology.NodeOf(r).index()]; g >= 0) groups.insert(g);
  return groups;
}

// Returns the largest of `best` and the bounds of many sets. Tries sets around `ranks`, which stand for all
// members by symmetry, then each group of nodes that hosts or fast links form, and the complement of each
// group. On large machines only the groups of `ranks` are tried.
int64_t Worst(WorstCopies cuts, const Topology& topology, const Collective& collective,
              const std::vector<Rank>& ranks, int64_t best) {
  for (const Rank r : ranks) {
    if (!cuts.HasTime()) return best;
    for (const NodeSet& inside : cuts.Around(topology.NodeOf(r).value)) best = cuts.Raise(best, inside);
  }
  std::vector<NodeGroups> partitions = JoinedByFastLinks(topology);
  partitions.push_back(EachHost(topology));
  for (const NodeGroups& group_of : partitions) {
    if (*std::ranges::max_element(group_of) < 1) continue;
    const bool large = topology.num_ranks() >= kLargeMachine;
    for (const int32_t g : GroupsOf(large ? std::span(ranks) : collective.ranks(), topology, group_of)) {
      if (!cuts.HasTime()) return best;
      for (const bool is_inside : {true, false}) {
        NodeSet inside;
        for (const int32_t of : group_of) inside.push_back((of == g) == is_inside);
        best = cuts.Raise(best, inside);
      }
    }
  }
  return best;
}

}  // namespace

std::optional<int64_t> CopiesBound(const Topology& topology, const Collective& collective,
                                   const CollectiveSizes& sizes, TimeModel model, BoundEffort effort,
                                   int64_t at_least, Orbits& orbits) {
  int64_t best = at_least;
  if (sizes.size_bytes() == 0) return std::nullopt;
  const bool copied = EndsAlike(collective.kind()), summed = IsReduction(collective.kind());
  if (!copied && !summed) return std::nullopt;
  const std::vector<Rank> ranks = IsRooted(collective.kind()) ? std::vector<Rank>{*collective.spec().root}
                                                              : orbits.OneOfEach(collective, sizes);
  for (const bool mirrored : {false, true}) {
    if (mirrored ? !summed : !copied) continue;
    best = Worst(WorstCopies(topology, model, mirrored, collective, BytesOf(collective, sizes),
                             copied && summed, MostArcs(effort)),
                 topology, collective, ranks, best);
  }
  return best > at_least ? std::optional(best) : std::nullopt;
}

}  // namespace xccl
