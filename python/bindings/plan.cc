// Plans: made by engines or of a schedule, read, written, and described.
#include "ir/plan.h"

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "ir/verify/read_plan.h"
#include "ir/verify/verify_plan.h"
#include "pipeline/arguments.h"
#include "pipeline/explain.h"
#include "pipeline/import.h"
#include "pipeline/own_schedule.h"
#include "pipeline/pipeline.h"
#include "pipeline/plan_front.h"
#include "pipeline/predict.h"
#include "pipeline/repair.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/options.h"
#include "python/bindings/pickle.h"
#include "synth/engines.h"
#include "synth/smt/pareto.h"

namespace xccl::python {

TimeModel ModelOf(const std::string& name) { return ValueOf(ParseTimeModel(name), "model"); }

std::optional<MachineModel> MachineOf(const std::string& name) {
  StatusOr<std::optional<MachineModel>> machine = FindMachine(name);
  if (machine.status().code() == StatusCode::kUsage) Check(machine.status(), "machine");
  return ValueOf(std::move(machine));
}

PlanOptions OptionsOf(const Asked& asked) {
  PlanOptions options;
  options.engine = asked.engine;
  SynthesisRequest& request = options.request;
  Check(CheckSize(asked.size_bytes), "size");
  request.size_bytes = asked.size_bytes;
  request.model = ModelOf(asked.model);
  request.seed = asked.seed;
  request.allow_divergent = asked.allow_divergent;
  std::vector<std::string> limits;
  const auto limit = [&](std::string_view name, const std::optional<int32_t>& value, auto& target) {
    if (!value) return;
    constexpr int32_t kMost = 1 << 20;
    if (*value < 1 || *value > kMost)
      Check(UsageError(fmt::format("{}: {}; expected 1 to {}", name, *value, kMost)));
    target = value;
    limits.push_back(fmt::format("--{}={}", name, *value));
  };
  limit("chunks", asked.chunks, request.limits.chunks);
  limit("steps", asked.steps, request.limits.steps);
  limit("rounds", asked.rounds, request.limits.rounds);
  if (asked.time_limit_s) limits.push_back(fmt::format("--time-limit={}s", *asked.time_limit_s));
  options.limits_text = Join(limits, " ");
  options.lower = asked.lower;
  options.max_blocks = asked.max_ctas;
  if (asked.max_ctas && *asked.max_ctas < 1)
    Check(UsageError(fmt::format("max_ctas: {}; expected at least 1", *asked.max_ctas)));
  options.verify_passes = asked.verify_passes;
  options.machine_of_topology = !asked.machine;
  if (asked.machine) options.machine = MachineOf(*asked.machine);
  if (asked.time_limit_s && !(*asked.time_limit_s >= 0))
    Check(UsageError(fmt::format("time_limit: {}; expected seconds", *asked.time_limit_s)));
  options.deadline = Deadline(asked.time_limit_s);
  return options;
}

PlanOptions Within(PlanOptions options, const Caller& caller) {
  options.deadline = caller.Within(options.deadline);
  options.request.progress = caller.progress();
  return options;
}

namespace {

SharedPlan Share(PlanResult result) { return std::make_shared<PlanResult>(std::move(result)); }

template <typename Work>
SharedPlan MakeWatched(const Watching& watching, Work work) {
  return Watched(watching, [work = std::move(work)](const Caller& caller) -> StatusOr<SharedPlan> {
    XCCL_ASSIGN_OR_RETURN(PlanResult result, work(caller));
    return Share(std::move(result));
  });
}

// The machine that a plan may use: without relays, only its members and the nodes between them.
StatusOr<std::shared_ptr<const Topology>> MachineFor(const std::shared_ptr<Topology>& topology,
                                                     const Collective& collective, bool relays) {
  if (relays) return std::shared_ptr<const Topology>(topology);
  XCCL_ASSIGN_OR_RETURN(Topology left, WithoutIdleRanks(*topology, collective));
  return std::make_shared<const Topology>(std::move(left));
}

SharedPlan Make(const std::shared_ptr<Topology>& topology, const std::shared_ptr<Collective>& collective,
                const Asked& asked, const SharedPlan& start, Watching& watching) {
  const PlanOptions options = OptionsOf(asked);
  const Engine& engine = *ValueOf(FindEngine(asked.engine), "engine");
  // Other engines have no best plan so far: Ctrl-C gives them up, as on the command line.
  watching.keeps_best = engine.searches_long || engine.asks_others || engine.starts_from_plan;
  watching.deadline = options.deadline;
  CheckMembers(*topology, *collective);
  Check(CheckNotEmpty(asked.size_bytes, *collective), "size");
  return MakeWatched(watching, [=, relays = asked.relays](const Caller& caller) -> StatusOr<PlanResult> {
    const PlanOptions within = Within(options, caller);
    XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const Topology> machine,
                          MachineFor(topology, *collective, relays));
    return start ? RepairPlan(start->plan, "start", *machine, *collective, within)
                 : MakePlan(*machine, *collective, within);
  });
}

SharedPlan OfSchedule(const BoundSchedule& schedule, const std::string& name, const Asked& asked,
                      Watching& watching) {
  const PlanOptions options = OptionsOf(asked);
  watching.deadline = options.deadline;
  Check(CheckNotEmpty(asked.size_bytes, *schedule.collective), "size");
  return MakeWatched(watching, [=](const Caller& caller) {
    return PlanOfSchedule(*schedule.topology, *schedule.collective, *schedule.schedule, name,
                          Within(options, caller));
  });
}

struct MadeFront {
  smt::Front front;
  std::vector<SharedPlan> plans;
};

py::dict Columns(const MadeFront& made) {
  std::vector<int32_t> chunks, steps, proved_chunks;
  std::vector<int64_t> rounds, time_ps;
  std::vector<std::string> cost, bound, proved_by, found_by;
  std::vector<double> cost_value, seconds;
  for (const smt::FrontPoint& point : made.front.points) {
    chunks.push_back(point.chunks);
    steps.push_back(point.steps);
    rounds.push_back(point.rounds);
    cost.push_back(smt::ToText({point.rounds, point.chunks}));
    cost_value.push_back(static_cast<double>(point.rounds) / point.chunks);
    bound.push_back(smt::ToText(point.bound));
    proved_by.emplace_back(smt::ToString(point.proved_by));
    proved_chunks.push_back(point.proved_chunks);
    found_by.push_back(point.found_by);
    seconds.push_back(point.seconds);
  }
  for (const SharedPlan& plan : made.plans) time_ps.push_back(plan->simulation.time_ps);
  py::dict columns;
  columns["chunks"] = Owned(std::move(chunks));
  columns["steps"] = Owned(std::move(steps));
  columns["rounds"] = Owned(std::move(rounds));
  columns["cost"] = cost;
  columns["cost_value"] = Owned(std::move(cost_value));
  columns["bound"] = bound;
  columns["proved_by"] = proved_by;
  columns["proved_chunks"] = Owned(std::move(proved_chunks));
  columns["found_by"] = found_by;
  columns["seconds"] = Owned(std::move(seconds));
  columns["time_ps"] = Owned(std::move(time_ps));
  return columns;
}

// The columns, the plans by row, and why the front is not complete; empty: it is.
py::tuple MakeFront(const std::shared_ptr<Topology>& topology, const std::shared_ptr<Collective>& collective,
                    const Asked& asked, Watching& watching) {
  const PlanOptions options = OptionsOf(asked);
  watching.keeps_best = true;
  watching.deadline = options.deadline;
  CheckMembers(*topology, *collective);
  Check(CheckNotEmpty(asked.size_bytes, *collective), "size");
  const auto made = Watched(
      watching, [=, relays = asked.relays](const Caller& caller) -> StatusOr<std::shared_ptr<MadeFront>> {
        const PlanOptions within = Within(options, caller);
        XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const Topology> machine,
                              MachineFor(topology, *collective, relays));
        auto found = std::make_shared<MadeFront>();
        XCCL_ASSIGN_OR_RETURN(found->front, PlanFront(*machine, *collective, within));
        for (const smt::FrontPoint& point : found->front.points) {
          XCCL_ASSIGN_OR_RETURN(PlanResult plan,
                                PlanOfSchedule(*machine, point.made.collective, point.made.schedule,
                                               point.made.engine, within));
          found->plans.push_back(Share(std::move(plan)));
        }
        return found;
      });
  return py::make_tuple(Columns(*made), made->plans,
                        made->front.complete ? std::string() : made->front.stopped);
}

