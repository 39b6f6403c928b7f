// Trees are packed a few times, with more or less regard to how far ranks are from the root, and each packing
// is cut into more and more waves while that helps; every candidate is simulated and the fastest kept.
#include "synth/forest/attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>

#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "synth/common/allreduce_trees.h"
#include "synth/common/fractional_packing.h"
#include "synth/common/packed_trees.h"
#include "synth/common/pairs.h"
#include "synth/common/reverse.h"
#include "synth/forest/allreduce.h"
#include "synth/forest/equal_trees.h"
#include "synth/forest/request.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

using forest::EqualTrees;
using forest::EqualTreesAim;

constexpr int64_t kEqualWork = 2'000'000'000;        // links that the packing of equal trees looks at
constexpr int64_t kDefaultWork = 1'500'000;          // transfers of all candidates of a kind together
constexpr std::array<double, 2> kRegard = {1, 0.1};  // of latency against bytes, one packing each
constexpr int64_t kMostShortestRows = 100;           // where trees of shortest ways are tried first
constexpr double kShortest = 1e3;  // bytes on the slowest link that the shortest hop is worth there
constexpr int32_t kFewWaves = 8;   // tell what more would bring
constexpr int32_t kMostWaves = 192;
// Of a chunk, on average: smaller ones cost a program more than waves gain.
constexpr int64_t kLeastWaveBytes = 32 << 10;
constexpr int64_t kLeastChunkBytes = 128 << 10;  // of pairs in more than few waves: a program waits for each
constexpr double kAim = 0.003;                   // of the time may be lost to waves that are too long
constexpr double kFineAim = 0.0007;              // the same for plans
constexpr double kFewTransfers = 250'000;        // of so many transfers at most
constexpr int32_t kMostExact = 64;               // members that the cheapest trees are sought for
constexpr int32_t kExactRounds = 400;            // at most, then
constexpr double kExactRegard = 0.01;            // of latency, then
constexpr double kFar = 1.01;                    // times the bound: worth another kind of packing
// Ways to weigh the links' loads; the fastest plan of all is taken.
constexpr EqualTreesAim kAims[] = {{2, 2, 0}, {2, 5, 0}, {4, 4, 0}, {2, 5, 0.1}, {4, 4, 0.1}, {2, 5, 1}};
constexpr double kNear = 1.0005;  // times the bound: good enough

class Attempt {
 public:
  // Steps go by `budget`. What cannot take less than `beat_ps` is left out.
  Attempt(const SynthesisRequest& request, StepBudget& budget, double beat_ps)
      : request_(request),
        budget_(budget),
        beat_ps_(beat_ps),
        topology_(*request.topology),
        collective_(*request.collective),
        sizes_(collective_, request.size_bytes),
        work_(request.limits.work_units > 0 ? request.limits.work_units : kDefaultWork),
        left_(work_),
        stopped_(DeadlineOf(request)),
        equal_work_(request.limits.work_units > 0 ? request.limits.work_units : kEqualWork) {}

