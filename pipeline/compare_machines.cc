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

constexpr const char* kModelForAll =
    "--machine=hopper times programs on one GPU for all; --gpu-arch=sm90, or arch in its file, names a "
    "machine's own";

std::vector<std::string> WithAuto(std::vector<std::string> engines) {
  for (const char* name : {kDefaultEngine, "all"})
    if (std::ranges::find(engines, name) != engines.end()) return engines;
  engines.insert(engines.begin(), kDefaultEngine);
  return engines;
}

// Returns the names of the machines whose GPUs have no machine model, each with its GPUs' architecture.
std::vector<std::string> WithoutModel(std::span<const ComparedMachine> machines, const PlanOptions& options) {
  std::vector<std::string> names;
  for (const ComparedMachine& machine : machines) {
    if (OnMachineOf(*machine.topology, options).machine) continue;
    const std::string& arch = machine.topology->gpu_arch();
    names.push_back(fmt::format("{} ({})", machine.name, arch.empty() ? "no arch" : arch));
  }
  return names;
}

}  // namespace

std::vector<std::string> TimesOfMachines(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const Compared& on : comparison.machines)
    if (!on.machine.empty())
      lines.push_back(fmt::format("{}: times of programs on a machine: {}", on.topology, on.machine));
  return lines;
}

StatusOr<Comparison> CompareMachines(std::span<const ComparedMachine> machines,
                                     const std::vector<std::string>& engines,
                                     const std::vector<int64_t>& sizes, const PlanOptions& asked,
                                     const OnSize& on_size) {
  Comparison all;
  PlanOptions options = asked;
  const std::vector<std::string> without = WithoutModel(machines, options);
  if (!without.empty() && asked.machine_of_topology) {
    options.machine_of_topology = false;  // otherwise only some rows would be on ideal links
    all.notes = {fmt::format("all times are on ideal links: no machine model for {}; hint: {}",
                             Join(without, ", "), kModelForAll)};
  }
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
