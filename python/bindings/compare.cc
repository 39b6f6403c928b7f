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
  const Comparison& c = made.comparison;
  py::list rows;
  for (const PlanTime& time : c.times)
    rows.append(py::make_tuple(time.engine, time.made_by, time.size_bytes, time.asked_bytes, time.time_ps,
                               time.algbw_bytes_per_s, time.busbw_bytes_per_s, time.bound_ps, time.ratio,
                               time.messages, time.threadblocks, time.variation, time.note, time.num_chunks));
  return py::make_tuple(
      StateOf(*made.topology), StateOf(*made.collective), py::bytes(c.title),
      py::make_tuple(py::bytes(c.on.collective), py::bytes(c.on.topology), c.on.model, c.on.machine), rows,
      c.skipped, c.notes, py::make_tuple(c.longest_name, c.longest_size));
}
BoundComparison ComparisonOfState(const py::tuple& state) {
  CheckFields(state, 8);
  Comparison comparison;
  comparison.title = state[2].cast<std::string>();
  const auto on = state[3].cast<py::tuple>();
  CheckFields(on, 4);
  comparison.on = {on[0].cast<std::string>(), on[1].cast<std::string>(), on[2].cast<std::string>(),
                   on[3].cast<std::string>()};
  const auto rows = state[4].cast<py::list>();
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto facts = rows[i].cast<py::tuple>();
    CheckFields(facts, 14);
    comparison.times.push_back({.engine = facts[0].cast<std::string>(),
                                .made_by = facts[1].cast<std::string>(),
                                .size_bytes = facts[2].cast<int64_t>(),
                                .asked_bytes = facts[3].cast<int64_t>(),
                                .time_ps = facts[4].cast<int64_t>(),
                                .algbw_bytes_per_s = facts[5].cast<double>(),
                                .busbw_bytes_per_s = facts[6].cast<double>(),
                                .bound_ps = facts[7].cast<int64_t>(),
                                .ratio = facts[8].cast<double>(),
                                .messages = facts[9].cast<std::optional<int64_t>>(),
                                .threadblocks = facts[10].cast<std::optional<int32_t>>(),
                                .variation = facts[11].cast<std::string>(),
                                .note = facts[12].cast<std::string>(),
                                .num_chunks = facts[13].cast<std::optional<int32_t>>()});
  }
  comparison.skipped = state[5].cast<std::vector<std::string>>();
  comparison.notes = state[6].cast<std::vector<std::string>>();
  const auto longest = state[7].cast<py::tuple>();
  CheckFields(longest, 2);
  comparison.longest_name = longest[0].cast<size_t>();
  comparison.longest_size = longest[1].cast<size_t>();
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