  StatusOr<Synthesis> Run() {
    XCCL_ASSIGN_OR_RETURN(
        bound_, LowerBound(topology_, collective_, request_.size_bytes, request_.model, BoundEffort::kFast));
    if (collective_.num_members() == 1 || IsEmpty()) return NothingToMove("forest", request_);
    if (left_ < collective_.num_members())
      return LimitReached("forest: the limit of work was reached before a tree was packed");
    if (collective_.Reduces()) reversed_ = ReverseTopology(topology_);
    if (!request_.limits.chunks && forest::MayUseSymmetry(topology_, collective_)) {
      group_ = FindTranslations(topology_);
      if (group_->IsTrivial()) group_.reset();
    }
    if (const int64_t rows = group_ ? forest::NumRows(*group_) : forest::NumRows(request_);
        !request_.limits.chunks && rows > forest::kMostRows)
      return LimitReached(
          fmt::format("forest: {} rows of links and ranks that differ; at most {}; hint: "
                      "--engine=greedy",
                      rows, forest::kMostRows));
    Status reason = LimitReached("forest: spanning trees are faster");
    if (request_.limits.chunks) {
      XCCL_RETURN_IF_ERROR(TryEqual(*request_.limits.chunks));
    } else {
      if (group_ && topology_.num_nodes() == topology_.num_ranks() &&
          forest::NumRows(*group_) <= kMostShortestRows)
        TryShortest();
      for (double regard : kRegard) {
        if (best_ && (Near() || Stopped() || IsRateTheBest())) break;
        if (const Status tried = Try(regard); !tried.ok()) reason = tried;
      }
      // Cheap trees may miss the best rate where directions differ.
      if (!group_ && !IsWithin(kFar) && collective_.kind() != CollectiveKind::kAllreduce &&
          collective_.num_members() <= kMostExact) {
        exact_ = true;
        if (const Status tried = Try(kExactRegard); !tried.ok()) reason = tried;
      }
    }
    if (!best_) return budget_.HasRefused() ? budget_.Refusal() : reason;
    if (rough_) SimulateBest();
    best_->exact = MeetsBound(best_ps_, bound_);
    return *std::move(best_);
  }

 private:
  // Do all parts have a count of zero?
  bool IsEmpty() const {
    return forest::IsUneven(collective_) &&
           std::ranges::all_of(collective_.spec().counts, [](int64_t count) { return count == 0; });
  }
  bool IsWithin(double times) const {
    return best_ && static_cast<double>(best_ps_) <= times * static_cast<double>(bound_.bound_ps);
  }
  bool Near() const { return IsWithin(kNear); }
  // Less regard of latency finds trees of a better rate, if it finds any.
  bool IsRateTheBest() const { return rate_ps_ <= (1 + kFineAim) * bound_.bandwidth_ps && IsWithin(kFar); }
  bool Stopped() const { return left_ <= 0 || (stopped_ && stopped_()); }

  bool HasManyRoots() const { return forest::HasManyRoots(collective_); }

  // Who starts with what: the roots and, for each, its share of all the bytes.
  PackingProblem ProblemOn(const Topology& topology, std::optional<double> regard, bool pairs = false) const {
    PackingProblem problem = PlainPacking(topology, {collective_.ranks().begin(), collective_.ranks().end()});
    const int64_t bytes = std::max<int64_t>(1, sizes_.size_bytes());
    if (!HasManyRoots()) {
      problem.roots = {*collective_.spec().root};
      problem.demand = {1.0};
    } else if (forest::IsUneven(collective_)) {
      problem.roots.clear();
      problem.demand.clear();
      for (size_t m = 0; m < problem.members.size(); ++m) {
        const PartId part(static_cast<int64_t>(m));
        if (collective_.AlwaysEmpty(collective_.FirstChunk(part))) continue;
        problem.roots.push_back(problem.members[m]);
        problem.demand.push_back(static_cast<double>(std::max<int64_t>(1, sizes_.PartBytes(part))) /
                                 static_cast<double>(bytes));
      }
    } else {
      if (group_) forest::TakeOrbits(*group_, problem);
      for (double& demand : problem.demand) demand = 1 / static_cast<double>(problem.members.size());
    }
    if (pairs) {
      problem.reversed = &*reversed_;
      // All the translates of a pair together carry its share.
      if (group_)
        for (double& share : problem.share) share /= static_cast<double>(group_->order());
    }
    problem.stopped = stopped_;
    problem.exact = exact_;
    if (exact_) problem.max_rounds = kExactRounds;
    problem.s_per_ps =
        regard ? *regard * 1e-12 * static_cast<double>(problem.members.size()) / static_cast<double>(bytes)
               : ShortestFirst();
    const double halves = collective_.kind() == CollectiveKind::kAllreduce && !pairs ? 2 : 1;
    if (sizes_.size_bytes() > 0)
      problem.known_bound_s_per_byte = bound_.bandwidth_ps * 1e-12 / static_cast<double>(bytes) / halves;
    return problem;
  }

