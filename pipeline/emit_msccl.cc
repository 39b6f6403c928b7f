#include "pipeline/emit_msccl.h"

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/interchange/import.h"
#include "ir/interchange/place.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate_program.h"

namespace xccl {
namespace {

constexpr int32_t kSlots = 2;  // of protocol simple in all executors

// kForeverPs where there is no simulation.
int64_t TimeOf(const LoweredProgram& lowered, const Plan& plan) {
  const SimulateOptions options{.size_bytes = plan.made_by.size_bytes, .model = plan.made_by.model};
  const StatusOr<Simulation> made =
      SimulateProgram(lowered.program, lowered.collective, plan.topology, options);
  return made.ok() ? made->time_ps : kForeverPs;
}

// Of the program that a reader of the file finds. kForeverPs where there is none for the plan's machine.
template <typename File>
int64_t TimeOf(const StatusOr<File>& file, const Plan& plan) {
  if (!file.ok()) return kForeverPs;
  const StatusOr<Imported> read = ReadForeign(file->text, {.collective = plan.collective.kind()});
  if (!read.ok()) return kForeverPs;
  const StatusOr<Plan> placed = PlaceOnMachine(*read, plan.topology);
  return placed.ok() ? TimeOf(*placed->program, plan) : kForeverPs;
}

bool IsSlower(int64_t file_ps, int64_t plan_ps) {
  return file_ps<kForeverPs&& static_cast<double>(file_ps)> kSlower * static_cast<double>(plan_ps);
}

void WarnIfSlower(int64_t file_ps, int64_t plan_ps, const Plan& plan, std::vector<std::string>& warnings) {
  if (IsSlower(file_ps, plan_ps))
    warnings.push_back(fmt::format("at {} it is slower than the plan: {} instead of {}, as simulated",
                                   FormatSize(plan.made_by.size_bytes), FormatDurationShort(file_ps),
                                   FormatDurationShort(plan_ps)));
}

StatusOr<MscclXml> WithFewSlots(const Plan& plan, const MscclXmlOptions& options) {
  LowerOptions lower{.size_bytes = plan.made_by.size_bytes, .model = plan.made_by.model};
  lower.form = lowering::Form{.slots = kSlots, .merge = 1};
  XCCL_ASSIGN_OR_RETURN(const LoweredProgram few,
                        LowerFolded(plan.schedule, plan.collective, plan.topology, lower));
  return WriteMscclXml(few.program, few.collective, options);
}

}  // namespace

StatusOr<MscclXml> EmitMscclXml(const Plan& plan, const MscclXmlOptions& options) {
  const Program& program = plan.program->program;
  StatusOr<MscclXml> xml = WriteMscclXml(program, plan.program->collective, options);
  int64_t file_ps = TimeOf(xml, plan);
  const int64_t plan_ps = TimeOf(*plan.program, plan);
  if (program.slots > kSlots && program.groups.empty() && (!xml.ok() || IsSlower(file_ps, plan_ps))) {
    StatusOr<MscclXml> few = WithFewSlots(plan, options);
    const int64_t few_ps = TimeOf(few, plan);
    if (few.ok() && (!xml.ok() || few_ps < file_ps)) {
      few->warnings.push_back(fmt::format(
          "it is another program of the plan's schedule, for {} slots: {}", kSlots,
          xml.ok() ? fmt::format("the plan's own takes {} with so few", FormatDurationShort(file_ps))
                   : xml.status().message()));
      xml = std::move(few);
      file_ps = few_ps;
    }
  }
  if (xml.ok()) WarnIfSlower(file_ps, plan_ps, plan, xml->warnings);
  return xml;
}

StatusOr<MscclppJson> EmitMscclppJson(const Plan& plan, MscclppOptions options) {
  options.domains = LoadStoreDomains(plan.topology);
  StatusOr<MscclppJson> json = WriteMscclppJson(plan.program->program, plan.program->collective, options);
  if (json.ok()) WarnIfSlower(TimeOf(json, plan), TimeOf(*plan.program, plan), plan, json->warnings);
  return json;
}

}  // namespace xccl
