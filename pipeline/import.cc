#include "pipeline/import.h"

#include <fmt/core.h>

#include <utility>

#include "base/files.h"
#include "ir/interchange/import.h"
#include "ir/interchange/place.h"
#include "topologies/load/load.h"

namespace xccl {

StatusOr<ImportedPlan> ImportPlan(const std::string& path, ImportOptions options,
                                  const std::optional<Topology>& machine) {
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  options.file = path;
  XCCL_ASSIGN_OR_RETURN(Imported from, ReadForeign(text, options));
  std::optional<Topology> mesh;
  if (!machine) {
    XCCL_ASSIGN_OR_RETURN(mesh, LoadTopology(fmt::format("full-mesh:{}", from.lowered.program.ranks.size())));
  }
  StatusOr<Plan> plan = PlaceOnMachine(from, machine ? *machine : *mesh);
  if (!plan.ok()) return Annotate(plan.status(), path);
  return ImportedPlan{std::move(from), *std::move(plan)};
}

}  // namespace xccl
