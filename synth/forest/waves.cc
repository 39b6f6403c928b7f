// One wave and kFewWaves are simulated roughly. They tell how many waves bring the time to within kAim of
// what the trees' rate allows, and those are simulated next.
#include "synth/forest/waves.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/simulate/simulate.h"
#include "synth/forest/request.h"

namespace xccl::forest {
namespace {

// Of a chunk, on average: smaller ones cost a program more than waves gain.
constexpr int64_t kLeastWaveBytes = 32 << 10;
constexpr double kAim = 0.003;             // of the time may be lost to waves that are too long
constexpr double kFewTransfers = 250'000;  // plans of so many at most are held to kFineAim
constexpr double kNear = 1.0005;           // times the bound: good enough

TreeSchedule MakeSchedule(const Task& task, const Candidate& candidate, int32_t waves) {
  const SymmetryGroup* const symmetry = task.group ? &*task.group : nullptr;
  const Collective& collective = task.collective;
  if (!candidate.pairs.trees.empty()) {
    ChunkedSchedule made = MakeAllreduceSchedule(candidate.pairs, WaveWeights(waves), collective, symmetry);
    return {std::move(made.collective), std::move(made.schedule)};
  }
  const TreeSteps steps{.order = TreeOrder::kTallFirst, .symmetry = symmetry, .waves = waves};
  if (!collective.Reduces()) return CopyDown(candidate.down, collective, steps);
  if (collective.kind() != CollectiveKind::kAllreduce)
    return SumUp(candidate.up, task.topology, collective, steps);
  return SumUpCopyDown(candidate.up, candidate.down, task.topology, collective, steps);
}

// Simulates the schedule and keeps it if it is the fastest. rough: it most likely only tells how many waves
// to take. Returns its time.
int64_t Consider(const Task& task, const Candidate& candidate, TreeSchedule made, bool rough, Best& best) {
  const Simulation simulation =
      Simulate(made.schedule, made.collective, task.topology,
               {.size_bytes = task.request.size_bytes, .model = task.request.model, .rough = rough});
  if (best.synthesis && simulation.time_ps >= best.time_ps) return simulation.time_ps;
  best = {.synthesis = Synthesis{.collective = std::move(made.collective),
                                 .schedule = std::move(made.schedule),
                                 .engine = "forest",
                                 .note = fmt::format("{}, depth {}", candidate.note, candidate.depth),
                                 .simulation = simulation},
          .time_ps = simulation.time_ps,
          .rough = rough};
  return simulation.time_ps;
}

// What is lost beside the trees' own rate falls as one over the waves. 0: enough.
int32_t MoreWaves(const Candidate& candidate, int32_t waves, int64_t transfers, int64_t time_ps,
                  int64_t affordable) {
  const double lost = static_cast<double>(time_ps) / std::max(candidate.rate_ps, 1.0) - 1;
  const double fine = waves * lost / kFineAim;
  const double aim = static_cast<double>(transfers) * fine <= kFewTransfers ? kFineAim : kAim;
  if (lost <= aim || waves > kFewWaves) return 0;
  const double wanted = waves == 1 ? kFewWaves : std::min<double>(waves * lost / aim, kMostWaves);
  const int64_t more = std::min(static_cast<int64_t>(wanted), affordable);
  return more > waves ? static_cast<int32_t>(more) : 0;
}

}  // namespace

bool IsEnough(const Task& task, const Best& best, int64_t work) {
  return best.IsWithin(kNear, task.bound) || work <= 0 || task.stopped();
}

void TryWaves(const Task& task, const Candidate& candidate, StepBudget& budget, int64_t& work, Best& best) {
  const int64_t transfers = candidate.arcs * task.Copies();
  const int64_t each = std::max<int64_t>(1, candidate.shared ? transfers : candidate.arcs);  // work of a wave
  int64_t most =
      std::min(candidate.most_waves, std::max<int64_t>(1, kMostTransfers / std::max<int64_t>(1, transfers)));
  int32_t fit = 0;  // the most waves that were few enough steps
  for (int32_t waves = 1; waves > 0;) {
    if (best.synthesis && each * waves > work) break;
    work -= each * waves;
    TreeSchedule made = MakeSchedule(task, candidate, waves);
    if (waves == 1)
      most = std::min(most, task.sizes.size_bytes() / made.collective.num_chunks() / kLeastWaveBytes);
    if (!budget.Allows(made.schedule.num_steps())) {
      most = waves - 1;
      waves = most > fit ? (fit + waves) / 2 : 0;
      continue;
    }
    fit = waves;
    const int64_t time_ps = Consider(task, candidate, std::move(made), waves <= kFewWaves, best);
    if (IsEnough(task, best, work)) break;
    waves = MoreWaves(candidate, waves, transfers, time_ps, std::min(most, work / each));
  }
}

}  // namespace xccl::forest
