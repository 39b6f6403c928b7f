// 1. TryAll packs trees in several ways, until the best plan is near the bound: trees of shortest paths,
//    trees with more and less weight on latency, the cheapest trees, and trees that weigh held links.
// 2. TryTrees packs trees in one way. For some allreduces it also packs pairs: a tree that sums up and a tree
//    that copies the sum down. Separate trees are the alternative: a reduce_scatter and an allgather.
// 3. TryWaves cuts one packing into waves and simulates one wave and kFewWaves waves roughly. From these
//    times MoreWaves derives how many waves bring the time near rate_ps, the time that the trees' rate
//    allows. A plan of that many waves is simulated next.
// 4. If the number of chunks is given, TryEqual packs equal trees instead. If the linear program would be too
//    large, TryFolded packs trees between hosts.
// A link is held while it carries a message that comes over a slower link (synth/common/blocked_links.h).
// Cost: the linear programs of the packings, and the transfers of all schedules that are made.
#include "synth/forest/pack_and_cut.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/simulate/simulate.h"
#include "synth/common/blocked_links.h"
#include "synth/common/cost_model.h"
#include "synth/forest/allreduce.h"
#include "synth/forest/folded_packing.h"
#include "synth/forest/packings.h"
#include "synth/forest/request.h"

namespace xccl::forest {
namespace {

// Weights of latency against bytes. Each weight makes a packing.
constexpr double kLatencyWeights[] = {1, 0.1};
constexpr int64_t kMostShortestRows = 100;  // the most rows for which trees of shortest paths are tried
constexpr double kExactLatencyWeight = 0.01;
constexpr int32_t kMostExact = 64;  // the most members for which the cheapest trees are computed
// Weights of the time for which links are held. Each weight makes a packing.
constexpr double kHeldWeights[] = {0.25, 0.5};
constexpr double kFar = 1.01;  // above this multiple of the bound, another kind of packing is tried
// Aims for packings of equal trees. The fastest plan of all aims is kept.
constexpr EqualTreesAim kAims[] = {{2, 2, 0}, {2, 5, 0}, {4, 4, 0}, {2, 5, 0.1}, {4, 4, 0.1}, {2, 5, 1}};

// The least average bytes of a chunk. Smaller chunks cost a program more than waves gain. The second constant
// applies if ranks wait for each other (WaitsForEachOther), because waves then gain more.
constexpr int64_t kLeastWaveBytes = 32 << 10, kLeastShortWaveBytes = 4 << 10;
constexpr double kAim = 0.003;  // the share of the time that may be lost to waves that are too long

// The best plan so far.
struct Best {
  std::optional<Synthesis> synthesis;
  int64_t time_ps = 0;
  int32_t waves = 0;              // of the plan; up to kFewWaves, time_ps is from a rough simulation
  std::vector<Synthesis> others;  // plans of other kinds; their programs or variations may be faster

