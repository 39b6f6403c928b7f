// bfb and forest first, where they are quick: they mostly come within a percent of the bound, which ends it.
// Then place every textbook engine that serves, sort by the closed-form estimate, and make and simulate one
// after the other while work is left: a plan's work is the chunk moves that it would make, known before it is
// made. greedy stands in the order as if it came close to the bound. Stops as soon as a plan meets the bound,
// or nearly. On small machines the fastest are made again with shorter chunks: below the simulator's least
// segment a chunk moves whole, and a step waits for all of it. Where one plan alone is beyond the limit of
// work, the cheapest is made and not simulated.
#include "synth/portfolio/auto.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "ir/bitwise_same.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "synth/bfb/bfb.h"
#include "synth/common/members_alone.h"
#include "synth/common/serves.h"
#include "synth/flow/flow.h"
#include "synth/forest/forest.h"
#include "synth/greedy/greedy.h"
#include "synth/switches/in_network.h"
#include "synth/switches/multicast.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/hierarchical_alltoall.h"
#include "topologies/submachine.h"

namespace xccl {
namespace {

// The search as a whole.
constexpr int64_t kDefaultWork = 600'000;  // chunk moves of all plans made together
constexpr int64_t kFirstPlan = 4;          // the most promising plan may cost this many times the limit
constexpr double kGoodEnough = 1.002;      // times the bound: not worth the search for more
constexpr double kNearBound = 1.01;        // times the bound: little to gain
constexpr double kNearBoundOfSums = 1.1;   // an allreduce's bound is not always attained
constexpr double kHopeless = 4;            // estimates this far above the best simulated time are not tried
constexpr int32_t kLarge = 64;             // ranks; beyond, what cannot win is left out sooner:
constexpr double kHopelessLarge = 2;       // kHopeless there
constexpr int64_t kHeavyWork = 50'000;     // a plan this large must have a better estimate than the best time
constexpr int32_t kHuge = 256;           // ranks; beyond, shortest ways do where latency is most of the time
constexpr int32_t kMostPairwise = 8192;  // ranks that may be looked at pair by pair; beyond, bfb alone

// bfb, forest, flow: what they may cost to be tried first, to stay under a second.
constexpr int64_t kMostSearches = 6'000'000;  // bfb: links × ranks
constexpr int64_t kMostTreeLinks = 200'000;   // multicast, in-network: links × ranks
constexpr int64_t kMostRows = 400;            // forest: of its program
constexpr int64_t kMostWholeTrees = 500'000;  // forest with --chunks: links × ranks
constexpr double kNotForTrees = 2.5;          // times the bound: forest is asked even where latency is most
constexpr int64_t kMostFlow = 20'000;         // flow: sources × links that differ
constexpr int64_t kFlowUnits = 1'000'000;     // flow: of its own work units
constexpr int64_t kMostHostParts = 300'000;   // hierarchical-alltoall: simulating it takes most of the time

// Shorter chunks, where steps of a textbook engine may overlap further.
constexpr size_t kRefined = 3;               // engines, the fastest ones
constexpr double kRefinable = 2;             // times the best
constexpr double kWorthFiner = 0.99;         // what four times as many chunks must come to
constexpr int64_t kLongChunkBytes = 16'384;  // longer ones the simulator and the program cut by themselves
constexpr int64_t kShortChunkBytes = 128;    // a line of LL128
constexpr int64_t kMoreTransfers = 2;        // times as many: each costs instructions, which is not seen here
constexpr int64_t kMostFinerChunks = 1024;   // a part

// greedy.
constexpr double kGreedyNearBound = 1.1;      // where it stands in the order
constexpr int64_t kGreedyWorkPerMove = 3;     // searching costs more than writing down
constexpr int64_t kGreedyUnits = 20;          // of its own work units for one of ours
constexpr double kGreedyMayBe = 1.1;          // it may be faster than its estimate by so much
constexpr double kNotForGreedy = 1.5;         // times the bound: it would gain little on large machines,
constexpr int64_t kGreedyNearWork = 200'000;  // unless it costs no more than this, or the chunks are few
constexpr int32_t kGreedyFewNeighbours = 16;  // with more it costs more, as the square of their number

struct Candidate {
  std::string_view name;
  double estimate_ps = 0;
  int64_t work = 0;
  std::optional<PlacedEngine> placed;  // absent: greedy
};

struct Tried {
  std::string_view name;
  double time_ps = 0;
  int32_t chunks = 1;     // a part
  int64_t transfers = 0;  // of its schedule
};

// Chunk moves that an engine without relays makes for a collective with one chunk a part.
int64_t LeastMoves(const Collective& collective) {
  const int64_t n = collective.num_members(), parts = collective.num_parts();
  switch (collective.kind()) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBarrier:
      return 2 * n * n;
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
    case CollectiveKind::kSendrecv:
      return parts;
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kCustom:
      return parts * n;
  }
  return parts * n;
}

// Else there is only one order of a sum.
bool SeveralGetASum(const Collective& collective) {
  return collective.Reduces() && collective.kind() != CollectiveKind::kReduce &&
         collective.kind() != CollectiveKind::kReduceScatter &&
         collective.kind() != CollectiveKind::kReduceScatterv;
}

const TextbookEngine* FindTextbook(std::string_view name) {
  const auto engines = TextbookEngines();
  const auto found = std::ranges::find(engines, name, &TextbookEngine::name);
  return found == engines.end() ? nullptr : *found;
}

class Portfolio {
 public:
  explicit Portfolio(const SynthesisRequest& request) : request_(request) {}

