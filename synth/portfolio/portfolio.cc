// Engines whose plans mostly come near the bound are asked first, in a fixed order; each plan is made if
// its work is within the limit. Then the others are sorted by their estimates and made while work is left.
// Every plan is simulated in one place. The search stops at a plan that meets the bound, or nearly. On small
// machines the fastest plans are then made again in shorter chunks. The reason is that below the simulator's
// least segment a chunk moves whole, and a step waits for all of it. Where the best plan is still far from
// the bound, the engines that came near it plan the mirror image of the request as well. Where every plan is
// beyond the limit, the cheapest is made and not simulated.
#include "synth/portfolio/portfolio.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ir/analysis/bitwise_same.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "synth/common/justify.h"
#include "synth/common/rank_graph.h"
#include "synth/common/reverse.h"
#include "synth/common/serves.h"
#include "synth/portfolio/mirror.h"
#include "synth/portfolio/preference.h"

namespace xccl {
namespace {

constexpr int64_t kDefaultWork = 600'000;  // chunk moves of all plans made together: about a second
constexpr int64_t kFirstPlan = 4;          // the most promising plan may cost this many times the limit
// Times the limit, for a search where the number of chunks is given. With kFirstPlan mesh:32x32 allgather in
// one chunk takes 6.8 % longer, since no other plan overlaps steps.
constexpr int64_t kSearchOfFewChunks = 8;
constexpr double kGoodEnough = 1.002;  // times the bound: not worth a further search
// Times the bound: little to gain. Searching on to 1.002 on large machines doubles the time of 25 bars, 8.3 s
// to 15.8 s; the best of them gains 0.9 %, torus:24x24 allgather 1 GiB. Up to 64 ranks, greedy over switches
// takes 28 bars from 7.8 s to 18.8 s and gains 0.3 % at most.
constexpr double kNearBound = 1.01;
constexpr int32_t kLarge = 64;   // ranks; beyond, kNearBound is good enough
constexpr int32_t kHuge = 8192;  // ranks; beyond, any plan is good enough: others look at pairs of ranks
constexpr double kHopeless = 4;  // formulas this far above the best simulated time are not tried
// Beyond 64 ranks a plan of more work must have a better estimate than the best time. One of less is made
// though the limit be used up: an estimate may be wrong by far.
constexpr int64_t kHeavyWork = 50'000;
// A longer search on a large machine is begun only where the best time is further from the bound. Otherwise
// torus:16x16 alltoall 64 KiB takes 1.76 s in place of 0.10 s, for the same plan. Without any such search its
// allgather of 64 KiB is 0.9 % slower.
constexpr int64_t kLongSearch = 200'000;
constexpr double kNotForSearch = 1.5;

// Shorter chunks.
// Plans, the fastest. All of them cost torus:8x8 and others of 64 ranks a tenth more and gain nothing.
constexpr size_t kRefined = 3;
constexpr double kFinerGain = 0.98;          // the time that four times as many chunks must reach, relative
constexpr int64_t kLongChunkBytes = 16'384;  // the simulator and the program cut longer ones
constexpr int64_t kShortChunkBytes = 128;    // a line of LL128
// Times as many; simulation ignores the cost of each. Without it rail-2 allgather 512 KiB simulates 3.6 %
// faster.
constexpr int64_t kMoreTransfers = 2;
constexpr int64_t kMostFinerChunks = 1024;  // a part

// Longer chunks.
constexpr double kTinyMessageBytes = 64 << 10;  // plans of longer messages are not tried in fewer
constexpr double kNotForCoarser = 1.1;          // times the best time: such plans are not made again

// Other orders of the fastest plans' transfers.
constexpr int64_t kJustified = 3;          // plans, of different engines
constexpr int64_t kOrderWork = 4'000'000;  // hops of chunks simulated: about a second

// Times the best time: slower plans are not ordered again, and their engines not asked for the mirror image.
// At 1.15, and with all engines asked, kind 0 of bench:kinds takes three times as long for a broadcast of 64
// MiB with rails, and nothing is faster.
constexpr double kNotAgain = 1.05;

// Times the bound: broadcasts along trees that are nearer have no mirror image unless their plan is short.
constexpr double kNotForImage = 1.02;
constexpr int64_t kShortPlan = 20'000;  // transfers

// Times the messages: programs of such plans gain less than their schedules and take long to make, so that
// the time must fall to this share.
constexpr int64_t kTorn = 2;
constexpr double kWorthTearing = 0.95;

// Plans that are kept beside the best.
constexpr double kKept = 3;      // times the best time: its program is not faster than the best plan's
constexpr size_t kMostKept = 8;  // but for tiny plans
constexpr int64_t kMostKeptTransfers = 1 << 20;  // of one of them

struct Candidate {
  const Engine* engine = nullptr;
  Offer offer;
};

struct Tried {
  const Engine* engine = nullptr;
  double time_ps = 0;
  int32_t chunks = 1;     // a part
  int64_t transfers = 0;  // transfers in its schedule
};

struct Kept {
  const Engine* engine = nullptr;
  double time_ps = 0;
  Synthesis made;
  PlanCosts costs = {};
  bool is_ordered = false;  // justified, or not faster that way
};

// Other sums have only one order.
bool SeveralGetASum(const Collective& collective) {
  return collective.Reduces() && collective.kind() != CollectiveKind::kReduce &&
         collective.kind() != CollectiveKind::kReduceScatter &&
         collective.kind() != CollectiveKind::kReduceScatterv;
}

class Portfolio {
 public:
  Portfolio(const SynthesisRequest& request, std::span<const Engine> engines, bool is_mirror = false)
      : request_(request), engines_(engines), deadline_(request.limits.deadline), is_mirror_(is_mirror) {}

