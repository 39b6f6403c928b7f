// 1. LaneCuts finds cuts of the hosts' ports into lanes (hosts.h).
// 2. Shapes lists shapes of plans with their times by formulas. Disjoint trees use all lanes all the time and
//    are log_lanes(hosts) deep; they win where bytes count. Equal trees send on each lane to many hosts in
//    turn and have fewer levels; they win where latency counts.
// 3. RoutedTrees finds ways through the fabric for the trees. Streams that share a link there take turns. If
//    they hold a link for longer than a lane takes, trees that leave groups of hosts seldom are tried, and
//    other lanes (BestOf).
// 4. PlanOf writes the fastest shape as a schedule (lane_plan.h). A reduction is the broadcast on the
//    reversed machine, played backwards.
//
// Waves: the root deals the data to the GPUs of its host, and a lane idles until its first chunk is dealt.
// Chunks are therefore short at first. Each wave may be longer than the one before if the root's links inside
// its host are faster than all lanes together. A tree that starts later carries less data.
#include "synth/rails/rail_trees.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "synth/common/cost_model.h"
#include "synth/common/reverse.h"
#include "synth/common/serves.h"
#include "synth/common/step_limit.h"
#include "synth/rails/hosts.h"
#include "synth/rails/lane_plan.h"
#include "synth/rails/trees.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "rail-trees";
// The number of growing waves of a tree. On eight lanes, of which the root's GPU has one, each wave may be a
// fifth longer than the one before. The first of ten waves then has 4 % of the data, and more waves gain less
// than 1 %.
constexpr int32_t kWaves = 10;
// The most moves of a broadcast. Its transfers take all waves of a tree at once, so that simulations and
// proofs need about 220 bytes a move: 3.5 GiB.
constexpr int64_t kMostMoves = 4 * kMostTransfers;
constexpr double kWeight = 10'000;  // weight of the longest chunk
// Lanes on one port take turns, chunk by chunk. The most time that turns may cost, as a fraction of all time.
constexpr double kTurns = 1.0 / 64;

struct Shape {
  LaneCut cut;
  bool is_disjoint = true;
  int32_t trees = 0;
  int32_t fanout = 1;               // of equal trees
  double turns = 1;                 // streams that take turns at a port or at a link between switches
  std::vector<double> waves = {1};  // relative lengths
  double time_ps = 0;
};

// The machine for the broadcast: the request's machine, or the reversed machine for a reduction.
struct Machine {
  std::unique_ptr<const Topology> reversed;
  const Topology* topology = nullptr;
  std::vector<RailHost> hosts;
  double cross_ps = 0, inside_ps = 0;  // latency between two hosts, and inside one
  double inside_bytes_per_s = 0;       // of the root or of a member of the next host, the slower of the two
};

double Seconds(double bytes, double bytes_per_s) { return bytes / bytes_per_s; }

void MeasureHosts(Machine& machine, Rank root) {
  const Topology& topology = *machine.topology;
  HostSearch search(topology);
  machine.inside_bytes_per_s = 1e18;
  for (size_t h : {0, 1}) {
    const std::vector<Rank>& gpus = machine.hosts[h].gpus;
    if (gpus.size() < 2) continue;
    search.Run(h == 0 ? root : gpus[0], false);
    machine.inside_bytes_per_s =
        std::min(machine.inside_bytes_per_s, std::max(1.0, static_cast<double>(search.BandwidthTo(gpus))));
    for (Rank r : gpus)
      if (const NodeId node = topology.NodeOf(r); search.Reaches(node))
        machine.inside_ps = std::max(machine.inside_ps, static_cast<double>(search.Latency(node)));
  }
  for (const Port& port : machine.hosts[1].ports)
    machine.cross_ps = std::max(machine.cross_ps, static_cast<double>(port.latency_ps));
}

