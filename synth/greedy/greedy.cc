// Makes candidate schedules, simulates each of them, and keeps the fastest.
// 1. Each part is cut into 1, 2, 4, ... chunks while work is left (TryCuts).
// 2. TryCut splits the collective into at most two copy problems: gather (sums) and spread (whole values).
// 3. Floods and trees solve each problem, for several sizes of the largest message (TryMethods).
// 4. The gather is played backwards as sums, and the spread follows it (TryMethod).
// 5. The simulator times the candidate (Consider).
// If the request has a start plan, local search improves that plan unless it has both a gather and a spread,
// and new searches use its chunks (TryStart). The first candidate is completed even if it takes all work.
#include "synth/greedy/greedy.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "base/units.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "ir/translated.h"
#include "synth/common/compose.h"
#include "synth/common/cost_model.h"
#include "synth/common/phases.h"
#include "synth/common/rank_graph.h"
#include "synth/common/reverse.h"
#include "synth/common/step_limit.h"
#include "synth/greedy/improve.h"
#include "synth/greedy/search.h"

namespace xccl {
namespace {

using greedy::SearchOptions;
using greedy::SearchResult;
using Method = decltype(greedy::FindFlood);

constexpr std::string_view kName = "greedy";
// The work of a search is the number of table words and links that it looks at. The default takes about 0.1
// s. It costs auto kManyTransfers moves, which take four times as long in other engines, so that searches do
// not use up auto's time.
constexpr int64_t kDefaultWork = 12'000'000;
constexpr int64_t kWorkPerMove = 60;  // estimated work of a candidate for each transfer of one of its chunks
// The work of an offer for each transfer of one chunk, in moves (synth/common/cost_model.h). Above 1, because
// a search takes longer than writing down and simulating the transfers that it finds.
constexpr int64_t kSearchPerMove = 3;
// A flood gives up after this multiple of the work left, or of its transfers' estimated work if that is
// larger. Its ranks are then searching a large fabric in vain.
constexpr int64_t kMostOfARun = 4;
// Up to this number of members, the estimate of work ignores distances. Above it, MeanDistance starts from at
// most this number of members.
constexpr int32_t kFewRanks = 64;
// Values of depth_weight for trees (trees.h): the first favours low link load, the second low latency.
constexpr double kDepthWeights[] = {0.4, 1};
// The most chunks a part, unless the request gives their number or there are more members.
constexpr int32_t kMostChunks = 512;

// Estimates the number of transfers of one chunk each: for every chunk, the ranks that hold it afterwards
// and, for sums, before. All chunks of a predefined collective have equally many transfers, so one chunk is
// counted.
int64_t MovesOf(const Collective& collective) {
  const int64_t chunks = collective.num_chunks();
  const int64_t alike = collective.kind() == CollectiveKind::kCustom ? 1 : chunks;
  std::vector<Holding> holdings;
  int64_t moves = 0;
  for (int64_t c = 0; c < chunks; c += alike) {
    collective.After(ChunkId(c), holdings);
    moves += static_cast<int64_t>(holdings.size());
    if (!collective.Reduces()) continue;
    collective.Before(ChunkId(c), holdings);
    moves += static_cast<int64_t>(holdings.size());
  }
  return std::max<int64_t>(moves * alike, 1);
}

// Returns the least number of chunks a part. If all members need the sums of one part, every member then
// makes the sum of one chunk.
int64_t ChunksInTurn(const Collective& collective) {
  const bool in_turn =
      collective.num_parts() == 1 && collective.Reduces() && collective.kind() != CollectiveKind::kReduce;
  return in_turn ? collective.num_members() : 1;
}

class CandidateSearch {
 public:
  explicit CandidateSearch(const SynthesisRequest& request)
      : request_(request),
        topology_(*request.topology),
        reversed_(request.collective->Reduces() ? ReverseTopology(topology_) : topology_),
        left_(request.limits.work_units > 0 ? request.limits.work_units : kDefaultWork),
        deadline_(request.limits.deadline),
        budget_(kName, request) {}

