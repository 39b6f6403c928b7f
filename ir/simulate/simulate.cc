// Runs the event loop and extrapolates a steady state.
//
// With many segments a schedule settles into a steady state in which each further segment costs the same.
// Runs with m, 2m, 4m, ... segments of the final length reveal it, and the rest is a straight line. A steady
// state rises at least as fast as the fullest link's load, so the line is not allowed to rise more slowly.
//
// A compressed schedule whose translates never share a link is simulated by its columns alone. The machine
// and the schedule look the same from every translate, and the rules do not depend on names. So translates
// happen at the same time, and each link of an orbit does what its representative does.
#include "ir/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include "base/strings.h"
#include "base/units.h"
#include "ir/damaged.h"
#include "ir/simulate/event_loop.h"
#include "ir/simulate/simulation_model.h"
#include "ir/simulate/simulation_runs.h"
#include "ir/sizes.h"
#include "ir/slowed.h"
#include "ir/translated.h"

namespace xccl {
namespace {

// Returns the time that each link needs for its load in any order. No run is shorter than the longest of
// these times.
std::vector<int64_t> LinkLoads(const SimulationModel& model, const Topology& topology, TimeModel time_model,
                               int64_t segments) {
  const size_t links = static_cast<size_t>(topology.num_links());
  std::vector<__int128> bytes(links, 0), fixed_ps(links, 0);
  int32_t message = -1;
  for (int32_t u = 0; u < model.num_units(); ++u) {
    const int32_t path = model.unit_path[u];
    const bool first = model.unit_message[u] != message;
    message = model.unit_message[u];
    for (int32_t h = model.path_first[path]; h < model.path_first[path + 1]; ++h) {
      const Link& link = topology.link(LinkId(model.hops[h].link));
      const size_t l = static_cast<size_t>(model.hops[h].link);
      bytes[l] += model.unit_bytes[u];
      if (time_model == TimeModel::kBlocking) {
        fixed_ps[l] += segments * (static_cast<__int128>(link.overhead_ps) + link.latency_ps);
      } else if (first) {
        fixed_ps[l] += link.overhead_ps;
      }
    }
  }
  std::vector<int64_t> loads(links, 0);
  for (size_t l = 0; l < links; ++l) {
    const int64_t bandwidth = topology.spec().links[l].bandwidth_bytes_per_s;
    const __int128 ps = (bytes[l] * kPsPerSecond + bandwidth - 1) / bandwidth + fixed_ps[l];
    loads[l] = ps > kForeverPs ? kForeverPs : static_cast<int64_t>(ps);
  }
  return loads;
}

int64_t SegmentCount(int64_t bytes, int64_t segment_bytes) {
  if (segment_bytes <= 0 || bytes <= segment_bytes) return 1;
  return std::min<int64_t>((bytes - 1) / segment_bytes + 1, std::numeric_limits<int32_t>::max());
}

// Successive doublings must agree on the cost of a segment to this fraction, kAgreements times in a row.
constexpr double kSteady = 1e-5;
constexpr int32_t kAgreements = 2;
constexpr int64_t kFewSegments = 8;  // the shortest run that may reveal a steady state
constexpr int64_t kFewJobs = 1024;   // jobs × segments of that run are at least this many
// The most jobs × segments of a run, unless extrapolation is off, or a run of two segments has more.
constexpr int64_t kJobBudget = 4'000'000;

struct RunsMade {
  int64_t time_ps = 0;
  int64_t longest = 1;  // segments of the longest run
  int64_t longest_ps = 0;
};

// Returns the time of `segments` segments, from runs with m, 2m, 4m, ... segments.
RunsMade Extrapolate(const std::function<int64_t(int64_t)>& run, int64_t jobs, int64_t segments) {
  int64_t m = std::max(kFewSegments, kFewJobs / std::max<int64_t>(jobs, 1));
  // If the budget does not suffice for kAgreements, a line through short runs is about as good as a line
  // through long runs, and a fourth of the budget is enough.
  const int64_t budget = 8 * m * jobs > kJobBudget ? kJobBudget / 4 : kJobBudget;
  while (m > 1 && 4 * m * jobs > budget) m /= 2;
  // Runs agree at the earliest with the run of 8m segments, after the runs of m, 2m and 4m: together they
  // take as long as 15m segments.
  const auto run_all = [&]() -> RunsMade {
    const int64_t time_ps = run(segments);
    return {time_ps, segments, time_ps};
  };
  if (8 * m >= segments || segments * jobs <= kJobBudget) return run_all();
  int64_t before = run(m), last = run(2 * m), longest = 2 * m;
  const auto on_line = [&]() -> RunsMade {
    return {OnSteadyLine(before, last, longest, segments), longest, last};
  };
  if (m * jobs > kJobBudget) return on_line();  // even the shortest run is long
  int32_t agreements = 0;
  while (2 * longest < segments) {
    const int64_t time = run(2 * longest);
    const double rise = static_cast<double>(time - last), expected = 2 * static_cast<double>(last - before);
    agreements = std::abs(rise - expected) <= kSteady * rise ? agreements + 1 : 0;
    before = last;
    last = time;
    longest *= 2;
    if (agreements >= kAgreements || 2 * longest * jobs > budget) return on_line();
  }
  return run_all();
}

constexpr int64_t kRecordBudget = 1 << 20;  // jobs × segments of the run that records parts

// Calls visit(chunk, start, arrival) for every chunk of every transfer, in one run of so many segments.
// Returns the time of that run.
template <typename Visit>
int64_t RecordMoves(const SimulationModel& model, const Schedule& schedule, const Topology& topology,
                    TimeModel time_model, int64_t parts, int64_t segments, Visit visit) {
  const size_t units = static_cast<size_t>(model.num_units());
  MoveTimes by_unit{std::vector<int64_t>(units, 0), std::vector<int64_t>(units, 0)};
  const int64_t ran_ps = RunEvents(model, topology, time_model, parts, segments, &by_unit);
  for (int64_t t = 0; t < schedule.size(); ++t) {
    for (int32_t i = 0; i < schedule.count[t]; ++i) {
      const size_t unit = static_cast<size_t>(model.UnitOf(t, i));
      visit(ChunkId(schedule.first[t].value + i), by_unit.start_ps[unit], by_unit.arrival_ps[unit]);
    }
  }
  return ran_ps;
}

// Returns when each part's last byte arrives in a schedule that takes `time_ps`.
std::vector<int64_t> PartTimes(const SimulationModel& model, const Schedule& schedule,
                               const Collective& collective, const Topology& topology, TimeModel time_model,
                               int64_t segments, int64_t time_ps) {
  const int64_t run = std::clamp<int64_t>(kRecordBudget / std::max(model.num_jobs(), 1), 1, segments);
  std::vector<int64_t> done(static_cast<size_t>(collective.num_parts()), 0);
  const int64_t ran_ps = RecordMoves(model, schedule, topology, time_model, segments, run,
                                     [&](ChunkId chunk, int64_t, int64_t arrival_ps) {
                                       int64_t& part = done[collective.PartOf(chunk).index()];
                                       part = std::max(part, arrival_ps);
                                     });
  for (int64_t& part : done)
    part = ran_ps > 0 ? static_cast<int64_t>(static_cast<__int128>(part) * time_ps / ran_ps) : 0;
  return done;
}

// Returns what DefaultSegmentBytes describes; with `rough`, longer segments if there are many. Requires:
// chunks and paths that exist.
int64_t SegmentBytes(const Schedule& schedule, const CollectiveSizes& sizes, const Quotient& quotient,
                     int64_t members, bool rough = false) {
  constexpr double kFill = 64;         // filling may cost 1/64 of the busiest path's time
  constexpr int64_t kMoves = 1 << 16;  // segments in all that are always affordable
  // The most segments in all. Plans for more ranks move more chunks and need as many segments of each.
  const int64_t most_moves = rough ? 1 << 18 : std::max<int64_t>(1 << 21, members << 13);
  const int64_t largest = sizes.LargestChunkBytes();
  if (largest <= kFineSegmentBytes) return std::max<int64_t>(largest, 1);
  int64_t moves = 0;
  std::vector<double> carried(static_cast<size_t>(schedule.paths.size()), 0);
  for (int64_t t = 0; t < schedule.size(); ++t) {
    moves += schedule.count[t] * quotient.copies;
    const auto path = static_cast<size_t>(quotient.path_class[schedule.path[t].index()]);
    for (int32_t i = 0; i < schedule.count[t]; ++i)
      carried[path] += static_cast<double>(sizes.ChunkBytes(ChunkId(schedule.first[t].value + i)));
  }
  double busiest = static_cast<double>(largest);
  for (double bytes : carried) busiest = std::max(busiest, bytes);
  const double depth = schedule.num_steps() * static_cast<double>(largest) / busiest;
  const int64_t affordable = kMoves / std::max<int64_t>(moves, 1);
  const int64_t most = (largest - 1) / kFineSegmentBytes + 1;
  const int64_t bearable = most_moves / std::max<int64_t>(moves, 1);
  const double wanted = std::min(std::max(std::ceil(kFill * (depth - 1)), static_cast<double>(affordable)),
                                 static_cast<double>(bearable));
  const double segments = std::clamp(wanted, 1.0, static_cast<double>(most));
  const int64_t n = static_cast<int64_t>(segments);
  return std::max(kFineSegmentBytes, (largest - 1) / n + 1);
}

// Returns the topology for a simulation of columns whose translates share links. A link that carries several
// translates of a transfer is as many times slower.
Topology SharedLinks(const Topology& topology, const SymmetryGroup& group) {
  TopologySpec spec = topology.spec();
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const int64_t share = group.order() / group.LinkOrbitSize(group.OrbitOf(LinkId(l)));
    Link& link = spec.links[l];
    link.bandwidth_bytes_per_s = std::max<int64_t>(1, link.bandwidth_bytes_per_s / share);
    link.overhead_ps = std::min(kForeverPs, link.overhead_ps) * share;
  }
  return Topology::Create(std::move(spec)).value();
}

// Runs the schedule on the topology, and sets all fields of `made` but `plain` and `slower`.
void Run(const Schedule& schedule, const Collective& collective, const CollectiveSizes& sizes,
         const Topology& topology, const SimulateOptions& options, Quotient quotient, SimulationRuns& made) {
  made.quotient = std::move(quotient);
  Simulation& result = made.simulation;
  result.size_bytes = sizes.size_bytes();
  made.model = BuildSimulationModel(schedule, collective, sizes, topology, options.model, made.quotient);
  const SimulationModel& model = made.model;
  if (!model.unsound.empty()) {
    result.unsound = model.unsound;
    result.time_ps = kForeverPs;
    return;
  }
  result.segment_bytes = options.segment_bytes;
  if (result.segment_bytes <= 0 && options.model == TimeModel::kPipelined)
    result.segment_bytes =
        SegmentBytes(schedule, sizes, made.quotient, collective.num_members(), options.rough);
  int64_t largest = options.model == TimeModel::kPipelined ? sizes.LargestChunkBytes() : 0;
  for (int64_t bytes : model.unit_bytes) largest = std::max(largest, bytes);
  const int64_t segments = made.segments = SegmentCount(largest, result.segment_bytes);
  if (result.segment_bytes <= 0) result.segment_bytes = largest;
  const auto run = [&](int64_t n) {
    return RunEvents(model, topology, options.model, segments, n, nullptr, options.deadline);
  };
  const std::vector<int64_t> loads = LinkLoads(model, topology, options.model, segments);
  const int64_t fullest_ps = loads.empty() ? 0 : std::ranges::max(loads);
  if (options.extrapolate) {
    const RunsMade runs = Extrapolate(run, model.num_jobs() * made.quotient.copies, segments);
    const __int128 rest_ps = static_cast<__int128>(fullest_ps) * (segments - runs.longest) / segments;
    result.time_ps = std::max(
        runs.time_ps, static_cast<int64_t>(std::min<__int128>(kForeverPs, runs.longest_ps + rest_ps)));
    made.longest = runs.longest;
  } else {
    result.time_ps = run(segments);
    made.longest = segments;
  }
  if (result.time_ps >= kForeverPs && options.deadline()) {
    result.stopped = true;
    return;
  }
  result.time_ps = std::max(result.time_ps, fullest_ps);
  if (options.record_parts) {
    XCCL_CHECK(schedule.symmetry.empty());  // guaranteed by Requires
    result.part_done_ps =
        PartTimes(model, schedule, collective, topology, options.model, segments, result.time_ps);
  }
  if (options.record_links)
    for (const int32_t link : made.quotient.link_representative)
      result.link_busy_ps.push_back(loads[static_cast<size_t>(link)]);
}

// Returns the number of links of all transfers over trees, in the plain form. Each such link is a job, and
// the tree of a switch has about one for each rank that it joins.
int64_t TreeLinks(const Schedule& schedule, const Topology& topology, int64_t copies) {
  std::vector<int64_t> links;  // by path; 0: a chain
  for (int32_t p = 0; p < schedule.paths.size(); ++p) {
    const std::span<const LinkId> path = schedule.paths[PathId(p)];
    links.push_back(IsChain(topology, path) ? 0 : std::ssize(path));
  }
  int64_t all = 0;
  for (const PathId path : schedule.path) all += links[path.index()];
  return all * copies;
}

Quotient QuotientOf(const Schedule& schedule, const Translations& translations, const Topology& machine) {
  const SymmetryGroup& group = translations.group();
  Quotient quotient{translations.PathClasses(schedule.paths), {}, group.order()};
  for (int32_t l = 0; l < machine.num_links(); ++l)
    quotient.link_representative.push_back(group.LinkRepresentative(group.OrbitOf(LinkId(l))).value);
  return quotient;
}

// Simulates the columns of a damaged machine's schedule as if all translates were as slow as the slowest.
void RunDamaged(const Schedule& schedule, const Collective& collective, const CollectiveSizes& sizes,
                const Topology& topology, const SimulateOptions& options, const Translations& translations,
                SimulationRuns& made) {
  const SymmetricMachine whole(schedule, collective, topology);
  const CollectiveSizes of_whole(whole.collective(),
                                 WholeSizeBytes(collective, whole.collective(), sizes.size_bytes()));
  SlowedMachine slowed = SlowedOf(schedule, of_whole, topology, translations);
  made.slower = std::move(slowed.topology);
  Run(schedule, whole.collective(), of_whole, *made.slower, options,
      QuotientOf(schedule, translations, *made.slower), made);
  made.simulation.size_bytes = sizes.size_bytes();
  made.simulation.time_ps = std::max(made.simulation.time_ps, slowed.least_ps);
  // Lost links, which come last, have no load and are left out.
  if (options.record_links) made.simulation.link_busy_ps.resize(static_cast<size_t>(topology.num_links()));
}

// Simulates the columns of a compressed schedule if that is exact, or if the plain form is too long to
// expand; otherwise simulates the plain form.
void RunCompressed(const Schedule& schedule, const Collective& collective, const CollectiveSizes& sizes,
                   const Topology& topology, const SimulateOptions& options, SimulationRuns& made) {
  const StatusOr<Translations> translations = Translations::Create(schedule, collective, topology);
  if (!translations.ok()) {
    made.simulation.unsound = translations.status().message();
    made.simulation.time_ps = kForeverPs;
    return;
  }
  const SymmetryGroup& group = translations->group();
  const bool apart = translations->KeepApart(schedule.paths), damaged = IsOfDamaged(schedule);
  if (!apart || damaged || !translations->KeepSizes(sizes)) {
    const int64_t most = MostTransfersOn(topology);
    StatusOr<Schedule> plain = LimitReached("");
    if (damaged || TreeLinks(schedule, topology, group.order()) <= most)
      plain = Expand(schedule, collective, topology, most, options.deadline);
    if (plain.ok()) {
      made.plain = *std::move(plain);
      Quotient quotient = NoTranslates(*made.plain, topology.num_links());
      return Run(*made.plain, collective, sizes, topology, options, std::move(quotient), made);
    }
  }
  if (options.deadline()) {
    made.simulation.time_ps = kForeverPs;
    made.simulation.stopped = true;
    made.simulation.size_bytes = sizes.size_bytes();
    return;
  }
  if (damaged) return RunDamaged(schedule, collective, sizes, topology, options, *translations, made);
  if (!apart) made.slower = SharedLinks(topology, group);
  const Topology& machine = made.slower ? *made.slower : topology;
  Run(schedule, collective, sizes, machine, options, QuotientOf(schedule, *translations, machine), made);
}

}  // namespace