StatusOr<std::shared_ptr<const Machine>> MachineOf(const SynthesisRequest& request) {
  auto machine = std::make_shared<Machine>();
  machine->topology = request.topology;
  if (request.collective->kind() == CollectiveKind::kReduce) {
    machine->reversed = std::make_unique<const Topology>(ReverseTopology(*request.topology));
    machine->topology = machine->reversed.get();
  }
  const Rank root = *request.collective->spec().root;
  XCCL_ASSIGN_OR_RETURN(machine->hosts,
                        RailHosts(*machine->topology, request.collective->ranks(), root, kName));
  MeasureHosts(*machine, root);
  return std::shared_ptr<const Machine>(std::move(machine));
}

// Returns the relative lengths of at most `most` waves for a tree of `bytes`. Each wave is `growth` times as
// long as the one before. If the plan is played backwards, waves grow and then shrink again, because the last
// wave then makes the first sums.
std::vector<double> WavesOf(double bytes, double growth, bool backwards, int64_t most) {
  const auto count =
      static_cast<int32_t>(std::clamp(bytes / kFineSegmentBytes, 1.0, static_cast<double>(most)));
  std::vector<double> waves;
  for (int32_t j = 0; j < count; ++j)
    waves.push_back(std::pow(growth, backwards ? std::min(j, count - 1 - j) : j));
  double sum = 0;
  for (double wave : waves) sum += wave;
  for (double& wave : waves) wave /= sum;
  return waves;
}

// Returns the length of a wave ÷ the length of the wave before, if the root's link is `faster` times as fast
// as the lanes that it feeds. The factor 2/3 slows the growth, because at first few earlier waves keep the
// lanes busy.
double GrowthOf(double faster) { return 1 + 2.0 / 3 * (std::clamp(faster, 1.0, 2.0) - 1); }

class Shapes {
 public:
  Shapes(const Machine& machine, const SynthesisRequest& request)
      : machine_(machine),
        request_(request),
        bytes_(static_cast<double>(request.size_bytes)),
        hosts_(static_cast<int32_t>(machine.hosts.size())),
        members_(request.collective->num_members()) {}

  // Returns the time of disjoint trees of `levels` levels. `busiest` is as in TreeRoutes.
  double DisjointPs(const Shape& shape, int32_t levels, double busiest) const {
    const LaneCut& cut = shape.cut;
    const auto lane = static_cast<double>(cut.bandwidth_bytes_per_s);
    const double all = lane * cut.lanes / std::max(1.0, busiest), inside = machine_.inside_bytes_per_s;
    const double first = bytes_ * shape.waves[0] / cut.lanes;  // bytes of the first chunk
    const double segment = std::min(first, static_cast<double>(kFineSegmentBytes));
    const double starts_late_s = Seconds(first, inside) * (cut.lanes - 1) / 2;
    return 1e12 * (Seconds(bytes_, std::min(all, inside)) + starts_late_s) +
           levels * (machine_.cross_ps + machine_.inside_ps + 2e12 * Seconds(segment, lane) + TurnsPs(shape));
  }

  // Returns the shape with waves so short that `streams` streams that share a link can take turns. Returns
  // the shape unchanged if so many streams take turns already, if the request gives the number of chunks, or
  // if turns would cost more time than the data.
  Shape InTurns(const Shape& shape, int32_t levels, int32_t streams) const {
    if (streams <= shape.turns || request_.limits.chunks) return shape;
    Shape made = shape;
    made.turns = streams;
    made.waves = EqualWaves(shape.cut, levels, streams);
    const double all_ps =
        1e12 * Seconds(bytes_, static_cast<double>(shape.cut.bandwidth_bytes_per_s) * shape.cut.lanes);
    return levels * TurnsPs(made) <= all_ps ? made : shape;
  }

  // Returns the shapes that may be the best, sorted by their times.
  std::vector<Shape> List() {
    std::vector<LaneCut> cuts = LaneCuts(machine_.hosts);
    for (LaneCut& cut : cuts)
      cut.lanes = static_cast<int32_t>(std::clamp<int64_t>(kMostTransfers / members_, 2, cut.lanes));
    for (const LaneCut& cut : cuts)
      if (!request_.limits.chunks || *request_.limits.chunks >= cut.lanes) AddDisjoint(cut);
    for (const LaneCut& cut : cuts)
      for (int32_t trees = MostTrees(cut); trees > 0; trees /= 2) AddEqual(cut, trees);
    std::ranges::stable_sort(shapes_, {}, &Shape::time_ps);
    return std::move(shapes_);
  }

