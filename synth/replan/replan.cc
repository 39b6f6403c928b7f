// Repairs a plan for a changed machine.
// 1. Match finds the nodes, links, ranks and parts of the old machine in the new machine by name.
// 2. TreesOf reads the plan as trees in the new names (trees.h).
// 3. Cut makes the request's collective in the plan's chunks, each in the pieces that TreesOf chose.
// 4. Repair joins lost edges and relieves busy links (repair.h).
// 5. ScheduleOf writes the trees as a schedule.
#include "synth/replan/replan.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/sizes.h"
#include "ir/translated.h"
#include "synth/replan/repair.h"
#include "synth/replan/trees.h"

namespace xccl {
namespace {

// The number of links that balancing may look at for each place in a tree (trees.h): a few searches around
// each edge.
constexpr int64_t kWorkPerSlot = 20;

IdVector<NodeId, std::optional<NodeId>> RenameNodes(const Topology& old, const Topology& now) {
  std::map<std::tuple<NodeKind, std::string, std::string>, NodeId> by_name;
  const auto name = [](const Topology& topology, NodeId n) {
    const Node& node = topology.node(n);
    return std::tuple(node.kind, node.host ? topology.spec().hosts[node.host->index()].name : "", node.id);
  };
  for (int32_t n = 0; n < now.num_nodes(); ++n) by_name.emplace(name(now, NodeId(n)), n);
  IdVector<NodeId, std::optional<NodeId>> renamed;
  for (int32_t n = 0; n < old.num_nodes(); ++n) {
    const auto found = by_name.find(name(old, NodeId(n)));
    renamed.push_back(found == by_name.end() ? std::nullopt : std::optional(found->second));
  }
  return renamed;
}

// Returns the new link of each old link. Parallel links are matched in order: the first old link is the first
// new link. If one of two parallel links is gone, the old second link has no match.
IdVector<LinkId, std::optional<LinkId>> RenameLinks(const Topology& old, const Topology& now,
                                                    const IdVector<NodeId, std::optional<NodeId>>& node) {
  using Ends = std::pair<std::optional<NodeId>, std::optional<NodeId>>;
  std::map<Ends, std::vector<LinkId>> by_ends;
  for (int32_t l = 0; l < now.num_links(); ++l) {
    const Link& link = now.link(LinkId(l));
    by_ends[{link.from, link.to}].emplace_back(l);
  }
  std::map<Ends, size_t> seen;
  IdVector<LinkId, std::optional<LinkId>> renamed;
  for (int32_t l = 0; l < old.num_links(); ++l) {
    const Link& link = old.link(LinkId(l));
    const Ends ends(node[link.from], node[link.to]);
    const auto found = by_ends.find(ends);
    const size_t k = seen[ends]++;
    const bool gone = found == by_ends.end() || k >= found->second.size();
    renamed.push_back(gone ? std::nullopt : std::optional(found->second[k]));
  }
  return renamed;
}

// A part's name that does not change with the number of ranks: the ranks whose data it is, or its number.
struct PartName {
  std::optional<Rank> rank = {}, other = {};
  int64_t number = 0;
  auto operator<=>(const PartName&) const = default;
};

PartName NameOf(const CollectiveSpec& spec, size_t part) {
  const size_t members = spec.ranks.size();
  switch (spec.kind) {
    case CollectiveKind::kSendrecv:
      return {spec.pairs[part].first, spec.pairs[part].second};
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
      return {spec.ranks[part / members], spec.ranks[part % members]};
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kCustom:
      return {std::nullopt, std::nullopt, static_cast<int64_t>(part)};
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return {spec.ranks[part]};
  }
  return {};
}

bool IsEmpty(const Collective& collective, PartId part) {
  const int32_t first = collective.FirstChunk(part).value;
  for (int32_t i = 0; i < collective.ChunksOf(part); ++i)
    if (!collective.AlwaysEmpty(ChunkId(first + i))) return false;
  return true;
}

// Returns the table sorted. If `renaming` is given, writes the table in the new machine's ranks.
std::vector<TableEntry> Sorted(std::vector<TableEntry> table, const replan::Renaming* renaming = nullptr) {
  const auto name = [&](Rank r) { return renaming == nullptr ? r : *renaming->rank[r]; };
  for (TableEntry& entry : table) {
    entry.rank = name(entry.rank);
    for (Rank& r : entry.contributions) r = name(r);
    std::sort(entry.contributions.begin(), entry.contributions.end());
  }
  std::sort(table.begin(), table.end(), [](const TableEntry& a, const TableEntry& b) {
    return std::pair(a.part, a.rank) < std::pair(b.part, b.rank);
  });
  return table;
}

struct Mapping {
  replan::Renaming renaming;
  std::vector<PartId> part;  // by new part: the old part
};

StatusOr<Mapping> Match(const Plan& plan, const SynthesisRequest& request) {
  const CollectiveSpec &old = plan.collective.spec(), &now = request.collective->spec();
  const auto differ = [&](const std::string& what) {
    return InvalidInput("the plan is for " + plan.collective.name() + what);
  };
  if (old.kind != now.kind || old.custom_name != now.custom_name)
    return differ("; expected " + request.collective->name());
  Mapping mapping;
  const auto node = RenameNodes(plan.topology, *request.topology);
  mapping.renaming.link = RenameLinks(plan.topology, *request.topology, node);
  for (int32_t r = 0; r < plan.topology.num_ranks(); ++r) {
    const std::optional<NodeId> n = node[plan.topology.NodeOf(Rank(r))];
    mapping.renaming.rank.push_back(n ? request.topology->RankOf(*n) : std::nullopt);
  }
  const auto renamed = [&](std::optional<Rank> r) { return r ? mapping.renaming.rank[*r] : r; };
  size_t kept = 0;
  for (Rank r : old.ranks) kept += renamed(r) && request.collective->MemberIndex(*renamed(r)) ? 1 : 0;
  if (kept != now.ranks.size()) return differ(" on other ranks; expected all of its ranks, or some");
  if (old.root && renamed(old.root) != now.root)
    return differ(fmt::format(" with root {}; expected the same root", old.root->value));
  if (now.kind == CollectiveKind::kCustom && now.ranks.size() != old.ranks.size())
    return differ(", made by a user; expected all of its ranks");
  if (now.kind == CollectiveKind::kCustom && (Sorted(old.pre, &mapping.renaming) != Sorted(now.pre) ||
                                              Sorted(old.post, &mapping.renaming) != Sorted(now.post)))
    return differ(" with other tables");

  std::map<PartName, PartId> old_part;
  for (int64_t p = 0; p < NumParts(old); ++p) {
    const PartName name = NameOf(old, static_cast<size_t>(p));
    old_part.emplace(PartName{renamed(name.rank), renamed(name.other), name.number}, p);
    mapping.renaming.part.push_back(std::nullopt);
  }
  for (int64_t p = 0; p < NumParts(now); ++p) {
    const auto found = old_part.find(NameOf(now, static_cast<size_t>(p)));
    if (found == old_part.end()) return differ(" of other parts");
    if (IsEmpty(plan.collective, found->second) && !IsEmpty(*request.collective, PartId(p)))
      return differ(" with nothing to move of some parts that are not empty");
    mapping.renaming.part[found->second] = PartId(p);
    mapping.part.push_back(found->second);
  }
  return mapping;
}

// Returns the request's collective in the plan's chunks, with each chunk cut into `pieces`.
Collective Cut(const Plan& plan, const Collective& whole, const std::vector<PartId>& part, int32_t pieces) {
  std::vector<std::vector<int64_t>> weights;
  for (PartId p : part) {
    weights.emplace_back();
    for (int32_t i = 0; i < plan.collective.ChunksOf(p); ++i)
      weights.back().insert(weights.back().end(), static_cast<size_t>(pieces),
                            plan.collective.Weight(ChunkId(plan.collective.FirstChunk(p).value + i)));
  }
  return whole.WithWeights(weights);
}

// Returns the most pieces of a chunk, at most 1024. Every link should carry a piece of the largest chunk for
// at least the link's latency and overhead.
int32_t MostCut(const Plan& plan, const SynthesisRequest& request) {
  int64_t largest = 0, filling = 1;  // bytes
  const CollectiveSizes sizes(plan.collective, request.size_bytes);
  for (int32_t c = 0; c < plan.collective.num_chunks(); ++c)
    largest = std::max(largest, sizes.ChunkBytes(ChunkId(c)));
  for (int32_t l = 0; l < request.topology->num_links(); ++l) {
    const Link& link = request.topology->link(LinkId(l));
    const double seconds = static_cast<double>(link.latency_ps + link.overhead_ps) / kPsPerSecond;
    filling =
        std::max(filling, static_cast<int64_t>(seconds * static_cast<double>(link.bandwidth_bytes_per_s)));
  }
  return static_cast<int32_t>(std::clamp<int64_t>(largest / filling, 1, 1 << 10));
}

}  // namespace

StatusOr<Synthesis> Replan(const Plan& plan, const SynthesisRequest& request) {
  if (plan.collective.num_parts() > kMostParts || request.collective->num_parts() > kMostParts)
    return InvalidInput(fmt::format("replan: a plan of {} parts; at most {} are supported",
                                    std::max(plan.collective.num_parts(), request.collective->num_parts()),
                                    kMostParts));
  XCCL_ASSIGN_OR_RETURN(Mapping mapping, Match(plan, request));
  mapping.renaming.most_cut = MostCut(plan, request);
  XCCL_ASSIGN_OR_RETURN(const Schedule plain, Expand(plan.schedule, plan.collective, plan.topology));
  XCCL_ASSIGN_OR_RETURN(replan::Trees trees,
                        replan::TreesOf(plain, plan.collective, plan.topology, mapping.renaming,
                                        request.topology->num_ranks()));
  const Collective collective = Cut(plan, *request.collective, mapping.part, trees.cut);
  const CollectiveSizes sizes(collective, request.size_bytes);
  const int64_t work = request.limits.work_units > 0
                           ? request.limits.work_units
                           : kWorkPerSlot * static_cast<int64_t>(trees.places.size());
  XCCL_ASSIGN_OR_RETURN(const replan::RepairResult repaired,
                        replan::Repair(*request.topology, collective, sizes, request.model, work, trees));
  return Synthesis{.collective = collective,
                   .schedule = replan::ScheduleOf(trees, collective),
                   .engine = kReplan,
                   .note = fmt::format(
                       "from a plan by {}: {} of {} edges kept, {} edges joined anew, {} moved "
                       "off busy links",
                       plan.made_by.engine, repaired.kept, repaired.edges, repaired.joined, repaired.moved)};
}

}  // namespace xccl
