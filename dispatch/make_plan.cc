// Every way of making trees is tried: its trees are planted, its hops listed, the rows of a few drawn
// routings counted on them, their paths spread over equal ones by those counts, and the time of each draw
// predicted. The median decides. A large machine's choice is made on a share of the tokens.
#include "dispatch/make_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "base/strings.h"
#include "base/units.h"
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
// The part of the time until a deadline that drawing them may take.
constexpr double kShareOfDraws = 0.1;
// A plan with its proof and one draw takes about so many times as long as the paths between all ranks.
constexpr double kPathsOfPlan = 10;
// Proving and timing a plan, with two routes beside it, take about as long as making so many routes.
constexpr double kRoutesForTheRest = 4;
// Lanes × ranks² of trees that spread rows over lanes.
constexpr int64_t kMostBranches = int64_t{1} << 22;
constexpr int32_t kMostLanes = 8;
// A way must be this much faster than one with less traffic to relays.
constexpr double kWorthRelaying = 0.99;
// Hops of a plan with Entry::kNeeded at most: each rank to each, twice.
constexpr int32_t kMostRanksNeeded = 512;
// Likewise of a domain with Entry::kNested: each rank to each, once for each depth.
constexpr size_t kMostMembersNested = 16;
constexpr std::string_view kDirect = "direct";

struct Counted {
  std::vector<int32_t> trees;  // by (lane, stage, from, to): trees with this branch
  size_t stages;
};

// Calls add(from, to, depth) for the branches that rows take inside a domain of Entry::kNested. A rank that
// stands `before` bits of its distance from the entry away has had the row pass at most as many ranks.
template <typename Add>
void ForEachNested(std::span<const int32_t> members, int32_t entry, bool is_home, Add add) {
  for (const int32_t from : members)
    for (const int32_t to : members) {
      if ((from ^ entry) >= (to ^ entry)) continue;
      const int before = std::popcount(static_cast<uint32_t>(from ^ entry) >> BlockOf(from, to));
      // The home has its row at depth 0 and no other rank does; a row enters other domains at depth 1.
      const int first = is_home && from == entry ? 0 : 1;
      const int last = is_home ? before : 1 + before;
      for (int depth = first; depth <= last; ++depth) add(from, to, depth);
    }
}