// A plan of another tool, on a machine, or else on a full mesh; and warnings.
std::pair<SharedPlan, std::vector<std::string>> Import(const std::string& path,
                                                       const std::optional<std::string>& collective,
                                                       const std::optional<int32_t>& root,
                                                       const std::shared_ptr<Topology>& machine,
                                                       const Asked& asked) {
  using Made = std::pair<SharedPlan, std::vector<std::string>>;
  ImportOptions options;
  if (collective) options.collective = ValueOf(ParseCollectiveKind(*collective), "collective");
  if (root) options.root = Rank(*root);
  return Watched({}, [=, lowering = OptionsOf(asked)](const Caller&) -> StatusOr<Made> {
    std::optional<Topology> on;
    if (machine) on = *machine;
    XCCL_ASSIGN_OR_RETURN(ImportedPlan imported, ImportPlan(path, options, on, lowering));
    XCCL_ASSIGN_OR_RETURN(PlanResult result, DescribePlan(std::move(imported.plan)));
    return Made{Share(std::move(result)), std::move(imported.warnings)};
  });
}

SharedPlan Load(const std::string& path) {
  return MakeWatched({}, [=](const Caller&) -> StatusOr<PlanResult> {
    XCCL_ASSIGN_OR_RETURN(Plan plan, ReadPlan(path));
    return DescribePlan(std::move(plan));
  });
}