  StatusOr<Synthesis> Run() {
    XCCL_ASSIGN_OR_RETURN(bound_, BoundOf(request_));
    request_.bound = &bound_;
    const int64_t limit = request_.limits.work_units > 0 ? request_.limits.work_units : kDefaultWork;
    TryNearBound();
    if (!IsDone() && !(HasPlan() && deadline_())) TryOthers(limit);
    if (HasPlan() && HasTinyMessages() && !deadline_()) Coarsen(limit);
    if (!is_mirror_ && !kept_.empty() && !IsWithin(kNearBound) && !deadline_()) TryMirror();
    if (!is_mirror_ && !kept_.empty() && request_.model == TimeModel::kPipelined && !request_.limits.steps &&
        !deadline_())
      Justify();
    if (unsimulated_) {
      unsimulated_->note = fmt::format("{}; beyond the limit of work, not simulated", unsimulated_->engine);
      unsimulated_->faults = std::move(faults_);
      return *std::move(unsimulated_);
    }
    if (kept_.empty()) return Refusal();
    return Best();
  }

 private:
  // Tries the engines that come close to the bound by themselves, unless their plans are too much work.
  void TryNearBound() {
    std::vector<const Engine*> rows;
    for (const Engine& engine : engines_)
      if (engine.near_bound > 0) rows.push_back(&engine);
    std::ranges::stable_sort(rows, {}, &Engine::near_bound);
    for (const Engine* const row : rows) {
      if (HasPlan() && ((IsGoodEnough() && !HasTinyMessages()) || deadline_())) return;
      std::optional<Candidate> candidate = Ask(*row);
      if (!candidate || candidate->offer.time_ps >= best_ps_) continue;
      if (candidate->offer.work <= kDefaultWork)
        Try(*candidate, kDefaultWork);
      else
        others_.push_back(*std::move(candidate));
    }
  }

  void TryOthers(int64_t limit) {
    request_.graphs = std::make_shared<RankGraphs>(*request_.topology);
    for (const Engine& engine : engines_)
      if (engine.near_bound == 0 && !engine.searches_long && !engine.asks_others)
        if (std::optional<Candidate> candidate = Ask(engine)) others_.push_back(*std::move(candidate));
    std::ranges::stable_sort(others_, {}, [](const Candidate& c) { return c.offer.time_ps; });
    int64_t left = limit;
    bool first = true;
    for (const Candidate& candidate : others_) {
      if (HasPlan() && deadline_()) break;
      if (IsHopeless(candidate)) continue;
      const int64_t most = IsSearchOfFewChunks(candidate) ? kSearchOfFewChunks * limit
                           : first                        ? kFirstPlan * limit
                                                          : std::max(left, kHeavyWork);
      if (candidate.offer.work > most || !IsWorthIt(candidate)) continue;
      Try(candidate, std::max(left, candidate.offer.work));
      left = std::max<int64_t>(0, left - candidate.offer.work);
      first &= !HasPlan();
    }
    // If nothing is within the limit, or nothing worked, the cheapest plan that works is taken.
    std::ranges::stable_sort(others_, {}, [](const Candidate& c) { return c.offer.work; });
    for (const Candidate& candidate : others_)
      if (!HasPlan() && std::ranges::find(faulty_, candidate.engine) == faulty_.end())
        Try(candidate, kDefaultWork, false);
    if (HasPlan()) Refine(left);
  }

