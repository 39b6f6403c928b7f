// A reduce is planned as a broadcast on reversed links. The room of a link is the number of trees that may
// use it.
// 1. Pack computes the least cut between the root and any rank, which limits the number and the rate of
//    trees. It then packs trees (synth/forest/arborescences.h): as many as the cut allows, or a given number.
// 2. SlicingOf cuts each tree's share into slices that follow each other through the tree. If no two trees
//    share a link and slices are short, one long message over each arc carries all slices of a tree.
//    Otherwise all steps of one slice come before the steps of the next slice.
// 3. EstimatePs estimates the time of each choice, and MakeSchedule makes the schedule of the fastest.
#include "synth/forest/broadcast.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/graph/ratio_cut.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "ir/time_model.h"
#include "synth/common/cost_model.h"
#include "synth/common/step_limit.h"
#include "synth/forest/allreduce.h"
#include "synth/forest/arborescences.h"

namespace xccl::forest {
namespace {

constexpr int64_t kSlicesOfMessage = 128;  // slices that cost as much as a message: LL128 lines in 16 KiB
constexpr int64_t kMostLongSlices = 8;     // the most slices of >= kFineSegmentBytes, if no link is shared
constexpr int32_t kRoomSearch = 12;        // bisections for the least scale of the rooms

struct Packed {
  std::vector<Arborescence> trees;
  bool shared = false;  // some link may be in several trees
};

// Returns the links as arcs, reversed for a reduce. Capacities are bandwidths ÷ their common divisor.
std::vector<CapacityArc> ArcsOf(const Topology& topology, bool reversed) {
  int64_t divisor = 0;
  for (const Link& link : topology.spec().links) divisor = std::gcd(divisor, link.bandwidth_bytes_per_s);
  std::vector<CapacityArc> arcs;
  for (const Link& link : topology.spec().links) {
    CapacityArc arc{topology.RankOf(link.from)->value, topology.RankOf(link.to)->value,
                    link.bandwidth_bytes_per_s / divisor};
    if (reversed) std::swap(arc.from, arc.to);
    arcs.push_back(arc);
  }
  return arcs;
}

// Returns the least cut between the root and any rank. Returns 0 if the root does not reach some rank, or the
// capacities add up to 2^62 or more.
int64_t LeastCut(int32_t ranks, Rank root, const std::vector<CapacityArc>& arcs) {
  RatioCutProblem problem;
  problem.arcs = arcs;
  problem.supply.assign(static_cast<size_t>(ranks), 0);
  problem.supply[root.index()] = 1;
  for (int32_t r = 0; r < ranks; ++r)
    if (Rank(r) != root) problem.sinks.push_back(r);
  const std::optional<RatioCut> cut = FindRatioCut(std::move(problem));
  return cut ? cut->capacity / cut->supply : 0;
}

// Packs k trees. The capacity of each arc is its room.
std::optional<Packed> PackWithRoom(int32_t ranks, Rank root, int64_t k, std::span<const CapacityArc> arcs) {
  std::optional<std::vector<Arborescence>> trees =
      PackArborescences(ranks, root.value, static_cast<int32_t>(k), arcs);
  if (!trees) return std::nullopt;
  const bool shared = k > 1 && std::ranges::any_of(arcs, [](const CapacityArc& a) { return a.capacity > 1; });
  return Packed{*std::move(trees), shared};
}

// Packs `given` trees or, if absent, as many trees as the least cut allows. If that number is too large,
// packs kMostArborescences trees. With a fixed number of trees the rooms are in proportion to the bandwidths,
// at about the least scale at which the trees fit. Returns nullopt if LeastCut returns 0.
std::optional<Packed> Pack(const Topology& topology, Rank root, bool reversed, std::optional<int32_t> given) {
  const int32_t ranks = topology.num_ranks();
  const std::vector<CapacityArc> bandwidths = ArcsOf(topology, reversed);
  const int64_t cut = LeastCut(ranks, root, bandwidths);
  if (cut == 0) return std::nullopt;
  int64_t unit = cut;
  for (const CapacityArc& arc : bandwidths) unit = std::gcd(unit, arc.capacity);
  if (!given && cut / unit <= std::max(ranks, kMostArborescences)) {
    std::vector<CapacityArc> room = bandwidths;
    for (CapacityArc& arc : room) arc.capacity /= unit;
    if (std::optional<Packed> packed = PackWithRoom(ranks, root, cut / unit, room)) return packed;
  }
  const int64_t k = given.value_or(kMostArborescences);
  const auto room_at = [&](double scale) {
    std::vector<CapacityArc> room = bandwidths;
    for (CapacityArc& arc : room)
      arc.capacity =
          static_cast<int64_t>(std::min(static_cast<double>(k), static_cast<double>(arc.capacity) * scale));
    return room;
  };
  const auto is_enough = [&](double scale) { return LeastCut(ranks, root, room_at(scale)) >= k; };
  double low = static_cast<double>(k) / static_cast<double>(cut) * (1 - 1e-12), high = 0;
  for (double step = low / 64; high == 0; step *= 2)
    if (is_enough(low + step)) high = low + step;
  for (int32_t i = 0; i < kRoomSearch; ++i) {
    const double middle = (low + high) / 2;
    (is_enough(middle) ? high : low) = middle;
  }
  return PackWithRoom(ranks, root, k, room_at(high));
}

// How a tree's share is cut into slices. With long messages, one message over each arc carries all slices of
// a tree as chunks. Otherwise the steps of one slice come before the steps of the next slice.
struct Slicing {
  int32_t slices = 1;
  bool long_messages = false;
  int32_t NumSteps(const Packed& packed) const {
    return (long_messages ? 1 : slices) * DepthOf(packed.trees);
  }
};

// Returns the cost of one more slice, in bytes that a link sends in the same time. In the blocking model a
// slice is a message and costs the latency and overhead of a link; the costliest link counts.
double BytesOfSlice(const Topology& topology, TimeModel model) {
  if (model == TimeModel::kPipelined)
    return static_cast<double>(LeastUsefulBytes(topology)) / kSlicesOfMessage;
  double most = 1;
  for (const Link& link : topology.spec().links)
    most = std::max(most, 1e-12 * static_cast<double>(link.bandwidth_bytes_per_s) *
                              static_cast<double>(link.latency_ps + link.overhead_ps));
  return most;
}

// Chooses the number of slices. Let b be the bytes of a tree's share, d the arcs to the deepest rank after
// the first arc, and u the cost of a slice in bytes. With s slices a tree takes the time of b + d × b/s + s ×
// u bytes. The least is at s = √(d × b / u). Trees that share links take turns with one slice each. Other
// trees use long messages if slices are shorter than kFineSegmentBytes. In the blocking model a message waits
// for all of its chunks and is never long. Given chunks are dealt to the trees, without long messages.
Slicing SlicingOf(const SynthesisRequest& request, const Packed& packed) {
  const auto trees = static_cast<int32_t>(packed.trees.size());
  if (const auto& given = request.limits.chunks) return {.slices = (*given + trees - 1) / trees};
  const int64_t bytes = CollectiveSizes(*request.collective, request.size_bytes).size_bytes() / trees;
  const int64_t arcs = int64_t{trees} * (request.topology->num_ranks() - 1);
  const int64_t depth = std::max(1, DepthOf(packed.trees));
  const int64_t most_steps = request.limits.steps.value_or(std::numeric_limits<int32_t>::max());
  const double best = std::sqrt(static_cast<double>(depth - 1) * static_cast<double>(bytes) /
                                BytesOfSlice(*request.topology, request.model));
  int64_t slices = std::min(static_cast<int64_t>(best), kManyTransfers / arcs);
  const bool is_short = bytes < slices * kFineSegmentBytes;
  const bool long_messages = request.model == TimeModel::kPipelined && !packed.shared && is_short;
  if (!packed.shared && !is_short) slices = std::min(slices, kMostLongSlices);
  if (!long_messages) slices = std::min(slices, most_steps / depth);
  return {.slices = static_cast<int32_t>(std::max<int64_t>(1, slices)), .long_messages = long_messages};
}

// Estimates the time of the plan: the busiest link's time, plus the time of a small piece to the deepest
// rank. Chunks are dealt out to the trees in turn. The piece is a whole chunk in the blocking model. The
// piece is also a whole chunk if trees share links and the number of chunks is given, because chunks of
// different trees wait for each other.
double EstimatePs(const SynthesisRequest& request, const Packed& packed, const Slicing& slicing) {
  const Topology& topology = *request.topology;
  const double bytes =
      static_cast<double>(CollectiveSizes(*request.collective, request.size_bytes).size_bytes());
  const auto trees = static_cast<int32_t>(packed.trees.size());
  const int32_t chunks = request.limits.chunks.value_or(trees);
  const double chunk = bytes / chunks;
  std::vector<int32_t> load(static_cast<size_t>(topology.num_links()), 0);
  const bool pieces =
      request.model == TimeModel::kPipelined && !(packed.shared && request.limits.chunks.has_value());
  const double short_chunk = slicing.long_messages ? chunk / slicing.slices : chunk;
  double busiest_ps = 0, hop_ps = 0;
  for (int32_t t = 0; t < trees; ++t) {
    const int32_t own = chunks / trees + (t < chunks % trees ? 1 : 0);
    for (int32_t a : packed.trees[t].arcs) {
      const Link& link = topology.link(LinkId(a));
      const double ps_per_byte = 1e12 / static_cast<double>(link.bandwidth_bytes_per_s);
      busiest_ps = std::max(busiest_ps, (load[a] += own) * chunk * ps_per_byte);
      const double piece = pieces ? std::min(short_chunk, static_cast<double>(kFineSegmentBytes)) : chunk;
      hop_ps =
          std::max(hop_ps, static_cast<double>(link.latency_ps + link.overhead_ps) + piece * ps_per_byte);
    }
  }
  return busiest_ps + DepthOf(packed.trees) * hop_ps;
}

// Makes the schedule. Chunk c is slice c ÷ trees of tree c mod trees. With long messages the slices of a tree
// are consecutive chunks instead.
Synthesis MakeSchedule(const SynthesisRequest& request, const Packed& packed, const Slicing& slicing,
                       bool reversed) {
  const Topology& topology = *request.topology;
  const int32_t trees = static_cast<int32_t>(packed.trees.size());
  const int32_t chunks = request.limits.chunks.value_or(trees * slicing.slices);
  Synthesis made{request.collective->WithChunks(chunks), {}, false, "forest", ""};
  Schedule& schedule = made.schedule;
  schedule.num_chunks = chunks;
  const int32_t depth = DepthOf(packed.trees);
  std::vector<int32_t> level(static_cast<size_t>(topology.num_ranks()));
  const int32_t run = slicing.long_messages ? slicing.slices : 1;
  for (int32_t m = 0; m < chunks / run; ++m) {
    const int32_t before = m / trees * depth;
    const ChunkId first(int64_t{m} * run);
    std::fill(level.begin(), level.end(), 0);
    for (int32_t a : packed.trees[m % trees].arcs) {
      const LinkId path[] = {LinkId(a)};
      const Link& link = topology.link(path[0]);
      const Rank from = *topology.RankOf(link.from), to = *topology.RankOf(link.to);
      const Rank parent = reversed ? to : from, child = reversed ? from : to;
      const int32_t below = level[child.index()] = level[parent.index()] + 1;
      if (reversed) {
        schedule.Add(first, run, from, to, path, TransferOp::kReduce, before + depth - below);
      } else {
        schedule.Add(first, run, from, to, path, TransferOp::kCopy, before + below - 1);
      }
    }
  }
  Normalize(schedule);
  made.note = fmt::format("{} trees, depth {}", trees, depth);
  return made;
}

// Returns the numbers of trees to try; nullopt means as many as the cut allows. One tree is tried because it
// is the shallowest. If `chunks` is given, also tries one tree for each chunk, up to kMostArborescences, and
// the largest such number of trees that divides `chunks`.
std::vector<std::optional<int32_t>> TreesToTry(std::optional<int32_t> chunks) {
  if (!chunks) return {std::nullopt, 1};
  const int32_t most = std::min(*chunks, kMostArborescences);
  std::vector<std::optional<int32_t>> numbers = {std::nullopt, most};
  int32_t divisor = most;
  while (*chunks % divisor != 0) --divisor;
  if (divisor != most) numbers.emplace_back(divisor);
  if (divisor != 1 && most != 1) numbers.emplace_back(1);
  return numbers;
}

struct Choice {
  Packed packed;
  Slicing slicing;
  double estimate_ps = 0;
};

}  // namespace

StatusOr<Synthesis> SynthesizeBroadcastTrees(const SynthesisRequest& request) {
  const Topology& topology = *request.topology;
  const Collective& collective = *request.collective;
  XCCL_RETURN_IF_ERROR(NeedsGpusAlone(request));
  if (collective.num_members() == 1) return NothingToMove("forest", request);
  const Rank root = *collective.spec().root;
  const bool reversed = collective.kind() == CollectiveKind::kReduce;
  const std::optional<int32_t> given = request.limits.chunks;
  StepBudget budget("forest", request);
  std::optional<Choice> best;
  for (const std::optional<int32_t> number : TreesToTry(given)) {
    std::optional<Packed> packed = Pack(topology, root, reversed, number);
    if (!packed) continue;
    const int32_t trees = static_cast<int32_t>(packed->trees.size());
    if (given && trees > *given) continue;
    const Slicing slicing = SlicingOf(request, *packed);
    if (!budget.Allows(slicing.NumSteps(*packed))) continue;
    const double estimate_ps = EstimatePs(request, *packed, slicing);
    if (best && estimate_ps >= best->estimate_ps) continue;
    best = Choice{*std::move(packed), slicing, estimate_ps};
  }
  if (!best && budget.HasRefused()) return budget.Refusal();
  if (!best)
    return InvalidInput(
        fmt::format("forest: {}: bandwidths add up to 2^62 times their common "
                    "divisor or more; expected less; hint: "
                    "--engine=greedy",
                    topology.name()));
  return MakeSchedule(request, best->packed, best->slicing, reversed);
}

}  // namespace xccl::forest