int64_t OnSteadyLine(int64_t before, int64_t last, int64_t longest, int64_t segments) {
  if (longest >= segments) return last;
  const __int128 rest = static_cast<__int128>(last - before) * (segments - longest) / (longest / 2);
  return static_cast<int64_t>(std::min<__int128>(kForeverPs, last + rest));
}

SimulationRuns RunSimulation(const Schedule& schedule, const Collective& collective, const Topology& topology,
                             const SimulateOptions& options) {
  const CollectiveSizes sizes(collective, options.size_bytes);
  SimulationRuns made;
  if (schedule.symmetry.empty()) {
    Run(schedule, collective, sizes, topology, options, NoTranslates(schedule, topology.num_links()), made);
  } else {
    RunCompressed(schedule, collective, sizes, topology, options, made);
  }
  return made;
}

Simulation Simulate(const Schedule& schedule, const Collective& collective, const Topology& topology,
                    const SimulateOptions& options) {
  return RunSimulation(schedule, collective, topology, options).simulation;
}

int64_t DefaultSegmentBytes(const Schedule& schedule, const Collective& collective, int64_t size_bytes) {
  return SegmentBytes(schedule, CollectiveSizes(collective, size_bytes), NoTranslates(schedule, 0),
                      collective.num_members());
}

MoveTimes SimulateMoves(const Schedule& schedule, const Collective& collective, const Topology& topology,
                        int64_t size_bytes) {
  const SimulationModel model = BuildSimulationModel(
      schedule, collective, CollectiveSizes(collective, size_bytes), topology, TimeModel::kPipelined,
      NoTranslates(schedule, topology.num_links()), FromTheStart::kAnything);
  XCCL_CHECK(model.unsound.empty());  // guaranteed by Requires
  MoveTimes times;
  RecordMoves(model, schedule, topology, TimeModel::kPipelined, 1, 1,
              [&](ChunkId, int64_t start_ps, int64_t arrival_ps) {
                times.start_ps.push_back(start_ps);
                times.arrival_ps.push_back(arrival_ps);
              });
  return times;
}

}  // namespace xccl
