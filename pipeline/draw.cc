#include "pipeline/draw.h"

#include <fmt/core.h>

#include <sstream>
#include <utility>

#include "base/units.h"
#include "base/version.h"
#include "draw/draw.h"
#include "draw/layout/layout.h"
#include "interchange/traces/perfetto.h"
#include "ir/bounds/bound.h"
#include "ir/known_machines.h"
#include "ir/simulate/trace.h"
#include "ir/simulate/trace_program.h"
#include "ir/time_model.h"

namespace xccl {
namespace {

std::string TitleOf(const Plan& plan, int64_t size_bytes) {
  const std::string by = plan.made_by.engine.empty() ? "" : ", by " + plan.made_by.engine;
  return fmt::format("{} of {} on {}{}", plan.collective.name(), FormatSize(size_bytes), plan.topology.name(),
                     by);
}

StatusOr<Drawn> Perfetto(const Plan& plan, const ScheduleTrace& trace, const SimulateOptions& options) {
  Drawn drawn;
  std::optional<ProgramTrace> program;
  const std::optional<MachineModel> machine = KnownMachine(plan.made_by.machine);
  if (plan.program) {
    SimulateOptions on_machine = options;
    on_machine.machine = machine ? &*machine : nullptr;
    StatusOr<ProgramTrace> made =
        TraceProgram(plan.program->program, plan.program->collective, plan.topology, on_machine);
    if (made.ok()) {
      program = *std::move(made);
    } else {
      drawn.note = "the schedule alone: the program: " + made.status().message();
    }
  }
  std::ostringstream out;
  WritePerfetto(plan.topology, trace, program ? &plan.program->program : nullptr,
                program ? &*program : nullptr,
                {TitleOf(plan, trace.simulation.size_bytes), std::string(ToString(options.model)),
                 machine ? machine->source : "", kVersion},
                out);
  drawn.text = std::move(out).str();
  return drawn;
}

}  // namespace

StatusOr<Drawn> DrawPlan(const Plan& plan, Drawing what, std::optional<int64_t> size_bytes) {
  if (what == Drawing::kDot) return Drawn{TopologyDot(plan.topology, LayOut(plan.topology)), ""};
  SimulateOptions options;
  options.size_bytes = size_bytes.value_or(plan.made_by.size_bytes);
  options.model = plan.made_by.model;
  XCCL_ASSIGN_OR_RETURN(const ScheduleTrace trace,
                        TraceSchedule(plan.schedule, plan.collective, plan.topology, options));
  if (what == Drawing::kPerfetto) return Perfetto(plan, trace, options);
  XCCL_ASSIGN_OR_RETURN(const Bound bound,
                        LowerBound(plan.topology, plan.collective, options.size_bytes, options.model));
  return Drawn{ScheduleSvg(plan.topology, LayOut(plan.topology), trace,
                           {TitleOf(plan, trace.simulation.size_bytes), std::string(ToString(options.model)),
                            bound.bound_ps}),
               ""};
}

}  // namespace xccl