  StatusOr<Synthesis> Run() {
    XCCL_ASSIGN_OR_RETURN(bound_, BoundOf(request_));
    XCCL_RETURN_IF_ERROR(request_.start ? TryStart(*request_.start) : TryAllCuts());
    if (best_) {
      best_->exact = MeetsBound(best_ps_, bound_);
      return *std::move(best_);
    }
    if (budget_.HasRefused()) return budget_.Refusal();
    return BugError("greedy: no candidate delivers everything although all ranks are reachable");
  }

 private:
  // Considers the start plan itself, the plan after local search, and new searches with the plan's chunks.
  Status TryStart(const Synthesis& start) {
    XCCL_ASSIGN_OR_RETURN(const Schedule plain, Expand(start.schedule, start.collective, topology_));
    Consider(start.collective, plain);
    XCCL_ASSIGN_OR_RETURN(const Phases phases, MakePhases(topology_, reversed_, start.collective,
                                                          request_.size_bytes, request_.model, SumAt::kEach));
    const greedy::ImproveOptions improve{
        .seed = request_.seed, .goal_ps = bound_.bound_ps, .work = left_ / 2};
    if (phases.has_gather != phases.has_spread) {
      // A sum is a copy on the reversed machine, played backwards.
      const bool sums = phases.has_gather;
      std::optional<Schedule> better = greedy::ImproveSchedule(
          sums ? phases.gather : phases.spread,
          sums ? Reverse(plain, reversed_, start.collective, TransferOp::kCopy) : plain, improve);
      if (better && sums) better = Reverse(*better, topology_, start.collective, TransferOp::kReduce);
      if (better) Consider(start.collective, *std::move(better));
    }
    left_ /= 4;
    // A search that has begun may take more work than is left, so it begins only if enough work is left.
    const bool fits = MovesOf(start.collective) * kWorkPerMove <= left_;
    if (fits && (phases.has_gather || phases.has_spread)) TryMethods(start.collective, phases);
    return OkStatus();
  }

  Status TryAllCuts() {
    const bool sums_everywhere =
        IsAllreduce(request_.collective->kind()) || request_.collective->kind() == CollectiveKind::kCustom;
    if (request_.collective->Reduces() && sums_everywhere) XCCL_RETURN_IF_ERROR(TryCuts(SumAt::kCenter));
    return TryCuts(SumAt::kEach);
  }

  // Tries 1, 2, 4, ... chunks a part while work is left. If members share the sums of a part, the number of
  // chunks is multiplied by the number of members.
  Status TryCuts(SumAt sum_at) {
    if (request_.limits.chunks) return TryCut(*request_.limits.chunks, sum_at);
    const int64_t unit = sum_at == SumAt::kEach ? ChunksInTurn(*request_.collective) : 1;
    const int64_t moves = MovesOf(*request_.collective) * unit;
    const int64_t share = sum_at == SumAt::kCenter ? left_ / 3 : left_;
    const int64_t floor = left_ - share;
    for (int64_t cut = 1; cut * unit <= std::max<int64_t>(kMostChunks, unit); cut *= 2) {
      if (cut > 1 && (deadline_() || moves * cut * kWorkPerMove > left_ - floor)) break;
      XCCL_RETURN_IF_ERROR(TryCut(static_cast<int32_t>(cut * unit), sum_at));
      if (best_ && best_ps_ <= bound_.bound_ps + bound_.bound_ps / 256) break;
    }
    return OkStatus();
  }

  Status TryCut(int32_t chunks, SumAt sum_at) {
    Collective collective = request_.collective->WithChunks(chunks);
    XCCL_ASSIGN_OR_RETURN(const Phases phases, MakePhases(topology_, reversed_, collective,
                                                          request_.size_bytes, request_.model, sum_at));
    if (phases.has_gather || phases.has_spread) {
      TryMethods(collective, phases);
    } else {
      best_ = NothingToMove(kName, request_);
      best_ps_ = 0;
    }
    return OkStatus();
  }

