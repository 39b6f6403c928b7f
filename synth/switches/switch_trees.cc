// Trees are grown one after the other, each as Prim's algorithm does (synth/common/tree_grower.h). A link
// costs what a byte takes times one more than the trees that use it, so that parallel switches and rails
// share the work.
//
// `multicast`: one switch, or one of several side by side, joins all ranks. allgather and broadcast: every
// rank stores what it has once, and the switch delivers it to all. reduce_scatter and reduce: a rank asks for
// its part, and the switch adds up what all others have on the way. allreduce: each rank does the second and
// then the first with its share of the buffer. A port carries every byte once in each direction: S ÷
// bandwidth, where sending and receiving alone takes 2 (n - 1) ÷ n times as long. Parallel switches take a
// share each.
//
// `in-network`: leaves are the ranks, inner nodes the switches. Each switch passes one sum on for all that it
// gets from below; the result goes down the same tree, copied where it branches. The root of a share of the
// buffer is a rank: the sum comes down to it from the switch where its tree ends, and it sends the result up
// to be multicast. Roots take turns. Where switches do not join all ranks (rails that meet inside the hosts
// alone) GPUs join trees: what comes down one tree goes up the next.
//
// Sources: Klenk, Jiang, Thorson, Dennison, "An In-Network Architecture for Accelerating Shared-Memory
// Multiprocessor Collectives", ISCA 2020; NCCL's algorithm NVLS; Graham et al., "Scalable Hierarchical
// Aggregation Protocol (SHArP): A Hardware Architecture for Efficient Data Reduction", COMHPC 2016.
#include "synth/switches/switch_trees.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/units.h"
#include "ir/simulate/simulate.h"
#include "synth/common/allreduce_trees.h"
#include "synth/common/fractional_packing.h"
#include "synth/common/pairs.h"
#include "synth/common/reverse.h"
#include "synth/common/serves.h"
#include "synth/common/step_limit.h"
#include "synth/common/tree_grower.h"

namespace xccl {
namespace {

constexpr int32_t kMostTrees = 16;  // of one root
constexpr int32_t kMostRoots = 32;  // of an allreduce: the loads of links are the same with any number
// Of an allreduce: in how many waves roots take turns. Every chunk costs a few instructions of a program.
constexpr int32_t kMostChunks = 128;  // in several waves
constexpr double kLeastGain = 1.005;  // what more waves must gain
constexpr double kNear = 1.02;        // times the busiest link: more waves gain little
constexpr int64_t kLeastChunkBytes = 1024;
constexpr int64_t kLongChunkBytes = 65'536;  // the simulator cuts longer ones: 1, 4, 16, .. waves will do
constexpr int64_t kMostArcs = 200'000;       // of an allreduce in several waves
constexpr int64_t kMovesPerLink = 3;         // of a tree, in moves of a chunk
constexpr double kClosed = 1e9;  // the cost of a link that trees may not use, far above all others

struct SwitchTreesForm {
  std::string_view engine, summary;
  bool one_switch = false;  // trees pass one switch, which joins all members
};

bool Can(const Node& node, CollectiveKind kind) {
  return node.kind == NodeKind::kSwitch && (node.multicast || !EndsAlike(kind)) &&
         (node.reduce || !IsReduction(kind));
}
std::string_view Verb(CollectiveKind kind) {
  return IsAllreduce(kind) ? "multicasts and reduces" : IsReduction(kind) ? "reduces" : "multicasts";
}

// Is every member joined to the switch, in both directions?
bool JoinsAll(const Topology& topology, NodeId at, const Collective& collective) {
  const auto reaches = [&](std::span<const LinkId> links, NodeId member, bool out) {
    return std::ranges::any_of(
        links, [&](LinkId l) { return (out ? topology.link(l).to : topology.link(l).from) == member; });
  };
  return std::ranges::all_of(collective.ranks(), [&](Rank r) {
    const NodeId member = topology.NodeOf(r);
    return reaches(topology.Out(at), member, true) && reaches(topology.Out(member), at, true);
  });
}

class Maker {
 public:
  Maker(const SwitchTreesForm& form, const SynthesisRequest& request)
      : form_(form),
        request_(request),
        topology_(*request.topology),
        collective_(*request.collective),
        kind_(collective_.kind()),
        reversed_(ReverseTopology(topology_)),
        load_(static_cast<size_t>(topology_.num_links()), 0) {
    Close();
  }

