// The event loop, and the extrapolation of a steady state.
//
// An instant is handled in two halves: first everything that happens at it (links fall idle, heads and whole
// segments arrive, and what waited for them becomes ready), then every idle link that was touched takes the
// least ready job. Both are order-free, so the result does not depend on how events of one time are ordered.
// Cost: one heap operation and two or three events a job and segment.
//
// With many segments a schedule settles into a steady state in which each further segment costs the same:
// runs with m, 2m, 4m, ... segments of the final length show it, and the rest is a straight line. No link can
// be done sooner than it takes to carry its bytes; that floor is exact, so no bound is undercut.
//
// A compressed schedule whose translates never share a link is simulated by its columns alone: the machine
// and the schedule look the same from every translate, the rules above do not depend on names, so translates
// happen at the same time, and each link of an orbit does what its representative does.
#include "ir/simulate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include "base/strings.h"
#include "base/units.h"
#include "ir/event_queue.h"
#include "ir/simulation_model.h"
#include "ir/sizes.h"
#include "ir/translated.h"

namespace xccl {
namespace {

constexpr int64_t kForever = std::numeric_limits<int64_t>::max() / 4;  // times are capped here

// ceil(bytes / (bytes_per_s * parts)) in picoseconds.
int64_t PartPs(int64_t bytes, int64_t bytes_per_s, int64_t parts) {
  const unsigned __int128 numerator = static_cast<unsigned __int128>(bytes) * kPsPerSecond;
  const unsigned __int128 denominator = static_cast<unsigned __int128>(bytes_per_s) * parts;
  const unsigned __int128 ps = (numerator + denominator - 1) / denominator;
  return ps > static_cast<unsigned __int128>(kForever) ? kForever : static_cast<int64_t>(ps);
}

// How long a unit's segment occupies a link, overhead excluded: a table over distinct sizes and bandwidths.
class Durations {
 public:
  Durations(const SimulationModel& model, const Topology& topology, int64_t segments)
      : model_(model), topology_(topology), segments_(segments) {
    for (const Link& link : topology.spec().links) bandwidths_.push_back(link.bandwidth_bytes_per_s);
    std::sort(bandwidths_.begin(), bandwidths_.end());
    bandwidths_.erase(std::unique(bandwidths_.begin(), bandwidths_.end()), bandwidths_.end());
    for (const Link& link : topology.spec().links)
      class_of_link_.push_back(static_cast<int32_t>(
          std::lower_bound(bandwidths_.begin(), bandwidths_.end(), link.bandwidth_bytes_per_s) -
          bandwidths_.begin()));
    if (model.size_classes.size() * bandwidths_.size() > kTableLimit) return;
    for (int64_t bytes : model.size_classes)
      for (int64_t bandwidth : bandwidths_) table_.push_back(PartPs(bytes, bandwidth, segments));
  }
  int64_t operator()(int32_t size_class, int32_t link) const {
    if (!table_.empty())
      return table_[static_cast<size_t>(size_class) * bandwidths_.size() +
                    static_cast<size_t>(class_of_link_[link])];
    return PartPs(model_.size_classes[size_class], topology_.link(LinkId(link)).bandwidth_bytes_per_s,
                  segments_);
  }