py::list RowsOf(const std::vector<Violation>& violations) {
  py::list rows;
  for (const Violation& violation : violations)
    rows.append(py::make_tuple(violation.rule, TextOf(violation.where), TextOf(violation.text)));
  return rows;
}

py::list VerifyFile(const std::string& path) {
  return RowsOf(Watched({}, [=](const Caller&) -> StatusOr<std::vector<Violation>> {
    XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadPlanUnverified(path));
    return VerifyPlan(plan);
  }));
}

py::list VerifyAgain(const SharedPlan& plan) {
  return RowsOf(
      Watched({}, [=](const Caller&) -> StatusOr<std::vector<Violation>> { return VerifyPlan(plan->plan); }));
}

// How a plan that is only known by its file would be asked for again.
Asked AskedAgain(const PlanResult& result) {
  Asked asked;
  asked.size_bytes = result.simulation.size_bytes;
  asked.model = ToString(result.plan.made_by.model);
  asked.seed = result.plan.made_by.seed;
  const std::string& machine = result.plan.made_by.machine;
  asked.machine = machine.empty() ? "none" : machine;
  asked.lower = result.plan.program.has_value();
  return asked;
}

// The text that plan --explain adds. `asked`: the options that the plan was made with; null: not known.
py::str ExplanationOf(const SharedPlan& plan, const Asked* asked, std::optional<double> time_limit_s,
                      const Watching& watching) {
  Asked with = asked != nullptr ? *asked : AskedAgain(*plan);
  with.time_limit_s = time_limit_s;
  return TextOf(
      Watched(watching, [=, options = OptionsOf(with)](const Caller& caller) -> StatusOr<std::string> {
        const Collective whole = plan->plan.collective.WithChunks(1);
        return ExplanationText(LinesOf(Explain(*plan, whole, Within(options, caller)), *plan));
      }));
}

void Save(const SharedPlan& plan, const std::string& path) {
  Watched({}, [=](const Caller&) -> StatusOr<bool> {
    XCCL_RETURN_IF_ERROR(WritePlan(plan->plan, path));
    return true;
  });
}