  // The estimate of a search does not see what the search finds: greedy's takes every hop to be as late as
  // the slowest link, which its plans may go round.
  bool IsHopeless(const Candidate& candidate) const {
    return candidate.engine->any_chunks && HasPlan() && candidate.offer.time_ps > kHopeless * best_ps_;
  }

  // Such a search gains most, and its estimate does not see that.
  bool IsSearchOfFewChunks(const Candidate& candidate) const {
    return request_.limits.chunks && !candidate.engine->any_chunks;
  }

  bool IsWorthIt(const Candidate& candidate) const {
    if (!HasPlan()) return true;
    const bool promises_more = candidate.offer.time_ps < best_ps_;
    // Textbook plans and bfb's cost next to nothing on small machines, so they are tried up to the bound.
    if (IsGoodEnough()) {
      if (!candidate.engine->any_chunks) return false;
      // Its program may be faster than that of the best schedule.
      if (candidate.offer.work <= kHeavyWork && candidate.offer.time_ps <= kKept * best_ps_) return true;
      // A plan about as fast may have fewer messages.
      if (HasTinyMessages())
        return candidate.offer.work <= kHeavyWork && candidate.offer.time_ps <= kAboutAsFast * best_ps_;
      return !IsLarge() && promises_more && !MeetsBound();
    }
    if (candidate.engine->any_chunks)
      return !IsLarge() || promises_more || candidate.offer.work <= kHeavyWork;
    if (IsSearchOfFewChunks(candidate)) return true;
    if (IsLarge()) return candidate.offer.work <= kLongSearch || !IsWithin(kNotForSearch);
    return !HasSwitches() || !IsWithin(kNearBound);
  }

  // Makes the plans again with shorter chunks while that gains.
  void Refine(int64_t left) {
    if (request_.IsPassedOver("finer") || request_.limits.chunks || IsGoodEnough() || deadline_()) return;
    std::vector<Tried> tried = tried_;
    std::ranges::stable_sort(tried, {}, &Tried::time_ps);
    std::erase_if(tried, [](const Tried& one) { return !one.engine->any_chunks; });
    if (tried.size() > kRefined) tried.resize(kRefined);
    for (const Tried& one : tried) RefineOne(one, left);
  }

  void RefineOne(const Tried& tried, int64_t left) {
    const int64_t part_bytes = request_.size_bytes / request_.collective->num_parts();
    int64_t chunks = 4 * int64_t{tried.chunks};
    while (part_bytes / chunks > kLongChunkBytes) chunks *= 4;
    double time_ps = tried.time_ps;
    for (; chunks <= kMostFinerChunks && part_bytes / chunks >= kShortChunkBytes; chunks *= 4) {
      SynthesisRequest finer = request_;
      finer.limits.chunks = static_cast<int32_t>(chunks);
      if (tried.transfers * (chunks / tried.chunks) > left || deadline_()) return;
      const StatusOr<Offer> offer = tried.engine->Offered(finer);
      if (!offer.ok() || offer->work > left) return;
      StatusOr<Synthesis> made = offer->make ? offer->make(left) : tried.engine->Plan(finer);
      if (!made.ok() || made->schedule.size() > kMoreTransfers * tried.transfers) return;
      const double finer_ps = SimulatedPs(*tried.engine, *made);
      if (finer_ps > kFinerGain * time_ps) return;
      time_ps = finer_ps;
      Consider(*tried.engine, std::move(made).value(), true);
    }
  }

