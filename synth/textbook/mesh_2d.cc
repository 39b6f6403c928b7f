// Rows, then columns. In a dimension all ranks of a line exchange what they have directly, so that a rank
// meets 2 (sqrt n - 1) others in place of n - 1. alltoall: a rank hands everyone of its row what is for that
// one's column, and what came is handed on in the column: 2 alpha + 2 S beta where all are next to each other
// (the mesh strategy of Kale, Kumar and Varadarajan, IPDPS 2003). allgather: columns' blocks follow the rows'
// own; on links of their own one share of every block starts with each dimension (Barnett et al., 1994).
// Where the machine is a mesh or torus, lines are its links and a message passes the ranks between. There a
// broadcast goes down two trees that share no link, half of the data each: along the root's row and from it
// along the columns, and the other way about; what the first cannot reach, the root's column, it enters from
// the column beside. S/2 beta + (rows + columns - 2) alpha from a corner, one alpha more where a side is 2: a
// corner has two links, so that no broadcast on a mesh takes less than S/2 beta.
#include <algorithm>
#include <limits>

#include "synth/textbook/arrange.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "2d-mesh";

// A round a dimension, from `first` on: everyone to everyone of its line.
Rounds LineRounds(const Arrangement& a, size_t first) {
  Rounds rounds{{a.rank, a.member}, {}};
  const int32_t n = rounds.size();
  for (size_t i = 0; i < a.grid.dims.size(); ++i) {
    const size_t dim = (first + i) % a.grid.dims.size();
    const int32_t size = a.grid.dims[dim], stride = a.grid.Stride(dim);
    rounds.rounds.emplace_back();
    for (int32_t turn = 1; turn < size; ++turn) {
      for (int32_t v = 0; v < n; ++v) {
        const int32_t x = v / stride % size;
        rounds.rounds.back().push_back({v, v + ((x + turn) % size - x) * stride, false});
      }
    }
  }
  return rounds;
}

// One of the two trees of a broadcast: along dimension `first` through the root, then along the other one.
class MeshTree {
 public:
  MeshTree(const Arrangement& a, size_t first, int32_t root)
      : a_(a),
        along_(a.grid.dims[first]),
        across_(a.grid.dims[1 - first]),
        along_stride_(a.grid.Stride(first)),
        across_stride_(a.grid.Stride(1 - first)),
        x0_(root / along_stride_ % along_),
        y0_(root / across_stride_ % across_) {}

  void Broadcast(ChunkRange share, Moves& moves) const {
    const auto send = [&](int32_t x, int32_t y, int32_t to_x, int32_t to_y, int32_t step) {
      moves.Add({share, a_.rank[At(x, y)], a_.rank[At(to_x, to_y)], step, TransferOp::kCopy, std::nullopt});
    };
    const auto distance = [](int32_t a, int32_t b) { return std::abs(a - b); };
    for (int32_t x = 0; x < along_; ++x)
      if (x != x0_) send(x < x0_ ? x + 1 : x - 1, y0_, x, y0_, distance(x, x0_) - 1);
    const int32_t beside = x0_ + 1 < along_ ? x0_ + 1 : x0_ - 1;
    for (int32_t y = 0; y < across_; ++y) {
      if (y == y0_) continue;
      for (int32_t x = 0; x < along_; ++x)
        if (x != x0_) send(x, y < y0_ ? y + 1 : y - 1, x, y, distance(x, x0_) + distance(y, y0_) - 1);
      send(beside, y, x0_, y, distance(y, y0_) + 1);
    }
  }

 private:
  int32_t At(int32_t x, int32_t y) const { return x * along_stride_ + y * across_stride_; }

  const Arrangement& a_;
  int32_t along_, across_, along_stride_, across_stride_, x0_, y0_;
};

