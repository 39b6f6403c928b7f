// 1. SimulateMoves gives the arrival of each chunk of each transfer. The arrivals are the keys of the new
//    order.
// 2. OrderOf sorts the chunks' transfers by key, but keeps every transfer after the transfers that it depends
//    on.
// 3. InOrderOf gives each transfer the earliest step that its data and its links allow.
// 4. Backwards reverses the schedule. Steps 1 to 3 run on the reversed machine, and Backwards reverses the
//    result.
// 5. Justified repeats steps 1 to 4 while the time improves, and simulates and verifies the best schedule.
#include "synth/common/justify.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "ir/simulate/simulate.h"
#include "ir/translated.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/cost_model.h"
#include "synth/common/reverse.h"

namespace xccl {
namespace {

constexpr int64_t kMostMoves = 600'000;  // the most chunks of all transfers together
constexpr int32_t kLeastBins = 16;

// Returns the work of a simulation: the links that all chunks pass, added up.
int64_t HopsOf(const Schedule& schedule) {
  int64_t hops = 0;
  for (int64_t t = 0; t < schedule.size(); ++t)
    hops += schedule.count[t] * static_cast<int64_t>(schedule.paths[schedule.path[t]].size());
  return hops;
}

bool IsOfChains(const Schedule& schedule, const Topology& topology) {
  for (int32_t p = 0; p < schedule.paths.size(); ++p)
    if (!IsChain(topology, schedule.paths[PathId(p)])) return false;
  return true;
}

// Returns whether the schedule can be reordered: plain, neither empty nor too large, all paths chains.
bool IsServed(const Schedule& schedule, const Topology& topology) {
  return schedule.size() > 0 && schedule.symmetry.empty() && schedule.num_moves() <= kMostMoves &&
         int64_t{topology.num_ranks()} * schedule.num_chunks <= kMostCells && IsOfChains(schedule, topology);
}

// Returns one bin per step of the schedule, but at least kLeastBins.
int32_t BinsFor(const Schedule& schedule) { return std::max(kLeastBins, schedule.num_steps()); }

// Returns the plan's schedule in plain form. Errors: kLimit if the plain form is too long.
StatusOr<Schedule> PlainForm(const Synthesis& plan, const Topology& topology) {
  if (plan.schedule.symmetry.empty()) return plan.schedule;
  return Expand(plan.schedule, plan.collective, topology, kMostMoves);
}

// Returns every chunk of every transfer as a transfer of its own. `backwards`: in the opposite order.
std::vector<Transfer> Singles(const Schedule& schedule, bool backwards = false) {
  std::vector<Transfer> singles;
  singles.reserve(static_cast<size_t>(schedule.num_moves()));
  for (int64_t t = 0; t < schedule.size(); ++t) {
    Transfer transfer = schedule.at(t);
    const int32_t first = transfer.first.value, end = first + std::exchange(transfer.count, 1);
    for (int32_t c = first; c < end; ++c) {
      transfer.first = ChunkId(c);
      singles.push_back(transfer);
    }
  }
  if (backwards) std::ranges::reverse(singles);
  return singles;
}

// The keys or steps of the last read and the last write, for each rank and chunk. They only grow.
class Accesses {
 public:
  Accesses(int32_t ranks, int32_t chunks)
      : chunks_(static_cast<size_t>(chunks)),
        read_(static_cast<size_t>(ranks) * chunks_, kNever),
        written_(read_.size(), kNever),
        op_(read_.size(), TransferOp::kCopy) {}
  static constexpr int64_t kNever = INT64_MIN / 2;

  int64_t& Read(Rank r, int32_t chunk) { return read_[r.index() * chunks_ + static_cast<size_t>(chunk)]; }
  int64_t& Written(Rank r, int32_t chunk) {
    return written_[r.index() * chunks_ + static_cast<size_t>(chunk)];
  }
  TransferOp& Op(Rank r, int32_t chunk) { return op_[r.index() * chunks_ + static_cast<size_t>(chunk)]; }

 private:
  size_t chunks_;
  std::vector<int64_t> read_, written_;
  std::vector<TransferOp> op_;  // of the last write
};

// Returns the indices of the transfers sorted by key. Each key is first raised to the keys of the transfers
// that must come before: the writers of the data that the transfer reads, and the readers and writers of the
// data that it overwrites.
std::vector<size_t> OrderOf(std::span<const Transfer> singles, std::span<const int64_t> key, int32_t ranks,
                            int32_t chunks) {
  std::vector<int64_t> at(key.begin(), key.end());
  Accesses last(ranks, chunks);
  for (size_t i = 0; i < singles.size(); ++i) {
    const Transfer& transfer = singles[i];
    const int32_t c = transfer.first.value;
    int64_t& written = last.Written(transfer.dst, c);
    int64_t& read = last.Read(transfer.src, c);
    at[i] = std::max({at[i], last.Written(transfer.src, c), last.Read(transfer.dst, c), written});
    read = std::max(read, at[i]);
    written = at[i];
  }
  std::vector<size_t> order(at.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return at[i]; });
  return order;
}

// Returns the transfers from last to first, from destination to source over the reversed path.
Schedule Backwards(const Schedule& schedule) {
  Schedule back;
  back.num_chunks = schedule.num_chunks;
  back.paths = Backwards(schedule.paths);
  back.Reserve(schedule.size());
  const int32_t last_step = schedule.num_steps() - 1;
  for (Transfer transfer : Singles(schedule, true)) {
    std::swap(transfer.src, transfer.dst);
    transfer.step = last_step - transfer.step;
    back.Add(transfer);
  }
  Normalize(back);
  return back;
}

}  // namespace