 private:
  static constexpr size_t kTableLimit = 1 << 16;
  const SimulationModel& model_;
  const Topology& topology_;
  int64_t segments_;
  std::vector<int64_t> bandwidths_, table_;
  std::vector<int32_t> class_of_link_;
};

// One run with the first `segments` segments of every unit.
class EventLoop {
 public:
  // `record`, where given, is filled by unit.
  EventLoop(const SimulationModel& model, const Topology& topology, TimeModel time_model,
            const Durations& durations, int64_t segments, MoveTimes* record = nullptr)
      : model_(model),
        blocking_(time_model == TimeModel::kBlocking),
        durations_(durations),
        n_(segments),
        record_(record) {
    const size_t jobs = static_cast<size_t>(model.num_jobs()), n = static_cast<size_t>(segments);
    missing_.resize(jobs * n);
    for (size_t j = 0; j < jobs; ++j)
      std::fill_n(missing_.begin() + static_cast<int64_t>(j * n), n, model.job_missing[j]);
    if (!model.single_hop && !blocking_) tail_arrives_.assign(jobs * n, 0);
    landed_.assign(model.writes.size() * n, 0);
    cells_.resize(model.cells.size() * n);
    for (size_t c = 0; c < model.cells.size(); ++c)
      std::fill_n(cells_.begin() + static_cast<int64_t>(c * n), n, CellState{0, model.cells[c].first_reader});
    links_.resize(static_cast<size_t>(topology.num_links()));
    bool overhead = false;
    for (const Link& link : topology.spec().links) {
      fixed_.push_back({std::min(link.latency_ps, kForever), std::min(link.overhead_ps, kForever)});
      overhead |= link.overhead_ps > 0;
    }
    if (overhead && !blocking_) MarkMessages();
  }

  int64_t Run() {
    for (int32_t j = 0; j < model_.num_jobs(); ++j)
      if (model_.job_missing[j] == 0)
        for (int64_t s = 0; s < n_; ++s) MakeReady(j, s);
    Choose(0);
    while (!queue_.empty()) {
      const int64_t now = queue_.PopBatch(batch_);
      for (const Event& event : batch_) Handle(event);
      Choose(now);
    }
    XCCL_CHECK(started_ == static_cast<int64_t>(model_.num_jobs()) * n_);  // else the schedule is wrong
    return last_arrival_;
  }

 private:
  enum What : uint64_t { kIdle = 0, kHead = 1ULL << 62, kArrival = 2ULL << 62, kMask = 3ULL << 62 };
  struct LinkState {
    std::vector<uint64_t> ready;  // min-heap of keys
    bool busy = false;
    bool touched = false;
  };
  struct Fixed {
    int64_t latency_ps, overhead_ps;
  };
  struct CellState {
    int32_t landed = 0;  // writes, in order of step, that have landed without a gap
    int32_t reader = -1;
  };

  static uint64_t Key(int32_t job, int64_t segment) {
    return static_cast<uint64_t>(job) << 32 | static_cast<uint64_t>(segment);
  }
  size_t At(int32_t job, int64_t segment) const {
    return static_cast<size_t>(job) * static_cast<size_t>(n_) + static_cast<size_t>(segment);
  }

  // Message m on hop h of its path is flag first_hop_of_message_[m] + h.
  void MarkMessages() {
    first_hop_of_message_.assign(static_cast<size_t>(model_.num_messages), 0);
    std::vector<int32_t> length(static_cast<size_t>(model_.num_messages), 0);
    for (int32_t u = 0; u < model_.num_units(); ++u)
      length[model_.unit_message[u]] = model_.unit_first_job[u + 1] - model_.unit_first_job[u];
    int64_t flags = 0;
    for (size_t m = 0; m < length.size(); ++m) {
      first_hop_of_message_[m] = flags;
      flags += length[m];
    }
    message_started_.assign(static_cast<size_t>(flags), false);
  }

  void Touch(int32_t link) {
    if (links_[link].touched) return;
    links_[link].touched = true;
    touched_.push_back(link);
  }

  void MakeReady(int32_t job, int64_t segment) {
    const int32_t link = model_.HopOf(job).link;
    std::vector<uint64_t>& ready = links_[link].ready;
    ready.push_back(Key(job, segment));
    std::push_heap(ready.begin(), ready.end(), std::greater<>());
    if (!links_[link].busy) Touch(link);
  }

