#include "pipeline/import.h"

#include <fmt/core.h>

#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "interchange/import.h"
#include "interchange/place.h"
#include "interchange/traces/printed_sends.h"
#include "pipeline/import_sends.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

StatusOr<Topology> MachineOr(const std::optional<Topology>& machine, int64_t ranks) {
  return machine ? StatusOr<Topology>(*machine) : LoadTopology(fmt::format("full-mesh:{}", ranks));
}

StatusOr<ImportedPlan> Lowered(const PrintedSends& printed, const ImportOptions& options,
                               const std::optional<Topology>& machine, PlanOptions lowering) {
  XCCL_ASSIGN_OR_RETURN(const Topology topology, MachineOr(machine, printed.ranks));
  lowering.lower = true;
  XCCL_ASSIGN_OR_RETURN(PlanResult made,
                        ImportSends(printed, options.file, topology,
                                    options.collective.value_or(CollectiveKind::kAllgather), lowering));
  if (!made.plan.program) return LimitReached(fmt::format("{}: {}", options.file, made.no_program));
  Imported from{.format = printed.format, .name = "", .lowered = *made.plan.program};
  return ImportedPlan{std::move(from), std::move(made.plan)};
}

}  // namespace

StatusOr<ImportedPlan> ImportPlan(const std::string& path, ImportOptions options,
                                  const std::optional<Topology>& machine, const PlanOptions& lowering) {
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  options.file = path;
  if (std::optional<StatusOr<PrintedSends>> printed = ReadPrintedSends(text, path)) {
    if (!printed->ok()) return printed->status();
    return Lowered(**printed, options, machine, lowering);
  }
  options.plain_switches |= !machine;
  XCCL_ASSIGN_OR_RETURN(Imported from, ReadForeign(text, options));
  XCCL_ASSIGN_OR_RETURN(const Topology topology, MachineOr(machine, std::ssize(from.lowered.program.ranks)));
  std::vector<std::string> warnings;
  StatusOr<Plan> plan = PlaceOnMachine(from, topology, &warnings);
  if (!plan.ok() && !from.lowered.program.groups.empty()) {
    warnings = {
        fmt::format("{}: what the file has switches do is done rank by rank", plan.status().message())};
    options.plain_switches = true;
    XCCL_ASSIGN_OR_RETURN(from, ReadForeign(text, options));
    plan = PlaceOnMachine(from, topology);
  }
  if (!plan.ok()) return Annotate(plan.status(), path);
  if (lowering.machine) plan->made_by.machine = lowering.machine->name;
  if (!machine) warnings.clear();  // they are about the full mesh, for which nobody asked
  warnings.insert(warnings.begin(), from.warnings.begin(), from.warnings.end());
  return ImportedPlan{std::move(from), *std::move(plan), std::move(warnings)};
}

}  // namespace xccl
