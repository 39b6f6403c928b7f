// A detour joins the ends of the links that it replaces. So a path stays a chain from its source to its
// destination, whatever detours it takes, and also where a loop is left out. Only lost links are looked for.
#include "ir/verify/verify_damage.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ir/analysis/chunk_index.h"
#include "ir/damaged.h"
#include "ir/taken_over.h"
#include "ir/translated.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

// Returns the ends of a chain of links, or what is wrong with it. GPUs may stand at its ends alone.
std::string ChainError(const Topology& machine, std::span<const LinkId> links, int32_t num_links,
                       std::pair<NodeId, NodeId>& ends) {
  if (links.empty()) return "has no links";
  for (const LinkId l : links)
    if (l.value < 0 || l.value >= num_links)
      return fmt::format("has link {}; expected links 0..{}", l.value, num_links - 1);
  for (size_t i = 1; i < links.size(); ++i) {
    const NodeId between = machine.link(links[i]).from;
    if (machine.link(links[i - 1]).to != between)
      return fmt::format("has link {} after {}, which ends elsewhere", links[i].value, links[i - 1].value);
    if (machine.IsGpu(between)) return fmt::format("passes {}", machine.NodeName(between));
  }
  ends = {machine.link(links.front()).from, machine.link(links.back()).to};
  return "";
}

std::string DetourError(const Detour& detour, const Topology& whole, int32_t num_links,
                        const Detours& detours) {
  std::pair<NodeId, NodeId> of_links, of_by;
  if (std::string error = ChainError(whole, detour.links, whole.num_links(), of_links); !error.empty())
    return "the row " + error;
  if (std::ranges::none_of(detour.links, [&](LinkId l) { return detours.IsDamaged(l); }))
    return "the row has no damaged link";
  if (std::string error = ChainError(whole, detour.by, num_links, of_by); !error.empty()) return error;
  if (of_links != of_by)
    return fmt::format("leads from {} to {}; expected from {} to {}", whole.NodeName(of_by.first),
                       whole.NodeName(of_by.second), whole.NodeName(of_links.first),
                       whole.NodeName(of_links.second));
  return "";
}

}  // namespace

namespace {

// A way joins two ranks by links of the machine, and is no loop.
std::string WayError(std::span<const LinkId> way, const Topology& whole, int32_t num_links) {
  std::pair<NodeId, NodeId> ends;
  if (std::string error = ChainError(whole, way, num_links, ends); !error.empty()) return error;
  for (const NodeId end : {ends.first, ends.second})
    if (!whole.IsGpu(end)) return fmt::format("ends at {}; expected ranks", whole.NodeName(end));
  std::vector<NodeId> nodes = {ends.first};
  for (const LinkId l : way) nodes.push_back(whole.link(l).to);
  std::ranges::sort(nodes);
  const auto twice = std::ranges::adjacent_find(nodes);
  return twice == nodes.end() ? "" : fmt::format("visits {} twice", whole.NodeName(*twice));
}

// The rank to which the sums of a chunk go, and from which its copies come.
Rank RootOf(const Collective& collective, ChunkId chunk) {
  const int32_t parts = collective.num_members();
  return collective.ranks()[static_cast<size_t>(chunk.value / (collective.num_chunks() / parts))];
}

// Checks that the transfers of each chunk that the columns move are a tree of sums, one of copies, or both.
class Trees {
 public:
  Trees(const Schedule& schedule, const Collective& collective, const ReportDamage& report)
      : s_(schedule), collective_(collective), report_(report) {
    for (const TransferOp op : {TransferOp::kReduce, TransferOp::kCopy})
      expected_[op] =
          op == TransferOp::kReduce ? IsReduction(collective.kind()) : EndsAlike(collective.kind());
  }

  bool Check() {
    bool fine = true;
    std::vector<int32_t> edges(static_cast<size_t>(collective_.num_members()));  // by member: to its parent
    ForEachMovedChunk(s_, [&](ChunkId chunk, std::span<const int32_t> transfers) {
      if (transfers.empty()) return;
      for (const auto& [op, expected] : expected_) {
        std::ranges::fill(edges, 0);
        for (const int32_t t : transfers)
          if (s_.op[t] == op)
            ++edges[static_cast<size_t>(
                *collective_.MemberIndex(op == TransferOp::kCopy ? s_.dst[t] : s_.src[t]))];
        for (size_t m = 0; m < edges.size() && fine; ++m) {
          const Rank rank = collective_.ranks()[m];
          const int32_t wanted = expected && rank != RootOf(collective_, chunk) ? 1 : 0;
          if (edges[m] == wanted) continue;
          fine = false;
          report_(fmt::format("chunk {}", chunk.value),
                  fmt::format("rank {} {} it {} times; expected {}, since hosts are lost", rank.value,
                              op == TransferOp::kCopy ? "is sent a copy of" : "sends its sum of", edges[m],
                              wanted));
        }
      }
    });
    return fine;
  }

