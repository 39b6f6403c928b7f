// Every way of making trees is tried: its trees are planted, its hops listed, the rows of a few drawn
// routings counted on them, their paths spread over equal ones by those counts, and the time of each draw
// predicted. The median decides. A large machine's choice is made on a share of the tokens.
#include "dispatch/make_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "base/units.h"
#include "dispatch/bound.h"
#include "dispatch/predict.h"
#include "dispatch/trees.h"

namespace xccl::dispatch {
namespace {

// Messages of one threadblock's bytes in flight (ir/machine_model.h, kBlockBytesInFlight) keep a link as busy
// as larger ones.
constexpr int64_t kMessageBytes = 64 << 10;
// Tokens × ranks × top_k on which a way is chosen: about a tenth of a second on one core.
constexpr int64_t kMostChoices = int64_t{1} << 21;
constexpr int64_t kMostChoosingDraws = 16;
// Choices of all draws of an evaluation by default: about a second.
constexpr int64_t kMostEvaluated = int64_t{1} << 23;
// Lanes × ranks² of trees that spread rows over lanes.
constexpr int64_t kMostBranches = int64_t{1} << 22;
constexpr int32_t kMostLanes = 8;
// A way must be this much faster than one with less traffic to relays.
constexpr double kWorthRelaying = 0.99;
// Hops of a plan with Entry::kNeeded at most: each rank to each, twice.
constexpr int32_t kMostRanksNeeded = 512;
constexpr std::string_view kDirect = "direct";

struct Counted {
  std::vector<int32_t> trees;  // by (lane, stage, from, to): trees with this branch
  size_t stages;
};

// How many trees of each lane use each branch, at each depth of its sender.
Counted CountBranches(const ExpertPlan& plan) {
  const auto ranks = static_cast<size_t>(plan.sizes.ranks);
  Counted counted{.trees = {}, .stages = plan.stage_of_depth.size()};
  counted.trees.resize(plan.lanes * counted.stages * ranks * ranks);
  std::vector<int32_t> depth(ranks), way;
  for (int32_t lane = 0; lane < plan.lanes; ++lane)
    for (int32_t home = 0; home < plan.sizes.ranks; ++home) {
      const std::span<const int32_t> tree = plan.TreeOf(lane, home);
      const auto add = [&](int32_t from, int32_t to, int32_t at) {
        ++counted.trees[((lane * counted.stages + at) * ranks + from) * ranks + to];
      };
      std::ranges::fill(depth, -1);
      depth[home] = 0;
      for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank) {
        way.clear();
        int32_t at = rank;
        for (; depth[at] < 0; at = tree[at]) way.push_back(at);
        for (; !way.empty(); way.pop_back()) {
          depth[way.back()] = depth[at] + 1;
          at = way.back();
        }
      }
      for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank) {
        const bool elsewhere = plan.entry == Entry::kNeeded && plan.domains[rank] != plan.domains[home];
        if (rank != home && !elsewhere) add(tree[rank], rank, depth[rank] - 1);
      }
      if (plan.entry == Entry::kFixed) continue;
      for (int32_t entry = 0; entry < plan.sizes.ranks; ++entry) {
        if (plan.domains[tree[entry]] == plan.domains[entry]) continue;
        for (int32_t to = 0; to < plan.sizes.ranks; ++to) {
          if (plan.domains[to] != plan.domains[entry]) continue;
          add(tree[entry], to, depth[entry] - 1);
          for (int32_t from = 0; from < plan.sizes.ranks; ++from)
            if (from != to && plan.domains[from] == plan.domains[to]) add(from, to, depth[entry]);
        }
      }
    }
  return counted;
}

// Lists the plan's hops. Returns, by hop, the number of trees that use it.
std::vector<int32_t> ListHops(ExpertPlan& plan) {
  const Counted counted = CountBranches(plan);
  const auto ranks = static_cast<size_t>(plan.sizes.ranks);
  std::vector<int32_t> trees;
  for (size_t i = 0; i < counted.trees.size(); ++i) {
    if (counted.trees[i] == 0) continue;
    const size_t stage = i / ranks / ranks;
    plan.hops.push_back({.lane = static_cast<int32_t>(stage / counted.stages),
                         .stage = static_cast<int32_t>(stage % counted.stages),
                         .from = Rank(static_cast<int64_t>(i / ranks % ranks)),
                         .to = Rank(static_cast<int64_t>(i % ranks))});
    trees.push_back(counted.trees[i]);
  }
  return trees;
}