  // Makes the fastest plans again in longer and longer chunks, as long as they are about as fast.
  void Coarsen(int64_t left) {
    if (request_.IsPassedOver("coarser") || request_.limits.chunks) return;
    std::vector<Tried> tried = tried_;
    std::ranges::stable_sort(tried, {}, &Tried::time_ps);
    // forest and the like search for long where the number of chunks is given, and have few chunks by
    // themselves.
    std::erase_if(tried, [&](const Tried& one) {
      return one.time_ps > kNotForCoarser * best_ps_ ||
             (one.engine->near_bound > 0 && !one.engine->any_chunks);
    });
    std::vector<const Engine*> engines;
    for (const Tried& one : tried) {
      if (engines.size() == kRefined) return;
      if (std::ranges::find(engines, one.engine) != engines.end()) continue;
      engines.push_back(one.engine);
      CoarsenOne(one, left);
    }
  }

  void CoarsenOne(const Tried& tried, int64_t& left) {
    int64_t chunks = 1;
    while (8 * chunks <= tried.chunks) chunks *= 4;
    if (2 * chunks > tried.chunks) return;
    for (; chunks >= 1 && !deadline_(); chunks /= 4) {
      SynthesisRequest coarser = request_;
      coarser.limits.chunks = static_cast<int32_t>(chunks);
      const StatusOr<Offer> offer = tried.engine->Offered(coarser);
      if (!offer.ok()) return;
      if (offer->work > left) continue;
      left -= offer->work;
      StatusOr<Synthesis> made = offer->make ? offer->make(left) : tried.engine->Plan(coarser);
      if (!made.ok()) return;
      const double coarser_ps = SimulatedPs(*tried.engine, *made);
      Consider(*tried.engine, std::move(made).value(), true);
      if (coarser_ps > kAboutAsFast * best_ps_) return;
    }
  }

  // Gives the fastest plans of a few engines another order: the fastest one of each, then, with the work that
  // is left, the next one, which may become the fastest of all.
  void Justify() {
    if (request_.IsPassedOver("reordered")) return;
    int64_t left = kOrderWork;
    std::vector<const Engine*> engines;  // of each plan that got its turn
    for (const int64_t most : {1, 2})
      while (!IsGoodEnough() && !deadline_() && std::ssize(engines) < most * kJustified) {
        const auto next = std::ranges::find_if(kept_, [&](const Kept& kept) {
          return !kept.is_ordered && kept.time_ps <= kNotAgain * best_ps_ &&
                 std::ranges::count(engines, kept.engine) < most;
        });
        if (next == kept_.end()) break;
        next->is_ordered = true;
        engines.push_back(next->engine);
        JustifyOne(*next, most > 1, left);
      }
  }

  void JustifyOne(const Kept& kept, bool must_lead, int64_t& left) {
    // Another order could make twice as many messages of it.
    if (kept.costs.link_use.message_bytes < kShortChunkBytes) return;
    std::optional<Synthesis> better = Justified(kept.made, request_, left);
    if (!better) return;
    const auto better_ps = static_cast<double>(better->simulation->time_ps);
    if (must_lead && better_ps >= best_ps_) return;
    const bool is_torn = CostsOf(*better, request_).link_use.messages > kTorn * kept.costs.link_use.messages;
    if (!is_torn || better_ps < kWorthTearing * kept.time_ps)
      Consider(*kept.engine, *std::move(better), true, true);
  }

  // Plans the mirror image of the request by the engines whose plans come near the best, and takes over the
  // mirror images of the plans.
  void TryMirror() {
    const std::optional<Collective> collective = MirrorOf(*request_.collective);
    if (!collective || request_.IsPassedOver("mirrored")) return;
    const Topology topology = ReverseTopology(*request_.topology);
    SynthesisRequest image = request_;
    image.topology = &topology;
    image.collective = &*collective;
    image.bound = nullptr;
    image.graphs.reset();
    image.start.reset();
    std::vector<Engine> near;
    for (const Engine& engine : engines_)
      if (BestPs(engine) <= kNotAgain * best_ps_ && MayGainFromMirror(engine)) near.push_back(engine);
    if (near.empty()) return;
    StatusOr<Synthesis> best = Portfolio(image, near, true).Run();
    if (!best.ok()) return;
    faults_.insert(faults_.end(), best->faults.begin(), best->faults.end());
    std::vector<Synthesis> plans = std::exchange(best->others, {});
    plans.push_back(*std::move(best));
    for (const Synthesis& plan : plans) {
      if (plan.simulation && static_cast<double>(plan.simulation->time_ps) > kNotAgain * best_ps_) continue;
      const auto engine = std::ranges::find(engines_, std::string_view(plan.engine), &Engine::name);
      if (engine == engines_.end()) continue;
      if (std::optional<Synthesis> made =
              Mirrored(plan, topology, *request_.topology, *request_.collective, request_.size_bytes))
        Consider(*engine, *std::move(made), true);
    }
  }

