#include "python/bindings/pickle.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "ir/collective_json.h"
#include "ir/plan_text.h"
#include "ir/schedule_json.h"
#include "ir/verify/verify_plan.h"
#include "python/bindings/call.h"
#include "python/bindings/errors.h"
#include "topologies/xml/native_xml.h"

namespace xccl::python {
namespace {

constexpr char kPlace[] = "pickle";  // opens messages

}  // namespace

void CheckFields(const py::tuple& state, size_t size) {
  if (state.size() != size) Check(InvalidInput(std::string(kPlace) + ": of another version of xccl_synth"));
}

namespace {

template <typename Write>
py::bytes JsonOf(Write write) {
  std::ostringstream out;
  JsonWriter writer(out);
  write(writer);
  writer.Finish();
  return py::bytes(std::move(out).str());
}

JsonDocument Parsed(const py::handle& bytes) {
  return ValueOf(JsonDocument::Parse(bytes.cast<std::string_view>(), kPlace));
}

template <typename Id>
std::vector<int32_t> NumbersOf(const std::vector<Id>& ids) {
  std::vector<int32_t> numbers;
  for (const Id id : ids) numbers.push_back(id.value);
  return numbers;
}

py::tuple FactsOf(const Bound& bound) {
  return py::make_tuple(bound.latency_ps, bound.bandwidth_ps, static_cast<int>(bound.bandwidth_kind),
                        bound.bound_ps, static_cast<int>(bound.kind), bound.size_bytes);
}
Bound BoundOf(const py::tuple& facts) {
  CheckFields(facts, 6);
  return {.latency_ps = facts[0].cast<int64_t>(),
          .bandwidth_ps = facts[1].cast<double>(),
          .bandwidth_kind = static_cast<BoundKind>(facts[2].cast<uint8_t>()),
          .bound_ps = facts[3].cast<int64_t>(),
          .kind = static_cast<BoundKind>(facts[4].cast<uint8_t>()),
          .size_bytes = facts[5].cast<int64_t>()};
}

py::tuple FactsOf(const ScheduleStats& stats) {
  return py::make_tuple(stats.transfers, stats.messages, stats.steps, stats.rounds, stats.depth);
}
ScheduleStats StatsOf(const py::tuple& facts) {
  CheckFields(facts, 5);
  return {facts[0].cast<int64_t>(), facts[1].cast<int64_t>(), facts[2].cast<int32_t>(),
          facts[3].cast<int64_t>(), facts[4].cast<int32_t>()};
}

py::object FactsOf(const std::optional<ProgramStats>& stats) {
  if (!stats) return py::none();
  return py::make_tuple(stats->threadblocks, stats->channels, stats->instructions, stats->scratch_bytes);
}
std::optional<ProgramStats> ProgramStatsOf(const py::object& facts) {
  if (facts.is_none()) return std::nullopt;
  const auto values = facts.cast<py::tuple>();
  CheckFields(values, 4);
  return ProgramStats{values[0].cast<int32_t>(), values[1].cast<int32_t>(), values[2].cast<int64_t>(),
                      values[3].cast<int64_t>()};
}

py::object FactsOf(const std::optional<RunnerUp>& next) {
  if (!next) return py::none();
  return py::make_tuple(next->engine, next->time_ps);
}
std::optional<RunnerUp> RunnerUpOf(const py::object& facts) {
  if (facts.is_none()) return std::nullopt;
  const auto values = facts.cast<py::tuple>();
  CheckFields(values, 2);
  return RunnerUp{values[0].cast<std::string>(), values[1].cast<int64_t>()};
}

}  // namespace

py::tuple StateOf(const Topology& topology) {
  return py::make_tuple(py::bytes(WriteNativeXml(topology)), topology.spec().warnings);
}
std::shared_ptr<Topology> TopologyOfState(const py::tuple& state) {
  CheckFields(state, 2);
  TopologySpec spec = ValueOf(ReadNativeXml(state[0].cast<std::string_view>(), kPlace)).spec();
  spec.warnings = state[1].cast<std::vector<std::string>>();  // XML has none
  return std::make_shared<Topology>(ValueOf(Topology::Create(std::move(spec))));
}

py::tuple StateOf(const Collective& collective) {
  int32_t ranks = 0;  // that a machine with its members has
  for (const Rank rank : collective.ranks()) ranks = std::max(ranks, rank.value + 1);
  return py::make_tuple(JsonOf([&](JsonWriter& writer) { WriteCollectiveJson(collective, writer); }), ranks);
}
std::shared_ptr<Collective> CollectiveOfState(const py::tuple& state) {
  CheckFields(state, 2);
  const JsonDocument document = Parsed(state[0]);
  return std::make_shared<Collective>(ValueOf(ReadCollectiveJson(document.root(), state[1].cast<int32_t>())));
}

py::tuple StateOf(const BoundSchedule& schedule) {
  return py::make_tuple(
      StateOf(*schedule.topology), StateOf(*schedule.collective),
      JsonOf([&](JsonWriter& writer) { WriteScheduleJson(*schedule.schedule, *schedule.topology, writer); }));
}
BoundSchedule ScheduleOfState(const py::tuple& state) {
  CheckFields(state, 3);
  const std::shared_ptr<const Topology> topology = TopologyOfState(state[0].cast<py::tuple>());
  const std::shared_ptr<const Collective> collective = CollectiveOfState(state[1].cast<py::tuple>());
  const JsonDocument document = Parsed(state[2]);
  return {topology, collective,
          std::make_shared<const Schedule>(ValueOf(ReadScheduleJson(document.root(), *topology)))};
}

py::tuple StateOf(const PlanResult& result) {
  const Simulation& simulation = result.simulation;
  return py::make_tuple(
      py::bytes(PlanText(result.plan)), result.plan.topology.spec().warnings, py::bytes(result.note),
      result.synthesis_s,
      py::make_tuple(simulation.time_ps, simulation.stopped, simulation.size_bytes, simulation.segment_bytes),
      FactsOf(result.bound), result.ratio, result.exact, FactsOf(result.schedule_stats),
      NumbersOf(result.relays), result.program_time_ps, py::bytes(result.loss), FactsOf(result.program_stats),
      py::bytes(result.no_program), py::bytes(result.machine), FactsOf(result.next),
      py::bytes(result.in_flight), py::bytes(result.no_machine));
}
SharedPlan PlanOfState(const py::tuple& state) {
  CheckFields(state, 18);
  Plan plan = Watched({}, [text = state[0].cast<std::string>()](const Caller&) -> StatusOr<Plan> {
    XCCL_ASSIGN_OR_RETURN(Plan read, ParsePlanUnverified(text, kPlace));
    XCCL_RETURN_IF_ERROR(Annotate(ToStatus(VerifyPlan(read)), kPlace));
    return read;
  });
  TopologySpec spec = plan.topology.spec();
  spec.warnings = state[1].cast<std::vector<std::string>>();
  plan.topology = ValueOf(Topology::Create(std::move(spec)));
  PlanResult result{.plan = std::move(plan)};
  result.note = state[2].cast<std::string>();
  result.synthesis_s = state[3].cast<double>();
  const auto simulated = state[4].cast<py::tuple>();
  CheckFields(simulated, 4);
  result.simulation.time_ps = simulated[0].cast<int64_t>();
  result.simulation.stopped = simulated[1].cast<bool>();
  result.simulation.size_bytes = simulated[2].cast<int64_t>();
  result.simulation.segment_bytes = simulated[3].cast<int64_t>();
  result.bound = BoundOf(state[5].cast<py::tuple>());
  result.ratio = state[6].cast<double>();
  result.exact = state[7].cast<bool>();
  result.schedule_stats = StatsOf(state[8].cast<py::tuple>());
  for (const int32_t rank : state[9].cast<std::vector<int32_t>>()) result.relays.emplace_back(rank);
  result.program_time_ps = state[10].cast<std::optional<int64_t>>();
  result.loss = state[11].cast<std::string>();
  result.program_stats = ProgramStatsOf(state[12]);
  result.no_program = state[13].cast<std::string>();
  result.machine = state[14].cast<std::string>();
  result.next = RunnerUpOf(state[15]);
  result.in_flight = state[16].cast<std::string>();
  result.no_machine = state[17].cast<std::string>();
  return std::make_shared<PlanResult>(std::move(result));
}

}  // namespace xccl::python
