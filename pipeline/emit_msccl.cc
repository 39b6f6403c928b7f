#include "pipeline/emit_msccl.h"

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "interchange/import.h"
#include "interchange/place.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate_program.h"
#include "pipeline/plan_result.h"

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

template <typename File>
StatusOr<Imported> ReadBack(const File& file, const Plan& plan, const std::string& name) {
  return ReadForeign(
      file.text, {.file = name, .collective = plan.collective.kind(), .root = plan.collective.spec().root});
}

// Of the program that a reader of the file finds. kForeverPs where there is none for the plan's machine.
int64_t TimeOf(const StatusOr<Imported>& read, const Plan& plan) {
  if (!read.ok()) return kForeverPs;
  const StatusOr<Plan> placed = PlaceOnMachine(*read, plan.topology);
  return placed.ok() ? TimeOf(*placed->program, plan) : kForeverPs;
}

int64_t TimeOf(const StatusOr<MscclXml>& file, const Plan& plan) {
  return file.ok() ? TimeOf(ReadBack(*file, plan, "plan"), plan) : kForeverPs;
}

bool IsSlower(int64_t file_ps, int64_t plan_ps) {
  const bool is_known = file_ps < kForeverPs;
  return is_known && static_cast<double>(file_ps) > kSlower * static_cast<double>(plan_ps);
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

StatusOr<MscclXml> EmitMscclXml(const Plan& plan, MscclXmlOptions options, const AskedSizes& sizes) {
  options.min_bytes = sizes.min_bytes.value_or(plan.sizes.min_bytes);
  options.max_bytes = sizes.max_bytes.value_or(plan.sizes.max_bytes);
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

StatusOr<MscclppJson> EmitMscclppJson(const Plan& plan, MscclppOptions options, const AskedSizes& sizes) {
  options.domains = LoadStoreDomains(plan.topology);
  // MSCCL++ counts a rank's input, which is one part of what a gather moves.
  const int64_t parts = plan.collective.kind() == CollectiveKind::kGather ? plan.collective.num_members() : 1;
  const int64_t plans_most = plan.sizes.max_bytes / parts;
  options.min_bytes = sizes.min_bytes.value_or((plan.sizes.min_bytes + parts - 1) / parts);
  options.max_bytes = sizes.max_bytes.value_or(0);
  const auto write = [&] {
    return WriteMscclppJson(plan.program->program, plan.program->collective, options);
  };
  StatusOr<MscclppJson> json = write();
  // The plan may be for larger sizes than MSCCL++ takes; then those are left out.
  if (json.ok() && !sizes.max_bytes && plans_most > 0 && plans_most < json->max_bytes) {
    options.max_bytes = plans_most;
    json = write();
  }
  if (!json.ok()) return json;
  const StatusOr<Imported> read = ReadBack(*json, plan, options.name);
  const Status runs = read.ok() && !read->in_a_row.empty() ? InvalidInput(read->in_a_row) : read.status();
  if (runs.code() == StatusCode::kLimit) {
    json->warnings.push_back(runs.message() + ": the file is not read back");
    return json;
  }
  if (!runs.ok()) return Annotate(runs, "MSCCL++ would not run what is written of the plan");
  WarnIfSlower(TimeOf(read, plan), TimeOf(*plan.program, plan), plan, json->warnings);
  return json;
}

}  // namespace xccl
