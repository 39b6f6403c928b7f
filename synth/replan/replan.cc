#include "synth/replan/replan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/sizes.h"
#include "ir/translated.h"
#include "synth/replan/search.h"
#include "synth/replan/trees.h"

namespace xccl {
namespace {

// Links looked at while balancing, for every place of a tree. Balancing counts where the busiest link ends
// less busy by this part: moves that leave it as it is only make ways longer.
constexpr int64_t kWorkAPlace = 20;
constexpr int64_t kShows = 512;

std::vector<int32_t> RenameNodes(const Topology& old, const Topology& now) {
  std::map<std::tuple<NodeKind, std::string, std::string>, int32_t> by_name;
  const auto name = [](const Topology& topology, int32_t n) {
    const Node& node = topology.node(NodeId(n));
    return std::tuple(node.kind, node.host ? topology.spec().hosts[node.host->index()].name : "", node.id);
  };
  for (int32_t n = 0; n < now.num_nodes(); ++n) by_name.emplace(name(now, n), n);
  std::vector<int32_t> renamed;
  for (int32_t n = 0; n < old.num_nodes(); ++n) {
    const auto found = by_name.find(name(old, n));
    renamed.push_back(found == by_name.end() ? -1 : found->second);
  }
  return renamed;
}

// Parallel links in order: when one of two is gone it is taken to be the second.
std::vector<int32_t> RenameLinks(const Topology& old, const Topology& now, const std::vector<int32_t>& node) {
  std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> by_ends;
  for (int32_t l = 0; l < now.num_links(); ++l) {
    const Link& link = now.link(LinkId(l));
    by_ends[{link.from.value, link.to.value}].push_back(l);
  }
  std::map<std::pair<int32_t, int32_t>, size_t> seen;
  std::vector<int32_t> renamed;
  for (int32_t l = 0; l < old.num_links(); ++l) {
    const Link& link = old.link(LinkId(l));
    const std::pair ends(node[link.from.index()], node[link.to.index()]);
    const auto found = by_ends.find(ends);
    const size_t k = seen[ends]++;
    renamed.push_back(found == by_ends.end() || k >= found->second.size() ? -1 : found->second[k]);
  }
  return renamed;
}

// Names of a part that do not change with the number of ranks: the ranks that it is of, or its number.
std::vector<std::pair<int32_t, int32_t>> PartNames(const CollectiveSpec& spec) {
  std::vector<std::pair<int32_t, int32_t>> names;
  const int64_t parts = NumParts(spec);
  const size_t members = spec.ranks.size();
  for (size_t p = 0; p < static_cast<size_t>(parts); ++p) {
    switch (spec.kind) {
      case CollectiveKind::kSendrecv:
        names.emplace_back(spec.pairs[p].first.value, spec.pairs[p].second.value);
        break;
      case CollectiveKind::kAlltoall:
      case CollectiveKind::kAlltoallv:
        names.emplace_back(spec.ranks[p / members].value, spec.ranks[p % members].value);
        break;
      case CollectiveKind::kAllreduce:
      case CollectiveKind::kBroadcast:
      case CollectiveKind::kReduce:
      case CollectiveKind::kBarrier:
      case CollectiveKind::kCustom:
        names.emplace_back(-1, static_cast<int32_t>(p));
        break;
      default:
        names.emplace_back(spec.ranks[p].value, -1);
    }
  }
  return names;
}

bool IsEmpty(const Collective& collective, int32_t part) {
  const int32_t first = collective.FirstChunk(PartId(part)).value;
  for (int32_t i = 0; i < collective.ChunksOf(PartId(part)); ++i)
    if (!collective.AlwaysEmpty(ChunkId(first + i))) return false;
  return true;
}

// A table in the new machine's names, in one order.
std::vector<TableEntry> Renamed(std::vector<TableEntry> table, const std::vector<int32_t>& rank) {
  for (TableEntry& entry : table) {
    entry.rank = Rank(rank[entry.rank.index()]);
    for (Rank& r : entry.contributions) r = Rank(rank[r.index()]);
    std::sort(entry.contributions.begin(), entry.contributions.end());
  }
  std::sort(table.begin(), table.end(), [](const TableEntry& a, const TableEntry& b) {
    return std::pair(a.part, a.rank) < std::pair(b.part, b.rank);
  });
  return table;
}

bool SameTables(const CollectiveSpec& old, const CollectiveSpec& now, const std::vector<int32_t>& rank,
                int32_t ranks_now) {
  std::vector<int32_t> same(static_cast<size_t>(ranks_now));
  std::iota(same.begin(), same.end(), 0);
  return Renamed(old.pre, rank) == Renamed(now.pre, same) &&
         Renamed(old.post, rank) == Renamed(now.post, same);
}

struct Mapping {
  replan::Renaming renaming;
  std::vector<int32_t> part;  // by new part: the old one
};

StatusOr<Mapping> Match(const Plan& plan, const SynthesisRequest& request) {
  const CollectiveSpec &old = plan.collective.spec(), &now = request.collective->spec();
  const auto differ = [&](const std::string& what) {
    return InvalidInput("the plan is for " + plan.collective.name() + what);
  };
  if (old.kind != now.kind || old.custom_name != now.custom_name)
    return differ("; expected " + request.collective->name());
  Mapping mapping;
  const std::vector<int32_t> node = RenameNodes(plan.topology, *request.topology);
  mapping.renaming.link = RenameLinks(plan.topology, *request.topology, node);
  for (int32_t r = 0; r < plan.topology.num_ranks(); ++r) {
    const int32_t n = node[plan.topology.NodeOf(Rank(r)).index()];
    mapping.renaming.rank.push_back(n < 0 ? -1 : request.topology->RankOf(NodeId(n))->value);
  }
  const auto renamed = [&](int32_t r) { return r < 0 ? r : mapping.renaming.rank[static_cast<size_t>(r)]; };
  std::vector<bool> is_member(static_cast<size_t>(request.topology->num_ranks()), false);
  size_t kept = 0;
  for (Rank r : now.ranks) is_member[r.index()] = true;
  for (Rank r : old.ranks)
    kept += renamed(r.value) >= 0 && is_member[static_cast<size_t>(renamed(r.value))] ? 1 : 0;
  if (kept != now.ranks.size()) return differ(" on other ranks; expected all of its ranks, or some");
  if (old.root.has_value() && renamed(old.root->value) != now.root->value)
    return differ(fmt::format(" with root {}; expected the same root", old.root->value));
  if (now.kind == CollectiveKind::kCustom && now.ranks.size() != old.ranks.size())
    return differ(", made by a user; expected all of its ranks");
  if (now.kind == CollectiveKind::kCustom &&
      !SameTables(old, now, mapping.renaming.rank, request.topology->num_ranks()))
    return differ(" with other tables");

  std::map<std::pair<int32_t, int32_t>, int32_t> old_part;
  const auto old_names = PartNames(old), names = PartNames(now);
  for (size_t p = 0; p < old_names.size(); ++p)
    old_part.emplace(std::pair(renamed(old_names[p].first),
                               old_names[p].first < 0 ? old_names[p].second : renamed(old_names[p].second)),
                     static_cast<int32_t>(p));
  mapping.renaming.part.assign(old_names.size(), -1);
  for (const auto& name : names) {
    const auto found = old_part.find(name);
    if (found == old_part.end()) return differ(" of other parts");
    if (IsEmpty(plan.collective, found->second) &&
        !IsEmpty(*request.collective, static_cast<int32_t>(mapping.part.size())))
      return differ(" with nothing to move of some parts that are not empty");
    mapping.renaming.part[static_cast<size_t>(found->second)] = static_cast<int32_t>(mapping.part.size());
    mapping.part.push_back(found->second);
  }
  return mapping;
}

// The request's collective in the plan's chunks, each cut into `pieces`.
Collective Cut(const Plan& plan, const Collective& whole, const std::vector<int32_t>& part, int32_t pieces) {
  std::vector<std::vector<int64_t>> weights;
  for (int32_t p : part) {
    weights.emplace_back();
    for (int32_t i = 0; i < plan.collective.ChunksOf(PartId(p)); ++i)
      weights.back().insert(weights.back().end(), static_cast<size_t>(pieces),
                            plan.collective.Weight(ChunkId(plan.collective.FirstChunk(PartId(p)).value + i)));
  }
  return whole.WithWeights(weights);
}

// A piece of a chunk takes a link longer than its latency.
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
  XCCL_ASSIGN_OR_RETURN(Mapping mapping, Match(plan, request));
  mapping.renaming.most_cut = MostCut(plan, request);
  XCCL_ASSIGN_OR_RETURN(const Schedule plain, Expand(plan.schedule, plan.collective, plan.topology));
  XCCL_ASSIGN_OR_RETURN(replan::CutTrees read,
                        replan::TreesOf(plain, plan.collective, plan.topology, mapping.renaming,
                                        request.topology->num_ranks()));
  replan::Trees& trees = read.trees;
  const Collective collective = Cut(plan, *request.collective, mapping.part, read.cut);
  const CollectiveSizes sizes(collective, request.size_bytes);
  const Topology& topology = *request.topology;
  replan::SearchOptions options{.model = request.model, .work = 0};
  XCCL_ASSIGN_OR_RETURN(const replan::SearchResult joined,
                        replan::Repair(topology, collective, sizes, options, trees));
  replan::Trees balanced = trees;
  options.work = request.limits.work_units > 0 ? request.limits.work_units
                                               : kWorkAPlace * static_cast<int64_t>(trees.places.size());
  XCCL_ASSIGN_OR_RETURN(const replan::SearchResult moved,
                        replan::Repair(topology, collective, sizes, options, balanced));
  const bool shows = moved.busiest_ps < moved.busiest_before_ps - moved.busiest_before_ps / kShows;
  return Synthesis{.collective = collective,
                   .schedule = replan::ScheduleOf(shows ? balanced : trees, collective),
                   .engine = "replan",
                   .note = fmt::format("from a plan by {}: {} edges joined anew, {} moved off busy links",
                                       plan.made_by.engine, joined.joined, shows ? moved.moved : 0)};
}

}  // namespace xccl
