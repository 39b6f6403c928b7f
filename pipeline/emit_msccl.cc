#include "pipeline/emit_msccl.h"

#include <fmt/core.h>

#include "ir/lower/lower.h"

namespace xccl {

StatusOr<MscclXml> EmitMscclXml(const Plan& plan, const MscclXmlOptions& options) {
  StatusOr<MscclXml> xml = WriteMscclXml(plan.program->program, plan.program->collective, options);
  constexpr int32_t kSlots = 2;  // of protocol simple in all executors
  const bool has_groups = !plan.program->program.groups.empty();
  if (xml.ok() || plan.program->program.slots <= kSlots || has_groups) return xml;
  LowerOptions lower{.size_bytes = plan.made_by.size_bytes, .model = plan.made_by.model};
  lower.form = lowering::Form{.slots = kSlots, .merge = 1};
  const StatusOr<LoweredProgram> few = LowerFolded(plan.schedule, plan.collective, plan.topology, lower);
  if (!few.ok()) return xml;
  StatusOr<MscclXml> again = WriteMscclXml(few->program, few->collective, options);
  if (!again.ok()) return xml;
  again->warnings.push_back(fmt::format("it is another program of the plan's schedule, which is slower: {}",
                                        xml.status().message()));
  return again;
}

}  // namespace xccl
