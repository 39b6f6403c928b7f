// Plans of expert dispatch and combine: made, read, written, timed and run.
#include "draw/experts.h"

#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/file_kinds.h"
#include "base/files.h"
#include "dispatch/report.h"
#include "dispatch/verify.h"
#include "ir/numbers.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/call.h"
#include "python/bindings/errors.h"
#include "python/bindings/pickle.h"
#include "runtime/experts/measure.h"

namespace xccl::python {
namespace {

using dispatch::DrawTimes;
using dispatch::ExpertPlan;

// A plan with the draws that it was timed on.
struct TimedExperts {
  ExpertPlan plan;
  dispatch::Evaluation evaluation;
  std::string routing;
};
using SharedExperts = std::shared_ptr<TimedExperts>;

int32_t DrawsOf(const std::optional<int32_t>& draws, const dispatch::Sizes& sizes) {
  constexpr int32_t kMost = 1 << 20;
  if (draws && (*draws < 1 || *draws > kMost))
    Check(UsageError("draws: " + std::to_string(*draws) + "; expected 1 to " + std::to_string(kMost)));
  return draws.value_or(dispatch::DefaultDraws(sizes));
}

StatusOr<SharedExperts> Timed(ExpertPlan plan, const dispatch::Groundwork& ground, const std::string& routing,
                              int32_t draws) {
  XCCL_ASSIGN_OR_RETURN(dispatch::Evaluation evaluation, dispatch::Evaluate(plan, ground, draws));
  return std::make_shared<TimedExperts>(TimedExperts{std::move(plan), std::move(evaluation), routing});
}

SharedExperts Make(const std::shared_ptr<Topology>& topology, const std::string& collective,
                   const std::optional<int64_t>& experts, const std::optional<int64_t>& top_k,
                   const std::optional<int64_t>& tokens, const std::optional<int64_t>& row_bytes,
                   const std::string& routing, const std::string& aim, const std::optional<int32_t>& draws,
                   uint64_t seed, Watching& watching) {
  const dispatch::Asked asked{
      .call = collective == "combine" ? dispatch::Call::kCombine : dispatch::Call::kDispatch,
      .experts = experts,
      .top_k = top_k,
      .tokens = tokens,
      .row_bytes = row_bytes,
      .routing = routing,
      .aim = aim,
      .seed = seed};
  const dispatch::PlanRequest request = ValueOf(dispatch::RequestOf(topology->num_ranks(), asked, ""));
  const int32_t drawn = DrawsOf(draws, request.sizes);
  watching.keeps_best = false;
  return Watched(watching, [=](const Caller&) -> StatusOr<SharedExperts> {
    XCCL_ASSIGN_OR_RETURN(const dispatch::Groundwork ground, dispatch::Prepare(*topology, request));
    XCCL_ASSIGN_OR_RETURN(ExpertPlan plan, dispatch::MakeExpertPlan(ground));
    if (const auto faults = dispatch::VerifyExpertPlan(plan); !faults.empty())
      return BugError("the plan is wrong: [" + faults[0].rule + "] " + faults[0].text);
    return Timed(std::move(plan), ground, routing, drawn);
  });
}

// A file does not say on which draws its plan was timed: uniform ones stand for them.
StatusOr<SharedExperts> TimedUniformly(ExpertPlan plan) {
  dispatch::PlanRequest request;
  request.call = plan.call;
  request.sizes = plan.sizes;
  request.aim = plan.aim;
  const Topology topology = plan.topology;
  XCCL_ASSIGN_OR_RETURN(const dispatch::Groundwork ground, dispatch::Prepare(topology, request));
  return Timed(std::move(plan), ground, "uniform", dispatch::DefaultDraws(request.sizes));
}

SharedExperts Load(const std::string& path) {
  return Watched({}, [=](const Caller&) -> StatusOr<SharedExperts> {
    XCCL_ASSIGN_OR_RETURN(ExpertPlan plan, dispatch::ReadExpertPlan(path));
    return TimedUniformly(std::move(plan));
  });
}

void Save(const SharedExperts& timed, const std::string& path) {
  Watched({}, [=](const Caller&) -> StatusOr<bool> {
    XCCL_RETURN_IF_ERROR(dispatch::WriteExpertPlan(timed->plan, path));
    return true;
  });
}

py::list RowsOf(const std::vector<dispatch::Fault>& faults) {
  py::list rows;
  for (const dispatch::Fault& fault : faults)
    rows.append(py::make_tuple(fault.rule, std::string(), TextOf(fault.text)));
  return rows;
}

// None where the file is no plan of experts.
py::object VerifyFile(const std::string& path) {
  using Faults = std::vector<dispatch::Fault>;
  const auto faults = Watched({}, [=](const Caller&) -> StatusOr<std::optional<Faults>> {
    const StatusOr<std::string> text = ReadTextFile(path);
    if (!text.ok() || KindOfText(*text) != FileKind::kExpertPlan) return std::optional<Faults>();
    XCCL_ASSIGN_OR_RETURN(const ExpertPlan plan, dispatch::ParseExpertPlanUnverified(*text, path));
    return std::optional(dispatch::VerifyExpertPlan(plan));
  });
  if (!faults) return py::none();
  return RowsOf(*faults);
}

void Add(py::dict& into, const dispatch::Facts& facts) {
  for (const auto& [name, value] : facts)
    std::visit(
        [&, key = name.c_str()](const auto& held) {
          if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
            into[key] = py::none();
          else
            into[key] = held;
        },
        value);
}

py::dict FactsOf(const SharedExperts& timed) {
  const dispatch::PlanFacts facts = dispatch::FactsOf(timed->plan, timed->evaluation);
  py::dict made;
  Add(made, facts.times);
  Add(made, facts.rest);
  made["routing"] = timed->routing;
  return made;
}

// One column for each name; rows have the same names.
py::dict ColumnsOf(const std::vector<dispatch::Facts>& rows) {
  py::dict columns;
  for (size_t c = 0; !rows.empty() && c < rows[0].size(); ++c) {
    const char* name = rows[0][c].first.c_str();
    std::visit(
        [&](const auto& first) {
          using T = std::decay_t<decltype(first)>;
          if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
                        std::is_same_v<T, std::string>) {
            std::vector<T> column;
            for (const dispatch::Facts& row : rows) column.push_back(std::get<T>(row[c].second));
            if constexpr (std::is_same_v<T, std::string>)
              columns[name] = column;
            else
              columns[name] = Owned(std::move(column));
          }
        },
        rows[0][c].second);
  }
  return columns;
}

py::dict Simulate(const SharedExperts& timed, const std::string& routing, int32_t draws) {
  dispatch::RoutingSource source = ValueOf(dispatch::ReadRoutingSource(routing, timed->plan.sizes));
  DrawsOf(draws, timed->plan.sizes);
  return ColumnsOf(Watched({}, [=](const Caller&) -> StatusOr<std::vector<dispatch::Facts>> {
    return dispatch::SimulateDraws(timed->plan, source, routing, draws);
  }));
}

py::dict Run(const SharedExperts& timed, const std::string& routing, const std::optional<int32_t>& tokens,
             const std::string& type, int32_t calls, double timeout_s) {
  const dispatch::Sizes& sizes = timed->plan.sizes;
  dispatch::MeasureOptions options;
  options.routing = ValueOf(dispatch::ReadRoutingSource(routing, sizes));
  options.type = ValueOf(ParseDataType(type), "dtype");
  options.tokens = tokens.value_or(dispatch::TokensThatFit(sizes));
  options.calls = calls;
  options.patience = std::chrono::nanoseconds(static_cast<int64_t>(timeout_s * 1e9));
  if (options.tokens < 1 || options.tokens > sizes.max_tokens)
    Check(UsageError("tokens: " + std::to_string(options.tokens) + "; expected 1 to " +
                     std::to_string(sizes.max_tokens) + ", the plan's"));
  return ColumnsOf(Watched({}, [=](const Caller&) -> StatusOr<std::vector<dispatch::Facts>> {
    XCCL_ASSIGN_OR_RETURN(const std::vector<dispatch::MeasuredCall> calls,
                          dispatch::Measure(timed->plan, options));
    return dispatch::FactsOf(calls, timed->plan.sizes.ranks);
  }));
}

std::vector<int64_t> Column(const dispatch::Evaluation& evaluation, int64_t DrawTimes::*time) {
  std::vector<int64_t> column;
  for (const DrawTimes& draw : evaluation.draws) column.push_back(draw.*time);
  return column;
}

constexpr int64_t DrawTimes::*kTimes[] = {&DrawTimes::plan_ps, &DrawTimes::bound_ps, &DrawTimes::deepep_ps,
                                          &DrawTimes::pairwise_ps, &DrawTimes::padded_ps};

py::tuple StateOfExperts(const TimedExperts& timed) {
  py::list columns;
  for (const auto time : kTimes) columns.append(Column(timed.evaluation, time));
  return py::make_tuple(py::bytes(dispatch::ExpertPlanText(timed.plan)), std::move(columns),
                        py::bytes(timed.evaluation.busiest), py::bytes(timed.routing));
}

SharedExperts ExpertsOfState(const py::tuple& state) {
  CheckFields(state, 4);
  ExpertPlan plan = Watched({}, [text = state[0].cast<std::string>()](const Caller&) -> StatusOr<ExpertPlan> {
    XCCL_ASSIGN_OR_RETURN(ExpertPlan read, dispatch::ParseExpertPlanUnverified(text, "pickle"));
    const std::vector<dispatch::Fault> faults = dispatch::VerifyExpertPlan(read);
    if (!faults.empty()) return InvalidInput("pickle: [" + faults[0].rule + "] " + faults[0].text);
    return read;
  });
  const auto columns = state[1].cast<std::vector<std::vector<int64_t>>>();
  TimedExperts timed{.plan = std::move(plan), .evaluation = {}, .routing = state[3].cast<std::string>()};
  if (columns.size() != std::size(kTimes) || columns[0].empty())
    Check(InvalidInput("pickle: of another version of xccl_synth"));
  timed.evaluation.draws.resize(columns[0].size());
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].size() != columns[0].size())
      Check(InvalidInput("pickle: of another version of xccl_synth"));
    for (size_t i = 0; i < columns[c].size(); ++i) timed.evaluation.draws[i].*kTimes[c] = columns[c][i];
  }
  timed.evaluation.busiest = state[2].cast<std::string>();
  return std::make_shared<TimedExperts>(std::move(timed));
}

}  // namespace

void BindExperts(py::module_& module) {
  py::class_<TimedExperts, SharedExperts>(module, "ExpertPlan")
      .def_static("make", &Make)
      .def_static("load", &Load)
      .def("save", &Save)
      .def("facts", &FactsOf)
      .def("violations",
           [](const SharedExperts& timed) { return RowsOf(dispatch::VerifyExpertPlan(timed->plan)); })
      .def("simulate", &Simulate)
      .def("run", &Run)
      .def("picture", [](const SharedExperts& timed,
                         bool page) { return page ? RoutesPage(timed->plan) : RoutesSvg(timed->plan); })
      .def(py::pickle([](const TimedExperts& t) { return StateOfExperts(t); }, &ExpertsOfState))
      .def_property_readonly("topology",
                             [](const SharedExperts& timed) { return PartOf(timed, timed->plan.topology); });
  module.def("verify_expert_file", &VerifyFile);
}

}  // namespace xccl::python