// trees: by hop, the number of trees that use it.
void SetSlots(ExpertPlan& plan, const std::vector<int32_t>& trees) {
  const int64_t bytes = plan.sizes.row_bytes + HeaderBytes(plan.sizes, Call::kDispatch);
  for (size_t h = 0; h < plan.hops.size(); ++h) {
    Hop& hop = plan.hops[h];
    // Without partial sums the rows of all ranks that a token needs may come back over one hop.
    const int64_t each = plan.sums == Sums::kHome ? std::min(plan.sizes.top_k, plan.sizes.ranks) : 1;
    const int64_t rows = int64_t{trees[h]} * MostTokensOfLane(plan, hop.lane) * each;
    const int64_t all = (rows + plan.rows_per_message - 1) / plan.rows_per_message;
    int64_t slots = all;
    if (plan.aim == Aim::kThroughput) {
      // A slot is free again after the message's way, its time on the slowest link and the answer's way.
      int64_t latency = 0, slowest = kMaxBandwidthBytesPerS;
      for (const std::vector<LinkId>* links : {&hop.links, &hop.back})
        for (const LinkId l : *links)
          latency += plan.topology.link(l).latency_ps + plan.topology.link(l).overhead_ps;
      for (const LinkId l : hop.links)
        slowest = std::min(slowest, plan.topology.link(l).bandwidth_bytes_per_s);
      const int64_t message = TransferPs(bytes * plan.rows_per_message, slowest);
      slots = std::min(all, 2 + (latency + message - 1) / message);
    }
    hop.slots = static_cast<int32_t>(std::clamp<int64_t>(slots, 1, int64_t{1} << 30));
  }
}

// The links of a path the other way around; empty where one of them has no twin of its rate.
std::vector<LinkId> BackOf(const Topology& topology, const std::vector<LinkId>& links) {
  std::vector<LinkId> back;
  for (size_t i = links.size(); i-- > 0;) {
    const Link& link = topology.link(links[i]);
    // A cable's two directions stand side by side.
    std::optional<LinkId> twin;
    for (const LinkId l : topology.Out(link.to)) {
      const Link& other = topology.link(l);
      if (other.to != link.from || other.bandwidth_bytes_per_s != link.bandwidth_bytes_per_s) continue;
      if (!twin || std::abs(l.value - links[i].value) < std::abs(twin->value - links[i].value)) twin = l;
    }
    if (!twin) return {};
    back.push_back(*twin);
  }
  return back;
}

// By (lane, sender, receiver) of a hop into another domain: the rank that the sender's trees enter it by.
// Rows that enter by need take that rank's NIC, so that NICs are as full as the ranks that send are, however
// the needed ranks are spread. Empty where rows enter as the trees say.
std::vector<int32_t> EntriesOfHops(const ExpertPlan& plan) {
  const auto ranks = static_cast<size_t>(plan.sizes.ranks);
  std::vector<int32_t> entries(plan.lanes * ranks * ranks, -1);
  for (int32_t lane = 0; lane < plan.lanes; ++lane)
    for (int32_t home = 0; home < plan.sizes.ranks; ++home) {
      const std::span<const int32_t> tree = plan.TreeOf(lane, home);
      for (int32_t entry = 0; entry < plan.sizes.ranks; ++entry)
        for (int32_t to = 0; to < plan.sizes.ranks; ++to)
          if (plan.domains[tree[entry]] != plan.domains[entry] && plan.domains[to] == plan.domains[entry])
            entries[(lane * ranks + tree[entry]) * ranks + to] = entry;
    }
  return entries;
}

// Gives every hop its paths; rows: those that the draws send over it.
void LayPaths(ExpertPlan& plan, Paths& paths, bool by_nic, const std::vector<int64_t>& rows) {
  const auto ranks = static_cast<size_t>(plan.sizes.ranks);
  const std::vector<int32_t> entries = by_nic ? EntriesOfHops(plan) : std::vector<int32_t>();
  // Paths are searched from one end at a time.
  const auto by_end = [&](Rank Hop::*end) {
    std::vector<size_t> order(plan.hops.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](size_t h) { return plan.hops[h].*end; });
    return order;
  };
  for (const size_t h : by_end(&Hop::from)) {
    Hop& hop = plan.hops[h];
    const int64_t bytes = (rows[h] + 1) * plan.sizes.row_bytes;
    const int32_t by =
        entries.empty() ? -1 : entries[(hop.lane * ranks + hop.from.index()) * ranks + hop.to.index()];
    hop.links = by < 0 ? paths.Take(hop.from.value, hop.to.value, bytes)
                       : paths.TakeByNicOf(by, hop.from.value, hop.to.value, bytes);
  }
  for (const size_t h : by_end(&Hop::to)) {
    Hop& hop = plan.hops[h];
    hop.back = BackOf(plan.topology, hop.links);
    if (hop.back.empty())
      hop.back = paths.Take(hop.to.value, hop.from.value, (rows[h] + 1) * plan.sizes.row_bytes);
  }
}

