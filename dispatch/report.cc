#include "dispatch/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "base/units.h"
#include "dispatch/bound.h"
#include "dispatch/domains.h"
#include "dispatch/predict.h"
#include "dispatch/simulate.h"

namespace xccl::dispatch {
namespace {

double QuantileUs(const std::vector<int64_t>& times_ps, double share) {
  return PsToUs(Quantile(times_ps, share));
}

double RatioOf(int64_t time_ps, int64_t bound_ps) {
  return bound_ps == 0 ? 1 : static_cast<double>(time_ps) / static_cast<double>(bound_ps);
}

// The median and the share of 99 % of times, and of their ratios to the bounds.
void AddTimes(Facts& facts, const std::vector<int64_t>& times_ps, const std::vector<int64_t>& bounds_ps) {
  std::vector<double> ratios;
  for (size_t i = 0; i < times_ps.size(); ++i) ratios.push_back(RatioOf(times_ps[i], bounds_ps[i]));
  facts.insert(facts.end(), {{"time_median_us", QuantileUs(times_ps, 0.5)},
                             {"time_p99_us", QuantileUs(times_ps, 0.99)},
                             {"bound_median_us", QuantileUs(bounds_ps, 0.5)},
                             {"ratio_median", Quantile(ratios, 0.5)},
                             {"ratio_p99", Quantile(ratios, 0.99)}});
}

std::vector<int64_t> ColumnOf(const std::vector<DrawTimes>& draws, int64_t DrawTimes::*time) {
  std::vector<int64_t> column;
  for (const DrawTimes& draw : draws) column.push_back(draw.*time);
  return column;
}

}  // namespace

StatusOr<PlanRequest> RequestOf(int32_t ranks, const Asked& asked, const std::string& dashes) {
  PlanRequest request;
  request.call = asked.call;
  request.seed = asked.seed;
  const int64_t experts = asked.experts.value_or(kUsualExperts), top_k = asked.top_k.value_or(kUsualTopK),
                tokens = asked.tokens.value_or(kUsualTokens);
  for (const Status& fits : {CheckSize("experts", experts, kMostExperts, "--experts"),
                             CheckSize("top-k", top_k, kMostTopK, "--top-k"),
                             CheckSize("tokens", tokens, kMostTokens, "--tokens")})
    if (!fits.ok()) return UsageError(fits.message());
  const int64_t row = asked.call == Call::kCombine ? kUsualRowOfCombine : kUsualRowOfDispatch;
  request.sizes = {.ranks = ranks,
                   .experts = static_cast<int32_t>(experts),
                   .top_k = static_cast<int32_t>(top_k),
                   .max_tokens = static_cast<int32_t>(tokens),
                   .row_bytes = asked.row_bytes.value_or(row)};
  if (const Status fits = CheckSizes(request.sizes); !fits.ok())
    return fits.code() == StatusCode::kLimit ? fits : UsageError(fits.message());
  const StatusOr<Aim> aim = ParseAim(asked.aim);
  if (!aim.ok()) return UsageError(dashes + "aim: " + aim.status().message());
  request.aim = *aim;
  StatusOr<RoutingSource> routing = ReadRoutingSource(asked.routing, request.sizes);
  if (!routing.ok()) return routing.status();
  request.routing = *std::move(routing);
  return request;
}

PlanFacts FactsOf(const ExpertPlan& plan, const Evaluation& evaluation) {
  const std::vector<DrawTimes>& draws = evaluation.draws;
  Value busiest;
  if (!evaluation.busiest.empty()) busiest = evaluation.busiest;
  PlanFacts facts{.times = {{"engine", std::string("experts")},
                            {"ranks", int64_t{plan.sizes.ranks}},
                            {"draws", static_cast<int64_t>(draws.size())}},
                  .rest = {{"collective", std::string(ToString(plan.call))},
                           {"topology", plan.topology.name()},
                           {"experts", int64_t{plan.sizes.experts}},
                           {"top_k", int64_t{plan.sizes.top_k}},
                           {"tokens", int64_t{plan.sizes.max_tokens}},
                           {"drawn_tokens", int64_t{plan.sizes.max_tokens / evaluation.copies}},
                           {"row_bytes", plan.sizes.row_bytes},
                           {"aim", std::string(ToString(plan.aim))},
                           {"route", plan.route},
                           {"entry", std::string(ToString(plan.entry))},
                           {"sums", std::string(ToString(plan.sums))},
                           {"lanes", int64_t{plan.lanes}},
                           {"rows_per_message", int64_t{plan.rows_per_message}},
                           {"connections", static_cast<int64_t>(plan.hops.size())},
                           {"buffer_bytes", MostBufferBytes(plan)},
                           {"busiest_link", std::move(busiest)}}};
  AddTimes(facts.times, ColumnOf(draws, &DrawTimes::plan_ps), ColumnOf(draws, &DrawTimes::bound_ps));
  const auto median = [&](int64_t DrawTimes::*time) {
    return evaluation.has_beside ? Value(QuantileUs(ColumnOf(draws, time), 0.5)) : Value();
  };
  facts.times.insert(facts.times.end(), {{"deepep_route_us", median(&DrawTimes::deepep_ps)},
                                         {"pairwise_us", median(&DrawTimes::pairwise_ps)},
                                         {"padded_us", median(&DrawTimes::padded_ps)}});
  return facts;
}

StatusOr<RouteComparison> CompareRoutes(const Topology& topology, const PlanRequest& request, int32_t draws,
                                        const Deadline& deadline) {
  XCCL_ASSIGN_OR_RETURN(const Groundwork ground, Prepare(topology, request, deadline));
  XCCL_ASSIGN_OR_RETURN(PlansOfRoutes made, MakeAllRoutes(ground));
  XCCL_ASSIGN_OR_RETURN(const ExpertPlan direct, DirectPlan(ground));
  XCCL_ASSIGN_OR_RETURN(ExpertPlan deepep, DeepEpPlan(ground));
  RouteComparison comparison;
  for (size_t i = 0; i < made.plans.size(); ++i)
    comparison.routes.push_back(
        {.name = made.plans[i].route, .chosen = i == made.chosen, .plan = std::move(made.plans[i])});
  comparison.routes.push_back({.name = "DeepEP's route", .plan = std::move(deepep)});
  std::vector<HopIndex> indexes;
  std::vector<Predictor> predictors;
  for (const ComparedRoute& route : comparison.routes) {
    indexes.emplace_back(*route.plan);
    predictors.emplace_back(*route.plan, request.call);
  }
  const PairExchange pairs(direct, request.call);
  const Bound bound(topology, ground.domains, request.sizes, request.call);
  ComparedRoute pairwise{.name = "pairwise alltoallv"}, padded{.name = "padded alltoall"};
  if (request.routing.kind == RoutingSource::Kind::kFile) draws = 1;
  Random random(request.seed + 1);  // the draws of Evaluate
  const int64_t most = ChoicesWithin(deadline, kShareOfOneDraw, ChoicesOf(request.sizes));
  for (int32_t i = 0; i < draws && (i == 0 || !deadline.IsOver()); ++i) {
    ground.Say(fmt::format("draw {} of {}", i + 1, draws));
    const Needs draw = DrawNeeds(request, most, random);
    comparison.drawn_tokens = request.sizes.max_tokens / draw.copies;
    comparison.bounds_ps.push_back(bound.TimePs(draw));
    for (size_t r = 0; r < comparison.routes.size(); ++r) {
      ComparedRoute& route = comparison.routes[r];
      route.times_ps.push_back(predictors[r].TimePs(RowsOfHops(*route.plan, indexes[r], draw, request.call)));
    }
    const std::vector<int64_t> of_pairs = RowsOfPairs(draw, request.sizes.ranks);
    pairwise.times_ps.push_back(pairs.PairwisePs(of_pairs));
    padded.times_ps.push_back(pairs.PaddedPs(of_pairs));
  }
  comparison.routes.push_back(std::move(pairwise));
  comparison.routes.push_back(std::move(padded));
  std::ranges::stable_sort(comparison.routes, {}, [](const ComparedRoute& route) {
    return std::pair(Quantile(route.times_ps, 0.5), !route.chosen);
  });
  return comparison;
}

std::vector<Facts> FactsOf(const RouteComparison& comparison, const Topology& topology,
                           const PlanRequest& request) {
  std::vector<Facts> rows;
  for (const ComparedRoute& route : comparison.routes) {
    const std::optional<ExpertPlan>& plan = route.plan;
    Facts& facts = rows.emplace_back(Facts{{"engine", std::string("experts")},
                                           {"route", route.name},
                                           {"chosen", route.chosen},
                                           {"ranks", int64_t{request.sizes.ranks}},
                                           {"draws", static_cast<int64_t>(route.times_ps.size())},
                                           {"drawn_tokens", int64_t{comparison.drawn_tokens}}});
    AddTimes(facts, route.times_ps, comparison.bounds_ps);
    Value sums, connections, buffer_bytes;
    if (plan) {
      sums = std::string(ToString(plan->sums));
      connections = static_cast<int64_t>(plan->hops.size());
      buffer_bytes = MostBufferBytes(*plan);
    }
    facts.insert(facts.end(), {{"sums", std::move(sums)},
                               {"connections", std::move(connections)},
                               {"buffer_bytes", std::move(buffer_bytes)},
                               {"collective", std::string(ToString(request.call))},
                               {"topology", topology.name()}});
  }
  return rows;
}

std::vector<Facts> SimulateDraws(const ExpertPlan& plan, const RoutingSource& source,
                                 const std::string& routing, int32_t draws, const Deadline& deadline) {
  const Bound bound(plan.topology, FindDomains(plan.topology), plan.sizes, plan.call);
  const HopIndex index(plan);
  Predictor predictor(plan, plan.call);
  Random random(0);
  std::vector<Facts> rows;
  for (int32_t draw = 0; draw < draws && (draw == 0 || !deadline.IsOver()); ++draw) {
    const Needs drawn = NeedsOf(DrawRouting(source, plan.sizes, random), plan.sizes);
    const int64_t time_ps = SimulateCall(plan, drawn, plan.call), bound_ps = bound.TimePs(drawn);
    rows.push_back({{"engine", std::string("experts")},
                    {"time_us", PsToUs(time_ps)},
                    {"predicted_us", PsToUs(predictor.TimePs(RowsOfHops(plan, index, drawn, plan.call)))},
                    {"bound_us", PsToUs(bound_ps)},
                    {"ratio", RatioOf(time_ps, bound_ps)},
                    {"collective", std::string(ToString(plan.call))},
                    {"topology", plan.topology.name()},
                    {"routing", routing}});
  }
  return rows;
}

}  // namespace xccl::dispatch