  // A price of latency that leaves shortest ways alone; among them the cheapest are found, each rank by
  // itself.
  double ShortestFirst() const {
    int64_t slowest = std::numeric_limits<int64_t>::max(), shortest_ps = slowest;
    for (const Link& link : topology_.spec().links) {
      slowest = std::min(slowest, link.bandwidth_bytes_per_s);
      if (link.latency_ps > 0) shortest_ps = std::min(shortest_ps, link.latency_ps);
    }
    return kShortest / static_cast<double>(slowest) / static_cast<double>(shortest_ps);
  }

  // Exactly `trees` trees a root.
  StatusOr<PackedTrees> PackEqual(int64_t trees, const EqualTreesAim& aim) {
    const PackingProblem problem = ProblemOn(collective_.Reduces() ? *reversed_ : topology_, 0);
    XCCL_ASSIGN_OR_RETURN(EqualTrees packed,
                          forest::PackEqualTrees(problem, PartsOf(problem), trees, aim, equal_work_));
    rate_ps_ = packed.s_per_byte * 1e12 * static_cast<double>(std::max<int64_t>(1, sizes_.size_bytes()));
    note_ = fmt::format("{} trees a rank", trees);
    const double lost = bound_.bandwidth_ps > 0 ? rate_ps_ / bound_.bandwidth_ps - 1 : 0;
    if (lost > 1e-4) note_ += fmt::format(", {:.2f} % off the best rate", 100 * lost);
    return std::move(packed.trees);
  }

  std::vector<PartId> PartsOf(const PackingProblem& problem) const {
    std::vector<PartId> parts;
    for (Rank root : problem.roots) parts.emplace_back(HasManyRoots() ? *collective_.MemberIndex(root) : 0);
    return parts;
  }

  StatusOr<PackedTrees> PackOn(const Topology& topology, std::optional<double> regard) {
    const PackingProblem problem = ProblemOn(topology, regard);
    const FractionalPacking packing = PackTrees(problem);
    if (packing.trees.empty()) return LimitReached("forest: the linear program of trees was not solved");
    SetRate(packing, collective_.kind() == CollectiveKind::kAllreduce ? 2 : 1);
    note_ = fmt::format("trees of {:.3f} GB/s", 1e-9 / packing.s_per_byte);
    return WholeTrees(packing, problem.roots, PartsOf(problem));
  }

  void SetRate(const FractionalPacking& packing, double times) {
    rate_ps_ =
        packing.s_per_byte * 1e12 * times * static_cast<double>(std::max<int64_t>(1, sizes_.size_bytes()));
  }

  Status TryEqual(int64_t trees) {
    for (const EqualTreesAim& aim : kAims) {
      PackedTrees up, down;
      XCCL_ASSIGN_OR_RETURN((collective_.Reduces() ? up : down), PackEqual(trees, aim));
      left_ = work_;
      if (!best_ || rate_ps_ < static_cast<double>(best_ps_)) TryTrees(up, down, 1);
      if (best_ && (Near() || Stopped())) break;
    }
    return OkStatus();
  }

  // Trees up and down, those that the collective has.
  Status Pack(std::optional<double> regard, PackedTrees& up, PackedTrees& down) {
    if (collective_.Reduces()) {
      XCCL_ASSIGN_OR_RETURN(up, PackOn(*reversed_, regard));
    }
    if (!collective_.Reduces() || collective_.kind() == CollectiveKind::kAllreduce) {
      XCCL_ASSIGN_OR_RETURN(down, PackOn(topology_, regard));
    }
    return OkStatus();
  }

  // On tori and the like trees of shortest ways reach the best rate, too; elsewhere they are dropped.
  void TryShortest() {
    PackedTrees up, down;
    if (Pack(std::nullopt, up, down).ok() && rate_ps_ < beat_ps_ &&
        rate_ps_ <= (1 + kFineAim) * bound_.bandwidth_ps)
      TryTrees(up, down, kMostWaves);
    left_ = work_;
  }

