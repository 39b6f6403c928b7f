// Bounds, and times of plans and engines.
#include "pipeline/predict.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/translated.h"
#include "pipeline/arguments.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/options.h"
#include "python/bindings/times.h"

namespace xccl::python {
namespace {

py::dict BoundOf(const std::shared_ptr<Topology>& topology, const std::shared_ptr<Collective>& collective,
                 int64_t size_bytes, const std::string& model) {
  CheckMembers(*topology, *collective);
  Check(CheckSize(size_bytes), "size");
  Check(CheckNotEmpty(size_bytes, *collective), "size");
  const Bound bound = Watched({}, [=, by = ModelOf(model)](const Caller&) {
    return LowerBound(*topology, *collective, size_bytes, by);
  });
  py::dict facts;
  facts["latency_ps"] = bound.latency_ps;
  facts["bandwidth_ps"] = bound.bandwidth_ps;
  facts["bound_ps"] = bound.bound_ps;
  facts["kind"] = std::string(ToString(bound.kind));
  facts["size_bytes"] = bound.size_bytes;
  return facts;
}

// `machine`: empty for that which the program was made for.
py::dict Simulated(const SharedPlan& plan, const std::vector<int64_t>& sizes, const std::string& model,
                   bool program, const std::string& machine) {
  CheckSizes(sizes, plan->plan.collective);
  const TimeModel by = model.empty() ? plan->plan.made_by.model : ModelOf(model);
  std::optional<MachineModel> on;
  if (program) {
    if (!plan->plan.program) Check(InvalidInput("level: no program in the plan; hint: level=\"schedule\""));
    const std::string& name = machine.empty() ? plan->plan.made_by.machine : machine;
    if (!name.empty()) on = MachineOf(name);
  } else if (!machine.empty()) {
    Check(UsageError("machine: only programs run on machines; hint: level=\"program\""));
  }
  return ColumnsOf(Watched({}, [=](const Caller&) {
    return Predict(plan->plan, sizes, by, program ? PlanLevel::kProgram : PlanLevel::kSchedule,
                   on ? &*on : nullptr);
  }));
}

// How long each link carries data, of the whole time.
py::tuple LinkLoad(const SharedPlan& plan, int64_t size_bytes) {
  CheckSizes({size_bytes}, plan->plan.collective);
  const Simulation simulation = Watched({}, [=](const Caller&) -> StatusOr<Simulation> {
    return Simulate(plan->plan.schedule, plan->plan.collective, plan->plan.topology,
                    {.size_bytes = size_bytes, .model = plan->plan.made_by.model, .record_links = true});
  });
  return py::make_tuple(simulation.time_ps, Owned(simulation.link_busy_ps));
}

// When each chunk of each transfer leaves and has arrived.
py::dict Moves(const SharedPlan& plan, int64_t size_bytes) {
  CheckSizes({size_bytes}, plan->plan.collective);
  struct Found {
    Schedule plain;
    MoveTimes times;
  };
  const auto found = Watched({}, [=](const Caller&) -> StatusOr<std::shared_ptr<Found>> {
    const Plan& own = plan->plan;
    XCCL_ASSIGN_OR_RETURN(Schedule plain, Expand(own.schedule, own.collective, own.topology));
    MoveTimes times = SimulateMoves(plain, own.collective, own.topology, size_bytes);
    return std::make_shared<Found>(Found{std::move(plain), std::move(times)});
  });
  std::vector<int32_t> transfer, chunk, src, dst, step;
  for (int64_t t = 0; t < found->plain.size(); ++t) {
    const Transfer now = found->plain.at(t);
    for (int32_t c = 0; c < now.count; ++c) {
      transfer.push_back(static_cast<int32_t>(t));
      chunk.push_back(now.first.value + c);
      src.push_back(now.src.value);
      dst.push_back(now.dst.value);
      step.push_back(now.step);
    }
  }
  py::dict columns;
  columns["transfer"] = Owned(std::move(transfer));
  columns["chunk"] = Owned(std::move(chunk));
  columns["src"] = Owned(std::move(src));
  columns["dst"] = Owned(std::move(dst));
  columns["step"] = Owned(std::move(step));
  columns["start_ps"] = View(found, found->times.start_ps);
  columns["arrival_ps"] = View(found, found->times.arrival_ps);
  return columns;
}

}  // namespace

py::dict ColumnsOf(const std::vector<PlanTime>& times) {
  std::vector<std::string> engines, made_by;
  std::vector<int64_t> sizes, time_ps, bound_ps;
  std::vector<double> algbw, busbw, ratios;
  for (const PlanTime& timed : times) {
    engines.push_back(timed.engine);
    made_by.push_back(timed.made_by);
    sizes.push_back(timed.size_bytes);
    time_ps.push_back(timed.time_ps);
    bound_ps.push_back(timed.bound_ps);
    algbw.push_back(GbPerS(timed.algbw_bytes_per_s));
    busbw.push_back(GbPerS(timed.busbw_bytes_per_s));
    ratios.push_back(timed.ratio);
  }
  py::dict columns;
  columns["engine"] = engines;
  columns["made_by"] = made_by;
  columns["size_bytes"] = Owned(std::move(sizes));
  columns["time_ps"] = Owned(std::move(time_ps));
  columns["algbw_gb_per_s"] = Owned(std::move(algbw));
  columns["busbw_gb_per_s"] = Owned(std::move(busbw));
  columns["bound_ps"] = Owned(std::move(bound_ps));
  columns["ratio"] = Owned(std::move(ratios));
  return columns;
}

void CheckSizes(const std::vector<int64_t>& sizes, const Collective& collective) {
  for (const int64_t size : sizes) {
    Check(CheckSize(size), "sizes");
    Check(CheckNotEmpty(size, collective), "sizes");
  }
}

void BindPredict(py::module_& module) {
  module.def("bound", &BoundOf);
  module.def("simulate", &Simulated);
  module.def("link_load", &LinkLoad);
  module.def("moves", &Moves);
}

}  // namespace xccl::python
