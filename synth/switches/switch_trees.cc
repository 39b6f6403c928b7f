// Trees grow one after another, each as in Prim's algorithm (synth/common/tree_grower.h). A link costs the
// time of a byte × (1 + the number of trees that use it), so that parallel switches and rails share the load.
//
// `multicast`: each tree passes one switch that joins all members. allgather and broadcast: every rank with
// data sends it to the switch once, and the switch copies it to all members. reduce_scatter and reduce: the
// switch adds up all members' data for each part and sends the sum to the part's rank. allreduce: each root
// has a share of the buffer. The switch adds up the share, the root receives the sum and returns it, and the
// switch copies the sum to all members. A port carries every byte once in each direction: S ÷ bandwidth, for
// S bytes. Without the switch's help an allreduce of n ranks takes 2 (n - 1) ÷ n times as long.
//
// `in-network`: ranks are the leaves of a tree and switches its inner nodes. Each switch adds up all data
// from below and passes one sum on. The result goes down a tree of the same root, copied where the tree
// branches. Each share of the buffer has a rank as its root, which receives the sum and sends it up again to
// be multicast. Members take turns as roots. If switches alone do not join all members (such as rails without
// a switch between them), GPUs join the trees of switches.
//
// Sources: Klenk, Jiang, Thorson, Dennison, "An In-Network Architecture for Accelerating Shared-Memory
// Multiprocessor Collectives", ISCA 2020; NCCL's algorithm NVLS; Graham et al., "Scalable Hierarchical
// Aggregation Protocol (SHArP): A Hardware Architecture for Efficient Data Reduction", COMHPC 2016.
#include "synth/switches/switch_trees.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <vector>

#include "base/units.h"
#include "ir/simulate/simulate.h"
#include "synth/common/allreduce_trees.h"
#include "synth/common/cost_model.h"
#include "synth/common/fractional_packing.h"
#include "synth/common/reverse.h"
#include "synth/common/serves.h"
#include "synth/common/step_limit.h"
#include "synth/common/tree_grower.h"
#include "synth/common/tree_pairs.h"

namespace xccl {
namespace {

// Most roots of an allreduce. More do not lower the load of a port, which carries each byte once anyway.
constexpr int32_t kMostRoots = 32;
// Most chunks of an allreduce cut into waves, because each chunk costs every threadblock some instructions.
constexpr int32_t kMostChunks = 128;

struct SwitchTreesForm {
  std::string_view engine, summary;
  bool one_switch = false;  // each tree passes one switch, which joins all members
};

bool Can(const Node& node, CollectiveKind kind) {
  return node.kind == NodeKind::kSwitch && (node.multicast || !EndsAlike(kind)) &&
         (node.reduce || !IsReduction(kind));
}
std::string_view Verb(CollectiveKind kind) {
  return IsAllreduce(kind) ? "multicasts and reduces" : IsReduction(kind) ? "reduces" : "multicasts";
}

// Returns whether the switch has links to and from every member.
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
  // Closes the links that no tree may use: links of ranks that are no members. For `multicast` also closes
  // links between GPUs, and links of other nodes except switches that serve the kind and join all members.
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
    return trees;
  }

  // Returns the root of each tree. Trees of one part are consecutive. In an allreduce, the roots take turns.
  std::vector<Rank> Roots() const {
    const int32_t n = collective_.num_members(), trees = TreesOfOneRoot();
    std::vector<Rank> roots;
    if (IsAllreduce(kind_)) {
      const int32_t spread = std::min(n, kMostRoots), stride = n / spread;
      const int32_t count =
          kind_ == CollectiveKind::kBarrier ? 1 : request_.limits.chunks.value_or(trees * spread);
      for (int32_t i = 0; i < count; ++i) {
        const int32_t root = i % spread;  // `root % stride` shifts the roots, so that they use all rails
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
    return RoundToAllreduceTrees(packing, roots, topology_);
  }

  Status GrowOne(TreeGrower& grower, Rank root, size_t trees, std::vector<PackedArc>& arcs,
                 std::vector<LinkId>& links) {
    std::vector<double> cost;
    for (int32_t l = 0; l < topology_.num_links(); ++l) {
      const size_t i = static_cast<size_t>(l);
      const double s_per_byte = 1.0 / static_cast<double>(topology_.link(LinkId(l)).bandwidth_bytes_per_s);
      cost.push_back(closed_[i] ? std::numeric_limits<double>::infinity() : s_per_byte * (1 + load_[i]));
    }
    const double share =
        static_cast<double>(std::max<int64_t>(1, request_.size_bytes)) / static_cast<double>(trees);
    const size_t before = links.size();
    GrownTree tree = grower.Grow(root, cost, 1e-12 / share, links);
    if (static_cast<int32_t>(tree.arcs.size()) < collective_.num_members() - 1)
      return InvalidInput(
          fmt::format("{}: no tree joins rank {} with all members over members and switches alone; hint: "
                      "--engine=auto",
                      form_.engine, root.value));
    for (size_t i = before; i < links.size(); ++i) load_[links[i].index()] += 1;
    arcs = std::move(tree.arcs);
    return OkStatus();
  }

  // Returns the time of the busiest link of the trees. No number of waves gives a shorter time.
  double BusiestLinkPs(int32_t trees) const {
    double most = 0;
    for (int32_t l = 0; l < topology_.num_links(); ++l)
      most = std::max(most, load_[static_cast<size_t>(l)] /
                                static_cast<double>(topology_.link(LinkId(l)).bandwidth_bytes_per_s));
    return most * static_cast<double>(request_.size_bytes) / trees * static_cast<double>(kPsPerSecond);
  }

  // Doubles the number of waves until a plan is about as fast as its busiest link, or a limit is reached.
  // Keeps a plan in more waves only if it is faster by more than the ratio kNear.
  StatusOr<Synthesis> MakeAllreduce(const AllreduceTrees& trees) const {
    std::optional<Synthesis> best;
    const int64_t num_trees = static_cast<int64_t>(trees.trees.size());
    const int64_t arcs = 2 * num_trees * collective_.num_members();
    const int64_t chunk_bytes = request_.size_bytes / num_trees;
    for (int32_t waves = 1;; waves *= 2) {
      if (waves > 1 &&
          (arcs * waves > kManyTransfers || num_trees * waves > kMostChunks || request_.limits.chunks ||
           kind_ == CollectiveKind::kBarrier || chunk_bytes / waves < kLeastPieceBytes))
        break;
      ChunkedSchedule made =
          MakeAllreduceSchedule(trees, std::vector<int64_t>(static_cast<size_t>(waves), 1), collective_);
      Synthesis synthesis{std::move(made.collective), std::move(made.schedule), false,
                          std::string(form_.engine), ""};
      synthesis.simulation =
          Simulate(synthesis.schedule, synthesis.collective, topology_, TimingOf(request_));
      const double time_ps = static_cast<double>(synthesis.simulation->time_ps);
      if (best && kNear * time_ps >= static_cast<double>(best->simulation->time_ps)) continue;
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

  // Returns, for each edge, the number of transfers from the root to the edge's child, at least 1.
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

// Offers the bound as the time. The work is a search over all links for each member, with a heap, and the
// transfers of each member's tree.
StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  const int64_t members = request.collective->num_members(), links = request.topology->num_links();
  return Offer{.time_ps = static_cast<double>(bound.bound_ps),
               .work = members *
                       (members + links * static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(links))) /
                                      kOperationsPerMove)};
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