int32_t RowsPerMessage(const PlanRequest& request) {
  if (request.aim == Aim::kLatency) return 1;
  return static_cast<int32_t>(std::max<int64_t>(1, kMessageBytes / request.sizes.row_bytes));
}

std::vector<Route> RoutesToTry(const Groundwork& ground) {
  const Domains& domains = ground.domains;
  const Route direct{.name = std::string(kDirect), .way = Way::kDirect};
  if (domains.size() == 1) return {direct};
  std::vector<Route> routes = {direct,
                               {.name = "rail", .way = Way::kRail},
                               {.name = "same-index", .way = Way::kSameIndex},
                               {.name = "home-rail", .way = Way::kHomeRail}};
  const auto ranks = static_cast<int64_t>(domains.of_rank.size());
  size_t largest = 0, smallest = domains.of_rank.size();
  for (const std::vector<int32_t>& members : domains.members) {
    largest = std::max(largest, members.size());
    smallest = std::min(smallest, members.size());
  }
  if (largest == 1) return {direct};
  if (ranks <= kMostRanksNeeded)
    routes.insert(routes.begin() + 1,
                  {{.name = "needed", .way = Way::kRail, .entry = Entry::kNeeded},
                   {.name = "needed-by-nic", .way = Way::kRail, .entry = Entry::kNeeded, .by_nic = true}});
  // Lanes are for ranks with different numbers of tokens; drawn ranks have equal ones.
  if (ground.request.routing.kind == RoutingSource::Kind::kFile && smallest > 1)
    routes.push_back({.name = "spread",
                      .way = Way::kSpread,
                      .lanes = static_cast<int32_t>(std::clamp<int64_t>(
                          kMostBranches / (ranks * ranks), 2, std::min<int64_t>(kMostLanes, smallest)))});
  return routes;
}

// Entry::kNeeded promises that rows enter every domain straight from the home's, and that paths join its
// ranks.
bool MayEnterByNeed(const ExpertPlan& plan, const Paths& paths) {
  for (int32_t home = 0; home < plan.sizes.ranks; ++home) {
    const std::span<const int32_t> tree = plan.TreeOf(0, home);
    for (int32_t entry = 0; entry < plan.sizes.ranks; ++entry) {
      const int32_t before = tree[entry];
      if (plan.domains[before] == plan.domains[entry]) continue;
      if (plan.domains[before] != plan.domains[home]) return false;
      for (int32_t to = 0; to < plan.sizes.ranks; ++to)
        if (plan.domains[to] == plan.domains[entry] && (!paths.Joins(before, to) || !paths.Joins(entry, to)))
          return false;
    }
  }
  return true;
}

// Plants the trees of a route. Absent where the route does not fit the machine.
StatusOr<std::optional<ExpertPlan>> Plant(const Groundwork& ground, const Route& route) {
  XCCL_ASSIGN_OR_RETURN(ExpertPlan plan, PlantTrees(ground.topology, ground.domains, ground.paths,
                                                    ground.request.sizes, route));
  if (plan.entry == Entry::kNeeded && !MayEnterByNeed(plan, ground.paths)) return std::optional<ExpertPlan>();
  plan.call = ground.request.call;
  plan.aim = ground.request.aim;
  plan.rows_per_message = RowsPerMessage(ground.request);
  return std::optional(std::move(plan));
}

// Where no path leads straight to all ranks, two routes may have the same trees, and so the same plan.
bool SameTrees(const ExpertPlan& a, const ExpertPlan& b) {
  return a.entry == Entry::kFixed && b.entry == Entry::kFixed && a.parents == b.parents;
}

struct Tried {
  ExpertPlan plan;
  std::vector<int32_t> trees;  // by hop
  int64_t time_ps;
};

