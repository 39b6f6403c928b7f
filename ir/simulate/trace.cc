// Runs Simulate, then once more the runs that gave its time, with a log of every event. Gathers rows from the
// log by message and link. If not all segments ran, extrapolates the rows on the line through the two runs.
#include "ir/simulate/trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/units.h"
#include "ir/damaged.h"
#include "ir/simulate/event_loop.h"
#include "ir/simulate/schedule_path.h"
#include "ir/simulate/simulation_runs.h"
#include "ir/translated.h"

namespace xccl {
namespace {

// When messages are on links in one run, and when units arrive.
struct RunTimes {
  std::vector<int64_t> start_ps, end_ps;  // by hop
  std::vector<int64_t> unit_arrival_ps;
};

class Tracer {
 public:
  Tracer(SimulationRuns runs, const Topology& topology, const SimulateOptions& options)
      : runs_(std::move(runs)), topology_(topology), model_(runs_.model), options_(options) {}

  // Sets all of `trace` but the schedule.
  Status Fill(ScheduleTrace& trace, const TraceOptions& limits) {
    trace.simulation = runs_.simulation;
    trace.copies = runs_.quotient.copies;
    trace.segments = runs_.segments;
    trace.ran_segments = runs_.longest;
    AddMessages(trace);
    EventLog log;
    XCCL_RETURN_IF_ERROR(RunLogged(runs_.longest, log));
    RunTimes times = TimesOf(log, runs_.longest, trace);
    trace.critical_path =
        MakeCriticalPath(ChainOf(model_, topology_, options_.model, runs_.segments, runs_.longest, log),
                         time_ps(), Elastic::kTransfers);
    if (runs_.longest < runs_.segments) {
      XCCL_RETURN_IF_ERROR(RunLogged(runs_.longest / 2, log));
      Extrapolate(TimesOf(log, runs_.longest / 2, trace), times);
    } else {
      AddSlices(log, limits.most_slices, trace);
    }
    for (size_t h = 0; h < trace.hops.size(); ++h) {
      TracedHop& hop = trace.hops[h];
      hop.start_ps = times.start_ps[h];
      hop.end_ps = times.end_ps[h];
      hop.arrival_ps = std::min(time_ps(), hop.end_ps + LatencyPs(hop.link));
    }
    AddChunks(times, trace);
    EndWithTheTime(trace);
    return OkStatus();
  }

 private:
  int64_t time_ps() const { return runs_.simulation.time_ps; }
  int64_t LatencyPs(LinkId link) const {
    return options_.model == TimeModel::kBlocking ? 0 : topology_.link(link).latency_ps;
  }
  int64_t HopOf(const ScheduleTrace& trace, int32_t job) const {
    const int32_t unit = model_.job_unit[job];
    return trace.messages[static_cast<size_t>(model_.unit_message[unit])].first_hop + job -
           model_.unit_first_job[unit];
  }

  void AddMessages(ScheduleTrace& trace) const {
    const Schedule& schedule = trace.schedule;
    trace.messages.resize(static_cast<size_t>(model_.num_messages));
    std::vector<bool> seen(trace.messages.size(), false);
    for (int64_t t = 0; t < schedule.size(); ++t) {
      const int32_t m = model_.unit_message[model_.UnitOf(t, 0)];
      trace.message_of.push_back(m);
      if (seen[static_cast<size_t>(m)]) continue;
      seen[static_cast<size_t>(m)] = true;
      TracedMessage& message = trace.messages[static_cast<size_t>(m)];
      message = {schedule.step[t],      schedule.src[t], schedule.dst[t], schedule.path[t], 0,
                 std::ssize(trace.hops)};
      const int32_t path = schedule.path[t].value;
      for (int32_t h = model_.path_first[path]; h < model_.path_first[path + 1]; ++h)
        trace.hops.push_back({m, LinkId(model_.hops[h].link), 0, 0, 0, 0});
    }
    for (int32_t u = 0; u < model_.num_units(); ++u) AddUnit(u, trace);
  }

  void AddUnit(int32_t unit, ScheduleTrace& trace) const {
    const bool first = unit == 0 || model_.unit_message[unit - 1] != model_.unit_message[unit];
    TracedMessage& message = trace.messages[static_cast<size_t>(model_.unit_message[unit])];
    message.bytes += model_.unit_bytes[unit];
    for (int32_t j = model_.unit_first_job[unit]; j < model_.unit_first_job[unit + 1]; ++j) {
      TracedHop& hop = trace.hops[static_cast<size_t>(HopOf(trace, j))];
      const Link& link = topology_.link(hop.link);
      const int64_t carry_ps =
          TransferPs(model_.unit_bytes[unit], link.bandwidth_bytes_per_s, runs_.segments);
      if (options_.model == TimeModel::kBlocking) {
        hop.busy_ps += runs_.segments * (link.overhead_ps + link.latency_ps + carry_ps);
      } else {
        hop.busy_ps += runs_.segments * carry_ps + (first ? link.overhead_ps : 0);
      }
    }
  }

  Status RunLogged(int64_t segments, EventLog& log) const {
    RunEvents(model_, topology_, options_.model, runs_.segments, segments, nullptr, options_.deadline, &log);
    if (log.order.size() == log.start_ps.size()) return OkStatus();
    return LimitReached(options_.deadline.Passed() + " while the simulation was traced");
  }

