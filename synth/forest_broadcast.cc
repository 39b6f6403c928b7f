// The least cut says how many trees of which rate there can be (synth/arborescences.h makes them); a
// reduction is the same on the links turned round. Each tree's chunk is cut into slices that run one behind
// the other, all of one before the first step of the next, which lets the simulator and the program cut
// finely within them.
#include "synth/forest_broadcast.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/bound_cut.h"
#include "ir/sizes.h"
#include "synth/arborescences.h"
#include "synth/forest_allreduce.h"
#include "synth/step_limit.h"

namespace xccl {
namespace {

constexpr int64_t kMostTransfers = 300'000;
constexpr int32_t kMostSlices = 8;            // where no two trees share a link
constexpr int32_t kMostSharedSlices = 256;    // where trees wait for each other
constexpr int64_t kLeastSliceBytes = 131072;  // smaller ones gain nothing
constexpr double kPieceBytes = 65536;         // what the simulator cuts slices into
constexpr int32_t kRoomSearch = 12;           // halvings of the room's scale

struct Packed {
  std::vector<Arborescence> trees;
  bool shared = false;  // a link may be in several trees
};

// Least bandwidth between the root and any rank when link l has room[l] B/s; 0: not reached.
int64_t LeastCut(const Topology& topology, Rank root, bool reversed, std::span<const int64_t> room) {
  TopologySpec spec = topology.spec();
  spec.links.clear();
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    if (room[l] == 0) continue;
    spec.links.push_back(topology.link(LinkId(l)));
    spec.links.back().bandwidth_bytes_per_s = room[l];
  }
  const StatusOr<Topology> limited = Topology::Create(std::move(spec));
  if (!limited.ok()) return 0;
  CutProblem problem;
  problem.reversed = reversed;
  problem.supply_bytes.assign(static_cast<size_t>(topology.num_nodes()), 0);
  problem.supply_bytes[topology.NodeOf(root).index()] = 1;
  for (int32_t r = 0; r < topology.num_ranks(); ++r)
    if (Rank(r) != root) problem.sinks.push_back(topology.NodeOf(Rank(r)));
  const std::optional<WorstCut> cut = FindWorstCut(*limited, problem);
  return cut ? cut->bytes_per_s / cut->bytes : 0;
}

std::optional<Packed> PackWithRoom(const Topology& topology, Rank root, bool reversed, int64_t k,
                                   std::span<const int64_t> room) {
  std::vector<RoomyArc> arcs;
  Packed packed;
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    const int32_t from = topology.RankOf(link.from)->value, to = topology.RankOf(link.to)->value;
    const int32_t trees = static_cast<int32_t>(std::min(room[l], k));
    packed.shared |= trees > 1;
    arcs.push_back(reversed ? RoomyArc{to, from, trees} : RoomyArc{from, to, trees});
  }
  std::optional<std::vector<Arborescence>> trees =
      PackArborescences(topology.num_ranks(), root.value, static_cast<int32_t>(k), arcs);
  if (!trees) return std::nullopt;
  packed.trees = *std::move(trees);
  return packed;
}

// As many trees as the least cut allows where that is a small number of the unit of all bandwidths, or
// `given` ones: then room in proportion to the bandwidths, as little as lets them through.
std::optional<Packed> Pack(const Topology& topology, Rank root, bool reversed, std::optional<int32_t> given) {
  std::vector<int64_t> bandwidth;
  int64_t unit = 0;
  for (const Link& link : topology.spec().links) bandwidth.push_back(link.bandwidth_bytes_per_s);
  const int64_t cut = LeastCut(topology, root, reversed, bandwidth);
  if (cut == 0) return std::nullopt;
  unit = cut;
  for (int64_t b : bandwidth) unit = std::gcd(unit, b);
  std::vector<int64_t> room;
  if (!given && cut / unit <= std::max(topology.num_ranks(), kMostArborescences)) {
    for (int64_t b : bandwidth) room.push_back(b / unit);
    if (std::optional<Packed> packed = PackWithRoom(topology, root, reversed, cut / unit, room))
      return packed;
  }
  const int64_t k = given.value_or(kMostArborescences);
  double low = static_cast<double>(k) / static_cast<double>(cut) * (1 - 1e-12), high = 0;
  const auto set_room = [&](double scale) {
    room.clear();
    for (int64_t b : bandwidth)
      room.push_back(std::min<int64_t>(k, static_cast<int64_t>(static_cast<double>(b) * scale)));
  };
  for (double step = low / 64; high == 0; step *= 2) {
    set_room(low + step);
    if (LeastCut(topology, root, reversed, room) >= k) high = low + step;
  }
  for (int32_t i = 0; i < kRoomSearch; ++i) {
    const double middle = (low + high) / 2;
    set_room(middle);
    (LeastCut(topology, root, reversed, room) >= k ? high : low) = middle;
  }
  set_room(high);
  return PackWithRoom(topology, root, reversed, k, room);
}