Schedule InOrderOf(const Schedule& schedule, std::span<const int64_t> key, int32_t bins,
                   const Topology& topology) {
  Accesses last(topology.num_ranks(), schedule.num_chunks);
  struct Served {
    int64_t step = 0, bin = 0;
    PathId path;  // of the transfer that the link served last; -1: none
  };
  std::vector<Served> served(static_cast<size_t>(topology.num_links()), {0, 0, PathId(-1)});
  const int64_t width = std::ranges::max(key) / bins + 1;
  Schedule made;
  made.num_chunks = schedule.num_chunks;
  made.paths = schedule.paths;
  made.Reserve(schedule.size());
  const std::vector<Transfer> singles = Singles(schedule);
  for (const size_t i : OrderOf(singles, key, topology.num_ranks(), schedule.num_chunks)) {
    Transfer transfer = singles[i];
    const int32_t c = transfer.first.value;
    const int64_t bin = key[i] / width;
    TransferOp& op = last.Op(transfer.dst, c);  // sums into one chunk may share a step
    int64_t& written = last.Written(transfer.dst, c);
    int64_t& read = last.Read(transfer.src, c);
    int64_t step = std::max({int64_t{0}, last.Written(transfer.src, c) + 1, last.Read(transfer.dst, c),
                             written + (op == transfer.op ? 0 : 1)});
    for (const LinkId l : made.paths[transfer.path]) {
      const Served& before = served[l.index()];
      const bool may_share = before.path.value < 0 || before.path == transfer.path || before.bin == bin;
      step = std::max(step, may_share ? before.step : before.step + 1);
    }
    for (const LinkId l : made.paths[transfer.path]) served[l.index()] = {step, bin, transfer.path};
    read = std::max(read, step);
    written = step;
    op = transfer.op;
    transfer.step = static_cast<int32_t>(step);
    made.Add(transfer);
  }
  Normalize(made);
  return made;
}

std::optional<Schedule> InOrderOfArrival(const Schedule& schedule, const Collective& collective,
                                         const Topology& topology, int64_t size_bytes) {
  if (!IsServed(schedule, topology)) return std::nullopt;
  return InOrderOf(schedule, SimulateMoves(schedule, collective, topology, size_bytes).arrival_ps,
                   BinsFor(schedule), topology);
}

std::optional<Synthesis> Justified(const Synthesis& plan, const SynthesisRequest& request, int64_t& work) {
  const Topology& topology = *request.topology;
  const Collective& collective = plan.collective;
  const StatusOr<Schedule> plain = PlainForm(plan, topology);
  if (!plain.ok() || !IsServed(*plain, topology)) return std::nullopt;
  const int64_t hops = HopsOf(*plain);
  const int32_t bins = BinsFor(*plain);
  const Topology reversed = ReverseTopology(topology);
  Schedule now = *plain, best;
  int64_t best_ps = plan.simulation->time_ps;
  // SimulateMoves times whole chunks. Only the best order is simulated in segments, as the plan was.
  for (int64_t before_ps = INT64_MAX; !request.limits.deadline();) {
    const MoveTimes forwards = SimulateMoves(now, collective, topology, request.size_bytes);
    const int64_t last_ps = std::ranges::max(forwards.arrival_ps);
    work -= hops;
    if (last_ps < best_ps) {
      best_ps = last_ps;
      best = now;
    }
    if (kNear * static_cast<double>(last_ps) > static_cast<double>(before_ps) || work < 2 * hops) break;
    before_ps = last_ps;
    const Schedule back = Backwards(InOrderOf(now, forwards.arrival_ps, bins, topology));
    now = Backwards(InOrderOf(back, SimulateMoves(back, collective, reversed, request.size_bytes).arrival_ps,
                              bins, reversed));
    work -= hops;
  }
  if (best.size() == 0 || best == *plain) return std::nullopt;
  Synthesis made{.collective = collective,
                 .schedule = std::move(best),
                 .exact = false,
                 .engine = plan.engine,
                 .note = plan.note};
  made.simulation = Simulate(made.schedule, made.collective, topology, TimingOf(request));
  if (made.simulation->stopped || made.simulation->time_ps >= plan.simulation->time_ps) return std::nullopt;
  if (!VerifySchedule(made.schedule, made.collective, topology).empty()) return std::nullopt;
  return made;
}

}  // namespace xccl