  StatusOr<Synthesis> Run() {
    StatusOr<Synthesis> made = Search();
    if (bug_) return *bug_;
    return made;
  }

 private:
  StatusOr<Synthesis> Search() {
    XCCL_ASSIGN_OR_RETURN(bound_, LowerBound(*request_.topology, *request_.collective, request_.size_bytes,
                                             request_.model, BoundEffort::kFast));
    const std::function<bool()> deadline = DeadlineOf(request_);
    const auto out_of_time = [&] { return deadline && deadline(); };
    TryOptimal(multicast_, [this] { return AreSwitchesQuick(); });
    TryOptimal(bfb_, [this] { return IsFewOrAlike() || IsBfbQuick(); });
    if (!IsDone()) TryOptimal(forest_, [this] { return IsForestQuick(); });
    // Where one switch joins all, trees over several have nothing to add.
    if (!IsDone() && !multicast_.Serves(request_).ok())
      TryOptimal(in_network_, [this] { return AreSwitchesQuick(); });
    if (!IsDone())
      TryOptimal(
          flow_, [this] { return FlowWork(request_) <= kMostFlow; }, kFlowUnits);
    if (!IsDone()) TryOptimal(hosts_, [this] { return request_.collective->num_parts() <= kMostHostParts; });
    if ((IsDone() && !IsCheapToTry()) || (best_ && out_of_time())) return Finished();
    Gather();
    int64_t left = Limit();
    const int64_t most = kFirstPlan * left;
    bool first = true;
    // The many that promise more than greedy leave it its share.
    int64_t for_greedy = 0;
    for (const Candidate& candidate : candidates_)
      if (!candidate.placed && candidate.work <= left) for_greedy = candidate.work;
    for (const Candidate& candidate : candidates_) {
      // With few chunks a part greedy's estimate says little, and it gains most.
      const bool greedy = !candidate.placed && request_.limits.chunks;
      if (!candidate.placed) for_greedy = 0;
      if (candidate.work > (greedy ? 2 * most : first ? most : left - for_greedy)) continue;
      if (best_ && (candidate.estimate_ps > Hopeless() * best_ps_ || out_of_time())) break;
      if (best_ && GoodEnough() && !(IsCheapToTry() && candidate.placed && candidate.estimate_ps < best_ps_))
        continue;
      // Through switches greedy is dear, for a percent at most.
      if (best_ && IsNearBound() && !candidate.placed && !greedy && HasSwitches()) continue;
      if (best_ && IsLarge() && candidate.work > kHeavyWork && !greedy &&
          candidate.estimate_ps > (candidate.placed ? 1 : kGreedyMayBe) * best_ps_)
        continue;
      Try(candidate, true, std::max(left, candidate.work));
      left = std::max<int64_t>(0, left - candidate.work);
      first &= !best_.has_value();
    }
    // Nothing within the limit, or nothing that worked: the cheapest that works.
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.work < b.work; });
    for (const Candidate& candidate : candidates_) {
      if (best_) break;
      Try(candidate, false, kDefaultWork);
    }
    if (!best_) return Refusal();
    Refine(left);
    return Finished();
  }

  // Makes bfb's and the fastest textbook plans again with shorter chunks, while that gains.
  void Refine(int64_t left) {
    if (request_.limits.chunks || IsLarge() || GoodEnough()) return;
    std::vector<Tried> fastest;
    for (const Tried& tried : tried_)
      if (tried.time_ps <= kRefinable * best_ps_ &&
          (tried.name == bfb_.name || FindTextbook(tried.name) != nullptr))
        fastest.push_back(tried);
    std::ranges::stable_sort(fastest, {}, &Tried::time_ps);
    if (fastest.size() > kRefined) fastest.resize(kRefined);
    for (const Tried& tried : fastest) RefineOne(tried, left);
  }

  void RefineOne(const Tried& tried, int64_t left) {
    const int64_t part_bytes = request_.size_bytes / request_.collective->num_parts();
    int64_t chunks = 4 * int64_t{tried.chunks};
    while (part_bytes / chunks > kLongChunkBytes) chunks *= 4;
    double time_ps = tried.time_ps;
    for (; chunks <= kMostFinerChunks && part_bytes / chunks >= kShortChunkBytes; chunks *= 4) {
      SynthesisRequest finer = request_;
      finer.limits.chunks = static_cast<int32_t>(chunks);
      if (LeastMoves(*request_.collective) * (chunks / tried.chunks) > left) return;
      StatusOr<Synthesis> made = MakeFiner(tried.name, finer, left);
      if (!made.ok() || made->schedule.size() > kMoreTransfers * tried.transfers) return;
      const double finer_ps = SimulatedPs(*made);
      if (finer_ps > kWorthFiner * time_ps) return;
      time_ps = finer_ps;
      Consider(tried.name, std::move(made).value(), true);
    }
  }

  StatusOr<Synthesis> MakeFiner(std::string_view name, const SynthesisRequest& finer, int64_t most) {
    if (name == bfb_.name) return bfb_.Synthesize(finer);
    XCCL_ASSIGN_OR_RETURN(const PlacedEngine placed,
                          PlacedEngine::Place(*FindTextbook(name), *grounds_, finer));
    if (placed.Work() > most) return LimitReached("work");
    return placed.Make();
  }

  Synthesis Finished() {
    best_->note = Note();
    best_->exact = best_->exact || (best_ps_ > 0 && MeetsBound()) || best_->schedule.size() == 0;
    return *std::move(best_);
  }

  // Is forest's program small: few ranks and links, or many that symmetry makes alike?
  bool IsFewOrAlike() {
    if (!few_or_alike_)
      few_or_alike_ =
          int64_t{request_.topology->num_links()} + request_.collective->num_members() <= kMostRows ||
          ForestRows(request_) <= kMostRows;
    return *few_or_alike_;
  }

  // Where GPUs are joined directly a search a rank is all that bfb needs.
  bool IsBfbQuick() const {
    const Topology& topology = *request_.topology;
    return topology.num_nodes() == topology.num_ranks() &&
           int64_t{topology.num_links()} * request_.collective->num_members() <= kMostSearches;
  }

  // One tree a rank, or a few, each a search.
  bool AreSwitchesQuick() const {
    return int64_t{request_.topology->num_links()} * request_.collective->num_members() <= kMostTreeLinks;
  }

  // Whole trees (a number of chunks is asked for) are packed without help of symmetry; and where latency is
  // most of the time on a large machine, trees at the best rate are no better than bfb's shortest ways.
  bool IsForestQuick() {
    const bool fits = best_ && best_ps_ <= kNotForTrees * static_cast<double>(bound_.bound_ps);
    if (fits && request_.collective->num_members() > kHuge && 2 * bound_.latency_ps > bound_.bound_ps)
      return false;
    if (request_.collective->num_parts() == 1) return true;
    const int64_t cost = int64_t{request_.topology->num_links()} * request_.collective->num_members();
    return IsFewOrAlike() && (!request_.limits.chunks || cost <= kMostWholeTrees);
  }

  // On small machines the textbook's plans cost next to nothing: what promises more is tried to the bound.
  bool IsCheapToTry() const { return !IsLarge() && !MeetsBound(); }

  // Nothing else is worth its time: on large machines the others cost more than they could gain.
  bool IsDone() const {
    if (!best_ || GoodEnough()) return best_.has_value();
    const bool sums = request_.collective->kind() == CollectiveKind::kAllreduce;
    return IsLarge() &&
           (IsNearBound() || (sums && best_ps_ <= static_cast<double>(bound_.bound_ps) * kNearBoundOfSums));
  }
  bool HasSwitches() const { return request_.topology->num_nodes() > request_.topology->num_ranks(); }
  bool IsNearBound() const { return best_ps_ <= static_cast<double>(bound_.bound_ps) * kNearBound; }

  // The engines that come close to the bound by themselves.
  template <typename IsAffordable>
  void TryOptimal(const Engine& engine, IsAffordable is_affordable, int64_t work_units = 0) {
    if (const Status serves = engine.Serves(request_); !serves.ok()) {
      Refuse(serves);
      return;
    }
    if (!is_affordable()) return;
    SynthesisRequest limited = request_;
    if (limited.limits.work_units == 0) limited.limits.work_units = work_units;
    StatusOr<Synthesis> made = engine.Synthesize(limited);
    if (!made.ok()) {
      Refuse(made.status());
      return;
    }
    Consider(engine.name, std::move(made).value(), true);
  }

  bool IsLarge() const { return request_.collective->num_members() > kLarge; }
  double Hopeless() const { return IsLarge() ? kHopelessLarge : kHopeless; }
  int64_t Limit() const { return request_.limits.work_units > 0 ? request_.limits.work_units : kDefaultWork; }

  // What greedy's searches cost more than on a sparse machine.
  int64_t GreedyDensity() const {
    if (!IsLarge()) return 1;
    const int64_t neighbours = grounds_->forward().num_hops() / grounds_->forward().num_ranks();
    return std::max<int64_t>(1, neighbours * neighbours / (kGreedyFewNeighbours * kGreedyFewNeighbours));
  }

  void Gather() {
    grounds_.emplace(*request_.topology);
    for (const TextbookEngine* engine : TextbookEngines()) {
      StatusOr<PlacedEngine> placed = PlacedEngine::Place(*engine, *grounds_, request_);
      if (!placed.ok()) {
        Refuse(placed.status());
        continue;
      }
      const int64_t work = placed->Work();
      // Beyond the limit only the work counts.
      const double estimate =
          work > kFirstPlan * Limit() ? std::numeric_limits<double>::infinity() : placed->EstimatePs();
      candidates_.push_back({engine->name, estimate, work, std::move(placed).value()});
    }
    if (const Status serves = greedy_.Serves(request_); serves.ok()) {
      const double close = kGreedyNearBound * static_cast<double>(std::max<int64_t>(bound_.bound_ps, 1));
      const int64_t chunks = request_.limits.chunks.value_or(1);
      int64_t moves = chunks * LeastMoves(*request_.collective);
      // Where ranks are far apart, direct knows how far.
      for (const Candidate& candidate : candidates_)
        if (candidate.name == DirectEngine().name) moves = std::max(moves, candidate.work);
      const int64_t work = kGreedyWorkPerMove * GreedyDensity() * moves;
      const bool near =
          best_ && IsLarge() && best_ps_ <= kNotForGreedy * static_cast<double>(bound_.bound_ps);
      if (!near || work <= kGreedyNearWork || request_.limits.chunks)
        candidates_.push_back(
            {greedy_.name, greedy_.estimate_ps(request_).value_or(close), work, std::nullopt});
    } else {
      Refuse(serves);
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.estimate_ps < b.estimate_ps; });
  }

  void Try(const Candidate& candidate, bool simulate, int64_t left) {
    SynthesisRequest searching = request_;
    searching.limits.work_units = kGreedyUnits * left;
    StatusOr<Synthesis> made = candidate.placed ? candidate.placed->Make() : greedy_.Synthesize(searching);
    if (!made.ok()) {
      Refuse(made.status());
      return;
    }
    Consider(candidate.name, std::move(made).value(), simulate);
  }

  // Simulates it unless that was done.
  double SimulatedPs(Synthesis& made) const {
    if (!made.simulation)
      made.simulation = Simulate(made.schedule, made.collective, *request_.topology,
                                 {.size_bytes = request_.size_bytes, .model = request_.model});
    return static_cast<double>(made.simulation->time_ps);
  }

  // Keeps it if it is the fastest so far.
  void Consider(std::string_view name, Synthesis made, bool simulate) {
    if (!request_.allow_divergent && SeveralGetASum(made.collective) &&
        !IsBitwiseSame(made.schedule, made.collective, *request_.topology))
      return;
    double time_ps = 0;
    if (simulate) {
      time_ps = SimulatedPs(made);
      tried_.push_back({name, time_ps, made.collective.ChunksOf(PartId(0)), made.schedule.size()});
    }
    if (best_ && time_ps >= best_ps_) return;
    best_ps_ = time_ps;
    best_ = std::move(made);
  }

  bool MeetsBound() const { return xccl::MeetsBound(static_cast<int64_t>(best_ps_), bound_); }

  bool GoodEnough() const {
    return MeetsBound() || best_ps_ <= static_cast<double>(bound_.bound_ps) * kGoodEnough;
  }

  std::string Note() const {
    if (tried_.empty()) return fmt::format("{}; beyond the limit of work, not simulated", best_->engine);
    const auto ratio = [&](double ps) {
      return bound_.bound_ps > 0 ? ps / static_cast<double>(bound_.bound_ps) : 1.0;
    };
    std::string note = fmt::format("{}; {:.2f} x bound", best_->engine, ratio(best_ps_));
    const Tried* next = nullptr;
    for (const Tried& tried : tried_)
      if (tried.name != best_->engine && (next == nullptr || tried.time_ps < next->time_ps)) next = &tried;
    if (next != nullptr) note += fmt::format("; next {} {:.2f}", next->name, ratio(next->time_ps));
    return note;
  }

  // A bug is told even where another engine has a plan.
  void Refuse(Status why) {
    if (why.code() == StatusCode::kBug && !bug_) bug_ = why;
    refusals_.push_back(std::move(why));
  }

  Status Refusal() const {
    const Status& last = refusals_.back();
    return Status(last.code(),
                  fmt::format("auto: no engine has a plan for {} on {}: {}", request_.collective->name(),
                              request_.topology->name(), last.message()));
  }

  const SynthesisRequest& request_;
  std::optional<Grounds> grounds_;  // from Gather on: pairs of ranks, which bfb and forest do without
  const Engine greedy_ = GreedyEngine();
  const Engine multicast_ = MulticastEngine();
  const Engine in_network_ = InNetworkEngine();
  const Engine bfb_ = BfbEngine();
  const Engine forest_ = ForestEngine();
  const Engine flow_ = FlowEngine();
  const Engine hosts_ = HierarchicalAlltoallEngine();
  Bound bound_;
  std::vector<Candidate> candidates_;
  std::vector<Status> refusals_ = {InvalidInput("none serves it")};
  std::optional<Status> bug_;
  std::vector<Tried> tried_;
  std::optional<bool> few_or_alike_;
  std::optional<Synthesis> best_;
  double best_ps_ = std::numeric_limits<double>::infinity();
};