template <typename Add>
void CountNested(const ExpertPlan& plan, int32_t home, std::span<const int32_t> tree, Add add) {
  std::map<int32_t, std::vector<int32_t>> members;
  for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank) members[plan.domains[rank]].push_back(rank);
  for (const auto& item : members) {  // clang 14 lets no lambda capture parts of it
    const int32_t domain = item.first;
    const std::vector<int32_t>& ranks = item.second;
    const bool is_home = domain == plan.domains[home];
    int32_t entry = home;
    if (!is_home)
      entry = *std::ranges::find_if(ranks, [&](int32_t rank) { return plan.domains[tree[rank]] != domain; });
    for (const int32_t to : ranks)
      if (!is_home) add(home, to, 0);
    ForEachNested(ranks, entry, is_home, add);
  }
}

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
      if (plan.entry == Entry::kNested) {
        CountNested(plan, home, tree, add);
        continue;
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

// Do some ranks of a domain stand nearer to each other than others do, as under a PCIe switch?
bool HasNear(const Groundwork& ground) {
  std::optional<int64_t> cost;
  for (const std::vector<int32_t>& members : ground.domains.members)
    for (const int32_t from : members)
      for (const int32_t to : members)
        if (from != to && ground.paths.Cost(from, to) != cost.value_or(ground.paths.Cost(from, to)))
          return true;
        else if (from != to)
          cost = ground.paths.Cost(from, to);
  return false;
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
  if (ranks <= kMostRanksNeeded && largest <= kMostMembersNested && HasNear(ground))
    routes.insert(routes.begin() + 3, {.name = "nested", .way = Way::kRail, .entry = Entry::kNested});
  // Lanes are for ranks with different numbers of tokens; drawn ranks have equal ones.
  if (ground.request.routing.kind == RoutingSource::Kind::kFile && smallest > 1)
    routes.push_back({.name = "spread",
                      .way = Way::kSpread,
                      .lanes = static_cast<int32_t>(std::clamp<int64_t>(
                          kMostBranches / (ranks * ranks), 2, std::min<int64_t>(kMostLanes, smallest)))});
  return routes;
}

// Entry::kNeeded promises that rows enter every domain straight from the home's, and that paths join its
// ranks; Entry::kNested that the home sends them, and that paths join the ranks of its domain, too.
bool MayEnterByNeed(const ExpertPlan& plan, const Paths& paths) {
  const bool nested = plan.entry == Entry::kNested;
  for (int32_t home = 0; home < plan.sizes.ranks; ++home) {
    const std::span<const int32_t> tree = plan.TreeOf(0, home);
    for (int32_t to = 0; to < plan.sizes.ranks; ++to)
      if (nested && plan.domains[to] == plan.domains[home] && !paths.Joins(home, to)) return false;
    for (int32_t entry = 0; entry < plan.sizes.ranks; ++entry) {
      const int32_t before = tree[entry];
      if (plan.domains[before] == plan.domains[entry]) continue;
      if (nested ? before != home : plan.domains[before] != plan.domains[home]) return false;
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
  if (plan.entry != Entry::kFixed && !MayEnterByNeed(plan, ground.paths)) return std::optional<ExpertPlan>();
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
  int64_t time_ps = 0;
};

// Lists the hops of a planted plan, counts their rows and lays paths.
Tried Lay(const Groundwork& ground, const Route& route, ExpertPlan plan) {
  std::vector<int32_t> trees = ListHops(plan);
  Paths spread = ground.paths;
  LayPaths(plan, spread, route.by_nic,
           RowsOfHops(plan, HopIndex(plan), ground.draws.front(), ground.request.call));
  return {std::move(plan), std::move(trees)};
}

// Lays the paths of a planted plan and times it.
Tried Try(const Groundwork& ground, const Route& route, ExpertPlan planted) {
  const Call call = ground.request.call;
  Tried tried = Lay(ground, route, std::move(planted));
  const HopIndex index(tried.plan);
  Predictor predictor(tried.plan, call);
  std::vector<int64_t> times;
  // Paths that fit one draw are timed on others.
  for (size_t i = ground.draws.size() > 1 ? 1 : 0; i < ground.draws.size(); ++i)
    times.push_back(predictor.TimePs(RowsOfHops(tried.plan, index, ground.draws[i], call)));
  tried.time_ps = Quantile(times, 0.5);
  return tried;
}

bool IsWorthMore(const Tried& next, const Tried& best) {
  return static_cast<double>(next.time_ps) < static_cast<double>(best.time_ps) * kWorthRelaying;
}

// The draws on which ways are compared: those of fewer tokens on a large machine. Under a deadline they take
// a small share of the time, and one is enough.
std::vector<Needs> DrawsToChoose(const PlanRequest& request, const Deadline& deadline) {
  const bool is_file = request.routing.kind == RoutingSource::Kind::kFile;
  const int64_t choices = std::min(kMostChoices, ChoicesOf(request.sizes));
  const int64_t count = is_file ? 1 : std::clamp<int64_t>(4 * kMostChoices / choices, 4, kMostChoosingDraws);
  const int64_t most = ChoicesWithin(deadline, kShareOfDraws / static_cast<double>(count), choices);
  Random random(request.seed);
  std::vector<Needs> draws;
  const double began_with_s = deadline.SecondsLeft();
  while (
      std::ssize(draws) < count &&
      (draws.empty() || !(deadline.IsOver() || deadline.SecondsLeft() < (1 - kShareOfDraws) * began_with_s)))
    draws.push_back(DrawNeeds(request, most, random));
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
  XCCL_CHECK(planted.has_value());  // Entry::kFixed always fits
  Tried tried = Lay(ground, route, *std::move(planted));
  SetSlots(tried.plan, tried.trees);
  return std::move(tried.plan);
}

}  // namespace

void Groundwork::Say(const std::string& what) const {
  if (request.progress) request.progress(what);
}

StatusOr<Groundwork> Prepare(const Topology& topology, const PlanRequest& request, const Deadline& deadline) {
  if (topology.num_ranks() != request.sizes.ranks)
    return BugError("an expert plan's ranks are not those of its machine");
  XCCL_RETURN_IF_ERROR(CheckSizes(request.sizes));
  if (request.progress) request.progress("paths between ranks");
  Groundwork ground{.topology = topology,
                    .request = request,
                    .domains = FindDomains(topology),
                    .paths = Paths(topology, RowsPerMessage(request) * request.sizes.row_bytes, deadline),
                    .draws = {}};
  if (deadline.IsInterrupted())
    return LimitReached(fmt::format("{}: {} before a plan was made", topology.name(), deadline.Passed()));
  if (const std::optional<double> seconds = ground.paths.too_long_s())
    return LimitReached(fmt::format(
        "{}: paths between {} take about {:.1f} s; expected at most {}; hint: --time-limit={:.0f}s",
        topology.name(), xccl::Counted(topology.num_ranks(), "rank"), *seconds, deadline.ToString(),
        std::ceil(kPathsOfPlan * *seconds)));
  ground.Say("draws to choose a route");
  ground.draws = DrawsToChoose(request, deadline);
  return ground;
}

StatusOr<ExpertPlan> MakeExpertPlan(const Groundwork& ground, const Deadline& deadline) {
  std::optional<Tried> best;
  const double began_with_s = deadline.SecondsLeft();
  double longest_s = 0;  // that a route has taken
  std::vector<Route> routes = RoutesToTry(ground);
  // The route with few connections stands soonest.
  const auto rail = std::ranges::find_if(
      routes, [](const Route& route) { return route.way == Way::kRail && route.entry == Entry::kFixed; });
  if (deadline.has_limit() && rail != routes.end()) std::rotate(routes.begin(), rail, rail + 1);
  for (const Route& route : routes) {
    const double left_s = deadline.SecondsLeft();
    const bool ends = left_s < began_with_s / 2 || left_s < (1 + kRoutesForTheRest) * longest_s;
    if (best && (deadline.IsInterrupted() || ends)) break;
    ground.Say("route " + route.name);
    const auto began = std::chrono::steady_clock::now();
    XCCL_ASSIGN_OR_RETURN(std::optional<ExpertPlan> planted, Plant(ground, route));
    if (!planted) continue;
    if (best && SameTrees(best->plan, *planted)) {
      if (best->plan.route == kDirect) best->plan.route = route.name;
      continue;
    }
    Tried tried = Try(ground, route, *std::move(planted));
    if (!best || IsWorthMore(tried, *best)) best = std::move(tried);
    longest_s =
        std::max(longest_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
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
    ground.Say("route " + route.name);
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

int64_t MostBufferBytes(const ExpertPlan& plan) {
  const int64_t bytes = plan.sizes.row_bytes + HeaderBytes(plan.sizes, Call::kDispatch);
  std::vector<int64_t> of_rank(plan.sizes.ranks);
  for (const Hop& hop : plan.hops) of_rank[hop.to.index()] += bytes * plan.rows_per_message * hop.slots;
  return *std::ranges::max_element(of_rank);
}

}  // namespace xccl::dispatch
