// Compares several machines. For each size, Compare runs on every machine before the next size begins.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "pipeline/compare.h"
#include "synth/common/synthesizer.h"

namespace xccl {
namespace {

std::vector<std::string> WithAuto(std::vector<std::string> engines) {
  for (const char* name : {kDefaultEngine, "all"})
    if (std::ranges::find(engines, name) != engines.end()) return engines;
  engines.insert(engines.begin(), kDefaultEngine);
  return engines;
}

// Returns whether the times of this machine are simulated on ideal links.
bool OfLinks(const Compared& on) { return on.machine.empty(); }

// Returns a remark if some machines, but not all, are timed on ideal links.
std::vector<std::string> NotesOf(const std::vector<Compared>& machines) {
  if (std::ranges::all_of(machines, OfLinks) || std::ranges::none_of(machines, OfLinks)) return {};
  return {"a program takes longer than ideal links; hint: --machine=none times all alike"};
}

}  // namespace

std::vector<std::string> TimesOfMachines(const Comparison& comparison) {
  std::vector<std::string> lines;
  if (std::ranges::all_of(comparison.machines, OfLinks)) return lines;
  for (const Compared& on : comparison.machines)
    lines.push_back(OfLinks(on)
                        ? fmt::format("{}: times on ideal links", on.topology)
                        : fmt::format("{}: times of programs on a machine: {}", on.topology, on.machine));
  return lines;
}

StatusOr<Comparison> CompareMachines(std::span<const ComparedMachine> machines,
                                     const std::vector<std::string>& engines,
                                     const std::vector<int64_t>& sizes, const PlanOptions& options,
                                     const OnSize& on_size) {
  Comparison all;
  Skipped skipped;
  const std::vector<std::string> wanted = WithAuto(engines);
  const std::string model(ToString(options.request.model));
  std::vector<std::string> names;
  for (const ComparedMachine& machine : machines) {
    const PlanOptions on = OnMachineOf(*machine.topology, options);
    all.machines.push_back(
        {machine.collective->name(), machine.name, model, on.machine ? on.machine->source : ""});
    names.push_back(machine.name);
    if (const auto engines_of = EnginesToCompare(wanted, *machine.collective); engines_of.ok())
      all.longest_name =
          std::max(all.longest_name, LongestNameOf(engines_of->names, machine.collective->kind()));
  }
  all.on = {.collective = machines.front().collective->name(), .topology = "", .model = model};
  all.title = fmt::format("{} on {} machines: {}, {} model", all.on.collective, machines.size(),
                          Join(names, ", "), model);
  all.notes = NotesOf(all.machines);
  all.longest_size = LongestSizeOf(sizes);
  Comparison of_size = all;
  for (const int64_t size : sizes) {
    if (IsTooLate(options.deadline, size, skipped)) break;
    of_size.times.clear();
    for (const ComparedMachine& machine : machines) {
      StatusOr<Comparison> one = Compare(*machine.topology, *machine.collective, wanted, {size}, options);
      if (!one.ok() && one.status().code() != StatusCode::kInfeasible &&
          one.status().code() != StatusCode::kLimit && one.status().code() != StatusCode::kInvalidInput)
        return one.status();
      if (!one.ok()) {
        Skip(machine.name, one.status(), skipped);
        continue;
      }
      for (const std::string& line : one->skipped) Skip(machine.name, InvalidInput(line), skipped);
      for (PlanTime& timed : one->times) {
        timed.topology = machine.name;
        of_size.times.push_back(std::move(timed));
      }
    }
    if (IsCutShort(options.deadline, !all.times.empty(), size, skipped)) break;
    std::ranges::stable_sort(of_size.times, {}, &PlanTime::time_ps);
    all.times.insert(all.times.end(), of_size.times.begin(), of_size.times.end());
    if (on_size && !of_size.times.empty()) XCCL_RETURN_IF_ERROR(on_size(of_size));
  }
  if (all.times.empty())
    return NothingToCompare({all.on.collective, Join(names, ", "), model}, skipped, options.deadline);
  all.skipped = std::move(skipped.lines);
  return all;
}

}  // namespace xccl