 private:
  const Schedule& s_;
  const Collective& collective_;
  const ReportDamage& report_;
  std::map<TransferOp, bool> expected_;
};

// A lost rank passes nothing on between ranks that are there. Each lost rank stands at one place of the
// columns' chunks for each rank that passes one on.
void CheckRelays(const Schedule& schedule, const Translations& translations, const Topology& whole,
                 const ReportDamage& report) {
  const SymmetryGroup& group = translations.group();
  const auto is_there = [&](Rank r) { return !IsLost(whole.NodeOf(r), whole, schedule.missing); };
  for (const Rank lost : LostRanks(whole, schedule.missing))
    for (int64_t t = 0; t < schedule.size(); ++t) {
      const Rank relay = schedule.dst[t];
      if (group.OrbitOf(relay) != group.OrbitOf(lost)) continue;
      const int64_t e = group.Compose(group.Inverse(group.ElementOf(relay)), group.ElementOf(lost));
      for (int32_t i = 0; i < schedule.count[t]; ++i) {
        const ChunkId chunk(schedule.first[t].value + i);
        const auto [from, to] = translations.EndsOfPair(chunk);
        if (relay == from || relay == to || !is_there(group.Image(e, from)) || !is_there(group.Image(e, to)))
          continue;
        return report(
            fmt::format("chunk {}", chunk.value),
            fmt::format("rank {} passes it on, and so would lost rank {} of the whole machine between two "
                        "ranks that are there; expected ranks that are lost only with an end of the pair",
                        relay.value, lost.value));
      }
    }
}

}  // namespace

void CheckLostHosts(const Schedule& schedule, const Collective& collective, const Topology& topology,
                    const Topology& whole, const Collective& of_whole, const ReportDamage& report) {
  bool fine = true;
  for (size_t w = 0; w < schedule.ways.size(); ++w)
    if (std::string error = WayError(schedule.ways[w], whole, topology.num_links()); !error.empty()) {
      fine = false;
      report(fmt::format("way {}", w), std::move(error));
    }
  const Translations translations = Translations::Create(schedule, collective, topology).value();
  if (translations.of_pairs()) {
    if (!schedule.ways.empty()) report("ways", "an alltoall has no heirs; expected none");
    return CheckRelays(schedule, translations, whole, report);
  }
  if (!Trees(schedule, of_whole, report).Check() || !fine) return;
  const PathKinds kinds = PathKindsOf(schedule.paths, whole, translations.group());
  const PathsBetween paths(schedule, kinds, whole, translations.group());
  std::vector<LinkId> links;
  for (const TakenOver& t : TransfersTakenOver(schedule, translations, whole)) {
    if (paths.Find(t.src, t.dst, links)) continue;
    return report(
        fmt::format("step {}", t.step),
        fmt::format("no path from rank {} to rank {}, one of which takes the place of lost rank {}; "
                    "expected one of the columns, or a way",
                    t.src.value, t.dst.value, t.lost.value));
  }
}

std::optional<Topology> CheckMissing(const Schedule& schedule, const Topology& topology,
                                     const ReportDamage& report) {
  if (schedule.missing.empty()) {
    if (!schedule.detours.empty()) report("detours", "nothing is missing; expected a lost or slow link");
    return std::nullopt;
  }
  if (schedule.symmetry.empty()) {
    report("missing", "no symmetry; expected a compressed schedule");
    return std::nullopt;
  }
  StatusOr<Topology> whole = WholeOf(schedule, topology);
  if (whole.ok()) return *std::move(whole);
  report("missing", std::string(whole.status().message()));
  return std::nullopt;
}

void CheckDetours(const Schedule& schedule, const Topology& topology, const Topology& whole,
                  const ReportDamage& report) {
  const StatusOr<SymmetryGroup> group = SymmetryGroup::Create(whole, schedule.symmetry);
  if (!group.ok()) return report("symmetry", std::string(group.status().message()));
  for (int32_t p = 0; p < schedule.paths.size(); ++p)
    if (!IsChain(whole, schedule.paths[PathId(p)]))
      return report("path", fmt::format("path {} is a tree; expected chains on a damaged machine", p));
  const Detours detours(whole, schedule.missing, schedule.detours);
  bool fine = true;
  for (size_t d = 0; d < schedule.detours.size(); ++d) {
    std::string error = DetourError(schedule.detours[d], whole, topology.num_links(), detours);
    if (error.empty()) continue;
    fine = false;
    report(fmt::format("detour {}", d), std::move(error));
  }
  if (!fine) return;
  const PathKinds kinds = PathKindsOf(schedule.paths, whole, *group);
  // Where a path without its end passes a lost link, the end may yet make a loop of it, which is left out.
  const auto for_each_lost = [&](EndLinks ends,
                                 const std::function<void(std::span<const LinkId>, LinkId)>& visit) {
    ForEachDamaged(
        kinds, {}, detours, schedule.missing, whole, *group, ends, [&](std::vector<LinkId>& path, double) {
          detours.Apply(path);
          if (const auto lost =
                  std::ranges::find_if(path, [&](LinkId l) { return l.value >= topology.num_links(); });
              lost != path.end())
            visit(path, *lost);
        });
  };
  bool any = false;
  for_each_lost(EndLinks::kCut, [&](std::span<const LinkId>, LinkId) { any = true; });
  if (!any) return;
  for_each_lost(EndLinks::kKept, [&](std::span<const LinkId> path, LinkId lost) {
    report(fmt::format("path from rank {} to rank {}", whole.RankOf(whole.link(path.front()).from)->value,
                       whole.RankOf(whole.link(path.back()).to)->value),
           fmt::format("passes {}, which is lost; expected a detour", whole.LinkName(lost)));
  });
}

}  // namespace xccl
