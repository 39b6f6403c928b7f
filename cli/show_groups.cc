#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/show.h"
#include "ir/sizes.h"
#include "pipeline/groups_together.h"

namespace xccl {
namespace {

constexpr size_t kShownEach = 32;  // up to so many groups get a row each; more are shown by kind

// Consecutive ranks as a range, "0-7"; else the first few ranks, "0,8,16,24,32,40,..".
std::string RanksText(std::span<const Rank> ranks) {
  constexpr size_t kShown = 6;
  bool consecutive = ranks.size() > 2;
  for (size_t i = 1; i < ranks.size(); ++i) consecutive &= ranks[i].value == ranks[i - 1].value + 1;
  if (consecutive) return fmt::format("{}-{}", ranks.front().value, ranks.back().value);
  std::string text;
  for (size_t i = 0; i < std::min(kShown, ranks.size()); ++i)
    text += fmt::format("{}{}", i > 0 ? "," : "", ranks[i].value);
  return text + (ranks.size() > kShown ? ",.." : "");
}

// Groups of one kind, shown as the slowest of them.
struct Kind {
  size_t slowest = 0;
  int64_t groups = 0;
};

std::vector<Kind> KindsOf(const GroupsResult& all) {
  std::vector<Kind> kinds;
  const bool each = all.groups.size() <= kShownEach;
  const auto key = [&](size_t g) {
    const ProcessGroup& group = all.groups[g];
    return std::tuple(group.collective.kind(), group.collective.num_members(), group.size_bytes, group.count);
  };
  for (size_t g = 0; g < all.groups.size(); ++g) {
    const auto same = std::ranges::find_if(kinds, [&](const Kind& k) { return key(k.slowest) == key(g); });
    if (each || same == kinds.end()) {
      kinds.push_back({g, 1});
      continue;
    }
    ++same->groups;
    if (all.outcomes[g].together_ps > all.outcomes[same->slowest].together_ps) same->slowest = g;
  }
  return kinds;
}

std::string Gain(const GroupsResult& all) {
  return fmt::format("{} where each group has the plan that is fastest alone: {:.2f} times as long",
                     FormatDurationShort(all.unaware_ps),
                     RatioOf(all.unaware_ps, all.result.simulation.time_ps));
}

// The head of groups that were planned apart: no plan of them all is there to be described.
std::string ApartText(const GroupsResult& all, const Ended& ended) {
  const PlanResult& result = all.result;
  std::string text =
      fmt::format("{} on {}: {}, {} model\n", all.name, result.plan.topology.name(),
                  Counted(std::ssize(all.groups), "group"), ToString(result.plan.made_by.model));
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<10} {}\n", name, value);
  };
  line("engine", fmt::format("groups: one of each of {} by itself; one plan of all would be too large",
                             Counted(static_cast<int64_t>(all.kinds_apart), "kind")));
  line("time", FormatDurationShort(result.simulation.time_ps) + ", each link shared by the groups' loads");
  line("bound", fmt::format("{} of the slowest group's own   ratio {:.4f}",
                            FormatDurationShort(result.bound.bound_ps), result.ratio));
  line("synthesis", fmt::format("{:.3g} s of {:.3g} s in all", result.synthesis_s, ended.total_s));
  return text;
}

}  // namespace

double BusBandwidth(const ProcessGroup& group, int64_t ps) {
  Simulation simulation;
  simulation.time_ps = ps;
  simulation.size_bytes = CollectiveSizes(group.collective, group.size_bytes).size_bytes();
  return BusBandwidth(group.collective, simulation);
}

std::string GroupsText(const GroupsResult& all, const Ended& ended) {
  std::vector<std::vector<std::string>> table = {{"group", "collective", "ranks", "size", "count", "engine",
                                                  "alone us", "together us", "bound us", "busbw GB/s"}};
  for (const Kind& kind : KindsOf(all)) {
    const ProcessGroup& group = all.groups[kind.slowest];
    const GroupOutcome& outcome = all.outcomes[kind.slowest];
    const std::string name =
        kind.groups > 1 ? fmt::format("{} and {} more", group.name, kind.groups - 1) : group.name;
    table.push_back({name, group.collective.name(), RanksText(group.collective.ranks()),
                     FormatSizeShort(group.size_bytes), fmt::format("{}", group.count), outcome.engine,
                     fmt::format("{:.1f}", PsToUs(outcome.alone_ps)),
                     fmt::format("{:.1f}", PsToUs(outcome.together_ps)),
                     fmt::format("{:.1f}", PsToUs(outcome.bound_ps)),
                     fmt::format("{:.1f}", GbPerS(BusBandwidth(group, outcome.together_ps)))});
  }
  std::string text = all.kinds_apart > 0 ? ApartText(all, ended)
                                         : PlanText(all.result, all.result.plan.made_by.engine, ended);
  text += fmt::format("  {:<10} {}\n", "unaware", Gain(all));
  return text + TableText(table);
}

std::string GroupsJson(const GroupsResult& all, const Ended& ended) {
  std::vector<Row> rows;
  for (size_t g = 0; g < all.groups.size(); ++g) {
    const ProcessGroup& group = all.groups[g];
    const GroupOutcome& outcome = all.outcomes[g];
    rows.push_back({{"name", group.name},
                    {"collective", group.collective.name()},
                    {"ranks", Numbers(group.collective.ranks())},
                    {"size_bytes", group.size_bytes},
                    {"count", group.count},
                    {"engine", outcome.engine},
                    {"time_alone_us", PsToUs(outcome.alone_ps)},
                    {"time_together_us", PsToUs(outcome.together_ps)},
                    {"bound_us", PsToUs(outcome.bound_ps)},
                    {"busbw_gb_per_s", GbPerS(BusBandwidth(group, outcome.together_ps))}});
  }
  Row row = PlanRow(all.result, ended);
  row.emplace_back("unaware_us", PsToUs(all.unaware_ps));
  if (all.kinds_apart > 0) row.emplace_back("kinds_apart", static_cast<int64_t>(all.kinds_apart));
  return ToJson(row, "groups", rows);
}

}  // namespace xccl