  // Returns whether there is a plan that takes at most `times` × the bound.
  bool IsWithin(double times, const Bound& bound) const {
    return synthesis && static_cast<double>(time_ps) <= times * static_cast<double>(bound.bound_ps);
  }
};

// Returns whether links may be held: in the pipelined model, if slow links lead to faster ones.
bool MayLag(const Task& task) {
  return task.request.model == TimeModel::kPipelined && HasBlockedLinks(task.topology);
}

ChunkedSchedule MakeSchedule(const Task& task, const Candidate& candidate, int32_t waves) {
  const SymmetryGroup* const symmetry = task.group ? &*task.group : nullptr;
  const Collective& collective = task.collective;
  if (!candidate.pairs.trees.empty())
    return MakeAllreduceSchedule(candidate.pairs, WaveWeights(waves), collective, symmetry);
  const TreeSteps steps{.symmetry = symmetry, .waves = waves};
  if (!collective.Reduces()) return CopyDown(candidate.down, collective, steps);
  if (collective.kind() != CollectiveKind::kAllreduce)
    return SumUp(candidate.up, task.topology, collective, steps);
  return SumUpCopyDown(candidate.up, candidate.down, task.topology, collective, steps);
}

// Simulates the schedule and returns it as a plan.
Synthesis Simulated(const Task& task, const Candidate& candidate, ChunkedSchedule made, int32_t waves) {
  SimulateOptions timing = TimingOf(task.request);
  timing.rough = waves <= kFewWaves;  // the plan most likely only serves to choose the number of waves
  Simulation simulation = Simulate(made.schedule, made.collective, task.topology, timing);
  return {.collective = std::move(made.collective),
          .schedule = std::move(made.schedule),
          .engine = "forest",
          .note = fmt::format("{}, depth {}", candidate.note, candidate.depth),
          .simulation = std::move(simulation)};
}

// Simulates the schedule and keeps it if it is the fastest. Returns its time.
int64_t Consider(const Task& task, const Candidate& candidate, ChunkedSchedule made, int32_t waves,
                 Best& best) {
  Synthesis plan = Simulated(task, candidate, std::move(made), waves);
  const int64_t time_ps = plan.simulation->time_ps;
  if (best.synthesis && time_ps >= best.time_ps) return time_ps;
  best.synthesis = std::move(plan);
  best.time_ps = time_ps;
  best.waves = waves;
  return time_ps;
}

// Predicts the time in `more` waves from the time in `waves` waves. The time above rate_ps is in inverse
// proportion to the number of waves.
double TimeInMoreWaves(const Candidate& candidate, int32_t waves, int64_t time_ps, int32_t more) {
  return candidate.rate_ps + (static_cast<double>(time_ps) - candidate.rate_ps) * waves / more;
}

// Returns the number of waves to try next; 0 ends the search. In the blocking model every message waits for
// its links' latencies, and TimeInMoreWaves does not hold. From kFewWaves on, the waves double as long as the
// time is less than `before_ps`, the time in the number of waves before.
int32_t MoreWaves(const Task& task, const Candidate& candidate, int32_t waves, int64_t time_ps,
                  int64_t before_ps, int64_t affordable) {
  if (task.request.model == TimeModel::kBlocking && waves >= kFewWaves) {
    const bool more = time_ps < before_ps && waves <= kMostWaves && 2 * waves <= affordable;
    return more ? 2 * waves : 0;
  }
  const double lost = static_cast<double>(time_ps) / std::max(candidate.rate_ps, 1.0) - 1;
  if (lost <= kAim || waves > kFewWaves) return 0;
  const double wanted = waves == 1 ? kFewWaves : std::min<double>(waves * lost / kAim, kMostWaves);
  const int64_t more = std::min(static_cast<int64_t>(wanted), affordable);
  return more > waves ? static_cast<int32_t>(more) : 0;
}

// Returns whether the best plan is near the bound, or the search is out of time or work.
bool IsEnough(const Task& task, const Best& best, int64_t work) {
  return best.IsWithin(kNear, task.bound) || work <= 0 || task.stopped();
}

// The packings of one request so far.
struct Packings {
  LastPackings trees;
  std::optional<Candidate> last;
  bool has_apart = false;  // was a plan of separate trees tried after a faster plan of pairs?
};

bool WaitsForEachOther(const Task& task) { return LatencyCounts(task) || !HasManyRoots(task.collective); }

// Cuts a packing into more and more waves while that helps. Simulates every schedule and keeps the fastest in
// `best`. `work` is the number of transfers that may still be written, and goes down by the transfers
// written. If there is a best plan, schedules that exceed `work` are not made. Schedules of more steps than
// `budget` allows are left out.
void TryWaves(const Task& task, const Candidate& candidate, StepBudget& budget, int64_t& work, Best& best) {
  const int64_t transfers = candidate.arcs * task.Copies();
  const int64_t each = std::max<int64_t>(1, candidate.shared ? transfers : candidate.arcs);  // work of a wave
  int64_t most =
      std::min(candidate.most_waves, std::max<int64_t>(1, kManyTransfers / std::max<int64_t>(1, transfers)));
  int32_t next = 1;
  int32_t fit = 0;                // the most waves so far with few enough steps
  int64_t before_ps = INT64_MAX;  // time in the previous number of waves
  double hope_ps = 0;             // predicted time in the next number of waves; 0: unknown
  while (next > 0) {
    const int32_t waves = std::exchange(next, 0);
    if (best.synthesis && (each * waves > work || hope_ps >= kNear * static_cast<double>(best.time_ps)))
      return;
    work -= each * waves;
    ChunkedSchedule made = MakeSchedule(task, candidate, waves);
    if (waves == 1)
      most = std::min(most, task.sizes.size_bytes() / made.collective.num_chunks() /
                                (WaitsForEachOther(task) ? kLeastShortWaveBytes : kLeastWaveBytes));
    if (!budget.Allows(made.schedule.num_steps())) {
      most = waves - 1;
      next = most > fit ? (fit + waves) / 2 : 0;
      continue;
    }
    fit = waves;
    const int64_t time_ps = Consider(task, candidate, std::move(made), waves, best);
    if (IsEnough(task, best, work)) return;
    next = MoreWaves(task, candidate, waves, time_ps, std::exchange(before_ps, time_ps),
                     std::min(most, work / each));
    if (waves > 1 && next > 0) hope_ps = TimeInMoreWaves(candidate, waves, time_ps, next);
  }
}

// Returns whether all parts have a count of zero.
bool IsEmpty(const Collective& collective) {
  return IsUneven(collective) &&
         std::ranges::all_of(collective.spec().counts, [](int64_t count) { return count == 0; });
}

// Adds the plans of another kind of packing to best.others. The time of a rough simulation is dropped.
void Beside(Best other, Best& best) {
  if (other.waves <= kFewWaves) other.synthesis->simulation.reset();
  best.others.push_back(*std::move(other.synthesis));
  std::ranges::move(other.others, std::back_inserter(best.others));
}

// Tries plans of exactly `trees` equal trees for each root, without waves.
Status TryEqual(const Task& task, int64_t trees, StepBudget& budget, int64_t work, Best& best) {
  for (const EqualTreesAim& aim : kAims) {
    const StatusOr<Candidate> candidate = PackEqual(task, trees, aim);
    if (!candidate.ok()) {
      const bool used_up = candidate.status().code() == StatusCode::kLimit;
      return best.synthesis && used_up ? OkStatus() : candidate.status();
    }
    if (best.synthesis && candidate->rate_ps >= static_cast<double>(best.time_ps)) continue;
    int64_t left = work;
    TryWaves(task, *candidate, budget, left, best);
    if (best.synthesis && IsEnough(task, best, left)) break;
  }
  return OkStatus();
}

// Tries trees of shortest paths, which reach the best rate on tori and similar machines. Makes no plan of
// them if they do not, or if they cannot beat beat_ps. Returns their rate_ps, or nullopt if they could not be
// packed.
std::optional<double> TryShortest(const Task& task, StepBudget& budget, int64_t work, Best& best) {
  LastPackings none;
  const StatusOr<Candidate> shortest = PackAtBestRate(task, {}, none);
  if (!shortest.ok()) return std::nullopt;
  if (shortest->rate_ps < task.beat_ps && shortest->rate_ps <= kNear * task.bound.bandwidth_ps)
    TryWaves(task, *shortest, budget, work, best);
  return shortest->rate_ps;
}

// Returns whether to try pairs of trees for an allreduce of all ranks. Pairs can be faster than separate
// trees, because roots may carry unequal shares and switches may multicast and reduce. They do not help if
// `apart_ps`, the time that the rate of separate trees allows, is near the bound, or if HasEvenCables.
bool MayPair(const Task& task, double apart_ps) {
  return !task.request.IsPassedOver("pairs") && task.collective.kind() == CollectiveKind::kAllreduce &&
         task.collective.num_members() == task.topology.num_ranks() && !HasEvenCables(task.request) &&
         apart_ps > kNear * static_cast<double>(task.bound.bound_ps);
}

// Returns whether to try packings that weigh held links. They need the search for cheapest trees, which does
// not support switches that multicast or reduce.
bool MayWeighHeld(const Task& task) {
  const auto branches = [](const Node& node) { return node.multicast || node.reduce; };
  return !task.request.IsPassedOver("held") && MayLag(task) && task.collective.num_members() <= kMostExact &&
         std::ranges::none_of(task.topology.spec().nodes, branches);
}

// Returns whether to try the cheapest trees. Cheap trees may miss the best rate if cables are uneven.
bool MayMissTheRate(const Task& task, double rate_ps, const Best& best) {
  return !task.group && rate_ps > kNear * task.bound.bandwidth_ps && !best.IsWithin(kFar, task.bound) &&
         task.collective.kind() != CollectiveKind::kAllreduce && task.collective.num_members() <= kMostExact;
}

// Packs trees with `aim` and tries them in waves, unless they are the trees of the packing before. If
// MayPair, pairs of trees are tried first. If the best plan is then as fast as the rate of separate trees
// allows, one plan of separate trees still goes to best.others, because programs of pairs wait for more
// messages. Returns rate_ps of the packing that was tried last. Errors: those of PackAtBestRate.
StatusOr<double> TryTrees(const Task& task, const PackingAim& aim, int64_t work_of_each, StepBudget& budget,
                          int64_t& work, Best& best, Packings& packings) {
  XCCL_ASSIGN_OR_RETURN(const Candidate apart, PackAtBestRate(task, aim, packings.trees));
  const bool is_known = packings.last && packings.last->up == apart.up && packings.last->down == apart.down;
  packings.last = apart;
  if (is_known) return apart.rate_ps;
  if (MayPair(task, apart.rate_ps)) {
    const StatusOr<Candidate> pairs = PackPairs(task, aim, packings.trees);
    if (pairs.ok() && pairs->rate_ps * kNear <= apart.rate_ps && pairs->rate_ps < task.beat_ps)
      TryWaves(task, *pairs, budget, work, best);
    if (best.synthesis && static_cast<double>(best.time_ps) <= apart.rate_ps) {
      int64_t left = work_of_each;
      Best beside;
      if (!std::exchange(packings.has_apart, true)) TryWaves(task, apart, budget, left, beside);
      if (beside.synthesis) Beside(std::move(beside), best);
      return pairs.ok() ? pairs->rate_ps : apart.rate_ps;
    }
    work = work_of_each;
  }
  if (apart.rate_ps < task.beat_ps) TryWaves(task, apart, budget, work, best);
  return apart.rate_ps;
}

// Tries packings that weigh held links, with `work` for all of them together. If one of them is the fastest,
// the best plan without them goes to best.others, because the engine auto may find a faster variation of it.
void TryHeld(const Task& task, StepBudget& budget, int64_t work, Best& best, Packings& packings) {
  Best held;
  for (const double blocking_weight : kHeldWeights) {
    if (held.synthesis && (IsEnough(task, held, work) || held.IsWithin(kFar, task.bound))) break;
    const PackingAim aim{.latency_weight = kLatencyWeights[1], .blocking_weight = blocking_weight};
    (void)TryTrees(task, aim, work, budget, work, held, packings);
  }
  if (!held.synthesis || (best.synthesis && held.time_ps >= best.time_ps)) return;
  std::swap(best, held);
  if (held.synthesis) Beside(std::move(held), best);
}

// Tries every packing that may help. If no plan is made, returns the reason as an error.
Status TryAll(const Task& task, StepBudget& budget, int64_t work, Best& best) {
  Status reason = LimitReached("forest: spanning trees are faster");
  std::optional<double> rate_ps;  // of the last packing
  if (task.group && task.topology.num_nodes() == task.topology.num_ranks() &&
      task.Rows() <= kMostShortestRows)
    rate_ps = TryShortest(task, budget, work, best);
  int64_t left = work;
  Packings packings;
  for (const double latency_weight : kLatencyWeights) {
    if (latency_weight < 1 && task.request.IsPassedOver("secondweight")) break;
    // Less weight on latency can only improve the rate. It is not tried if the rate is the best and the plan
    // is within kFar.
    const bool is_rate_the_best = rate_ps && *rate_ps <= kNear * task.bound.bandwidth_ps;
    if (best.synthesis &&
        (IsEnough(task, best, left) || (is_rate_the_best && best.IsWithin(kFar, task.bound))))
      break;
    const StatusOr<double> tried =
        TryTrees(task, {.latency_weight = latency_weight}, work, budget, left, best, packings);
    if (tried.ok()) {
      rate_ps = *tried;
    } else {
      reason = tried.status();
    }
  }
  if (MayMissTheRate(task, rate_ps.value_or(kForeverPs), best)) {
    const StatusOr<Candidate> exact =
        PackAtBestRate(task, {.latency_weight = kExactLatencyWeight, .exact = true}, packings.trees);
    if (!exact.ok()) {
      reason = exact.status();
    } else if (exact->rate_ps < task.beat_ps) {
      TryWaves(task, *exact, budget, left, best);
    }
  }
  if (MayWeighHeld(task) && !best.IsWithin(kFar, task.bound)) TryHeld(task, budget, work, best, packings);
  return best.synthesis ? OkStatus() : reason;
}

// Tries trees that are packed between hosts. If no plan is made, returns the reason as an error.
Status TryFolded(const Task& task, StepBudget& budget, int64_t work, Best& best) {
  Status reason = LimitReached("forest: no trees between hosts are faster");
  int64_t left = work;
  for (const double latency_weight : kLatencyWeights) {
    if (best.synthesis && IsEnough(task, best, left)) break;
    const StatusOr<Candidate> candidate = PackFolded(task, {.latency_weight = latency_weight});
    if (!candidate.ok()) {
      reason = candidate.status();
    } else if (candidate->rate_ps < task.beat_ps) {
      TryWaves(task, *candidate, budget, left, best);
    }
  }
  return best.synthesis ? OkStatus() : reason;
}

}  // namespace

StatusOr<Synthesis> PackAndCut(const SynthesisRequest& request, const Bound& bound, StepBudget& budget,
                               double beat_ps) {
  if (request.collective->num_members() == 1 || IsEmpty(*request.collective))
    return NothingToMove("forest", request);
  const int64_t work = request.limits.work_units > 0 ? request.limits.work_units : kPackingWork;
  if (work < request.collective->num_members())
    return LimitReached("forest: the limit of work was reached before a tree was packed");
  Task task = MakeTask(request, bound, beat_ps);
  const std::optional<int32_t> chunks = request.limits.chunks;
  const int64_t rows = task.Rows();
  const bool folds = !chunks && rows > kMostRows && FoldedRows(request);
  if (folds) {
    task.group.reset();
    task.twins.reset();
  } else if (!chunks && rows > kMostRows) {
    return LimitReached(
        fmt::format("forest: {} rows of links and ranks that differ; at most {}; hint: "
                    "--engine=greedy",
                    rows, kMostRows));
  }
  Best best;
  const Status tried = chunks  ? TryEqual(task, *chunks, budget, work, best)
                       : folds ? TryFolded(task, budget, work, best)
                               : TryAll(task, budget, work, best);
  if (!best.synthesis && budget.HasRefused()) return budget.Refusal();
  if (!tried.ok()) return tried;
  if (best.waves <= kFewWaves) {
    best.synthesis->simulation =
        Simulate(best.synthesis->schedule, best.synthesis->collective, task.topology, TimingOf(request));
    best.time_ps = best.synthesis->simulation->time_ps;
  }
  best.synthesis->exact = MeetsBound(best.time_ps, bound);
  std::ranges::move(best.others, std::back_inserter(best.synthesis->others));
  return *std::move(best.synthesis);
}

}  // namespace xccl::forest
