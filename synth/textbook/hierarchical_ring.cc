// Rings on hosts (or domains) of equal size. A rail joins the k-th GPUs of all hosts. allgather: rings along
// the rails, then rings inside every host. Played backwards, a reduce_scatter starts inside; an allreduce
// goes inside, across, inside. broadcast: the root deals one piece to each GPU of its host, the pieces run
// along the rails, and every host gathers them.
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"
#include "synth/textbook/rings.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "hierarchical-ring";

struct Hierarchy {
  Hosts hosts;
  std::vector<Rings> inside;         // by host
  int32_t stripes = kMaxRings;       // number of rings used in every host
  std::vector<int32_t> gpu_of_rank;  // the GPU's number within its host

  // Adds ring allgathers inside all hosts, delayed by `step` steps. ranges(gpu, stripe, send) must call
  // send(range) for all chunks of the stripe that start at the GPU with number `gpu` in its host.
  template <typename F>
  void GatherInside(int32_t step, Moves& moves, F ranges) const {
    for (const Rings& rings : inside)
      ForRingMoves(std::span(rings.rings).first(static_cast<size_t>(stripes)),
                   [&](Rank owner, int32_t stripe, Move move) {
                     move.step += step;
                     ranges(gpu_of_rank[owner.index()], stripe, [&](ChunkRange range) {
                       move.chunks = range;
                       moves.Add(move);
                     });
                   });
  }

  void Allgather(const Blocks& blocks, Moves& moves) const {
    const int32_t m = hosts.hosts;
    for (int32_t s = 0; s + 1 < m; ++s)
      for (int32_t h = 0; h < m; ++h)
        for (int32_t k = 0; k < hosts.gpus; ++k)
          moves.Add({blocks[hosts.Member((h - s + m) % m, k)], hosts.At(h, k), hosts.At((h + 1) % m, k), s});
    GatherInside(m - 1, moves, [&](int32_t k, int32_t stripe, auto&& send) {
      for (int32_t h = 0; h < m; ++h) send(Share(blocks[hosts.Member(h, k)], stripe, stripes, h + k));
    });
  }

  void Broadcast(Rank root, ChunkRange all, Moves& moves) const {
    const int32_t m = hosts.hosts, g = hosts.gpus, home = hosts.positions.Of(root) / g;
    for (int32_t k = 0; k < g; ++k) {
      const ChunkRange piece = Piece(all, k, g);
      moves.Add({piece, root, hosts.At(home, k)});
      for (int32_t s = 0; s + 1 < m; ++s)
        moves.Add({piece, hosts.At((home + s) % m, k), hosts.At((home + s + 1) % m, k), s + 1});
    }
    GatherInside(m, moves, [&](int32_t k, int32_t stripe, auto&& send) {
      send(Piece(Piece(all, k, g), stripe, stripes));
    });
  }
};

StatusOr<Hierarchy> MakeHierarchy(const RankGraph& graph, std::span<const Rank> members) {
  Hierarchy made;
  XCCL_ASSIGN_OR_RETURN(made.hosts, EqualHosts(graph, members, kName));
  made.gpu_of_rank.resize(static_cast<size_t>(graph.num_ranks()));
  for (int32_t h = 0; h < made.hosts.hosts; ++h) {
    XCCL_ASSIGN_OR_RETURN(Rings rings, PlaceRings(graph, made.hosts.Host(h), kName));
    made.stripes = std::min(made.stripes, static_cast<int32_t>(rings.rings.size()));
    made.inside.push_back(std::move(rings));
    for (int32_t k = 0; k < made.hosts.gpus; ++k) made.gpu_of_rank[made.hosts.At(h, k).index()] = k;
  }
  return made;
}

// Returns the cost of rings along rails plus the cost of rings inside hosts.
Cost AllgatherCost(const Hierarchy& hierarchy, const RankGraph& graph) {
  const Hosts& hosts = hierarchy.hosts;
  const int32_t m = hosts.hosts, g = hosts.gpus;
  int64_t rail_ps = 0, inside_ps = 0;
  double rail = 1e18, inside = 1e18;  // bytes per second
  for (const Rings& rings : hierarchy.inside) {
    inside_ps = std::max(inside_ps, rings.latency_ps);
    if (g > 1) inside = std::min(inside, static_cast<double>(rings.bandwidth_bytes_per_s));
  }
  for (int32_t h = 0; h < m; ++h) {
    for (int32_t k = 0; k < g; ++k) {
      const std::optional<HopId> hop = graph.Find(hosts.At(h, k), hosts.At((h + 1) % m, k));
      if (!hop) continue;
      rail_ps = std::max(rail_ps, graph.hop(*hop).latency_ps);
      rail = std::min(rail, static_cast<double>(graph.hop(*hop).bandwidth_bytes_per_s));
    }
  }
  return {static_cast<double>((m - 1) * rail_ps + (g - 1) * inside_ps),
          (m - 1.0) / m / g * 1e12 / rail + (g - 1.0) / g / hierarchy.stripes * 1e12 / inside};
}

}  // namespace

StatusOr<Recipe> PlaceHierarchicalRing(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Hierarchy hierarchy, MakeHierarchy(graph, request.collective->ranks()));
  Recipe recipe;
  recipe.root = request.collective->ranks()[0];
  recipe.pieces = hierarchy.stripes;
  recipe.pipelines = true;
  if (BaseOf(request.collective->kind()) == Base::kBroadcast) {
    recipe.pieces *= hierarchy.hosts.gpus;
    recipe.repeats = true;
    recipe.broadcast = [hierarchy](Rank root, ChunkRange all, Moves& moves) {
      hierarchy.Broadcast(root, all, moves);
    };
  } else {
    recipe.cost = AllgatherCost(hierarchy, graph);
    recipe.allgather = [hierarchy](const Blocks& blocks, Moves& moves) {
      hierarchy.Allgather(blocks, moves);
    };
  }
  return recipe;
}

}  // namespace xccl