  StatusOr<Synthesis> Make() {
    if (collective_.num_members() == 1) return NothingToMove(form_.engine, request_);
    XCCL_ASSIGN_OR_RETURN(const AllreduceTrees trees, Grow(Roots()));
    StatusOr<Synthesis> best = IsAllreduce(kind_) ? MakeAllreduce(trees) : MakeOneWay(trees);
    if (best.ok()) XCCL_RETURN_IF_ERROR(CheckSteps(form_.engine, request_, best->schedule.num_steps()));
    return best;
  }

 private:
  // Links that no tree may use: into ranks that are no members; of `multicast`, to and from all switches but
  // those that join all members.
  void Close() {
    std::vector<bool> open(static_cast<size_t>(topology_.num_nodes()), !form_.one_switch);
    for (int32_t n = 0; n < topology_.num_nodes(); ++n)
      if (form_.one_switch && Can(topology_.node(NodeId(n)), kind_))
        open[static_cast<size_t>(n)] = JoinsAll(topology_, NodeId(n), collective_);
    for (int32_t r = 0; r < topology_.num_ranks(); ++r)
      open[topology_.NodeOf(Rank(r)).index()] = collective_.MemberIndex(Rank(r)).has_value();
    for (const Link& link : topology_.spec().links) {
      const bool direct = topology_.IsGpu(link.from) && topology_.IsGpu(link.to);
      closed_.push_back(!open[link.from.index()] || !open[link.to.index()] || (form_.one_switch && direct));
    }
  }

  int32_t TreesOfOneRoot() const {
    if (request_.limits.chunks && !IsAllreduce(kind_)) return *request_.limits.chunks;
    int32_t trees = 1;
    for (Rank r : collective_.ranks()) {
      int32_t own = 0;
      for (LinkId l : topology_.Out(topology_.NodeOf(r))) own += closed_[l.index()] ? 0 : 1;
      trees = std::max(trees, own);
    }
    return std::min(trees, kMostTrees);
  }

  // Of every tree; those of one part, or of one round of an allreduce, follow one another.
  std::vector<Rank> Roots() const {
    const int32_t n = collective_.num_members(), trees = TreesOfOneRoot();
    std::vector<Rank> roots;
    if (IsAllreduce(kind_)) {
      const int32_t spread = std::min(n, kMostRoots), stride = n / spread;
      const int32_t count =
          kind_ == CollectiveKind::kBarrier ? 1 : request_.limits.chunks.value_or(trees * spread);
      for (int32_t i = 0; i < count; ++i) {
        const int32_t root = i % spread;  // neighbours in turn, so that strides miss no rail
        roots.push_back(collective_.ranks()[static_cast<size_t>(root * stride + root % stride)]);
      }
      return roots;
    }
    for (int32_t p = 0; p < collective_.num_parts(); ++p)
      for (int32_t t = 0; t < trees; ++t)
        roots.push_back(collective_.spec().root.value_or(
            collective_.ranks()[static_cast<size_t>(collective_.spec().root ? 0 : p)]));
    return roots;
  }

  StatusOr<AllreduceTrees> Grow(const std::vector<Rank>& roots) {
    TreeGrower down(topology_, collective_.ranks(), Branching::kMulticast);
    TreeGrower up(reversed_, collective_.ranks(), Branching::kReduce);
    FractionalPacking packing;
    for (size_t t = 0; t < roots.size(); ++t) {
      FractionalTree& tree = packing.trees.emplace_back();
      tree.root = static_cast<int32_t>(t);
      tree.weight = 1.0 / static_cast<double>(roots.size());
      if (EndsAlike(kind_))
        XCCL_RETURN_IF_ERROR(GrowOne(down, roots[t], roots.size(), tree.arcs, packing.links));
      if (IsReduction(kind_))
        XCCL_RETURN_IF_ERROR(GrowOne(up, roots[t], roots.size(), tree.up, packing.links));
    }
    return WholePairs(packing, roots, topology_);
  }