  // One packing in more and more waves.
  Status Try(double regard) {
    PackedTrees up, down;
    XCCL_RETURN_IF_ERROR(Pack(regard, up, down));
    if (const double apart_ps = rate_ps_; MayPair(apart_ps)) {
      const std::string note = note_;
      TryPairs(regard, apart_ps);
      if (best_ && static_cast<double>(best_ps_) <= apart_ps) return OkStatus();
      rate_ps_ = apart_ps;
      note_ = note;
      left_ = work_;
    }
    if (rate_ps_ < beat_ps_) TryTrees(up, down, kMostWaves);
    return OkStatus();
  }

  // Pairs of trees, where all ranks take part and reduce_scatter and allgather, which `apart_ps` are for, are
  // slower than they need be: roots may carry unlike shares, and switches multicast and reduce.
  bool MayPair(double apart_ps) const {
    return collective_.kind() == CollectiveKind::kAllreduce &&
           collective_.num_members() == topology_.num_ranks() && !HasEvenCables(request_) &&
           apart_ps > (1 + kAim) * static_cast<double>(bound_.bound_ps);
  }

  void TryPairs(double regard, double apart_ps) {
    const PackingProblem problem = ProblemOn(topology_, regard, true);
    const FractionalPacking packing = PackTrees(problem);
    if (packing.trees.empty()) return;  // the solver failed
    SetRate(packing, 1);
    if (rate_ps_ * (1 + kAim) > apart_ps || rate_ps_ >= beat_ps_) return;
    note_ = fmt::format("pairs of trees of {:.3f} GB/s", 1e-9 / packing.s_per_byte);
    const AllreduceTrees pairs = WholePairs(packing, problem.roots, topology_);
    int64_t arcs = 0;
    int32_t depth = 0;
    for (const FractionalTree& tree : packing.trees) {
      for (const auto* side : {&tree.up, &tree.arcs}) {
        arcs += static_cast<int64_t>(side->size());
        for (const PackedArc& arc : *side) depth = std::max(depth, arc.depth);
      }
    }
    const int64_t copies = group_ ? group_->order() : 1;
    const int64_t pair_bytes = sizes_.size_bytes() / (static_cast<int64_t>(packing.trees.size()) * copies);
    const int64_t most_waves = std::clamp<int64_t>(pair_bytes / kLeastChunkBytes, kFewWaves, kMostWaves);
    TryWaves(arcs, IsShared(pairs.paths), depth, most_waves, [&](int32_t waves) {
      ChunkedSchedule made =
          MakeAllreduceSchedule(pairs, WaveWeights(waves), collective_, group_ ? &*group_ : nullptr);
      return TreeSchedule{std::move(made.collective), std::move(made.schedule)};
    });
  }

  // Translates meet on a link, and must be simulated one by one?
  bool IsShared(const PathTable& paths) const {
    bool shared = false;
    for (int32_t p = 0; group_ && p < paths.size(); ++p)
      for (const LinkId l : paths[PathId(p)]) shared |= !group_->IsFreeOn(l);
    return shared;
  }

  void TryTrees(const PackedTrees& up, const PackedTrees& down, int64_t most_waves) {
    TryWaves(up.NumArcs() + down.NumArcs(), IsShared(up.paths) || IsShared(down.paths),
             std::max(up.Depth(), down.Depth()), most_waves,
             [&](int32_t waves) { return Schedule(up, down, waves); });
  }

