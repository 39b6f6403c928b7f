// Trees are packed a few times, with more or less weight on how far ranks are from the root, and each packing
// is tried in waves. One wave and kFewWaves are simulated roughly. They tell how many waves bring the time
// near to the one that the trees' rate allows, and a plan of so many waves is simulated next. Cost: the
// transfers of all schedules that are written.
#include "synth/forest/pack_and_cut.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/simulate/simulate.h"
#include "synth/common/blocked_links.h"
#include "synth/common/cost_model.h"
#include "synth/forest/allreduce.h"
#include "synth/forest/lag.h"
#include "synth/forest/packings.h"
#include "synth/forest/request.h"

namespace xccl::forest {
namespace {

constexpr int64_t kDefaultWork = 1'500'000;  // transfers of all candidates of a kind together
// Weights of latency against bytes, one packing each. Where latency counts, the smaller weights find trees of
// few levels that still spare the root.
constexpr double kLatencyWeights[] = {1, 0.1, 0.02, 0.004};
constexpr double kForLargeSizes = 0.1;        // the least elsewhere
constexpr int64_t kMostShortestRows = 100;    // where trees of shortest paths are tried first
constexpr int32_t kMostExact = 64;            // members that the cheapest trees are sought for
constexpr double kExactLatencyWeight = 0.01;  // for those
// Weights of the time for which slower links block faster ones, one packing each.
constexpr double kHeldWeights[] = {0.25, 0.5};
// Delays of transfers that depend on blocked links, as shares of a wave's steps.
constexpr double kLags[] = {0.25, 0.5, 1};
constexpr double kFar = 1.01;  // times the bound: another kind of packing is tried
// How links' loads are weighed; the fastest plan of all is taken.
constexpr EqualTreesAim kAims[] = {{2, 2, 0}, {2, 5, 0}, {4, 4, 0}, {2, 5, 0.1}, {4, 4, 0.1}, {2, 5, 1}};

// A chunk has at least so many bytes on average, since smaller ones cost a program more than waves gain.
// Where latency counts, ranks wait for each other, and waves gain more.
constexpr int64_t kLeastWaveBytes = 32 << 10, kLeastShortWaveBytes = 4 << 10;
// A part that is shorter is tried with one tree. More trees, of more and shorter messages, must then be
// faster by one part in so many.
constexpr int64_t kShortPartBytes = 64 << 10;
constexpr int64_t kWorthTrees = 50;
constexpr double kAim = 0.003;       // of the time may be lost to waves that are too long
constexpr double kFineAim = 0.0007;  // likewise, in plans of at most kFewTransfers
constexpr double kFewTransfers = 250'000;

struct Best {
  std::optional<Synthesis> synthesis;
  int64_t time_ps = 0;
  int32_t waves = 0;                    // up to kFewWaves: time_ps is that of a rough simulation
  bool coarse = false;                  // has each part one tree?
  std::optional<Synthesis> other = {};  // the plan with one tree a part, where more are faster
  std::optional<Synthesis> plain = {};  // the fastest whose packing does not weigh held links, where one does
  std::optional<Synthesis> slower = {};  // of the fastest plans with room and without it