 private:
  int32_t MostTrees(const LaneCut& cut) const {
    return std::min(cut.lanes, request_.limits.chunks.value_or(cut.lanes));
  }

  int32_t LevelsOfDisjoint(int32_t lanes) const {
    // The small tree of the last hosts may be deeper than the others.
    int32_t levels = 2;
    for (int64_t reached = lanes; reached < hosts_; reached *= lanes) ++levels;
    return levels;
  }

  void AddDisjoint(const LaneCut& cut) {
    Shape shape{.cut = cut, .trees = cut.lanes, .turns = LanesOnPort(cut)};
    const double dealt = static_cast<double>(cut.bandwidth_bytes_per_s) * std::max(1, cut.lanes - 1);
    const bool backwards = machine_.reversed != nullptr;
    const int64_t most = (backwards ? kMostTransfers : kMostMoves) / (int64_t{cut.lanes} * members_);
    shape.waves = shape.turns > 1
                      ? EqualWaves(cut, LevelsOfDisjoint(cut.lanes), shape.turns)
                      : WavesOf(bytes_ / cut.lanes, GrowthOf(machine_.inside_bytes_per_s / dealt), backwards,
                                std::clamp<int64_t>(most, 1, backwards ? 2 * kWaves : kWaves));
    if (request_.limits.chunks)
      shape.waves.assign(static_cast<size_t>(*request_.limits.chunks / cut.lanes), 1);
    shape.time_ps = DisjointPs(shape, LevelsOfDisjoint(cut.lanes), 1);
    shapes_.push_back(std::move(shape));
  }

  // Returns the mean number of lanes on a port, at least 1.
  double LanesOnPort(const LaneCut& cut) const {
    return std::max(1.0, cut.lanes / static_cast<double>(machine_.hosts[1].ports.size()));
  }
  double TurnsPs(const Shape& shape) const {
    return (shape.turns - 1) * 1e12 *
           Seconds(bytes_ * shape.waves[0] / shape.cut.lanes,
                   static_cast<double>(shape.cut.bandwidth_bytes_per_s));
  }
  std::vector<double> EqualWaves(const LaneCut& cut, int32_t levels, double turns) const {
    const auto most =
        static_cast<double>(std::max<int64_t>(kWaves, kMostTransfers / 2 / (int64_t{cut.lanes} * members_)));
    const double wanted = levels * (turns - 1) / kTurns;
    const auto count =
        static_cast<size_t>(std::clamp(bytes_ / cut.lanes / kFineSegmentBytes, 1.0, std::min(most, wanted)));
    return std::vector<double>(count, 1.0 / static_cast<double>(count));
  }

  void AddEqual(const LaneCut& cut, int32_t trees) {
    Shape shape{.cut = cut, .is_disjoint = false, .trees = trees};
    const double piece = bytes_ / trees;
    if (trees > 1 && piece < kLeastPieceBytes) return;
    const double lane = static_cast<double>(cut.bandwidth_bytes_per_s);
    const double segment = std::min(piece, static_cast<double>(kFineSegmentBytes));
    for (int32_t levels = 1, before = hosts_;; ++levels) {
      shape.fanout = static_cast<int32_t>(std::ceil(std::pow(hosts_ - 1.0, 1.0 / levels) - kRounding));
      if (levels > 1 && shape.fanout >= before) break;  // more levels save no sends
      before = shape.fanout;
      shape.time_ps = levels * (machine_.cross_ps + shape.fanout * 1e12 * Seconds(segment, lane)) +
                      shape.fanout * 1e12 * Seconds(piece - segment, lane) + 2 * machine_.inside_ps +
                      2e12 * Seconds(bytes_, machine_.inside_bytes_per_s);
      shapes_.push_back(shape);
    }
  }

