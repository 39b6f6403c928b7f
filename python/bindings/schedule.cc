// Schedules: their columns, and the writer for schedules that are written in Python.
#include "ir/schedule.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/analysis/schedule_stats.h"
#include "ir/translated.h"
#include "ir/verify/verify_schedule.h"
#include "pipeline/own_schedule.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/errors.h"
#include "python/bindings/pickle.h"

namespace xccl::python {
namespace {

py::dict Columns(const BoundSchedule& bound) {
  const std::shared_ptr<const Schedule>& schedule = bound.schedule;
  static_assert(sizeof(TransferOp) == sizeof(uint8_t));
  const auto* const ops = reinterpret_cast<const uint8_t*>(schedule->op.data());
  py::dict columns;
  columns["step"] = View(schedule, schedule->step);
  columns["src"] = View(schedule, schedule->src);
  columns["dst"] = View(schedule, schedule->dst);
  columns["first"] = View(schedule, schedule->first);
  columns["count"] = View(schedule, schedule->count);
  columns["reduce"] = View(schedule, reinterpret_cast<const bool*>(ops), schedule->op.size());
  columns["path"] = View(schedule, schedule->path);
  return columns;
}

// The links of every path: path p has links[first[p]..first[p+1]-1].
py::tuple Paths(const BoundSchedule& bound) {
  const PathTable& paths = bound.schedule->paths;
  std::vector<int32_t> first = {0}, links;
  for (int32_t p = 0; p < paths.size(); ++p) {
    for (const LinkId link : paths[PathId(p)]) links.push_back(link.value);
    first.push_back(static_cast<int32_t>(links.size()));
  }
  return py::make_tuple(Owned(std::move(first)), Owned(std::move(links)));
}

std::vector<std::vector<std::string>> Violations(const BoundSchedule& bound) {
  std::vector<Violation> violations;
  {
    const py::gil_scoped_release release;
    violations = VerifySchedule(*bound.schedule, *bound.collective, *bound.topology);
  }
  std::vector<std::vector<std::string>> rows;
  for (const Violation& violation : violations)
    rows.push_back({violation.rule, violation.where, violation.text});
  return rows;
}

// A ScheduleWriter that owns what it writes for.
class Writer {
 public:
  Writer(std::shared_ptr<const Topology> topology, std::shared_ptr<const Collective> collective)
      : topology_(std::move(topology)),
        collective_(std::move(collective)),
        writer_(*topology_, *collective_) {}

  void Add(int32_t src, int32_t dst, int32_t first, int32_t count, bool reduce, int32_t step) {
    Place(writer_.Add(ChunkId(first), count, Rank(src), Rank(dst), OpOf(reduce), step), reduce, step);
  }
  void AddMany(const py::object& sources, const py::object& destinations, const py::object& chunks,
               int32_t count, bool reduce, int32_t step) {
    const Numbers from = NumbersOf(sources), to = NumbersOf(destinations), of = NumbersOf(chunks);
    if (from.size != of.size || to.size != of.size) throw py::cast_error("columns of one length");
    for (size_t i = 0; i < of.size; ++i) Add(from.first[i], to.first[i], of.first[i], count, reduce, step);
  }
  // One side is one rank; the other are several, joined by a switch.
  void AddTree(const std::vector<int32_t>& sources, const std::vector<int32_t>& destinations, int32_t first,
               int32_t count, bool reduce, int32_t step) {
    const std::vector<Rank> from = RanksOf(sources), to = RanksOf(destinations);
    if (from.empty() || to.empty()) Check(InvalidInput(fmt::format("step {}: no ranks", step)));
    Place(reduce ? writer_.ReduceInSwitch(ChunkId(first), count, from, to.front(), step)
                 : writer_.Multicast(ChunkId(first), count, from.front(), to, step),
          reduce, step);
  }
  void AddOver(const std::vector<int32_t>& links, int32_t first, int32_t count, bool reduce, int32_t step) {
    std::vector<LinkId> path;
    for (const int32_t link : links) path.emplace_back(link);
    Place(writer_.AddOver(path, ChunkId(first), count, OpOf(reduce), step), reduce, step);
  }
  int64_t size() const { return writer_.size(); }
  BoundSchedule Finish() {
    return {topology_, collective_, std::make_shared<const Schedule>(writer_.Finish())};
  }

 private:
  static TransferOp OpOf(bool reduce) { return reduce ? TransferOp::kReduce : TransferOp::kCopy; }
  static std::vector<Rank> RanksOf(const std::vector<int32_t>& numbers) {
    std::vector<Rank> ranks;
    for (const int32_t number : numbers) ranks.emplace_back(number);
    return ranks;
  }
  static void Place(const Status& status, bool reduce, int32_t step) {
    if (!status.ok()) Check(status, fmt::format("step {}: {}", step, reduce ? "reduce" : "send"));
  }

  std::shared_ptr<const Topology> topology_;
  std::shared_ptr<const Collective> collective_;
  ScheduleWriter writer_;
};

}  // namespace

void BindSchedule(py::module_& module) {
  py::class_<BoundSchedule>(module, "Schedule")
      .def_property_readonly("topology",
                             [](const BoundSchedule& s) { return PartOf(s.topology, *s.topology); })
      .def_property_readonly("collective",
                             [](const BoundSchedule& s) { return PartOf(s.collective, *s.collective); })
      .def_property_readonly("num_transfers", [](const BoundSchedule& s) { return s.schedule->size(); })
      .def_property_readonly("num_steps", [](const BoundSchedule& s) { return s.schedule->num_steps(); })
      .def_property_readonly("is_compressed",
                             [](const BoundSchedule& s) { return !s.schedule->symmetry.empty(); })
      .def("columns", &Columns)
      .def("paths", &Paths)
      .def("violations", &Violations)
      .def(py::pickle([](const BoundSchedule& s) { return StateOf(s); }, &ScheduleOfState))
      .def("expanded", [](const BoundSchedule& s, int64_t most_transfers) {
        Schedule plain = ValueOf(Expand(*s.schedule, *s.collective, *s.topology, most_transfers));
        return BoundSchedule{s.topology, s.collective, std::make_shared<const Schedule>(std::move(plain))};
      });
  py::class_<Writer>(module, "ScheduleWriter")
      .def(py::init(
          [](const std::shared_ptr<Topology>& topology, const std::shared_ptr<Collective>& collective) {
            CheckMembers(*topology, *collective);
            return std::make_unique<Writer>(topology, collective);
          }))
      .def("add", &Writer::Add)
      .def("add_many", &Writer::AddMany)
      .def("add_tree", &Writer::AddTree)
      .def("add_over", &Writer::AddOver)
      .def_property_readonly("num_transfers", &Writer::size)
      .def("finish", &Writer::Finish);
}

}  // namespace xccl::python