  // Trees that copy are the same in the mirror image, where other orders are found. Of 50 allgathers of
  // bench:kinds none gained. nvswitch:16 broadcast 64 MiB takes 1.010 times the bound in place of 1.035, but
  // long plans near the bound gained nothing.
  bool MayGainFromMirror(const Engine& engine) const {
    if (engine.near_bound == 0 || engine.any_chunks) return true;
    const CollectiveKind kind = request_.collective->kind();
    if (kind == CollectiveKind::kAllgather || kind == CollectiveKind::kAllgatherv) return false;
    if (kind != CollectiveKind::kBroadcast) return true;
    const auto fastest = std::ranges::find(kept_, &engine, &Kept::engine);
    return fastest != kept_.end() && (!IsWithin(kNotForImage) || fastest->made.schedule.size() <= kShortPlan);
  }

  // The engine's fastest plan; infinite where there is none.
  double BestPs(const Engine& engine) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Tried& one : tried_)
      if (one.engine == &engine) least = std::min(least, one.time_ps);
    return least;
  }

  bool HasPlan() const { return !kept_.empty() || unsimulated_; }
  bool HasTinyMessages() const {
    return !kept_.empty() && kept_.front().costs.link_use.messages > 0 &&
           kept_.front().costs.link_use.message_bytes < kTinyMessageBytes;
  }
  bool IsLarge() const { return request_.collective->num_members() > kLarge; }
  bool HasSwitches() const { return request_.topology->num_nodes() > request_.topology->num_ranks(); }
  bool IsWithin(double ratio) const { return best_ps_ <= static_cast<double>(bound_.bound_ps) * ratio; }
  bool MeetsBound() const { return xccl::MeetsBound(static_cast<int64_t>(best_ps_), bound_); }
  bool IsGoodEnough() const {
    return MeetsBound() ||
           IsWithin(IsLarge() || request_.IsPassedOver("goodenough") ? kNearBound : kGoodEnough) ||
           request_.collective->num_members() > kHuge;
  }
  // On small machines textbook plans are tried up to the bound.
  bool IsDone() const {
    if (!HasPlan() || HasTinyMessages() || !IsLarge()) return false;
    return MeetsBound() || (IsLarge() && IsGoodEnough());
  }

  std::optional<Candidate> Ask(const Engine& engine) {
    if (request_.IsPassedOver(engine.name)) return std::nullopt;
    StatusOr<Offer> offer = engine.Offered(request_);
    if (offer.ok()) return Candidate{&engine, *std::move(offer)};
    Refuse(engine, offer.status());
    return std::nullopt;
  }

  void Try(const Candidate& candidate, int64_t most_work, bool simulate = true) {
    StatusOr<Synthesis> made =
        candidate.offer.make ? candidate.offer.make(most_work) : candidate.engine->Plan(request_);
    if (!made.ok()) return Refuse(*candidate.engine, made.status());
    Consider(*candidate.engine, std::move(made).value(), simulate);
  }

  // Simulates the plan unless that was done. Where it is wrong, says so, and its time is without end.
  double SimulatedPs(const Engine& engine, Synthesis& made) {
    if (!made.simulation) {
      made.simulation = Simulate(made.schedule, made.collective, *request_.topology, TimingOf(request_));
      if (Status sound = CheckSound(engine.name, made); !sound.ok()) Refuse(engine, std::move(sound));
    }
    return static_cast<double>(made.simulation->time_ps);
  }