  void Choose(int64_t now) {
    for (size_t i = 0; i < touched_.size(); ++i) {
      LinkState& link = links_[touched_[i]];
      link.touched = false;
      if (link.busy || link.ready.empty()) continue;
      std::pop_heap(link.ready.begin(), link.ready.end(), std::greater<>());
      const uint64_t key = link.ready.back();
      link.ready.pop_back();
      link.busy = true;
      Start(static_cast<int32_t>(key >> 32), static_cast<int64_t>(key & 0xffffffffU), touched_[i], now);
    }
    touched_.clear();
  }

  void Start(int32_t job, int64_t segment, int32_t link_id, int64_t now) {
    ++started_;
    const Fixed& link = fixed_[link_id];
    const int32_t unit = model_.job_unit[job];
    const int32_t place = job - model_.unit_first_job[unit];
    const SimulationModel::Hop& hop = model_.hops[model_.path_first[model_.unit_path[unit]] + place];
    int64_t end = std::min(kForever, now + durations_(model_.unit_class[unit], link_id));
    int64_t arrival = end, head = end;
    if (blocking_) {
      arrival = head = end = std::min(kForever, end + link.overhead_ps + link.latency_ps);
    } else {
      if (!message_started_.empty()) {
        auto flag = message_started_[first_hop_of_message_[model_.unit_message[unit]] + place];
        if (!flag) end = std::min(kForever, end + link.overhead_ps);
        flag = true;
      }
      if (!tail_arrives_.empty()) end = std::max(end, tail_arrives_[At(job, segment)]);
      head = std::min(kForever, now + link.latency_ps);
      arrival = std::min(kForever, end + link.latency_ps);
    }
    queue_.Push(end, kIdle | static_cast<uint64_t>(link_id));
    for (int32_t i = hop.next_first; i < hop.next_first + hop.next_count; ++i) {
      const int32_t next = model_.unit_first_job[unit] + model_.next_hops[i];
      if (!tail_arrives_.empty()) {
        int64_t& tail = tail_arrives_[At(next, segment)];
        tail = std::max(tail, arrival);
      }
      queue_.Push(head, kHead | Key(next, segment));
    }
    if (hop.to_gpu) queue_.Push(arrival, kArrival | Key(job, segment));
    last_arrival_ = std::max(last_arrival_, arrival);
    if (record_ == nullptr) return;
    if (hop.from_gpu) record_->start_ps[static_cast<size_t>(unit)] = now;
    if (hop.to_gpu) record_->arrival_ps[static_cast<size_t>(unit)] = arrival;
  }

  void Handle(const Event& event) {
    const uint64_t key = event.what & ~static_cast<uint64_t>(kMask);
    switch (event.what & kMask) {
      case kIdle:
        links_[key].busy = false;
        Touch(static_cast<int32_t>(key));
        return;
      case kHead:
        Satisfy(static_cast<int32_t>(key >> 32), static_cast<int64_t>(key & 0xffffffffU));
        return;
      case kArrival:
        Land(static_cast<int32_t>(key >> 32), static_cast<int64_t>(key & 0xffffffffU));
        return;
    }
  }

  void Satisfy(int32_t job, int64_t segment) {
    if (--missing_[At(job, segment)] == 0) MakeReady(job, segment);
  }

  void Land(int32_t job, int64_t segment) {
    for (int32_t w = model_.job_first_write[job]; w < model_.job_first_write[job + 1]; ++w) {
      const SimulationModel::Write& write = model_.writes[w];
      const SimulationModel::Cell& cell = model_.cells[write.cell];
      CellState& state = cells_[At(write.cell, segment)];
      const auto flag = [&](int32_t place) -> uint8_t& {
        return landed_[static_cast<size_t>(cell.first_write + place) * static_cast<size_t>(n_) +
                       static_cast<size_t>(segment)];
      };
      if (write.place != state.landed) {
        flag(write.place) = 1;
        continue;
      }
      ++state.landed;
      while (state.landed < cell.num_writes && flag(state.landed) != 0) ++state.landed;
      while (state.reader >= 0 && model_.readers[state.reader].need <= state.landed) {
        const SimulationModel::Reader& reader = model_.readers[state.reader];
        state.reader = reader.next;
        Satisfy(reader.job, segment);
      }
    }
  }