  const Machine& machine_;
  const SynthesisRequest& request_;
  const double bytes_;
  const int32_t hosts_, members_;
  std::vector<Shape> shapes_;
};

// Returns the weights of all chunks.
Waves WeightsOf(const Shape& shape, const Machine& machine, const SynthesisRequest& request) {
  Waves waves(static_cast<size_t>(shape.trees));
  if (request.limits.chunks) {
    for (int32_t c = 0; c < *request.limits.chunks; ++c)
      waves[static_cast<size_t>(c % shape.trees)].push_back(1);
    return waves;
  }
  const double longest = *std::ranges::max_element(shape.waves);
  const double late =
      shape.waves[0] * static_cast<double>(shape.cut.bandwidth_bytes_per_s) / machine.inside_bytes_per_s;
  for (int32_t t = 0; t < shape.trees; ++t) {
    const double share = shape.is_disjoint ? std::max(0.25, 1 - late * t) : 1;
    for (double wave : shape.waves)
      waves[static_cast<size_t>(t)].push_back(
          std::max<int64_t>(1, std::llround(kWeight * share * wave / longest)));
  }
  return waves;
}

// Trees of hosts with their ways through the fabric, and the shape and time that these ways allow.
struct Routed {
  HostTrees trees;
  TreeRoutes routes;
  Shape shape;
  double time_ps = 0;
};

StatusOr<Routed> RoutedTrees(const Shape& shape, const Machine& machine, const SynthesisRequest& request) {
  std::vector<RailHost> hosts = machine.hosts;
  SetLanes(*machine.topology, shape.cut, hosts);
  std::optional<Routed> best;
  const Shapes shapes(machine, request);
  const auto route = [&](HostTrees trees) -> Status {
    XCCL_ASSIGN_OR_RETURN(TreeRoutes routes, RoutesOf(*machine.topology, hosts, trees, kName));
    const int32_t levels = trees.levels();
    Shape made = shape.is_disjoint ? shapes.InTurns(shape, levels, routes.streams) : shape;
    const double ps = shape.is_disjoint ? shapes.DisjointPs(made, levels, routes.busiest) : shape.time_ps;
    if (!best || ps < best->time_ps) best = Routed{std::move(trees), std::move(routes), std::move(made), ps};
    return OkStatus();
  };
  const auto count = static_cast<int32_t>(hosts.size());
  XCCL_RETURN_IF_ERROR(route(shape.is_disjoint ? DisjointTrees(count, shape.cut.lanes)
                                               : EqualTrees(count, shape.trees, shape.fanout)));
  // NestedTrees leave groups of hosts seldom but are deeper, so they are tried if other trees share links.
  if (shape.is_disjoint && best->routes.busiest > 1 + kRounding) {
    const std::vector<std::vector<int32_t>> groups = HostGroups(*machine.topology, hosts);
    if (!groups.empty()) XCCL_RETURN_IF_ERROR(route(NestedTrees(count, groups, shape.cut.lanes)));
  }
  return *std::move(best);
}

StatusOr<Synthesis> PlanOf(const Routed& routed, const Machine& machine, const SynthesisRequest& request) {
  const Shape& shape = routed.shape;
  std::vector<RailHost> hosts = machine.hosts;
  SetLanes(*machine.topology, shape.cut, hosts);
  const Waves waves = WeightsOf(shape, machine, request);
  const Collective& whole = *request.collective;
  const bool backwards = whole.kind() == CollectiveKind::kReduce;
  XCCL_ASSIGN_OR_RETURN(Schedule schedule,
                        ScheduleOfLanes(*machine.topology, hosts, *whole.spec().root, routed.trees,
                                        routed.routes, waves, shape.turns > 1, backwards, kName));
  std::vector<int64_t> weights;
  for (std::vector<int64_t> tree : waves) {
    if (backwards) std::ranges::reverse(tree);
    weights.insert(weights.end(), tree.begin(), tree.end());
  }
  Collective cut = request.limits.chunks || weights.size() == 1
                       ? whole.WithChunks(static_cast<int32_t>(weights.size()))
                       : whole.WithWeights({weights});
  if (backwards) schedule = Reverse(schedule, *request.topology, cut, TransferOp::kReduce);
  return Synthesis{std::move(cut), std::move(schedule), false, std::string(kName),
                   fmt::format("{} {} trees over {} hosts", shape.trees,
                               shape.is_disjoint ? "disjoint" : "equal", hosts.size())};
}