  RunTimes TimesOf(const EventLog& log, int64_t segments, const ScheduleTrace& trace) const {
    RunTimes times{std::vector<int64_t>(trace.hops.size(), std::numeric_limits<int64_t>::max()),
                   std::vector<int64_t>(trace.hops.size(), 0),
                   std::vector<int64_t>(static_cast<size_t>(model_.num_units()), 0)};
    for (int32_t j = 0; j < model_.num_jobs(); ++j) {
      const size_t hop = static_cast<size_t>(HopOf(trace, j));
      const size_t unit = static_cast<size_t>(model_.job_unit[j]);
      const bool arrives = model_.HopOf(j).to_gpu;
      const int64_t latency_ps = LatencyPs(trace.hops[hop].link);
      for (int64_t s = 0; s < segments; ++s) {
        const size_t entry = static_cast<size_t>(j * segments + s);
        times.start_ps[hop] = std::min(times.start_ps[hop], log.start_ps[entry]);
        times.end_ps[hop] = std::max(times.end_ps[hop], log.end_ps[entry]);
        if (arrives)
          times.unit_arrival_ps[unit] = std::max(times.unit_arrival_ps[unit], log.end_ps[entry] + latency_ps);
      }
    }
    return times;
  }

  // Extrapolates the times of the longest run to all segments.
  void Extrapolate(const RunTimes& before, RunTimes& last) const {
    const auto put = [&](const std::vector<int64_t>& from, std::vector<int64_t>& to) {
      for (size_t i = 0; i < to.size(); ++i)
        to[i] =
            std::clamp<int64_t>(OnSteadyLine(from[i], to[i], runs_.longest, runs_.segments), 0, time_ps());
    };
    put(before.start_ps, last.start_ps);
    put(before.end_ps, last.end_ps);
    put(before.unit_arrival_ps, last.unit_arrival_ps);
    for (size_t h = 0; h < last.end_ps.size(); ++h)
      last.end_ps[h] = std::max(last.end_ps[h], last.start_ps[h]);
  }

  void AddSlices(const EventLog& log, int64_t most, ScheduleTrace& trace) const {
    std::vector<int64_t> last(static_cast<size_t>(topology_.num_links()), -1);  // slice by link
    for (const int64_t entry : log.order) {
      const int64_t hop = HopOf(trace, static_cast<int32_t>(entry / runs_.longest));
      const int64_t start_ps = log.start_ps[static_cast<size_t>(entry)];
      const int64_t end_ps = log.end_ps[static_cast<size_t>(entry)];
      int64_t& on_link = last[trace.hops[static_cast<size_t>(hop)].link.index()];
      if (on_link >= 0) {
        TracedSlice& slice = trace.slices[static_cast<size_t>(on_link)];
        if (slice.hop == hop && slice.end_ps == start_ps) {
          slice.end_ps = end_ps;
          ++slice.segments;
          continue;
        }
      }
      if (std::ssize(trace.slices) == most) {
        trace.slices.clear();
        return;
      }
      on_link = std::ssize(trace.slices);
      trace.slices.push_back({hop, start_ps, end_ps, 1});
    }
  }

  void AddChunks(const RunTimes& times, ScheduleTrace& trace) const {
    for (int64_t t = 0; t < trace.schedule.size(); ++t)
      for (int32_t i = 0; i < trace.schedule.count[t]; ++i)
        trace.chunk_arrival_ps.push_back(times.unit_arrival_ps[static_cast<size_t>(model_.UnitOf(t, i))]);
  }

  // Extrapolated times of single events may differ from the extrapolated time of the simulation by the
  // tolerance of a steady state (ir/simulate/simulate.cc). The last arrival is then moved to the simulation's
  // time.
  void EndWithTheTime(ScheduleTrace& trace) const {
    const auto end = [&](auto& rows, auto time_of) {
      int64_t last = 0;
      for (auto& row : rows) last = std::max(last, time_of(row));
      for (auto& row : rows)
        if (time_of(row) == last) time_of(row) = time_ps();
    };
    end(trace.hops, [](TracedHop& hop) -> int64_t& { return hop.arrival_ps; });
    end(trace.chunk_arrival_ps, [](int64_t& time) -> int64_t& { return time; });
  }

  const SimulationRuns runs_;
  const Topology& topology_;
  const SimulationModel& model_;
  const SimulateOptions& options_;
};

}  // namespace

StatusOr<ScheduleTrace> TraceSchedule(const Schedule& schedule, const Collective& collective,
                                      const Topology& topology, const SimulateOptions& options,
                                      const TraceOptions& trace_options) {
  ScheduleTrace trace;
  trace.schedule = schedule;
  if (!schedule.symmetry.empty()) {
    StatusOr<Schedule> plain =
        Expand(schedule, collective, topology, trace_options.most_transfers, options.deadline);
    if (plain.ok()) trace.schedule = *std::move(plain);
  }
  if (IsOfDamaged(trace.schedule))
    return LimitReached("the schedule of a damaged machine has more transfers than a trace holds");
  SimulationRuns runs = RunSimulation(trace.schedule, collective, topology, options);
  if (!runs.simulation.unsound.empty()) return InvalidInput("schedule: " + runs.simulation.unsound);
  if (runs.simulation.stopped)
    return LimitReached(options.deadline.Passed() + " while the simulation was traced");
  if (runs.simulation.time_ps >= kForeverPs)
    return LimitReached("the schedule takes longer than times can say");
  if (runs.plain) trace.schedule = *std::move(runs.plain);
  const int64_t events = runs.longest * runs.model.num_jobs();
  if (events > trace_options.most_events)
    return LimitReached(fmt::format("the simulation has {} events; a trace holds at most {}", events,
                                    trace_options.most_events));
  const Topology on = runs.slower ? *runs.slower : topology;
  XCCL_RETURN_IF_ERROR(Tracer(std::move(runs), on, options).Fill(trace, trace_options));
  return trace;
}

}  // namespace xccl