// Lines pass blocks on: the end of one gets all over one link, a ring shares them between both ways.
Cost MachineAllgatherCost(const Grid& grid, const RankGraph& graph) {
  int64_t narrowest = std::numeric_limits<int64_t>::max(), latency = 0;
  for (int32_t h = 0; h < graph.num_hops(); ++h) {
    narrowest = std::min(narrowest, graph.hop(HopId(h)).bandwidth_bytes_per_s);
    latency = std::max(latency, graph.hop(HopId(h)).latency_ps);
  }
  Cost cost;
  double share = 1.0 / grid.num_ranks();
  for (size_t i = 0; i < grid.dims.size(); ++i) {
    const int32_t d = grid.dims[i];
    cost.fixed_ps += static_cast<double>(latency) * (grid.wraps[i] ? d / 2 : d - 1);
    cost.ps_per_byte += (d - 1) * share / (grid.wraps[i] ? 2 : 1) * 1e12 / static_cast<double>(narrowest) /
                        static_cast<double>(grid.dims.size());
    share *= d;
  }
  return cost;
}

bool HasSharedPorts(const RankGraph& graph) {
  for (int32_t h = 0; h < graph.num_hops(); ++h)
    if (graph.hop(HopId(h)).num_links > 1) return true;
  return false;
}

void SetBroadcast(const Arrangement& arrangement, Recipe& recipe) {
  if (arrangement.is_machine && arrangement.grid.dims.size() == 2) {
    recipe.broadcast = [arrangement](Rank root, ChunkRange all, Moves& moves) {
      const auto vertex = std::find(arrangement.rank.begin(), arrangement.rank.end(), root);
      for (size_t first : {0u, 1u})
        MeshTree(arrangement, first, static_cast<int32_t>(vertex - arrangement.rank.begin()))
            .Broadcast(Piece(all, static_cast<int32_t>(first), 2), moves);
    };
    recipe.broadcast_pieces = 2;
    recipe.pipelines = true;
    return;
  }
  recipe.broadcast = [rounds = LineRounds(arrangement, 0)](Rank root, ChunkRange all, Moves& moves) {
    RoundsBroadcast(rounds, root, all, moves);
  };
}

StatusOr<Recipe> PlaceMesh2d(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Arrangement arrangement, Arrange(graph, request.collective->ranks(), kName));
  const CollectiveKind kind = request.collective->kind();
  const size_t dims = std::max<size_t>(1, arrangement.grid.dims.size());
  std::vector<Rounds> lanes;
  for (size_t first = 0; first < (HasSharedPorts(graph) ? 1 : dims); ++first)
    lanes.push_back(LineRounds(arrangement, first));
  const Rounds& rounds = lanes[0];
  Recipe recipe;
  recipe.root = arrangement.rank[0];
  recipe.lanes = static_cast<int32_t>(lanes.size());
  if (kind == CollectiveKind::kAlltoall || kind == CollectiveKind::kAlltoallv) {
    SetRoundsAlltoallCost(rounds, graph, recipe);
  } else if (kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce) {
    recipe.lanes = 1;
    SetBroadcast(arrangement, recipe);
  } else {
    recipe.allgather_cost = arrangement.is_machine ? MachineAllgatherCost(arrangement.grid, graph)
                                                   : RoundsAllgatherCost(lanes, graph);
  }
  recipe.gather = [rounds](Rank root, const Blocks& blocks, Moves& moves) {
    RoundsGather(rounds, root, blocks, moves);
  };
  recipe.alltoall = [rounds](const Pairs& pairs, Moves& moves) { RoundsAlltoall(rounds, pairs, moves); };
  recipe.allgather = [lanes](const Blocks& blocks, Moves& moves) {
    RoundsAllgatherInLanes(lanes, blocks, moves);
  };
  return recipe;
}

}  // namespace

const TextbookEngine& Mesh2dEngine() {
  static const TextbookEngine engine = {
      kName,
      "everyone with everyone of its row, then of its column: few partners; two trees for a broadcast on a "
      "mesh; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast,
       CollectiveKind::kReduce, CollectiveKind::kGather, CollectiveKind::kScatter, CollectiveKind::kAlltoall,
       CollectiveKind::kAlltoallv, CollectiveKind::kBarrier},
      PlaceMesh2d};
  return engine;
}

}  // namespace xccl