  void TryMethods(const Collective& collective, const Phases& phases) {
    const bool floods = (!phases.has_gather || greedy::Floods(phases.gather)) &&
                        (!phases.has_spread || greedy::Floods(phases.spread));
    const std::vector<int64_t> batches = Batches(phases.spread);
    const int64_t cost = static_cast<int64_t>(collective.num_chunks()) * topology_.num_links() * 10;
    // Chunks with one needer take paths, and depth_weight does not change a path. An allreduce spends its
    // work on floods. In both cases one weight is enough.
    const bool one_kind =
        (phases.has_gather && phases.has_spread) || MovesOf(collective) == collective.num_chunks();
    const std::span<const double> weights = std::span(kDepthWeights).first(one_kind ? 1 : 2);
    const int64_t run_work = kMostOfARun * std::max(left_, kWorkPerMove * MovesOf(collective));
    bool found = false;
    for (int64_t batch_bytes : batches) {
      if (found && (left_ <= 0 || deadline_())) break;
      if (floods) found |= TryMethod(collective, phases, greedy::FindFlood, batch_bytes, 0, run_work);
      for (const double depth_weight : weights) {
        if (found && (tight_ || cost > left_ || deadline_() || MeetsBound(best_ps_, bound_))) break;
        found |= TryMethod(collective, phases, greedy::FindTrees, batch_bytes, depth_weight);
      }
    }
  }

  // Returns the limits on the bytes of a message that are worth trying. The first is 0, which means one chunk
  // a message. Limits for several chunks follow if a link's fixed time for each message matters.
  std::vector<int64_t> Batches(const CopyProblem& problem) const {
    std::vector<int64_t> batches = {0};
    int64_t largest = 0, fixed_bytes = 0;
    for (int64_t bytes : problem.bytes) largest = std::max(largest, bytes);
    for (const LinkCost& cost : LinkCosts(topology_, request_.model))
      fixed_bytes = std::max(fixed_bytes, static_cast<int64_t>(static_cast<double>(cost.fixed_ps) *
                                                               static_cast<double>(cost.bytes_per_s) / 1e12));
    if (problem.chunks < 2 || 50 * fixed_bytes < largest || fixed_bytes == 0) return batches;
    for (int64_t factor : {int64_t{1} << 20, int64_t{16}, int64_t{4}, int64_t{1}})
      if (factor * fixed_bytes >= 2 * largest) batches.push_back(std::max<int64_t>(1, factor * fixed_bytes));
    return batches;
  }

  bool TryMethod(const Collective& collective, const Phases& phases, Method& find, int64_t batch_bytes,
                 double depth_weight = 0, int64_t run_work = INT64_MAX) {
    const bool both = phases.has_gather && phases.has_spread;
    SearchOptions options{
        .seed = request_.seed,
        .depth_weight = depth_weight,
        .batch_bytes = batch_bytes,
        .work = std::max<int64_t>(0, left_ / (both                     ? 12
                                              : request_.limits.chunks ? 2
                                                                       : 6)),
        .run_work = run_work,
        .one_round = !request_.limits.chunks && request_.model == TimeModel::kBlocking,
        .improve_work = request_.limits.chunks && !both ? 2 * std::max<int64_t>(0, left_) : 0,
        .stopped = deadline_};
    std::optional<SearchResult> gather, spread;
    const auto search = [&](const CopyProblem& problem, std::optional<SearchResult>& result) {
      int64_t work = 0;
      result = find(problem, options, work);
      left_ -= work;
      return result.has_value();
    };
    if (phases.has_gather && !search(phases.gather, gather)) return false;
    if (phases.has_spread && !search(phases.spread, spread)) return false;
    tight_ = (!gather || gather->tight) && (!spread || spread->tight);
    Schedule schedule;
    if (gather) {
      Normalize(gather->copies);
      schedule = Reverse(gather->copies, topology_, collective, TransferOp::kReduce);
    }
    if (spread) {
      Normalize(spread->copies);
      schedule = gather ? Compose(schedule, spread->copies) : std::move(spread->copies);
    }
    Consider(collective, std::move(schedule));
    return true;
  }

