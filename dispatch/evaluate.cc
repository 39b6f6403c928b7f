// A plan and the routes beside it are timed on the same draws. Under a deadline a draw has so few tokens,
// each of them taken several times, that it fits; the time of one draw tells whether the next one does.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "base/units.h"
#include "dispatch/bound.h"
#include "dispatch/make_plan.h"
#include "dispatch/predict.h"

namespace xccl::dispatch {
namespace {

// Choices of all draws of an evaluation by default: about a second.
constexpr int64_t kMostEvaluated = int64_t{1} << 23;
// Fewer tokens of a rank than these say too little about the rest.
constexpr int64_t kFewestTokens = 64;
// One choice is drawn, counted on three routes and bounded in so many seconds on one core
// (docs/benchmarks.md, Expert dispatch: a draw of 32 ranks with 4,096 tokens and top-8 takes 0.07 s).
constexpr double kSecondsOfChoice = 70e-9;
// The two routes beside a plan take about so long for each pair of ranks.
constexpr double kSecondsOfPair = 10e-6;
// After an interrupt one short draw is timed.
constexpr double kSecondsOfInterruptedDraw = 0.25;

// The routes beside a plan. It stays where it is, since its members refer to its plans.
class Beside {
 public:
  Beside(ExpertPlan deepep, ExpertPlan direct, Call call)
      : call_(call),
        deepep_(std::move(deepep)),
        direct_(std::move(direct)),
        index_(deepep_),
        predictor_(deepep_, call),
        pairs_(direct_, call) {}
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  void Time(const Needs& draw, DrawTimes& times) {
    times.deepep_ps = predictor_.TimePs(RowsOfHops(deepep_, index_, draw, call_));
    const std::vector<int64_t> of_pairs = RowsOfPairs(draw, deepep_.sizes.ranks);
    times.pairwise_ps = pairs_.PairwisePs(of_pairs);
    times.padded_ps = pairs_.PaddedPs(of_pairs);
  }

 private:
  const Call call_;
  const ExpertPlan deepep_, direct_;
  const HopIndex index_;
  Predictor predictor_;
  const PairExchange pairs_;
};

}  // namespace

int64_t ChoicesOf(const Sizes& sizes) { return int64_t{sizes.ranks} * sizes.max_tokens * sizes.top_k; }

int64_t ChoicesWithin(const Deadline& deadline, double share, int64_t otherwise) {
  double seconds = deadline.has_limit() ? share * std::max(0.0, deadline.SecondsLeft())
                                        : std::numeric_limits<double>::infinity();
  if (deadline.IsInterrupted()) seconds = std::min(seconds, kSecondsOfInterruptedDraw);
  return static_cast<int64_t>(std::min(seconds / kSecondsOfChoice, static_cast<double>(otherwise)));
}

double SecondsOfDraws(const Sizes& sizes, int32_t draws) {
  return kSecondsOfChoice * static_cast<double>(ChoicesOf(sizes)) * draws;
}

Needs DrawNeeds(const PlanRequest& request, int64_t most_choices, Random& random) {
  Sizes sizes = request.sizes;
  const int64_t tokens = std::max(most_choices / sizes.ranks / sizes.top_k, kFewestTokens);
  int64_t copies = (sizes.max_tokens + tokens - 1) / tokens;
  if (request.routing.kind == RoutingSource::Kind::kFile) copies = 1;
  sizes.max_tokens /= static_cast<int32_t>(copies);
  Needs needs = NeedsOf(DrawRouting(request.routing, sizes, random), sizes);
  needs.copies = static_cast<int32_t>(copies);
  return needs;
}

template <typename T>
T Quantile(std::vector<T> values, double share) {
  XCCL_CHECK(!values.empty());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  const size_t at = std::min(values.size(), std::max<size_t>(rank, 1)) - 1;
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(at));
  return values[at];
}
template int64_t Quantile(std::vector<int64_t> values, double share);
template double Quantile(std::vector<double> values, double share);

StatusOr<Evaluation> Evaluate(const ExpertPlan& plan, const Groundwork& ground, int32_t draws,
                              const Deadline& deadline) {
  const PlanRequest& request = ground.request;
  Evaluation evaluation;
  evaluation.has_beside = deadline.SecondsLeft() > kSecondsOfPair * request.sizes.ranks * request.sizes.ranks;
  std::optional<Beside> beside;
  if (evaluation.has_beside) {
    ground.Say("routes beside the plan");
    XCCL_ASSIGN_OR_RETURN(ExpertPlan deepep, DeepEpPlan(ground));
    XCCL_ASSIGN_OR_RETURN(ExpertPlan direct, DirectPlan(ground));
    beside.emplace(std::move(deepep), std::move(direct), request.call);
  }
  ground.Say("bound");
  const Bound bound(ground.topology, ground.domains, request.sizes, request.call);
  const HopIndex index(plan);
  Predictor own(plan, request.call);
  if (request.routing.kind == RoutingSource::Kind::kFile) draws = 1;
  Random random(request.seed + 1);  // other draws than those that chose the plan
  const int64_t most = ChoicesWithin(deadline, kShareOfOneDraw, ChoicesOf(request.sizes));
  double took_s = 0;
  for (int32_t i = 0; i < draws; ++i) {
    if (i > 0 && (deadline.IsOver() || deadline.SecondsLeft() < took_s)) break;
    ground.Say(fmt::format("draw {} of {}", i + 1, draws));
    const auto began = std::chrono::steady_clock::now();
    const Needs draw = DrawNeeds(request, most, random);
    evaluation.copies = draw.copies;
    DrawTimes& times = evaluation.draws.emplace_back();
    times.plan_ps = own.TimePs(RowsOfHops(plan, index, draw, request.call));
    times.bound_ps = bound.TimePs(draw);
    if (beside) beside->Time(draw, times);
    took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  if (const auto ps = static_cast<double>(evaluation.draws.front().bound_ps); ps > kPsPerDay)
    return InvalidInput(fmt::format("{}: {} takes {:.1f} days at least; times of up to 1 day are supported",
                                    ground.topology.name(), ToString(request.call), ps / kPsPerDay));
  if (own.busiest()) evaluation.busiest = ground.topology.LinkName(*own.busiest());
  return evaluation;
}

int32_t DefaultDraws(const Sizes& sizes) {
  return static_cast<int32_t>(std::clamp<int64_t>(kMostEvaluated / ChoicesOf(sizes), 3, 1000));
}

}  // namespace xccl::dispatch
