// Turns a Task into PackingProblems (synth/common/fractional_packing.h) and solves them.
// 1. MakeTask finds the machine's translations, reverse and twins, if the request can use them.
// 2. SetRoots sets the roots and each root's share of all bytes.
// 3. ProblemOn makes a problem on the machine or on its reverse. It sets the prices of latency against bytes.
// 4. PackOn solves the problem and rounds the weights of the trees. A reduction is packed on the reverse, an
//    allreduce on both. PackPairs packs both directions of an allreduce in one problem.
// 5. Measure counts the transfers and the depth of the Candidate.
#include "synth/forest/packings.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "synth/common/cost_model.h"
#include "synth/common/fractional_packing.h"
#include "synth/common/reverse.h"
#include "synth/common/tree_pairs.h"
#include "synth/forest/request.h"
#include "synth/forest/twins.h"

namespace xccl::forest {
namespace {

constexpr int64_t kEqualWork = 2'000'000'000;  // the most links that the packing of equal trees looks at
constexpr int32_t kExactRounds = 400;          // the most rounds of the program with the cheapest trees
constexpr int32_t kHeldRounds = 40;            // the most rounds of the program that weighs held links
// The price of the shortest latency of a link, as a multiple of the slowest link's time for a byte. It is so
// high that latency decides.
constexpr double kShortest = 1e3;
constexpr int64_t kLatencyCounts = 100;       // latency counts if it is more than the bound ÷ this number
constexpr int64_t kLeastTurnBytes = 4 << 10;  // the least bytes of the pieces in which twins take turns
// The least bytes of a chunk of pairs in more than kFewWaves waves. A program waits for each chunk; the
// simulation of a schedule does not.
constexpr int64_t kLeastChunkBytes = 64 << 10;

int64_t BytesOf(const Task& task) { return std::max<int64_t>(1, task.sizes.size_bytes()); }

// Returns a price of latency so high that trees consist of shortest paths. Among its shortest paths, each
// rank takes the cheapest.
double ShortestFirst(const Topology& topology) {
  int64_t slowest = std::numeric_limits<int64_t>::max(), shortest_ps = slowest;
  for (const Link& link : topology.spec().links) {
    slowest = std::min(slowest, link.bandwidth_bytes_per_s);
    if (link.latency_ps > 0) shortest_ps = std::min(shortest_ps, link.latency_ps);
  }
  return kShortest / static_cast<double>(slowest) / static_cast<double>(shortest_ps);
}

// Sets the roots, and each root's share of all bytes.
void SetRoots(const Task& task, PackingProblem& problem) {
  if (!HasManyRoots(task.collective)) {
    problem.roots = {*task.collective.spec().root};
    problem.demand = {1.0};
  } else if (IsUneven(task.collective)) {
    problem.roots.clear();
    problem.demand.clear();
    for (size_t m = 0; m < problem.members.size(); ++m) {
      const PartId part(static_cast<int64_t>(m));
      if (task.collective.AlwaysEmpty(task.collective.FirstChunk(part))) continue;
      problem.roots.push_back(problem.members[m]);
      problem.demand.push_back(static_cast<double>(std::max<int64_t>(1, task.sizes.PartBytes(part))) /
                               static_cast<double>(BytesOf(task)));
    }
  } else {
    if (task.group) TakeOrbits(*task.group, problem);
    for (double& demand : problem.demand) demand = 1 / static_cast<double>(problem.members.size());
  }
}

// Returns the problem of packing trees on `topology`, which is the machine or its reverse.
PackingProblem ProblemOn(const Task& task, const Topology& topology, Direction flow, const PackingAim& aim) {
  PackingProblem problem =
      PlainPacking(topology, {task.collective.ranks().begin(), task.collective.ranks().end()});
  SetRoots(task, problem);
  if (task.twins) task.twins->Take(problem);
  problem.stopped = task.stopped;
  problem.direction = flow;
  problem.blocking_weight = aim.blocking_weight;
  problem.exact = aim.exact;
  if (aim.exact) problem.max_rounds = kExactRounds;
  if (aim.blocking_weight > 0) problem.max_rounds = kHeldRounds;
  const double bytes = static_cast<double>(BytesOf(task));
  problem.s_per_ps = aim.latency_weight
                         ? *aim.latency_weight * 1e-12 * static_cast<double>(problem.members.size()) / bytes
                         : ShortestFirst(task.topology);
  if (!task.request.IsPassedOver("wait_price") && aim.latency_weight && LatencyCounts(task)) {
    problem.wait_s_per_ps = 1e-12 / bytes;
    const auto parts = HasManyRoots(task.collective) ? static_cast<int64_t>(problem.members.size()) : 1;
    problem.piece_bytes = std::min(kLeastTurnBytes, BytesOf(task) / parts);
  }
  const double halves = task.collective.kind() == CollectiveKind::kAllreduce ? 2 : 1;
  if (task.sizes.size_bytes() > 0)
    problem.known_bound_s_per_byte = task.bound.bandwidth_ps * 1e-12 / bytes / halves;
  return problem;
}

PackingProblem PairsProblem(const Task& task, const PackingAim& aim) {
  PackingProblem problem = ProblemOn(task, task.machine.forwards, Direction::kForwards, aim);
  problem.reversed = &*task.machine.backwards;
  // All translates of a pair together carry the share of the pair.
  if (task.group)
    for (double& share : problem.share) share /= static_cast<double>(task.group->order());
  if (task.sizes.size_bytes() > 0)
    problem.known_bound_s_per_byte = task.bound.bandwidth_ps * 1e-12 / static_cast<double>(BytesOf(task));
  return problem;
}

std::vector<PartId> PartsOf(const Task& task, const PackingProblem& problem) {
  std::vector<PartId> parts;
  for (const Rank root : problem.roots)
    parts.emplace_back(HasManyRoots(task.collective) ? *task.collective.MemberIndex(root) : 0);
  return parts;
}

double RatePs(const Task& task, double s_per_byte) {
  return s_per_byte * 1e12 * static_cast<double>(BytesOf(task));
}

// Returns whether translates of the paths share a link.
bool AreShared(const Task& task, const PathTable& paths) {
  bool shared = false;
  for (int32_t p = 0; task.group && p < paths.size(); ++p)
    for (const LinkId l : paths[PathId(p)]) shared |= !task.group->IsFreeOn(l);
  return shared;
}

void Measure(const Task& task, Candidate& candidate) {
  candidate.arcs = candidate.up.NumArcs() + candidate.down.NumArcs();
  candidate.depth = std::max(candidate.up.Depth(), candidate.down.Depth());
  candidate.shared = AreShared(task, candidate.up.paths) || AreShared(task, candidate.down.paths);
}

// Solves the problem and stores the packing in `last`. If `aim` weighs held links, starts with the trees of
// the packing that `last` held before, provided that it took at least kHeldRounds rounds.
const FractionalPacking& PackAfter(PackingProblem problem, const PackingAim& aim, FractionalPacking& last) {
  if (aim.blocking_weight > 0 && last.rounds >= kHeldRounds && !last.trees.empty()) problem.start = &last;
  last = PackTrees(problem);
  return last;
}

// Packs trees on `topology`. If candidate.rate_ps is less than the time of these trees, raises it to that
// time. For an allreduce, twice the time of the trees counts. Sets candidate.note.
StatusOr<PackedTrees> PackOn(const Task& task, const Topology& topology, Direction flow,
                             const PackingAim& aim, FractionalPacking& last, Candidate& candidate) {
  const PackingProblem problem = ProblemOn(task, topology, flow, aim);
  FractionalPacking packing = PackAfter(problem, aim, last);
  if (packing.trees.empty()) return LimitReached("forest: the linear program of trees was not solved");
  if (task.twins)
    packing = task.twins->InTurn(packing,
                                 static_cast<double>(kLeastTurnBytes) / static_cast<double>(BytesOf(task)));
  const double halves = task.collective.kind() == CollectiveKind::kAllreduce ? 2 : 1;
  candidate.rate_ps = std::max(candidate.rate_ps, RatePs(task, packing.s_per_byte) * halves);
  candidate.note = fmt::format("trees of {:.3f} GB/s", 1e-9 / packing.s_per_byte);
  return RoundToPackedTrees(packing, problem.roots, PartsOf(task, problem));
}

}  // namespace

int64_t Task::Rows() const { return group ? NumRows(*group) : NumRows(request); }

bool LatencyCounts(const Task& task) { return kLatencyCounts * task.bound.latency_ps > task.bound.bound_ps; }

Task MakeTask(const SynthesisRequest& request, const Bound& bound, double beat_ps) {
  const Topology& topology = *request.topology;
  Task task{.request = request,
            .topology = topology,
            .collective = *request.collective,
            .sizes = CollectiveSizes(*request.collective, request.size_bytes),
            .bound = bound,
            .beat_ps = beat_ps,
            .machine = {topology, {}},
            .group = {},
            .twins = {},
            .stopped = request.limits.deadline};
  if (!request.limits.chunks && MayUseSymmetry(task.topology, task.collective)) {
    SymmetryGroup group = FindTranslations(task.topology);
    if (!group.IsTrivial()) task.group = std::move(group);
  }
  if (task.collective.Reduces()) task.machine.backwards = ReverseTopology(topology);
  if (!request.IsPassedOver("twins") && MayHaveTwins(request)) {
    Twins twins(task.topology, task.collective.ranks(), *task.collective.spec().root);
    if (!twins.IsTrivial()) task.twins = std::move(twins);
  }
  return task;
}

StatusOr<Candidate> PackAtBestRate(const Task& task, const PackingAim& aim, LastPackings& last) {
  Candidate candidate;
  if (task.collective.Reduces()) {
    XCCL_ASSIGN_OR_RETURN(
        candidate.up, PackOn(task, *task.machine.backwards, Direction::kBackwards, aim, last.up, candidate));
  }
  if (!task.collective.Reduces() || task.collective.kind() == CollectiveKind::kAllreduce) {
    XCCL_ASSIGN_OR_RETURN(
        candidate.down, PackOn(task, task.machine.forwards, Direction::kForwards, aim, last.down, candidate));
  }
  Measure(task, candidate);
  return candidate;
}

StatusOr<Candidate> PackPairs(const Task& task, const PackingAim& aim, LastPackings& last) {
  const PackingProblem problem = PairsProblem(task, aim);
  const FractionalPacking& packing = PackAfter(problem, aim, last.pairs);
  if (packing.trees.empty()) return LimitReached("forest: the linear program of pairs was not solved");
  Candidate candidate;
  candidate.rate_ps = RatePs(task, packing.s_per_byte);
  candidate.note = fmt::format("pairs of trees of {:.3f} GB/s", 1e-9 / packing.s_per_byte);
  candidate.pairs = RoundToAllreduceTrees(packing, problem.roots, task.topology);
  candidate.shared = AreShared(task, candidate.pairs.paths);
  for (const FractionalTree& tree : packing.trees)
    for (const auto* side : {&tree.up, &tree.arcs}) {
      candidate.arcs += static_cast<int64_t>(side->size());
      for (const PackedArc& arc : *side) candidate.depth = std::max(candidate.depth, arc.depth);
    }
  const int64_t pairs = static_cast<int64_t>(packing.trees.size()) * task.Copies();
  candidate.most_waves =
      std::clamp<int64_t>(task.sizes.size_bytes() / pairs / kLeastChunkBytes, kFewWaves, kMostWaves);
  return candidate;
}

StatusOr<Candidate> PackEqual(const Task& task, int64_t trees, const EqualTreesAim& aim) {
  const bool reduces = task.collective.Reduces();
  const PackingProblem problem =
      ProblemOn(task, reduces ? *task.machine.backwards : task.machine.forwards,
                reduces ? Direction::kBackwards : Direction::kForwards, {.latency_weight = 0});
  const int64_t asked = task.request.limits.work_units;
  XCCL_ASSIGN_OR_RETURN(EqualTrees packed, PackEqualTrees(problem, PartsOf(task, problem), trees, aim,
                                                          asked > 0 ? asked : kEqualWork));
  Candidate candidate;
  candidate.rate_ps = RatePs(task, packed.s_per_byte);
  candidate.most_waves = 1;
  candidate.note = fmt::format("{} trees a rank", trees);
  const double lost = task.bound.bandwidth_ps > 0 ? candidate.rate_ps / task.bound.bandwidth_ps - 1 : 0;
  if (lost > 1e-4) candidate.note += fmt::format(", {:.2f} % off the best rate", 100 * lost);
  (reduces ? candidate.up : candidate.down) = std::move(packed.trees);
  Measure(task, candidate);
  return candidate;
}

}  // namespace xccl::forest