  // Keeps the plan if it is about as fast as the fastest so far, and likewise the engine's other ones.
  void Consider(const Engine& engine, Synthesis made, bool simulate, bool is_ordered = false) {
    faults_.insert(faults_.end(), made.faults.begin(), made.faults.end());
    for (Synthesis& other : std::exchange(made.others, {})) Consider(engine, std::move(other), simulate);
    if (!request_.allow_divergent && SeveralGetASum(made.collective) &&
        !IsBitwiseSame(made.schedule, made.collective, *request_.topology))
      return;
    if (!simulate) {
      unsimulated_ = std::move(made);
      return;
    }
    const double time_ps = SimulatedPs(engine, made);
    if (!made.simulation->unsound.empty()) return;
    if (made.simulation->stopped) return Refuse(engine, TooLate(made.engine));
    tried_.push_back({&engine, time_ps, made.collective.ChunksOf(PartId(0)), made.schedule.size()});
    if (time_ps > kKept * best_ps_ || (time_ps >= best_ps_ && made.schedule.size() > kMostKeptTransfers))
      return;
    PlanCosts costs = CostsOf(made, request_);
    const auto place = std::ranges::upper_bound(kept_, time_ps, {}, &Kept::time_ps);
    kept_.insert(place, {&engine, time_ps, std::move(made), costs, is_ordered});
    best_ps_ = kept_.front().time_ps;
    std::erase_if(kept_, [&](const Kept& kept) { return kept.time_ps > kKept * best_ps_; });
    if (kept_.size() > kMostKept && kept_.back().made.schedule.size() > kTinyPlan) kept_.pop_back();
  }

  // Of the plans that are kept the preferred one, with the others.
  Synthesis Best() {
    std::vector<PlanCosts> costs;
    for (const Kept& kept : kept_) costs.push_back(kept.costs);
    const size_t preferred = Preferred(costs, static_cast<double>(bound_.bound_ps));
    for (Kept& kept : kept_)
      kept.made.exact |= kept.made.schedule.size() == 0 ||
                         (kept.time_ps > 0 && xccl::MeetsBound(static_cast<int64_t>(kept.time_ps), bound_));
    Synthesis best = std::move(kept_[preferred].made);
    for (size_t i = 0; i < kept_.size(); ++i)
      if (i != preferred) best.others.push_back(std::move(kept_[i].made));
    best.faults = std::move(faults_);
    best.note = best.schedule.size() == 0 ? "nothing to move" : Note(best.engine);
    return best;
  }

  // The fastest plan of another engine.
  std::string Note(std::string_view engine) const {
    const Tried* next = nullptr;
    for (const Tried& tried : tried_)
      if (tried.engine->name != engine && (next == nullptr || tried.time_ps < next->time_ps)) next = &tried;
    if (next == nullptr) return "";
    const double ratio = bound_.bound_ps > 0 ? next->time_ps / static_cast<double>(bound_.bound_ps) : 1.0;
    return fmt::format("next {}, {:.4f} x bound", next->engine->name, ratio);
  }

  Status TooLate(const std::string& engine) const {
    return LimitReached(
        fmt::format("{}: {} before its plan was simulated", engine, request_.limits.deadline.Passed()));
  }

  // A bug costs its engine its turn, no more.
  void Refuse(const Engine& engine, Status why) {
    if (why.code() == StatusCode::kBug) {
      faulty_.push_back(&engine);
      faults_.push_back(why.message());
    }
    refusals_.push_back(std::move(why));
  }

  Status Refusal() const {
    const auto bug = std::ranges::find(refusals_, StatusCode::kBug, &Status::code);
    const Status& why = bug != refusals_.end() ? *bug : refusals_.back();
    std::optional<int64_t> steps;  // the fewest of a plan that was refused for them
    for (const Status& refusal : refusals_)
      if (refusal.needed() && (!steps || *refusal.needed() < *steps)) steps = refusal.needed();
    return Status(why.code(),
                  fmt::format("{}: no engine has a plan for {} on {}: {}", kDefaultEngine,
                              request_.collective->name(), request_.topology->name(), why.message()),
                  steps);
  }

  SynthesisRequest request_;  // with the bound and, from TryOthers on, the graphs
  const std::span<const Engine> engines_;
  const Deadline deadline_;
  const bool is_mirror_;  // plans the mirror image of another request
  Bound bound_;
  std::vector<Status> refusals_ = {InvalidInput("none serves it")};
  std::vector<const Engine*> faulty_;  // made a wrong plan
  std::vector<std::string> faults_;    // what was wrong with each
  std::vector<Candidate> others_;      // not tried by TryNearBound
  std::vector<Tried> tried_;
  std::vector<Kept> kept_;                // the fastest first
  std::optional<Synthesis> unsimulated_;  // where every plan is beyond the limit of work
  double best_ps_ = std::numeric_limits<double>::infinity();
};

}  // namespace

StatusOr<Synthesis> TryEngines(const SynthesisRequest& request, std::span<const Engine> engines) {
  return Portfolio(request, engines).Run();
}

}  // namespace xccl