// Lists the hops of a planted plan, counts their rows, lays paths and times.
Tried Try(const Groundwork& ground, const Route& route, ExpertPlan plan) {
  const Call call = ground.request.call;
  std::vector<int32_t> trees = ListHops(plan);
  const HopIndex index(plan);
  // Paths that fit one draw are timed on others.
  Paths spread = ground.paths;
  LayPaths(plan, spread, route.by_nic, RowsOfHops(plan, index, ground.draws.front(), call));
  Predictor predictor(plan, call);
  std::vector<int64_t> times;
  for (size_t i = ground.draws.size() > 1 ? 1 : 0; i < ground.draws.size(); ++i)
    times.push_back(predictor.TimePs(RowsOfHops(plan, index, ground.draws[i], call)));
  const int64_t time = Quantile(times, 0.5);
  return {std::move(plan), std::move(trees), time};
}

bool IsWorthMore(const Tried& next, const Tried& best) {
  return static_cast<double>(next.time_ps) < static_cast<double>(best.time_ps) * kWorthRelaying;
}

// The draws on which ways are compared: those of fewer tokens on a large machine.
std::vector<Needs> DrawsToChoose(const PlanRequest& request) {
  Sizes sizes = request.sizes;
  const int64_t most = kMostChoices / sizes.ranks / sizes.top_k;
  sizes.max_tokens = static_cast<int32_t>(std::min<int64_t>(sizes.max_tokens, std::max<int64_t>(most, 64)));
  Random random(request.seed);
  std::vector<Needs> draws;
  const bool is_file = request.routing.kind == RoutingSource::Kind::kFile;
  const int64_t choices = int64_t{sizes.ranks} * sizes.max_tokens * sizes.top_k;
  const int64_t count = std::clamp<int64_t>(4 * kMostChoices / choices, 4, kMostChoosingDraws);
  for (int64_t i = 0; i < (is_file ? 1 : count); ++i)
    draws.push_back(NeedsOf(DrawRouting(request.routing, sizes, random), sizes));
  return draws;
}

// Sums at home round once; sums on the way may carry fewer rows.
void ChooseSums(ExpertPlan& plan, const Needs& draw) {
  const HopIndex index(plan);
  Predictor predictor(plan, Call::kCombine);
  plan.sums = Sums::kHome;
  const int64_t at_home = predictor.TimePs(RowsOfHops(plan, index, draw, Call::kCombine));
  plan.sums = Sums::kOnWay;
  const int64_t on_way = predictor.TimePs(RowsOfHops(plan, index, draw, Call::kCombine));
  if (static_cast<double>(at_home) * kWorthRelaying <= static_cast<double>(on_way)) plan.sums = Sums::kHome;
}

ExpertPlan Finished(const Groundwork& ground, Tried tried) {
  ChooseSums(tried.plan, ground.draws.front());
  SetSlots(tried.plan, tried.trees);
  return std::move(tried.plan);
}

// The plan of one route, with sums on the way.
StatusOr<ExpertPlan> PlanOfRoute(const Groundwork& ground, const Route& route) {
  XCCL_ASSIGN_OR_RETURN(std::optional<ExpertPlan> planted, Plant(ground, route));
  XCCL_CHECK(planted.has_value());  // only Entry::kNeeded may not fit
  Tried tried = Try(ground, route, *std::move(planted));
  SetSlots(tried.plan, tried.trees);
  return std::move(tried.plan);
}

}  // namespace

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

StatusOr<Groundwork> Prepare(const Topology& topology, const PlanRequest& request) {
  if (topology.num_ranks() != request.sizes.ranks)
    return BugError("an expert plan's ranks are not those of its machine");
  XCCL_RETURN_IF_ERROR(CheckSizes(request.sizes));
  return Groundwork{.topology = topology,
                    .request = request,
                    .domains = FindDomains(topology),
                    .paths = Paths(topology, RowsPerMessage(request) * request.sizes.row_bytes),
                    .draws = DrawsToChoose(request)};
}

StatusOr<ExpertPlan> MakeExpertPlan(const Groundwork& ground, const Deadline& deadline) {
  std::optional<Tried> best;
  const double began_with_s = deadline.SecondsLeft();
  for (const Route& route : RoutesToTry(ground)) {
    if (best && deadline.SecondsLeft() < began_with_s / 2) break;
    XCCL_ASSIGN_OR_RETURN(std::optional<ExpertPlan> planted, Plant(ground, route));
    if (!planted) continue;
    if (best && SameTrees(best->plan, *planted)) {
      if (best->plan.route == kDirect) best->plan.route = route.name;
      continue;
    }
    Tried tried = Try(ground, route, *std::move(planted));
    if (!best || IsWorthMore(tried, *best)) best = std::move(tried);
  }
  return Finished(ground, *std::move(best));
}