  void Consider(const Collective& collective, Schedule schedule) {
    if (!budget_.Allows(schedule.num_steps())) return;
    left_ -= 30 * schedule.size();
    // The first candidate is not simulated if no work is left. If another follows, that one is taken instead.
    const bool alone = !best_ && left_ <= 0;
    const int64_t time_ps =
        alone ? INT64_MAX - 1 : Simulate(schedule, collective, topology_, TimingOf(request_)).time_ps;
    if (best_ && time_ps >= best_ps_) return;
    best_ps_ = time_ps;
    best_ = Synthesis{.collective = collective,
                      .schedule = std::move(schedule),
                      .exact = false,
                      .engine = std::string(kName),
                      .note = {}};
  }

  const SynthesisRequest& request_;
  const Topology& topology_;
  const Topology reversed_;
  int64_t left_;
  const Deadline deadline_;
  Bound bound_;
  int64_t best_ps_ = INT64_MAX;
  std::optional<Synthesis> best_;
  bool tight_ = false;  // SearchResult::tight of the last method
  StepBudget budget_;
};

Status Serves(const SynthesisRequest& request) {
  const Collective& collective = *request.collective;
  if (request.limits.chunks && *request.limits.chunks < 1)
    return InvalidInput(fmt::format("greedy: {} chunks a part; expected at least 1", *request.limits.chunks));
  if (request.limits.chunks &&
      static_cast<int64_t>(*request.limits.chunks) * collective.num_parts() > int64_t{1} << 28)
    return InvalidInput(
        fmt::format("greedy: {} chunks a part of {} parts; expected at most 2^28 chunks in all",
                    *request.limits.chunks, collective.num_parts()));
  if (collective.kind() != CollectiveKind::kCustom) return OkStatus();
  return MakePhases(*request.topology, *request.topology, collective, request.size_bytes, request.model,
                    SumAt::kEach)
      .status();
}

// Returns the mean number of hops from some of the members to all members.
double MeanDistance(const RankGraph& graph, std::span<const Rank> members) {
  int64_t hops = 0, pairs = 0;
  for (size_t i = 0; i < members.size(); i += 1 + members.size() / kFewRanks)
    for (const Rank r : members) {
      hops += graph.Distance(members[i], r).value_or(0);
      ++pairs;
    }
  return static_cast<double>(hops) / static_cast<double>(pairs);
}

// Estimates the work of the request in moves (synth/common/cost_model.h). On large machines the work grows
// with the neighbours of a rank, because a search looks at all of them. It also grows with distances if every
// part goes to one rank, because a part then moves hop by hop.
int64_t WorkOf(const SynthesisRequest& request) {
  const Collective& collective = *request.collective;
  const int64_t moves =
      kSearchPerMove * request.limits.chunks.value_or(1) * ChunksInTurn(collective) * MovesOf(collective);
  if (collective.num_members() <= kFewRanks) return moves;
  std::optional<RankGraph> own;
  if (!request.graphs) own.emplace(*request.topology);
  const RankGraph& graph = own ? *own : request.graphs->forward();
  const int64_t neighbours = graph.num_hops() / graph.num_ranks();
  const int64_t density = std::max<int64_t>(1, neighbours / kOperationsPerMove);
  const double hops =
      MovesOf(collective) == collective.num_parts() ? MeanDistance(graph, collective.ranks()) : 1;
  return static_cast<int64_t>(static_cast<double>(moves * density) * std::max(1.0, hops));
}

// Offers a plan at the lower bound, because no formula predicts the time of a plan that a search finds.
StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  return Offer{.time_ps = static_cast<double>(bound.bound_ps),
               .work = WorkOf(request),
               .fills_budget = true,
               .make = [&request](int64_t most_work) {
                 SynthesisRequest searching = request;
                 searching.limits.work_units = kDefaultWork / kManyTransfers * most_work;
                 return CandidateSearch(searching).Run();
               }};
}

}  // namespace

Engine GreedyEngine() {
  return {.name = kName,
          .summary = "time-expanded matching of links and chunks, any collective on any topology; not exact",
          .exact_on = ExactOn::kMetBound,
          .is_witness = true,
          .starts_from_plan = true,
          .asks_pairs = true,
          .serves = Serves,
          .offer = OfferOf,
          .make = [](const SynthesisRequest& request) { return CandidateSearch(request).Run(); }};
}

}  // namespace xccl
