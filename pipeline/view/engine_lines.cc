// 1. Collect the rows of the comparison into lines, by name.
// 2. Find the front: a line is not on it if another line is at least as fast at every size that the line has.
// 3. Find the lines that lead: lines of the front that have the least time at some size.
// 4. Sort the lines.
#include "pipeline/view/engine_lines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "synth/engines.h"

namespace xccl {
namespace {

enum class Order : uint8_t { kNever, kSame, kFaster };

// Compares a with b at the sizes of b. Returns kNever if a is slower or has no plan at some size. Returns
// kFaster if a is faster at some size, or is equally fast and has more sizes. Otherwise returns kSame.
Order Compared(const EngineLine& a, const EngineLine& b) {
  Order order = Order::kSame;
  for (const PlanTime& point : b.points) {
    const auto at = std::ranges::find(a.points, point.size_bytes, &PlanTime::size_bytes);
    if (at == a.points.end() || at->time_ps > point.time_ps) return Order::kNever;
    if (at->time_ps < point.time_ps) order = Order::kFaster;
  }
  return order == Order::kSame && a.points.size() > b.points.size() ? Order::kFaster : order;
}

double MeanRatio(const EngineLine& line) {
  double sum = 0;
  for (const PlanTime& point : line.points) sum += std::log(std::max(point.ratio, 1e-9));
  return std::exp(sum / static_cast<double>(line.points.size()));
}

// Returns whether the line may be on the front.
bool Competes(const EngineLine& line) {
  return line.group != EngineGroup::kAuto && line.group != EngineGroup::kMeasured;
}

void FindFront(std::vector<EngineLine>& lines) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!Competes(lines[i])) continue;
    lines[i].on_front = true;
    for (size_t j = 0; j < lines.size() && lines[i].on_front; ++j) {
      if (j == i || !Competes(lines[j])) continue;
      const Order order = Compared(lines[j], lines[i]);
      if (order == Order::kFaster || (order == Order::kSame && j < i)) lines[i].on_front = false;
    }
  }
}

void FindLeaders(std::vector<EngineLine>& lines) {
  std::map<int64_t, int64_t> least;  // time by size
  for (const EngineLine& line : lines)
    for (const PlanTime& point : line.points) {
      if (point.measured) continue;
      const auto [at, is_new] = least.emplace(point.size_bytes, point.time_ps);
      if (!is_new) at->second = std::min(at->second, point.time_ps);
    }
  for (EngineLine& line : lines)
    line.leads = line.on_front && std::ranges::any_of(line.points, [&](const PlanTime& point) {
                   return point.time_ps == least[point.size_bytes];
                 });
}

std::string NameOf(const PlanTime& timed) {
  if (timed.topology.empty()) return timed.engine;
  return GroupOf(timed.engine) == EngineGroup::kAuto ? timed.topology : timed.topology + ": " + timed.engine;
}

EngineGroup GroupOfLine(const PlanTime& timed) {
  if (timed.measured) return EngineGroup::kMeasured;
  const EngineGroup group = GroupOf(timed.engine);
  return group == EngineGroup::kAuto && !timed.topology.empty() ? EngineGroup::kMachines : group;
}

}  // namespace

std::string_view ToString(EngineGroup group) {
  switch (group) {
    case EngineGroup::kAuto:
      return "auto";
    case EngineGroup::kSearches:
      return "searches";
    case EngineGroup::kSwitches:
      return "switches";
    case EngineGroup::kTrees:
      return "trees";
    case EngineGroup::kExchanges:
      return "exchanges";
    case EngineGroup::kOthers:
      return "others";
    case EngineGroup::kMachines:
      return "machines";
    case EngineGroup::kMeasured:
      return "measured";
  }
  return "others";
}

std::string_view LabelOf(EngineGroup group) {
  switch (group) {
    case EngineGroup::kAuto:
      return "auto";
    case EngineGroup::kSearches:
      return "Searches";
    case EngineGroup::kSwitches:
      return "In switches";
    case EngineGroup::kTrees:
      return "Rings and trees";
    case EngineGroup::kExchanges:
      return "Exchanges";
    case EngineGroup::kOthers:
      return "Other tools";
    case EngineGroup::kMachines:
      return "Machines, by auto";
    case EngineGroup::kMeasured:
      return "Measured";
  }
  return "Other tools";
}

EngineGroup GroupOf(std::string_view engine) {
  const StatusOr<const Engine*> found = FindEngine(engine);
  if (!found.ok()) return EngineGroup::kOthers;
  if ((*found)->asks_others) return EngineGroup::kAuto;
  switch ((*found)->family) {
    case EngineFamily::kSearches:
      return EngineGroup::kSearches;
    case EngineFamily::kSwitches:
      return EngineGroup::kSwitches;
    case EngineFamily::kTrees:
      return EngineGroup::kTrees;
    case EngineFamily::kExchanges:
      return EngineGroup::kExchanges;
  }
  return EngineGroup::kOthers;
}

std::vector<EngineLine> EngineLines(const Comparison& comparison) {
  std::vector<EngineLine> lines;
  for (const PlanTime& timed : comparison.times) {
    const std::string name = NameOf(timed);
    auto line = std::ranges::find(lines, name, &EngineLine::name);
    if (line == lines.end()) {
      lines.push_back({.name = name, .group = GroupOfLine(timed), .on_front = false, .points = {}});
      line = lines.end() - 1;
    }
    line->points.push_back(timed);
  }
  for (EngineLine& line : lines) std::ranges::stable_sort(line.points, {}, &PlanTime::size_bytes);
  FindFront(lines);
  FindLeaders(lines);
  const auto place = [](const EngineLine& line) {
    return std::tuple(line.group != EngineGroup::kAuto, line.group != EngineGroup::kMeasured, !line.leads,
                      !line.on_front, MeanRatio(line));
  };
  std::ranges::stable_sort(lines, {}, place);
  return lines;
}

}  // namespace xccl