  Status GrowOne(TreeGrower& grower, Rank root, size_t trees, std::vector<PackedArc>& arcs,
                 std::vector<LinkId>& links) {
    std::vector<double> cost;
    for (int32_t l = 0; l < topology_.num_links(); ++l) {
      const size_t i = static_cast<size_t>(l);
      const double s_per_byte = 1.0 / static_cast<double>(topology_.link(LinkId(l)).bandwidth_bytes_per_s);
      cost.push_back(closed_[i] ? kClosed : s_per_byte * (1 + load_[i]));
    }
    const double share =
        static_cast<double>(std::max<int64_t>(1, request_.size_bytes)) / static_cast<double>(trees);
    const size_t before = links.size();
    GrownTree tree = grower.Grow(root, cost, 1e-12 / share, links);
    if (tree.cost >= kClosed || static_cast<int32_t>(tree.arcs.size()) < collective_.num_members() - 1)
      return InvalidInput(
          fmt::format("{}: no tree joins rank {} with all members over members and switches alone; hint: "
                      "--engine=auto",
                      form_.engine, root.value));
    for (size_t i = before; i < links.size(); ++i) load_[links[i].index()] += 1;
    arcs = std::move(tree.arcs);
    return OkStatus();
  }

  // What the links of the trees take at least.
  double BusiestLinkPs(int32_t trees) const {
    double most = 0;
    for (int32_t l = 0; l < topology_.num_links(); ++l)
      most = std::max(most, load_[static_cast<size_t>(l)] /
                                static_cast<double>(topology_.link(LinkId(l)).bandwidth_bytes_per_s));
    return most * static_cast<double>(request_.size_bytes) / trees * static_cast<double>(kPsPerSecond);
  }

  // Of several numbers of waves the fewest that are about as fast as any.
  StatusOr<Synthesis> MakeAllreduce(const AllreduceTrees& trees) const {
    std::optional<Synthesis> best;
    const int64_t num_trees = static_cast<int64_t>(trees.trees.size());
    const int64_t arcs = 2 * num_trees * collective_.num_members();
    const int64_t chunk_bytes = request_.size_bytes / num_trees;
    for (int32_t waves = 1;; waves *= chunk_bytes / waves > kLongChunkBytes ? 4 : 2) {
      if (waves > 1 &&
          (arcs * waves > kMostArcs || num_trees * waves > kMostChunks || request_.limits.chunks ||
           kind_ == CollectiveKind::kBarrier || chunk_bytes / waves < kLeastChunkBytes))
        break;
      ChunkedSchedule made =
          MakeAllreduceSchedule(trees, std::vector<int64_t>(static_cast<size_t>(waves), 1), collective_);
      Synthesis synthesis{std::move(made.collective), std::move(made.schedule), false,
                          std::string(form_.engine), ""};
      synthesis.simulation =
          Simulate(synthesis.schedule, synthesis.collective, topology_, TimingOf(request_));
      const double time_ps = static_cast<double>(synthesis.simulation->time_ps);
      if (best && kLeastGain * time_ps >= static_cast<double>(best->simulation->time_ps)) continue;
      best = std::move(synthesis);
      if (time_ps <= kNear * BusiestLinkPs(static_cast<int32_t>(num_trees))) break;
    }
    return *std::move(best);
  }