// Bytes over the busiest link, and the way to the deepest rank for a small piece.
double EstimatePs(const SynthesisRequest& request, const Packed& packed) {
  const Topology& topology = *request.topology;
  const double bytes =
      static_cast<double>(CollectiveSizes(*request.collective, request.size_bytes).size_bytes());
  const double chunk = bytes / static_cast<double>(packed.trees.size());
  std::vector<int32_t> load(static_cast<size_t>(topology.num_links()), 0);
  double busiest_ps = 0, hop_ps = 0;
  int32_t depth = 0;
  for (const Arborescence& tree : packed.trees) {
    depth = std::max(depth, tree.depth);
    for (int32_t a : tree.arcs) {
      const Link& link = topology.link(LinkId(a));
      const double ps_per_byte = 1e12 / static_cast<double>(link.bandwidth_bytes_per_s);
      busiest_ps = std::max(busiest_ps, ++load[a] * chunk * ps_per_byte);
      const double piece = request.model == TimeModel::kPipelined ? std::min(chunk, kPieceBytes) : chunk;
      hop_ps =
          std::max(hop_ps, static_cast<double>(link.latency_ps + link.overhead_ps) + piece * ps_per_byte);
    }
  }
  return busiest_ps + depth * hop_ps;
}

int32_t Slices(const SynthesisRequest& request, const Packed& packed) {
  const int64_t trees = static_cast<int64_t>(packed.trees.size());
  const int64_t bytes = CollectiveSizes(*request.collective, request.size_bytes).size_bytes();
  const int64_t slices = std::min({int64_t{packed.shared ? kMostSharedSlices : kMostSlices},
                                   kMostTransfers / (trees * (request.topology->num_ranks() - 1)),
                                   bytes / trees / kLeastSliceBytes});
  return static_cast<int32_t>(std::max<int64_t>(1, slices));
}

// Chunk c is slice c ÷ trees of tree c mod trees.
Synthesis MakeSchedule(const SynthesisRequest& request, const Packed& packed, int32_t slices, bool reversed) {
  const Topology& topology = *request.topology;
  const int32_t trees = static_cast<int32_t>(packed.trees.size());
  Synthesis made{request.collective->WithChunks(trees * slices), {}, false, "forest", ""};
  Schedule& schedule = made.schedule;
  schedule.num_chunks = trees * slices;
  int32_t depth = 0;
  for (const Arborescence& tree : packed.trees) depth = std::max(depth, tree.depth);
  std::vector<int32_t> level(static_cast<size_t>(topology.num_ranks()));
  for (int32_t c = 0; c < schedule.num_chunks; ++c) {
    const int32_t before = c / trees * depth;
    std::fill(level.begin(), level.end(), 0);
    for (int32_t a : packed.trees[c % trees].arcs) {
      const LinkId path[] = {LinkId(a)};
      const Link& link = topology.link(path[0]);
      const Rank from = *topology.RankOf(link.from), to = *topology.RankOf(link.to);
      const Rank parent = reversed ? to : from, child = reversed ? from : to;
      const int32_t below = level[child.index()] = level[parent.index()] + 1;
      if (reversed) {
        schedule.Add(ChunkId(c), 1, from, to, path, TransferOp::kReduce, before + depth - below);
      } else {
        schedule.Add(ChunkId(c), 1, from, to, path, TransferOp::kCopy, before + below - 1);
      }
    }
  }
  Normalize(schedule);
  made.note = fmt::format("{} trees, depth {}", trees, depth);
  return made;
}

}  // namespace

StatusOr<Synthesis> SynthesizeBroadcastTrees(const SynthesisRequest& request) {
  const Topology& topology = *request.topology;
  const Collective& collective = *request.collective;
  XCCL_RETURN_IF_ERROR(NeedsGpusAlone(request));
  const bool reversed = collective.kind() == CollectiveKind::kReduce;
  const std::optional<int32_t> chunks = request.limits.chunks;
  Packed packed;
  int32_t slices = chunks.value_or(1);
  if (collective.num_members() == 1) {
    packed.trees.resize(1);
  } else {
    std::optional<int32_t> given;
    if (chunks) given = std::min(*chunks, kMostArborescences);
    while (given && *chunks % *given != 0) --*given;
    std::optional<Packed> found = Pack(topology, *collective.spec().root, reversed, given);
    if (!found)
      return BugError(fmt::format("forest: {}: no trees although all ranks are reachable", topology.name()));
    packed = *std::move(found);
    // One tree alone is the shallowest.
    if (!chunks)
      if (std::optional<Packed> one = Pack(topology, *collective.spec().root, reversed, 1))
        if (EstimatePs(request, *one) < EstimatePs(request, packed)) packed = *std::move(one);
    slices = chunks ? *chunks / static_cast<int32_t>(packed.trees.size()) : Slices(request, packed);
  }
  Synthesis made = MakeSchedule(request, packed, slices, reversed);
  XCCL_RETURN_IF_ERROR(CheckStepsUsed("forest", request, made.schedule.num_steps()));
  return made;
}

}  // namespace xccl