StatusOr<ExpertPlan> MakeExpertPlan(const Topology& topology, const PlanRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Groundwork ground, Prepare(topology, request));
  return MakeExpertPlan(ground);
}

StatusOr<PlansOfRoutes> MakeAllRoutes(const Groundwork& ground) {
  std::vector<Tried> all;
  size_t chosen = 0;
  for (const Route& route : RoutesToTry(ground)) {
    XCCL_ASSIGN_OR_RETURN(std::optional<ExpertPlan> planted, Plant(ground, route));
    if (!planted) continue;
    all.push_back(Try(ground, route, *std::move(planted)));
    const Tried &best = all[chosen], &next = all.back();
    if (SameTrees(best.plan, next.plan) ? best.plan.route == kDirect : IsWorthMore(next, best))
      chosen = all.size() - 1;
  }
  PlansOfRoutes made{.plans = {}, .chosen = chosen};
  for (Tried& tried : all) made.plans.push_back(Finished(ground, std::move(tried)));
  return made;
}

StatusOr<ExpertPlan> DeepEpPlan(const Groundwork& ground) {
  return PlanOfRoute(ground, {.name = "deepep", .way = Way::kSameIndex});
}

StatusOr<ExpertPlan> DirectPlan(const Groundwork& ground) {
  return PlanOfRoute(ground, {.name = std::string(kDirect), .way = Way::kDirect});
}

StatusOr<Evaluation> Evaluate(const ExpertPlan& plan, const Groundwork& ground, int32_t draws,
                              const Deadline& deadline) {
  const PlanRequest& request = ground.request;
  XCCL_ASSIGN_OR_RETURN(const ExpertPlan deepep, DeepEpPlan(ground));
  XCCL_ASSIGN_OR_RETURN(const ExpertPlan direct, DirectPlan(ground));
  const Bound bound(ground.topology, ground.domains, request.sizes, request.call);
  const HopIndex own_index(plan), deepep_index(deepep);
  Predictor own(plan, request.call), beside(deepep, request.call);
  const PairExchange pairs(direct, request.call);
  if (request.routing.kind == RoutingSource::Kind::kFile) draws = 1;
  Random random(request.seed + 1);  // other draws than those that chose the plan
  Evaluation evaluation;
  for (int32_t i = 0; i < draws && (i == 0 || !deadline()); ++i) {
    const Needs draw = NeedsOf(DrawRouting(request.routing, request.sizes, random), request.sizes);
    const std::vector<int64_t> of_pairs = RowsOfPairs(draw, request.sizes.ranks);
    evaluation.draws.push_back(
        {.plan_ps = own.TimePs(RowsOfHops(plan, own_index, draw, request.call)),
         .bound_ps = bound.TimePs(draw),
         .deepep_ps = beside.TimePs(RowsOfHops(deepep, deepep_index, draw, request.call)),
         .pairwise_ps = pairs.PairwisePs(of_pairs),
         .padded_ps = pairs.PaddedPs(of_pairs)});
  }
  if (const auto ps = static_cast<double>(evaluation.draws.front().bound_ps); ps > kPsPerDay)
    return InvalidInput(fmt::format("{}: {} takes {:.1f} days at least; times of up to 1 day are supported",
                                    ground.topology.name(), ToString(request.call), ps / kPsPerDay));
  if (own.busiest()) evaluation.busiest = ground.topology.LinkName(*own.busiest());
  return evaluation;
}

int32_t DefaultDraws(const Sizes& sizes) {
  const int64_t choices = int64_t{sizes.ranks} * sizes.max_tokens * sizes.top_k;
  return static_cast<int32_t>(std::clamp<int64_t>(kMostEvaluated / choices, 3, 1000));
}

int64_t MostBufferBytes(const ExpertPlan& plan) {
  const int64_t bytes = plan.sizes.row_bytes + HeaderBytes(plan.sizes, Call::kDispatch);
  std::vector<int64_t> of_rank(plan.sizes.ranks);
  for (const Hop& hop : plan.hops) of_rank[hop.to.index()] += bytes * plan.rows_per_message * hop.slots;
  return *std::ranges::max_element(of_rank);
}

}  // namespace xccl::dispatch
