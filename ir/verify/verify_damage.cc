// A detour joins the ends of the links that it replaces. So a path stays a chain from its source to its
// destination, whatever detours it takes, and also where a loop is left out. Only lost links are looked for.
#include "ir/verify/verify_damage.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "ir/damaged.h"
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
  ForEachDamaged(kinds, detours, schedule.missing, whole, *group, [&](int32_t, std::vector<LinkId>& path) {
    detours.Apply(path);
    const auto lost = std::ranges::find_if(path, [&](LinkId l) { return l.value >= topology.num_links(); });
    if (lost == path.end()) return;
    report(fmt::format("path from rank {} to rank {}", whole.RankOf(whole.link(path.front()).from)->value,
                       whole.RankOf(whole.link(path.back()).to)->value),
           fmt::format("passes {}, which is lost; expected a detour", whole.LinkName(*lost)));
  });
}

}  // namespace xccl