  const SimulationModel& model_;
  const bool blocking_;
  const Durations& durations_;
  const int64_t n_;
  MoveTimes* const record_;
  std::vector<int32_t> missing_;       // by job and segment
  std::vector<int64_t> tail_arrives_;  // by job and segment: when the last input's end is at the tail
  std::vector<uint8_t> landed_;        // by write and segment; set only for writes that land out of order
  std::vector<CellState> cells_;       // by cell and segment
  std::vector<LinkState> links_;
  std::vector<Fixed> fixed_;  // by link
  std::vector<int64_t> first_hop_of_message_;
  std::vector<bool> message_started_;
  EventQueue queue_;
  std::vector<Event> batch_;
  std::vector<int32_t> touched_;
  int64_t started_ = 0;
  int64_t last_arrival_ = 0;
};

// What each link must carry, whatever the order: no run can be shorter.
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
      bytes[l] += model.size_classes[model.unit_class[u]];
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
    loads[l] = ps > kForever ? kForever : static_cast<int64_t>(ps);
  }
  return loads;
}

int64_t SegmentCount(int64_t bytes, int64_t segment_bytes) {
  if (segment_bytes <= 0 || bytes <= segment_bytes) return 1;
  return std::min<int64_t>((bytes - 1) / segment_bytes + 1, std::numeric_limits<int32_t>::max());
}

// Two doublings in a row must agree with the one before on what a segment costs, to this fraction of it.
constexpr double kSteady = 1e-5;
constexpr int32_t kAgreements = 2;
constexpr int64_t kFewSegments = 8;        // the shortest run that may show a steady state
constexpr int64_t kFewJobs = 1024;         // jobs × segments of it are at least this many
constexpr int64_t kJobBudget = 4'000'000;  // jobs × segments of the longest run that is not asked for

// The time of `segments` segments from runs of m, 2m, 4m, ... of them.
int64_t Extrapolate(const std::function<int64_t(int64_t)>& run, int64_t jobs, int64_t segments) {
  int64_t m = std::max(kFewSegments, kFewJobs / std::max<int64_t>(jobs, 1));
  while (m > 1 && 4 * m * jobs > kJobBudget) m /= 2;
  if (4 * m >= segments) return run(segments);
  int64_t before = run(m), last = run(2 * m), longest = 2 * m;
  int32_t agreements = 0;
  while (2 * longest < segments) {
    const int64_t time = run(2 * longest);
    const double rise = static_cast<double>(time - last), expected = 2 * static_cast<double>(last - before);
    agreements = std::abs(rise - expected) <= kSteady * rise ? agreements + 1 : 0;
    before = last;
    last = time;
    longest *= 2;
    if (agreements < kAgreements && 2 * longest * jobs <= kJobBudget) continue;
    const __int128 rest = static_cast<__int128>(last - before) * (segments - longest) / (longest / 2);
    return static_cast<int64_t>(std::min<__int128>(kForever, last + rest));
  }
  return run(segments);
}

}  // namespace

std::string_view ToString(TimeModel model) {
  switch (model) {
    case TimeModel::kPipelined:
      return "pipelined";
    case TimeModel::kBlocking:
      return "blocking";
  }
  return "";
}

StatusOr<TimeModel> ParseTimeModel(std::string_view name) {
  constexpr std::string_view kNames[] = {"pipelined", "blocking"};
  if (name == kNames[0]) return TimeModel::kPipelined;
  if (name == kNames[1]) return TimeModel::kBlocking;
  return InvalidInput("no time model '" + std::string(name) + "'; expected pipelined or blocking" +
                      DidYouMean(name, kNames));
}

