// Trees are packed a few times, with more or less regard to how far ranks are from the root; each packing is
// tried in waves.
#include "synth/forest/pack_and_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/simulate/simulate.h"
#include "synth/forest/allreduce.h"
#include "synth/forest/packings.h"
#include "synth/forest/request.h"
#include "synth/forest/waves.h"

namespace xccl::forest {
namespace {

constexpr int64_t kDefaultWork = 1'500'000;  // transfers of all candidates of a kind together
constexpr double kRegard[] = {1, 0.1};       // of latency against bytes, one packing each
constexpr int64_t kMostShortestRows = 100;   // where trees of shortest ways are tried first
constexpr int32_t kMostExact = 64;           // members that the cheapest trees are sought for
constexpr double kExactRegard = 0.01;        // of latency, then
constexpr double kFar = 1.01;                // times the bound: worth another kind of packing
constexpr double kWorthPairs = 1.003;        // times as fast as apart: worth pairs
// Ways to weigh the links' loads; the fastest plan of all is taken.
constexpr EqualTreesAim kAims[] = {{2, 2, 0}, {2, 5, 0}, {4, 4, 0}, {2, 5, 0.1}, {4, 4, 0.1}, {2, 5, 1}};

// Do all parts have a count of zero?
bool IsEmpty(const Collective& collective) {
  return IsUneven(collective) &&
         std::ranges::all_of(collective.spec().counts, [](int64_t count) { return count == 0; });
}

// Exactly so many trees a root, not in waves.
Status TryEqual(const Task& task, int64_t trees, StepBudget& budget, int64_t work, Best& best) {
  for (const EqualTreesAim& aim : kAims) {
    XCCL_ASSIGN_OR_RETURN(const Candidate candidate, PackEqual(task, trees, aim));
    if (best.synthesis && candidate.rate_ps >= static_cast<double>(best.time_ps)) continue;
    int64_t left = work;
    TryWaves(task, candidate, budget, left, best);
    if (best.synthesis && IsEnough(task, best, left)) break;
  }
  return OkStatus();
}

// On tori and the like trees of shortest ways reach the best rate, too; elsewhere they are dropped. Returns
// their rate.
std::optional<double> TryShortest(const Task& task, StepBudget& budget, int64_t work, Best& best) {
  const StatusOr<Candidate> shortest = PackAtBestRate(task, std::nullopt);
  if (!shortest.ok()) return std::nullopt;
  if (shortest->rate_ps < task.beat_ps && shortest->rate_ps <= (1 + kFineAim) * task.bound.bandwidth_ps)
    TryWaves(task, *shortest, budget, work, best);
  return shortest->rate_ps;
}

// Pairs of trees are worth a try where all ranks take part and reduce_scatter and allgather, which `apart_ps`
// are for, are slower than they need be: roots may carry unlike shares, and switches multicast and reduce.
bool MayPair(const Task& task, double apart_ps) {
  return task.collective.kind() == CollectiveKind::kAllreduce &&
         task.collective.num_members() == task.topology.num_ranks() && !HasEvenCables(task.request) &&
         apart_ps > kWorthPairs * static_cast<double>(task.bound.bound_ps);
}

// Cheap trees may miss the best rate where directions differ.
bool MayMissTheRate(const Task& task, const Best& best) {
  return !task.group && !best.IsWithin(kFar, task.bound) &&
         task.collective.kind() != CollectiveKind::kAllreduce && task.collective.num_members() <= kMostExact;
}

// One packing, or a pair of trees instead. Returns the rate of what was tried last.
StatusOr<double> TryTrees(const Task& task, double regard, int64_t work_of_each, StepBudget& budget,
                          int64_t& work, Best& best) {
  XCCL_ASSIGN_OR_RETURN(const Candidate apart, PackAtBestRate(task, regard));
  if (MayPair(task, apart.rate_ps)) {
    const std::optional<Candidate> pairs = PackPairs(task, regard);
    if (pairs && pairs->rate_ps * kWorthPairs <= apart.rate_ps && pairs->rate_ps < task.beat_ps)
      TryWaves(task, *pairs, budget, work, best);
    if (best.synthesis && static_cast<double>(best.time_ps) <= apart.rate_ps)
      return pairs ? pairs->rate_ps : apart.rate_ps;
    work = work_of_each;
  }
  if (apart.rate_ps < task.beat_ps) TryWaves(task, apart, budget, work, best);
  return apart.rate_ps;
}

// Every packing that may help. Errors: why nothing was made.
Status TryAll(const Task& task, StepBudget& budget, int64_t work, Best& best) {
  Status reason = LimitReached("forest: spanning trees are faster");
  std::optional<double> rate_ps;  // of the last packing
  if (task.group && task.topology.num_nodes() == task.topology.num_ranks() &&
      task.Rows() <= kMostShortestRows)
    rate_ps = TryShortest(task, budget, work, best);
  int64_t left = work;
  for (const double regard : kRegard) {
    // Less regard of latency finds trees of a better rate, if it finds any.
    const bool is_rate_the_best = rate_ps && *rate_ps <= (1 + kFineAim) * task.bound.bandwidth_ps;
    if (best.synthesis &&
        (IsEnough(task, best, left) || (is_rate_the_best && best.IsWithin(kFar, task.bound))))
      break;
    const StatusOr<double> tried = TryTrees(task, regard, work, budget, left, best);
    if (tried.ok()) {
      rate_ps = *tried;
    } else {
      reason = tried.status();
    }
  }
  if (MayMissTheRate(task, best)) {
    const StatusOr<Candidate> exact = PackAtBestRate(task, kExactRegard, true);
    if (!exact.ok()) {
      reason = exact.status();
    } else if (exact->rate_ps < task.beat_ps) {
      TryWaves(task, *exact, budget, left, best);
    }
  }
  return best.synthesis ? OkStatus() : reason;
}

}  // namespace

StatusOr<Synthesis> PackAndCut(const SynthesisRequest& request, const Bound& bound, StepBudget& budget,
                               double beat_ps) {
  if (request.collective->num_members() == 1 || IsEmpty(*request.collective))
    return NothingToMove("forest", request);
  const int64_t work = request.limits.work_units > 0 ? request.limits.work_units : kDefaultWork;
  if (work < request.collective->num_members())
    return LimitReached("forest: the limit of work was reached before a tree was packed");
  const Task task = MakeTask(request, bound, beat_ps);
  const std::optional<int32_t> chunks = request.limits.chunks;
  if (const int64_t rows = task.Rows(); !chunks && rows > kMostRows)
    return LimitReached(
        fmt::format("forest: {} rows of links and ranks that differ; at most {}; hint: "
                    "--engine=greedy",
                    rows, kMostRows));
  Best best;
  const Status tried =
      chunks ? TryEqual(task, *chunks, budget, work, best) : TryAll(task, budget, work, best);
  if (!best.synthesis && budget.HasRefused()) return budget.Refusal();
  if (!tried.ok()) return tried;
  if (best.rough) {
    best.synthesis->simulation = Simulate(best.synthesis->schedule, best.synthesis->collective, task.topology,
                                          {.size_bytes = request.size_bytes, .model = request.model});
    best.time_ps = best.synthesis->simulation->time_ps;
  }
  best.synthesis->exact = MeetsBound(best.time_ps, bound);
  return *std::move(best.synthesis);
}

}  // namespace xccl::forest