// Has a rank that is no member a link in and a link out?
bool CanRelay(const Topology& topology, std::span<const Rank> members) {
  std::vector<bool> idle(static_cast<size_t>(topology.num_ranks()), true);
  for (Rank r : members) idle[r.index()] = false;
  for (int32_t r = 0; r < topology.num_ranks(); ++r)
    if (const NodeId n = topology.NodeOf(Rank(r));
        idle[static_cast<size_t>(r)] && !topology.In(n).empty() && !topology.Out(n).empty())
      return true;
  return false;
}

StatusOr<Synthesis> OfAllRanks(const SynthesisRequest& request) {
  const Engine bfb = BfbEngine();
  if (request.topology->num_ranks() > kMostPairwise && bfb.Serves(request).ok()) {
    StatusOr<Synthesis> made = bfb.Synthesize(request);
    if (made.ok()) made->note = "the rest place ranks pair by pair, too many here";
    if (made.ok()) return made;
  }
  return Portfolio(request).Run();
}

// First as if there were no other ranks. With the others as relays, too, where they can carry anything,
// more than a percent is to be gained and the machine is not too large to be searched.
StatusOr<Synthesis> OfSomeRanks(const SynthesisRequest& request) {
  const Submachine alone = MembersAlone(*request.topology, request.collective->ranks());
  const Collective collective = OnMembersAlone(*request.collective, alone);
  if (!CheckReachable(alone.topology, collective).ok()) return OfAllRanks(request);
  SynthesisRequest smaller = request;
  smaller.topology = &alone.topology;
  smaller.collective = &collective;
  smaller.start = nullptr;
  StatusOr<Synthesis> made = OfAllRanks(smaller);
  if (!made.ok()) return OfAllRanks(request);
  const bool proved = made->exact;
  StatusOr<Synthesis> best = OnWholeMachine(std::move(*made), alone, *request.collective);
  if (!best.ok() || !best->simulation) return OfAllRanks(request);
  if (!CanRelay(*request.topology, request.collective->ranks())) return best;
  best->note += ", both of its ranks alone";
  XCCL_ASSIGN_OR_RETURN(const Bound bound, LowerBound(*request.topology, *request.collective,
                                                      request.size_bytes, request.model, BoundEffort::kFast));
  best->exact = proved && MeetsBound(best->simulation->time_ps, bound);
  const double worth_ps = static_cast<double>(bound.bound_ps) * kNearBound;
  if (request.topology->num_ranks() > kHuge || static_cast<double>(best->simulation->time_ps) <= worth_ps)
    return best;
  StatusOr<Synthesis> relayed = OfAllRanks(request);
  if (!relayed.ok()) return relayed.status().code() == StatusCode::kBug ? relayed : best;
  if (!relayed->simulation || relayed->simulation->time_ps >= best->simulation->time_ps) return best;
  return relayed;
}

Status Serves(const SynthesisRequest& request) { return CheckMembers(kDefaultEngine, request); }

StatusOr<Synthesis> MakePlan(const SynthesisRequest& request) {
  if (request.collective->num_members() < request.topology->num_ranks()) return OfSomeRanks(request);
  return OfAllRanks(request);
}

}  // namespace

Engine AutoEngine() {
  return {.name = kDefaultEngine,
          .summary =
              "tries the engines in order of their estimates, simulates, keeps the fastest; exact where it "
              "meets the bound",
          .exact_on = ExactOn::kMetBound,
          .asks_others = true,
          .serves = Serves,
          .make = MakePlan};
}

}  // namespace xccl
