// Comparisons of engines: made, drawn as a page and as a picture, and kept in pickles.
#include "pipeline/compare.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "base/version.h"
#include "pipeline/view/comparison.h"
#include "python/bindings/bindings.h"
#include "python/bindings/options.h"
#include "python/bindings/pickle.h"
#include "python/bindings/times.h"

namespace xccl::python {
namespace {

// A comparison with the machine and the collective that it is for.
struct BoundComparison {
  std::shared_ptr<const Topology> topology;
  std::shared_ptr<const Collective> collective;
  Comparison comparison;
};

// A comparison ends early when the caller stops it; the sizes compared until then are returned.
BoundComparison Compared(const std::shared_ptr<Topology>& topology,
                         const std::shared_ptr<Collective>& collective,
                         const std::vector<std::string>& engines, const std::vector<int64_t>& sizes,
                         const Asked& asked, const std::vector<std::pair<std::string, SharedPlan>>& others,
                         const Watching& watching) {
  const PlanOptions options = OptionsOf(asked);
  CheckMembers(*topology, *collective);
  CheckSizes(sizes, *collective);
  for (const auto& [name, plan] : others)
    if (!plan->plan.program && (asked.machine || OnMachineOf(*topology, options).machine))
      Check(InvalidInput(fmt::format("others: {} has no program; hint: lower=True", name)));
  Comparison made = Watched(watching, [=](const Caller& caller) -> StatusOr<Comparison> {
    std::vector<OtherPlan> theirs;
    for (const auto& [name, plan] : others) theirs.push_back({name, plan->plan});
    const auto on_size = [&](const Comparison& of_size) {
      caller.Say(fmt::format("{} compared", FormatSize(of_size.times.front().size_bytes)));
      return OkStatus();
    };
    PlanOptions within = Within(options, caller);
    within.request.progress = {};  // sizes are reported, not the engines of each plan
    StatusOr<Comparison> all = Compare(*topology, *collective, engines, sizes, within, on_size, theirs);
    if (all.ok() && caller.Stopped()) all->skipped = {"the sizes that follow: stopped"};
    return all;
  });
  return {topology, collective, std::move(made)};
}

Origin OriginOf(const std::string& command) { return {std::string(kVersion), command}; }

// `page`: the bundled page, with its mark.
py::str PageOf(const BoundComparison& made, const std::string& page, const std::string& command) {
  const ComparedMachine machine{made.topology->name(), made.topology.get(), made.collective.get()};
  return TextOf(ComparisonPage(page, made.comparison, {&machine, 1}, OriginOf(command)));
}

py::tuple ComparisonState(const BoundComparison& made) {
  const auto& [title, on, times, skipped, notes, machines] = made.comparison;
  py::list rows;
  for (const PlanTime& time : times)
    rows.append(py::make_tuple(time.engine, time.made_by, time.size_bytes, time.time_ps,
                               time.algbw_bytes_per_s, time.busbw_bytes_per_s, time.bound_ps, time.ratio,
                               time.messages, time.threadblocks));
  return py::make_tuple(
      StateOf(*made.topology), StateOf(*made.collective), py::bytes(title),
      py::make_tuple(py::bytes(on.collective), py::bytes(on.topology), on.model, on.machine), rows, skipped,
      notes);
}
BoundComparison ComparisonOfState(const py::tuple& state) {
  CheckFields(state, 7);
  Comparison comparison;
  comparison.title = state[2].cast<std::string>();
  const auto on = state[3].cast<py::tuple>();
  CheckFields(on, 4);
  comparison.on = {on[0].cast<std::string>(), on[1].cast<std::string>(), on[2].cast<std::string>(),
                   on[3].cast<std::string>()};
  const auto rows = state[4].cast<py::list>();
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto facts = rows[i].cast<py::tuple>();
    CheckFields(facts, 10);
    comparison.times.push_back({.engine = facts[0].cast<std::string>(),
                                .made_by = facts[1].cast<std::string>(),
                                .size_bytes = facts[2].cast<int64_t>(),
                                .time_ps = facts[3].cast<int64_t>(),
                                .algbw_bytes_per_s = facts[4].cast<double>(),
                                .busbw_bytes_per_s = facts[5].cast<double>(),
                                .bound_ps = facts[6].cast<int64_t>(),
                                .ratio = facts[7].cast<double>(),
                                .messages = facts[8].cast<std::optional<int64_t>>(),
                                .threadblocks = facts[9].cast<std::optional<int32_t>>()});
  }
  comparison.skipped = state[5].cast<std::vector<std::string>>();
  comparison.notes = state[6].cast<std::vector<std::string>>();
  return {TopologyOfState(state[0].cast<py::tuple>()), CollectiveOfState(state[1].cast<py::tuple>()),
          std::move(comparison)};
}

}  // namespace

void BindCompare(py::module_& module) {
  py::class_<BoundComparison>(module, "Comparison")
      .def("columns", [](const BoundComparison& c) { return ColumnsOf(c.comparison.times); })
      .def_property_readonly("title", [](const BoundComparison& c) { return TextOf(c.comparison.title); })
      .def_property_readonly("left_out", [](const BoundComparison& c) { return c.comparison.skipped; })
      .def_property_readonly("model", [](const BoundComparison& c) { return c.comparison.on.model; })
      .def_property_readonly("machine", [](const BoundComparison& c) { return c.comparison.on.machine; })
      .def("page", &PageOf)
      .def("svg",
           [](const BoundComparison& c, const std::string& command) {
             return TextOf(ComparisonSvg(c.comparison, OriginOf(command)));
           })
      .def(py::pickle([](const BoundComparison& c) { return ComparisonState(c); }, &ComparisonOfState));
  module.def("compare", &Compared);
}

}  // namespace xccl::python