// Returns the first shape with its trees, or a later shape of disjoint trees on other lanes if that is
// faster. Shapes come in the order of their times on links that no streams share. Sharing seldom makes a
// shape faster, so the search ends at a shape whose time is not below the best.
StatusOr<Routed> BestOf(const Machine& machine, const std::vector<Shape>& shapes,
                        const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(Routed best, RoutedTrees(shapes.front(), machine, request));
  for (const Shape& shape : std::span(shapes).subspan(1)) {
    if (!best.shape.is_disjoint || best.time_ps <= shape.time_ps) break;
    if (!shape.is_disjoint) continue;
    XCCL_ASSIGN_OR_RETURN(Routed other, RoutedTrees(shape, machine, request));
    if (other.time_ps < best.time_ps) best = std::move(other);
  }
  return best;
}

// Makes the plan of the best shape. If that has too many steps, makes the plan of the first shape within the
// limit of steps.
StatusOr<Synthesis> MakeOn(const Machine& machine, const std::vector<Shape>& shapes,
                           const SynthesisRequest& request) {
  StepBudget steps(kName, request);
  XCCL_ASSIGN_OR_RETURN(const Routed best, BestOf(machine, shapes, request));
  XCCL_ASSIGN_OR_RETURN(Synthesis made, PlanOf(best, machine, request));
  if (steps.Allows(made.schedule.num_steps())) return made;
  for (const Shape& shape : shapes) {
    XCCL_ASSIGN_OR_RETURN(const Routed routed, RoutedTrees(shape, machine, request));
    XCCL_ASSIGN_OR_RETURN(made, PlanOf(routed, machine, request));
    if (steps.Allows(made.schedule.num_steps())) return made;
  }
  return steps.Refusal();
}

StatusOr<std::vector<Shape>> ShapesOf(const Machine& machine, const SynthesisRequest& request) {
  std::vector<Shape> shapes = Shapes(machine, request).List();
  if (shapes.empty())
    return InvalidInput(fmt::format(
        "{}: the hosts' ways to the fabric are too uneven to share; hint: --engine=forest", kName));
  return shapes;
}

StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const Machine> machine, MachineOf(request));
  XCCL_ASSIGN_OR_RETURN(std::vector<Shape> shapes, ShapesOf(*machine, request));
  const Shape& best = shapes.front();
  const int64_t chunks = request.limits.chunks ? *request.limits.chunks : best.trees * std::ssize(best.waves);
  // `auto` takes a time up to the bound for the promise of a search, so an estimate must be above the bound.
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  Offer offer{.time_ps = std::max(best.time_ps, static_cast<double>(bound.bound_ps) + 1),
              .work = chunks * request.collective->num_members()};
  offer.make = [machine, shapes = std::move(shapes), &request](int64_t) {
    return MakeOn(*machine, shapes, request);
  };
  return offer;
}

StatusOr<Synthesis> MakePlan(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const Machine> machine, MachineOf(request));
  XCCL_ASSIGN_OR_RETURN(const std::vector<Shape> shapes, ShapesOf(*machine, request));
  return MakeOn(*machine, shapes, request);
}

}  // namespace

Engine RailTreesEngine() {
  return {.name = kName,
          .summary =
              "broadcast and reduce over all NICs of all hosts at once; a broadcast tree of hosts a NIC; "
              "plans in microseconds; not exact",
          .family = EngineFamily::kTrees,
          .kinds = {CollectiveKind::kBroadcast, CollectiveKind::kReduce},
          .offer = OfferOf,
          .make = MakePlan};
}

}  // namespace xccl