namespace {

// How the rest of the file sees a compressed schedule.
struct Folded {
  std::optional<Quotient> quotient;  // absent: plain
  int64_t copies = 1;                // translates of each transfer
};

int64_t SegmentBytes(const Schedule& schedule, const Collective& collective, const CollectiveSizes& sizes,
                     const Folded& folded, bool rough = false) {
  constexpr int64_t kLeast = 64 << 10;
  constexpr double kFill = 64;                           // filling may cost 1/64 of the busiest path's time
  constexpr int64_t kMoves = 1 << 16;                    // segments in all that are always affordable
  const int64_t most_moves = rough ? 1 << 18 : 1 << 21;  // and that are the most
  int64_t largest = 0;
  for (int32_t c = 0; c < collective.num_chunks(); ++c)
    largest = std::max(largest, sizes.ChunkBytes(ChunkId(c)));
  if (largest <= kLeast) return std::max<int64_t>(largest, 1);
  int64_t moves = 0;
  std::vector<double> carried(static_cast<size_t>(schedule.paths.size()), 0);
  for (int64_t t = 0; t < schedule.size(); ++t) {
    moves += schedule.count[t] * folded.copies;
    const size_t path = folded.quotient
                            ? static_cast<size_t>(folded.quotient->path_class[schedule.path[t].index()])
                            : schedule.path[t].index();
    for (int32_t i = 0; i < schedule.count[t]; ++i)
      carried[path] += static_cast<double>(sizes.ChunkBytes(ChunkId(schedule.first[t].value + i)));
  }
  double busiest = static_cast<double>(largest);
  for (double bytes : carried) busiest = std::max(busiest, bytes);
  const double depth = schedule.num_steps() * static_cast<double>(largest) / busiest;
  const int64_t affordable = kMoves / std::max<int64_t>(moves, 1);
  const int64_t most = (largest - 1) / kLeast + 1;
  const int64_t bearable = most_moves / std::max<int64_t>(moves, 1);
  const double wanted = std::min(std::max(std::ceil(kFill * (depth - 1)), static_cast<double>(affordable)),
                                 static_cast<double>(bearable));
  const double segments = std::clamp(wanted, 1.0, static_cast<double>(most));
  const int64_t n = static_cast<int64_t>(segments);
  return std::max(kLeast, (largest - 1) / n + 1);
}

// Links that translations keep in place carry all translates of a transfer that keep them: as if so much
// slower.
Topology SharedLinks(const Topology& topology, const SymmetryGroup& group) {
  TopologySpec spec = topology.spec();
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const int64_t share = group.order() / group.LinkOrbitSize(group.OrbitOf(LinkId(l)));
    Link& link = spec.links[l];
    link.bandwidth_bytes_per_s = std::max<int64_t>(1, link.bandwidth_bytes_per_s / share);
    link.overhead_ps = std::min(kForever, link.overhead_ps) * share;
  }
  return Topology::Create(std::move(spec)).value();
}

Simulation Run(const Schedule& schedule, const Collective& collective, const CollectiveSizes& sizes,
               const Topology& topology, const SimulateOptions& options, const Folded& folded) {
  Simulation result;
  result.size_bytes = sizes.size_bytes();
  result.segment_bytes = options.segment_bytes;
  if (result.segment_bytes <= 0 && options.model == TimeModel::kPipelined)
    result.segment_bytes = SegmentBytes(schedule, collective, sizes, folded, options.rough);

  const Quotient* const quotient = folded.quotient ? &*folded.quotient : nullptr;
  const SimulationModel model =
      BuildSimulationModel(schedule, collective, sizes, topology, options.model, quotient);
  int64_t largest = 0;
  for (int64_t bytes : model.size_classes) largest = std::max(largest, bytes);
  const int64_t segments = SegmentCount(largest, result.segment_bytes);
  if (result.segment_bytes <= 0) result.segment_bytes = largest;
  const Durations durations(model, topology, segments);
  const auto run = [&](int64_t n) { return EventLoop(model, topology, options.model, durations, n).Run(); };
  std::vector<int64_t> loads = LinkLoads(model, topology, options.model, segments);
  if (options.extrapolate) {
    result.time_ps = Extrapolate(run, model.num_jobs() * folded.copies, segments);
  } else {
    result.time_ps = run(segments);
  }
  for (int64_t load : loads) result.time_ps = std::max(result.time_ps, load);
  if (options.record_links) {
    if (quotient != nullptr)
      for (size_t l = 0; l < loads.size(); ++l) loads[l] = loads[quotient->link_representative[l].index()];
    result.link_busy_ps = std::move(loads);
  }
  return result;
}