  // Is there a plan of at most so many times the bound?
  bool IsWithin(double times, const Bound& bound) const {
    return synthesis && static_cast<double>(time_ps) <= times * static_cast<double>(bound.bound_ps);
  }
};

// Are there links that slower ones hold?
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

// A schedule in so many waves.
Synthesis Simulated(const Task& task, const Candidate& candidate, ChunkedSchedule made, int32_t waves) {
  SimulateOptions timing = TimingOf(task.request);
  timing.rough = waves <= kFewWaves;  // it most likely only tells how many waves to take
  Simulation simulation = Simulate(made.schedule, made.collective, task.topology, timing);
  return {.collective = std::move(made.collective),
          .schedule = std::move(made.schedule),
          .engine = "forest",
          .note = fmt::format("{}, depth {}", candidate.note, candidate.depth),
          .simulation = std::move(simulation)};
}

// The plan with more and more delay, as long as that helps. nullopt: it does not.
std::optional<Synthesis> TryLags(const Task& task, const Candidate& candidate, const Synthesis& prompt,
                                 int32_t waves, const StepBudget& budget) {
  std::optional<Synthesis> best;
  int64_t best_ps = prompt.simulation->time_ps;
  const auto steps_of = [&](double lag) {
    return static_cast<int32_t>(std::lround(lag * prompt.schedule.num_steps() / waves));
  };
  const auto is_faster = [&](double lag) {
    Schedule late = WithLag(prompt.schedule, task.topology, steps_of(lag));
    if (late.num_steps() > budget.Most()) return false;
    Synthesis made = Simulated(task, candidate, {prompt.collective, std::move(late)}, waves);
    if (made.simulation->time_ps >= best_ps) return false;
    best_ps = made.simulation->time_ps;
    best = std::move(made);
    return true;
  };
  for (const double lag : kLags)
    if (steps_of(lag) > 0 && !is_faster(lag)) break;
  return best;
}

// Keeps the plan if it is the fastest. Returns its time.
int64_t Keep(Synthesis made, int32_t waves, Best& best) {
  const int64_t time_ps = made.simulation->time_ps;
  const int64_t gain_ps = best.coarse ? best.time_ps / kWorthTrees : 0;
  if (best.synthesis && time_ps >= best.time_ps - gain_ps) return time_ps;
  if (best.coarse) best.other = std::exchange(best.synthesis, std::nullopt);
  best.coarse = false;
  best.synthesis = std::move(made);
  best.time_ps = time_ps;
  best.waves = waves;
  return time_ps;
}

// Simulates the schedule and keeps it if it is the fastest. Returns its time.
int64_t Consider(const Task& task, const Candidate& candidate, ChunkedSchedule made, int32_t waves,
                 const StepBudget& budget, Best& best) {
  Synthesis prompt = Simulated(task, candidate, std::move(made), waves);
  const bool is_near = static_cast<double>(prompt.simulation->time_ps) <=
                       (1 + kFineAim) * static_cast<double>(task.bound.bound_ps);
  if (waves <= kFewWaves || is_near || !MayLag(task) || task.request.IsPassedOver("delay"))
    return Keep(std::move(prompt), waves, best);
  std::optional<Synthesis> late = TryLags(task, candidate, prompt, waves, budget);
  return Keep(late ? *std::move(late) : std::move(prompt), waves, best);
}

// The time beyond the one of the trees' rate falls as one over the waves.
double TimeInMoreWaves(const Candidate& candidate, int32_t waves, int64_t time_ps, int32_t more) {
  return candidate.rate_ps + (static_cast<double>(time_ps) - candidate.rate_ps) * waves / more;
}

// 0: enough. In the blocking model every message waits for its links' latencies, which no law of waves
// foresees: `before_ps`, the time in half as many, tells whether to go on.
int32_t MoreWaves(const Task& task, const Candidate& candidate, int32_t waves, int64_t transfers,
                  int64_t time_ps, int64_t before_ps, int64_t affordable) {
  if (task.request.model == TimeModel::kBlocking && waves >= kFewWaves) {
    const bool more = time_ps < before_ps && waves <= kMostWaves && 2 * waves <= affordable;
    return more ? 2 * waves : 0;
  }
  const double lost = static_cast<double>(time_ps) / std::max(candidate.rate_ps, 1.0) - 1;
  const double fine = waves * lost / kFineAim;
  const double aim =
      !task.request.IsPassedOver("fine") && static_cast<double>(transfers) * fine <= kFewTransfers ? kFineAim
                                                                                                   : kAim;
  if (lost <= aim || waves > kFewWaves) return 0;
  const double wanted = waves == 1 ? kFewWaves : std::min<double>(waves * lost / aim, kMostWaves);
  const int64_t more = std::min(static_cast<int64_t>(wanted), affordable);
  return more > waves ? static_cast<int32_t>(more) : 0;
}

// Is the best plan good enough, or is the search out of time or work?
bool IsEnough(const Task& task, const Best& best, int64_t work) {
  return best.IsWithin(1 + kFineAim, task.bound) || work <= 0 || task.stopped();
}

// A packing on its way to more and more waves.
struct Cutting {
  Candidate candidate;
  int32_t waves = 1;            // to be tried next; 0: no more
  double hope_ps = 0;           // what those will take, as far as that is known
  int32_t fit = 0;              // the most waves that were few enough steps
  int64_t time_ps = INT64_MAX;  // in the waves before
  int64_t most = candidate.most_waves;
};

// Packings of one request.
struct Packings {
  LastPackings trees;
  std::optional<Candidate> last;
  std::vector<Cutting> wait;  // those whose further waves come after all packings
  bool has_room = false;      // has any packing?
  Best apart;                 // trees apart, where pairs have a faster schedule
  size_t with_room = 0;       // packings that left room on links, which take turns with more and less
};

// May a better packing leave many waves of this one without use?
bool IsFarFromBound(const Task& task, const Candidate& candidate) {
  return candidate.rate_ps > kFar * static_cast<double>(task.bound.bound_ps);
}

bool WaitsForEachOther(const Task& task) { return LatencyCounts(task) || !HasManyRoots(task.collective); }

// Cuts a packing into more and more waves while that helps; every schedule is simulated and the fastest kept.
// `work`: transfers that may still be written down; goes down by those that were. Once there is a best plan,
// schedules beyond it are not made. Schedules of more steps than `budget` allows are left out. `few`: stops
// before more than a few waves.
void TryWaves(const Task& task, Cutting& cutting, StepBudget& budget, int64_t& work, Best& best, bool few) {
  const Candidate& candidate = cutting.candidate;
  const int64_t transfers = candidate.arcs * task.Copies();
  const int64_t each = std::max<int64_t>(1, candidate.shared ? transfers : candidate.arcs);  // work of a wave
  cutting.most =
      std::min(cutting.most, std::max<int64_t>(1, kManyTransfers / std::max<int64_t>(1, transfers)));
  while (cutting.waves > 0 && (!few || cutting.waves <= kFewWaves)) {
    const int32_t waves = std::exchange(cutting.waves, 0);
    if (best.synthesis &&
        (each * waves > work || cutting.hope_ps >= kNear * static_cast<double>(best.time_ps)))
      return;
    work -= each * waves;
    ChunkedSchedule made = MakeSchedule(task, candidate, waves);
    if (waves == 1)
      cutting.most =
          std::min(cutting.most, task.sizes.size_bytes() / made.collective.num_chunks() /
                                     (WaitsForEachOther(task) ? kLeastShortWaveBytes : kLeastWaveBytes));
    if (!budget.Allows(made.schedule.num_steps())) {
      cutting.most = waves - 1;
      cutting.waves = cutting.most > cutting.fit ? (cutting.fit + waves) / 2 : 0;
      continue;
    }
    cutting.fit = waves;
    const int64_t time_ps = Consider(task, candidate, std::move(made), waves, budget, best);
    if (IsEnough(task, best, work)) return;
    cutting.waves = MoreWaves(task, candidate, waves, transfers, time_ps,
                              std::exchange(cutting.time_ps, time_ps), std::min(cutting.most, work / each));
    if (waves > 1 && cutting.waves > 0)
      cutting.hope_ps = TimeInMoreWaves(candidate, waves, time_ps, cutting.waves);
  }
}

void TryWaves(const Task& task, const Candidate& candidate, StepBudget& budget, int64_t& work, Best& best) {
  Cutting cutting{candidate};
  TryWaves(task, cutting, budget, work, best, false);
}

// Do all parts have a count of zero?
bool IsEmpty(const Collective& collective) {
  return IsUneven(collective) &&
         std::ranges::all_of(collective.spec().counts, [](int64_t count) { return count == 0; });
}

// Exactly so many trees a root, not in waves.
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

// On tori and the like trees of shortest paths reach the best rate, too; elsewhere they are dropped. Returns
// their rate.
std::optional<double> TryShortest(const Task& task, StepBudget& budget, int64_t work, Best& best) {
  LastPackings none;
  const StatusOr<Candidate> shortest = PackAtBestRate(task, {}, none);
  if (!shortest.ok()) return std::nullopt;
  if (shortest->rate_ps < task.beat_ps && shortest->rate_ps <= (1 + kFineAim) * task.bound.bandwidth_ps)
    TryWaves(task, *shortest, budget, work, best);
  return shortest->rate_ps;
}

// Pairs of trees are tried where all ranks take part and reduce_scatter and allgather, which `apart_ps`
// are for, are slower than they need be: roots may carry unlike shares, and switches multicast and reduce.
bool MayPair(const Task& task, double apart_ps) {
  return !task.request.IsPassedOver("pairs") && task.collective.kind() == CollectiveKind::kAllreduce &&
         task.collective.num_members() == task.topology.num_ranks() && !HasEvenCables(task.request) &&
         apart_ps > kNear * static_cast<double>(task.bound.bound_ps);
}

// May packings weigh for how long links are held? The search for cheapest trees knows no branches in
// switches.
bool MayWeighHeld(const Task& task) {
  const auto branches = [](const Node& node) { return node.multicast || node.reduce; };
  return !task.request.IsPassedOver("held") && MayLag(task) && task.collective.num_members() <= kMostExact &&
         std::ranges::none_of(task.topology.spec().nodes, branches);
}

// Cheap trees may miss the best rate where directions differ.
bool MayMissTheRate(const Task& task, double rate_ps, const Best& best) {
  return !task.request.IsPassedOver("exact") && !task.group &&
         rate_ps > (1 + kFineAim) * task.bound.bandwidth_ps && !best.IsWithin(kFar, task.bound) &&
         task.collective.kind() != CollectiveKind::kAllreduce && task.collective.num_members() <= kMostExact;
}

// Do one root's trees together carry little?
bool HasShortParts(const Task& task) {
  return !task.request.IsPassedOver("onetree") &&
         task.sizes.size_bytes() / task.collective.num_members() < kShortPartBytes &&
         HasManyRoots(task.collective);
}

// One packing, or a pair of trees instead. Returns the rate of what was tried last. A packing that is far
// from the bound joins those that `wait` before it is cut into many waves.
StatusOr<double> TryTrees(const Task& task, const PackingAim& aim, int64_t work_of_each, StepBudget& budget,
                          int64_t& work, Best& best, Packings& packings) {
  XCCL_ASSIGN_OR_RETURN(const Candidate apart, PackAtBestRate(task, aim, packings.trees));
  const bool is_known = packings.last && packings.last->up == apart.up && packings.last->down == apart.down;
  packings.last = apart;
  packings.has_room |= apart.has_room;
  if (is_known) return apart.rate_ps;
  if (!best.synthesis && HasShortParts(task)) {
    const Candidate one = OneTreeEach(task, apart);
    TryWaves(task, one, budget, work, best);
    best.coarse = best.synthesis.has_value();
  }
  if (MayPair(task, apart.rate_ps)) {
    const StatusOr<Candidate> pairs = PackPairs(task, aim, packings.trees);
    packings.has_room |= pairs.ok() && pairs->has_room;
    if (pairs.ok() && pairs->rate_ps * kNear <= apart.rate_ps && pairs->rate_ps < task.beat_ps)
      TryWaves(task, *pairs, budget, work, best);
    if (best.synthesis && static_cast<double>(best.time_ps) <= apart.rate_ps) {
      int64_t left = work_of_each;
      if (!packings.apart.synthesis) TryWaves(task, apart, budget, left, packings.apart);
      return pairs.ok() ? pairs->rate_ps : apart.rate_ps;
    }
    work = work_of_each;
  }
  if (apart.rate_ps >= task.beat_ps) return apart.rate_ps;
  Cutting cutting{apart};
  TryWaves(task, cutting, budget, work, best,
           !task.request.IsPassedOver("wait") && IsFarFromBound(task, apart));
  if (cutting.waves > 0) packings.wait.push_back(std::move(cutting));
  return apart.rate_ps;
}

// Cuts the packings that wait and may still be the fastest, from the best rate on.
void TryWaiting(const Task& task, StepBudget& budget, int64_t& work, Best& best, Packings& packings) {
  std::ranges::stable_sort(packings.wait, {},
                           [](const Cutting& cutting) { return cutting.candidate.rate_ps; });
  for (Cutting& cutting : packings.wait)
    if (!IsEnough(task, best, work) && cutting.candidate.rate_ps < static_cast<double>(best.time_ps))
      TryWaves(task, cutting, budget, work, best, false);
  packings.wait.clear();
}

// Packings that weigh for how long links are held. `work` is that of all of them together. The best plan
// without them stays beside: in other orders, which auto tries, it may be faster than theirs.
void TryHeld(const Task& task, StepBudget& budget, int64_t work, Best& best, Packings& packings) {
  std::optional<Synthesis> plain = best.synthesis;
  if (plain && best.waves <= kFewWaves) plain->simulation.reset();
  const int64_t plain_ps = best.time_ps;
  int64_t left = work;
  for (const double blocking_weight : kHeldWeights) {
    if (best.synthesis && (IsEnough(task, best, left) || best.IsWithin(kFar, task.bound))) break;
    const PackingAim aim{
        .latency_weight = kForLargeSizes, .blocking_weight = blocking_weight, .room = packings.with_room++};
    (void)TryTrees(task, aim, work, budget, left, best, packings);
  }
  TryWaiting(task, budget, left, best, packings);
  if (best.time_ps < plain_ps) best.plain = std::move(plain);
}

// Packings without room. Where programs are to be made of the plans, their fastest plan stays beside one with
// room: programs of those lose more now and then. On the 64 GPUs of graphs/mi250x4 an allreduce of 1 GiB
// takes 1.017 times the bound without room, 1.031 with it.
void TryPlain(const Task& task, StepBudget& budget, int64_t work, Best& best, Packings& packings) {
  Best plain;
  Packings without;
  int64_t left = work;
  for (const double latency_weight : {kLatencyWeights[0], kForLargeSizes}) {
    if (IsEnough(task, plain, left) || plain.IsWithin(kFar, task.bound)) break;
    (void)TryTrees(task, {.latency_weight = latency_weight}, work, budget, left, plain, without);
  }
  TryWaiting(task, budget, left, plain, without);
  if (!plain.synthesis) return;
  if (!packings.apart.synthesis) packings.apart = std::move(without.apart);
  if (!best.synthesis || plain.time_ps < best.time_ps) {
    std::swap(best.synthesis, plain.synthesis);
    std::swap(best.time_ps, plain.time_ps);
    std::swap(best.waves, plain.waves);
  }
  if (plain.synthesis && plain.waves <= kFewWaves) plain.synthesis->simulation.reset();
  best.slower = std::move(plain.synthesis);
}

// Every packing that may help. Programs of pairs wait for more messages than programs of trees apart, so that
// the plan of trees apart stays beside the plan of pairs. Errors: why nothing was made.
Status TryAll(const Task& task, StepBudget& budget, int64_t work, Best& best) {
  Status reason = LimitReached("forest: spanning trees are faster");
  std::optional<double> rate_ps;  // of the last packing
  if (!task.request.IsPassedOver("shortest") && task.group &&
      task.topology.num_nodes() == task.topology.num_ranks() && task.Rows() <= kMostShortestRows)
    rate_ps = TryShortest(task, budget, work, best);
  int64_t left = work;
  Packings packings;
  for (const double latency_weight : kLatencyWeights) {
    if (latency_weight < kForLargeSizes && (!LatencyCounts(task) || task.request.IsPassedOver("lowweights")))
      break;
    if (latency_weight == kForLargeSizes && task.request.IsPassedOver("secondweight")) break;
    // Less weight on latency finds trees of a better rate, if it finds any.
    const bool is_rate_the_best = rate_ps && *rate_ps <= (1 + kFineAim) * task.bound.bandwidth_ps;
    if (best.synthesis &&
        (IsEnough(task, best, left) || (is_rate_the_best && best.IsWithin(kFar, task.bound))))
      break;
    const PackingAim aim{.latency_weight = latency_weight, .room = packings.with_room++};
    const StatusOr<double> tried = TryTrees(task, aim, work, budget, left, best, packings);
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
  TryWaiting(task, budget, left, best, packings);
  if (packings.has_room && !task.stopped() && !task.request.IsPassedOver("plain"))
    TryPlain(task, budget, work, best, packings);
  if (MayWeighHeld(task) && !best.IsWithin(kFar, task.bound)) TryHeld(task, budget, work, best, packings);
  if (packings.apart.synthesis && best.synthesis) {
    if (packings.apart.waves <= kFewWaves) packings.apart.synthesis->simulation.reset();
    best.synthesis->others.push_back(*std::move(packings.apart.synthesis));
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
  if (best.waves <= kFewWaves) {
    best.synthesis->simulation =
        Simulate(best.synthesis->schedule, best.synthesis->collective, task.topology, TimingOf(request));
    best.time_ps = best.synthesis->simulation->time_ps;
  }
  best.synthesis->exact = MeetsBound(best.time_ps, bound);
  for (std::optional<Synthesis>* const other : {&best.other, &best.plain, &best.slower})
    if (*other) best.synthesis->others.push_back(*std::move(*other));
  return *std::move(best.synthesis);
}

}  // namespace xccl::forest