  StatusOr<Synthesis> MakeOneWay(const AllreduceTrees& trees) const {
    Collective cut =
        collective_.WithChunks(static_cast<int32_t>(trees.trees.size()) / collective_.num_parts());
    Schedule schedule;
    schedule.num_chunks = cut.num_chunks();
    schedule.paths = trees.paths;
    for (size_t t = 0; t < trees.trees.size(); ++t) {
      const ChunkId chunk(static_cast<int64_t>(t));
      const bool up = IsReduction(kind_);
      const std::vector<TreeEdge>& edges = up ? trees.trees[t].up : trees.trees[t].down;
      const std::vector<int32_t> depth = Depths(edges);
      const int32_t deepest = *std::ranges::max_element(depth);
      for (size_t e = 0; e < edges.size(); ++e) {
        const TreeEdge& edge = edges[e];
        if (edge.shared) continue;
        if (up)
          schedule.Add(
              {chunk, 1, edge.child, edge.parent, edge.path, TransferOp::kReduce, deepest - depth[e]});
        else
          schedule.Add({chunk, 1, edge.parent, edge.child, edge.path, TransferOp::kCopy, depth[e] - 1});
      }
    }
    Normalize(schedule);
    return Synthesis{std::move(cut), std::move(schedule), false, std::string(form_.engine), ""};
  }

  // Transfers from the root, from 1, by edge.
  std::vector<int32_t> Depths(const std::vector<TreeEdge>& edges) const {
    std::vector<int32_t> of_rank(static_cast<size_t>(topology_.num_ranks()), 0), depth;
    for (const TreeEdge& edge : edges) {
      depth.push_back(of_rank[edge.parent.index()] + 1);
      of_rank[edge.child.index()] = depth.back();
    }
    return depth;
  }

  const SwitchTreesForm& form_;
  const SynthesisRequest& request_;
  const Topology& topology_;
  const Collective& collective_;
  const CollectiveKind kind_;
  const Topology reversed_;
  std::vector<double> load_;  // by link: trees that use it
  std::vector<bool> closed_;  // by link
};

constexpr CollectiveKind kServed[] = {CollectiveKind::kAllreduce,      CollectiveKind::kAllgather,
                                      CollectiveKind::kAllgatherv,     CollectiveKind::kReduceScatter,
                                      CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast,
                                      CollectiveKind::kReduce,         CollectiveKind::kBarrier};

Status Serves(const SwitchTreesForm& form, const SynthesisRequest& request) {
  XCCL_RETURN_IF_ERROR(ServesKind(form.engine, kServed, request));
  const CollectiveKind kind = request.collective->kind();
  const Topology& topology = *request.topology;
  bool any = false;
  for (int32_t n = 0; n < topology.num_nodes() && !any; ++n)
    any = Can(topology.node(NodeId(n)), kind) &&
          (!form.one_switch || JoinsAll(topology, NodeId(n), *request.collective));
  if (any || request.collective->num_members() == 1) return OkStatus();
  return InvalidInput(fmt::format("{}: no switch of {} {}{}; hint: --engine=auto", form.engine,
                                  topology.name(), form.one_switch ? "joins all members and " : "",
                                  Verb(kind)));
}

// One tree a rank, or a few, each a search.
StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  return Offer{.time_ps = static_cast<double>(bound.bound_ps),
               .work = kMovesPerLink * request.topology->num_links() * request.collective->num_members()};
}

Engine SwitchTreesEngine(const SwitchTreesForm& form) {
  return {.name = form.engine,
          .summary = form.summary,
          .family = EngineFamily::kSwitches,
          .kinds = std::vector<CollectiveKind>(std::begin(kServed), std::end(kServed)),
          .serves = [form](const SynthesisRequest& request) { return Serves(form, request); },
          .offer = OfferOf,
          .make = [form](const SynthesisRequest& request) { return Maker(form, request).Make(); }};
}

}  // namespace

Engine MulticastEngine() {
  return SwitchTreesEngine(
      {"multicast", "one switch that joins all ranks multicasts and adds up (NVLS); not exact", true});
}

Engine InNetworkEngine() {
  return SwitchTreesEngine(
      {"in-network", "trees whose switches multicast and add up on the way (SHARP); not exact", false});
}

}  // namespace xccl