// A compressed schedule: its columns alone where that is exact, or where the plain form is too long to be
// written out; else the plain form.
Simulation SimulateCompressed(const Schedule& schedule, const Collective& collective,
                              const CollectiveSizes& sizes, const Topology& topology,
                              const SimulateOptions& options) {
  const StatusOr<Translations> translations = Translations::Create(schedule, collective, topology);
  XCCL_CHECK(translations.ok());  // required
  const SymmetryGroup& group = translations->group();
  const bool free = translations->AreFreeOn(schedule.paths);
  if (!free || !translations->KeepSizes(sizes)) {
    const StatusOr<Schedule> plain = Expand(schedule, collective, topology);
    if (plain.ok()) return Run(*plain, collective, sizes, topology, options, {});
  }
  Folded folded;
  folded.copies = group.order();
  Quotient& quotient = folded.quotient.emplace();
  quotient.path_class = translations->PathClasses(schedule.paths);
  for (int32_t l = 0; l < topology.num_links(); ++l)
    quotient.link_representative.push_back(group.LinkRepresentative(group.OrbitOf(LinkId(l))));
  if (free) return Run(schedule, collective, sizes, topology, options, folded);
  return Run(schedule, collective, sizes, SharedLinks(topology, group), options, folded);
}

}  // namespace

Simulation Simulate(const Schedule& schedule, const Collective& collective, const Topology& topology,
                    const SimulateOptions& options) {
  const CollectiveSizes sizes(collective, options.size_bytes);
  if (!schedule.symmetry.empty()) return SimulateCompressed(schedule, collective, sizes, topology, options);
  return Run(schedule, collective, sizes, topology, options, {});
}

int64_t DefaultSegmentBytes(const Schedule& schedule, const Collective& collective, int64_t size_bytes) {
  return SegmentBytes(schedule, collective, CollectiveSizes(collective, size_bytes), {});
}

MoveTimes SimulateMoves(const Schedule& schedule, const Collective& collective, const Topology& topology,
                        int64_t size_bytes) {
  const CollectiveSizes sizes(collective, size_bytes);
  const SimulationModel model =
      BuildSimulationModel(schedule, collective, sizes, topology, TimeModel::kPipelined);
  const size_t units = static_cast<size_t>(model.num_units());
  MoveTimes by_unit{std::vector<int64_t>(units, 0), std::vector<int64_t>(units, 0)};
  EventLoop(model, topology, TimeModel::kPipelined, Durations(model, topology, 1), 1, &by_unit).Run();

  // Units are in order of message.
  const MessageTable messages = GroupMessages(schedule);
  std::vector<size_t> next(static_cast<size_t>(messages.num_messages) + 1, 0);
  for (int64_t t = 0; t < schedule.size(); ++t)
    next[static_cast<size_t>(messages.of_transfer[t]) + 1] += static_cast<size_t>(schedule.count[t]);
  std::partial_sum(next.begin(), next.end(), next.begin());
  MoveTimes times;
  times.start_ps.reserve(units);
  times.arrival_ps.reserve(units);
  for (int64_t t = 0; t < schedule.size(); ++t) {
    for (int32_t i = 0; i < schedule.count[t]; ++i) {
      const size_t unit = next[static_cast<size_t>(messages.of_transfer[t])]++;
      times.start_ps.push_back(by_unit.start_ps[unit]);
      times.arrival_ps.push_back(by_unit.arrival_ps[unit]);
    }
  }
  return times;
}

}  // namespace xccl