  // make: the schedule in so many waves. arcs: transfers of a wave.
  void TryWaves(int64_t arcs, bool shared, int32_t depth, int64_t most_waves,
                const std::function<TreeSchedule(int32_t)>& make) {
    const int64_t copies = group_ ? group_->order() : 1;
    const int64_t work = std::max<int64_t>(1, arcs * (shared ? copies : 1));
    most_waves = std::min(most_waves,
                          std::max<int64_t>(1, forest::kMostTransfers / std::max<int64_t>(1, arcs * copies)));
    int32_t fit = 0;  // the most waves that were few enough steps
    for (int32_t waves = 1; waves > 0;) {
      if (best_ && work * waves > left_) break;
      left_ -= work * waves;
      TreeSchedule made = make(waves);
      if (waves == 1)
        most_waves =
            std::min(most_waves, sizes_.size_bytes() / made.collective.num_chunks() / kLeastWaveBytes);
      if (!budget_.Allows(made.schedule.num_steps())) {
        most_waves = waves - 1;
        waves = most_waves > fit ? (fit + waves) / 2 : 0;
        continue;
      }
      fit = waves;
      const int64_t time_ps = Consider(made, depth, waves <= kFewWaves);
      if (Near() || Stopped()) break;
      waves = MoreWaves(waves, arcs * copies, time_ps, std::min(most_waves, left_ / work));
    }
  }

  // What is lost beside the trees' own rate falls as one over the waves. 0: enough.
  int32_t MoreWaves(int32_t waves, int64_t transfers, int64_t time_ps, int64_t affordable) const {
    const double lost = static_cast<double>(time_ps) / std::max(rate_ps_, 1.0) - 1;
    const double fine = waves * lost / kFineAim;
    const double aim = static_cast<double>(transfers) * fine <= kFewTransfers ? kFineAim : kAim;
    if (lost <= aim || waves > kFewWaves) return 0;
    const double wanted = waves == 1 ? kFewWaves : std::min<double>(waves * lost / aim, kMostWaves);
    const int64_t more = std::min(static_cast<int64_t>(wanted), affordable);
    return more > waves ? static_cast<int32_t>(more) : 0;
  }

  TreeSchedule Schedule(const PackedTrees& up, const PackedTrees& down, int32_t waves) const {
    const TreeSteps steps{
        .order = TreeOrder::kTallFirst, .symmetry = group_ ? &*group_ : nullptr, .waves = waves};
    if (!collective_.Reduces()) return CopyDown(down, collective_, steps);
    if (collective_.kind() != CollectiveKind::kAllreduce) return SumUp(up, topology_, collective_, steps);
    return SumUpCopyDown(up, down, topology_, collective_, steps);
  }

  // rough: it only tells how many waves to take, most likely.
  int64_t Consider(TreeSchedule& made, int32_t depth, bool rough) {
    const Simulation simulation =
        Simulate(made.schedule, made.collective, topology_,
                 {.size_bytes = request_.size_bytes, .model = request_.model, .rough = rough});
    if (best_ && simulation.time_ps >= best_ps_) return simulation.time_ps;
    best_ps_ = simulation.time_ps;
    rough_ = rough;
    best_ = Synthesis{.collective = std::move(made.collective),
                      .schedule = std::move(made.schedule),
                      .engine = "forest",
                      .note = fmt::format("{}, depth {}", note_, depth),
                      .simulation = simulation};
    return simulation.time_ps;
  }

  void SimulateBest() {
    best_->simulation = Simulate(best_->schedule, best_->collective, topology_,
                                 {.size_bytes = request_.size_bytes, .model = request_.model});
    best_ps_ = best_->simulation->time_ps;
  }

  const SynthesisRequest& request_;
  StepBudget& budget_;
  double beat_ps_;
  const Topology& topology_;
  const Collective& collective_;
  CollectiveSizes sizes_;
  std::optional<Topology> reversed_;
  std::optional<SymmetryGroup> group_;
  Bound bound_;
  int64_t work_, left_;  // for each kind of trees, and what is left of it
  std::function<bool()> stopped_;
  std::optional<Synthesis> best_;
  int64_t best_ps_ = 0;
  bool rough_ = false;  // is best_ps_ of a rough simulation?
  double rate_ps_ = 1;  // what the trees' bytes take on the busiest link
  int64_t equal_work_;
  bool exact_ = false;  // packings are of cheapest trees
  std::string note_;
};

}  // namespace

StatusOr<Synthesis> forest::PackAndCut(const SynthesisRequest& request, StepBudget& budget, double beat_ps) {
  return Attempt(request, budget, beat_ps).Run();
}

}  // namespace xccl