// The fields that `plan --json` prints, and exact times.
py::dict Facts(const SharedPlan& shared) {
  const PlanResult& result = *shared;
  const Plan& plan = result.plan;
  const ScheduleStats& stats = result.schedule_stats;
  py::dict facts;
  facts["engine"] = plan.made_by.engine;
  facts["collective"] = TextOf(plan.collective.name());
  facts["topology"] = TextOf(plan.topology.name());
  facts["ranks"] = plan.collective.num_members();
  facts["chunks_per_rank"] =
      plan.collective.HasEvenParts() ? std::optional(plan.collective.ChunksOf(PartId(0))) : std::nullopt;
  facts["steps"] = stats.steps;
  facts["rounds"] = stats.rounds;
  facts["transfers"] = stats.transfers;
  facts["messages"] = stats.messages;
  facts["depth"] = stats.depth;
  facts["size_bytes"] = result.simulation.size_bytes;
  facts["asked_bytes"] = plan.made_by.size_bytes;
  facts["time_ps"] = result.simulation.time_ps;
  facts["time_program_ps"] = result.program_time_ps;
  facts["algbw_gb_per_s"] = GbPerS(result.simulation.algbw_bytes_per_s());
  facts["busbw_gb_per_s"] = GbPerS(BusBandwidth(plan.collective, result.simulation));
  facts["latency_ps"] = result.bound.latency_ps;
  facts["bandwidth_ps"] = result.bound.bandwidth_ps;
  facts["bound_ps"] = result.bound.bound_ps;
  facts["bound_kind"] = std::string(ToString(result.bound.kind));
  facts["ratio"] = result.ratio;
  facts["exact"] = result.exact;
  facts["bitwise_same"] = plan.bitwise_same;
  std::vector<int32_t> relays;
  for (const Rank rank : result.relays) relays.push_back(rank.value);
  facts["relays"] = relays;
  const auto& program = result.program_stats;
  facts["threadblocks"] = program ? std::optional(program->threadblocks) : std::nullopt;
  facts["channels"] = program ? std::optional(program->channels) : std::nullopt;
  facts["scratch_bytes"] = program ? std::optional(program->scratch_bytes) : std::nullopt;
  facts["machine"] = result.machine.empty() ? std::nullopt : std::optional(result.machine);
  facts["no_machine"] = TextOf(result.no_machine);
  facts["model"] = std::string(ToString(plan.made_by.model));
  facts["seed"] = plan.made_by.seed;
  facts["limits"] = plan.made_by.limits;
  facts["version"] = plan.made_by.version;
  facts["synthesis_s"] = result.synthesis_s;
  facts["note"] = TextOf(result.note);
  facts["no_program"] = TextOf(result.no_program);
  facts["loss"] = TextOf(result.loss);
  return facts;
}

BoundSchedule ScheduleOf(const SharedPlan& plan) {
  return {PartOf(plan, plan->plan.topology), PartOf(plan, plan->plan.collective),
          PartOf(plan, plan->plan.schedule)};
}

void BindAsked(py::module_& module) {
  py::class_<Asked>(module, "PlanOptions")
      .def(py::init<>())
      .def_readwrite("engine", &Asked::engine)
      .def_readwrite("size_bytes", &Asked::size_bytes)
      .def_readwrite("model", &Asked::model)
      .def_readwrite("chunks", &Asked::chunks)
      .def_readwrite("steps", &Asked::steps)
      .def_readwrite("rounds", &Asked::rounds)
      .def_readwrite("seed", &Asked::seed)
      .def_readwrite("allow_divergent", &Asked::allow_divergent)
      .def_readwrite("machine", &Asked::machine)
      .def_readwrite("max_ctas", &Asked::max_ctas)
      .def_readwrite("lower", &Asked::lower)
      .def_readwrite("verify_passes", &Asked::verify_passes)
      .def_readwrite("relays", &Asked::relays)
      .def_readwrite("time_limit_s", &Asked::time_limit_s);
}

}  // namespace

void BindPlan(py::module_& module) {
  BindAsked(module);
  py::class_<PlanResult, SharedPlan>(module, "Plan")
      .def_static("make", &Make)
      .def_static("of_schedule", &OfSchedule)
      .def_static("load", &Load)
      .def_static("imported", &Import)
      .def("save", &Save)
      .def("facts", &Facts)
      .def("explanation", &ExplanationOf)
      .def("violations", &VerifyAgain)
      .def(py::pickle([](const PlanResult& p) { return StateOf(p); }, &PlanOfState))
      .def_property_readonly("topology", [](const SharedPlan& p) { return PartOf(p, p->plan.topology); })
      .def_property_readonly("collective", [](const SharedPlan& p) { return PartOf(p, p->plan.collective); })
      .def_property_readonly("schedule", &ScheduleOf)
      .def_property_readonly("has_program", [](const SharedPlan& p) { return p->plan.program.has_value(); });
  module.def("front", &MakeFront);
  module.def("verify_file", &VerifyFile);
  std::vector<std::pair<std::string, std::string>> engines;
  for (const Engine& engine : AllEngines()) engines.emplace_back(engine.name, engine.summary);
  module.attr("engines") = engines;
}

}  // namespace xccl::python
