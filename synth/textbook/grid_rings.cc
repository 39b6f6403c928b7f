// Rings along the dimensions of a grid. allgather: along one dimension after the other, in each by both ways
// round its rings (or both ways along its lines), so that a dimension of d takes floor(d/2) steps on a ring.
// `2d-ring` has one dimension at work at a time. `2d-torus` cuts every block into a piece per dimension, and
// each piece starts with another one, so that all links are busy: on tori latency- and bandwidth-optimal at
// once. Ranks that are all next to each other are arranged as a grid of nearly equal sides.
#include <algorithm>
#include <limits>

#include "synth/textbook/arrange.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

// One dimension of a grid; vertices that share all other coordinates form a line.
class Lines {
 public:
  Lines(const Grid& grid, size_t dim)
      : stride_(grid.Stride(dim)), length_(grid.dims[dim]), wraps_(grid.wraps[dim]) {}
  int32_t length() const { return length_; }
  bool wraps() const { return wraps_; }
  // Steps until the farthest of a line has heard of everyone.
  int32_t Steps() const { return wraps_ ? length_ / 2 : length_ - 1; }
  int32_t At(int32_t v) const { return v / stride_ % length_; }
  int32_t Other(int32_t v, int32_t x) const { return v + (x - At(v)) * stride_; }
  // The neighbour up (+1) or down (-1); absent at a line's end.
  std::optional<int32_t> Next(int32_t v, int32_t way) const {
    const int32_t x = At(v) + way;
    if (!wraps_ && (x < 0 || x >= length_)) return std::nullopt;
    return Other(v, (x + length_) % length_);
  }
  // Does what starts at coordinate x go `hops` (>= 1) far in this direction? On an even ring the farthest is
  // reached by one way alone, which alternates with x and the lane.
  bool Goes(int32_t x, int32_t way, int32_t hops, int32_t lane) const {
    if (!wraps_) return way > 0 ? x + hops < length_ : x - hops >= 0;
    if (2 * hops < length_) return true;
    return 2 * hops == length_ && ((x + lane) % 2 == 0) == (way > 0);
  }

 private:
  int32_t stride_, length_;
  bool wraps_;
};

class GridRings {
 public:
  GridRings(Arrangement arrangement, int32_t lanes) : a_(std::move(arrangement)), lanes_(lanes) {}

  void Allgather(const Blocks& blocks, Moves& moves) const {
    const size_t k = a_.grid.dims.size();
    for (int32_t lane = 0; lane < lanes_; ++lane) {
      // groups[v]: the vertices of whose blocks v has this lane's piece.
      std::vector<std::vector<int32_t>> groups;
      Blocks pieces;
      pieces.resize(blocks.size());
      for (int32_t v = 0; v < static_cast<int32_t>(a_.rank.size()); ++v) {
        const int32_t member = a_.member[v];
        pieces[member] = Share(blocks[member], lane, lanes_, Turn(v));
        groups.emplace_back();
        if (pieces[member].count > 0) groups.back().push_back(v);
      }
      int32_t step = 0;
      for (size_t i = 0; i < k; ++i) {
        const Lines lines(a_.grid, (i + static_cast<size_t>(lane)) % k);
        AllgatherAlong(lines, lane / static_cast<int32_t>(k), groups, pieces, step, moves);
        step += lines.Steps();
        std::vector<std::vector<int32_t>> wider(groups.size());
        for (int32_t v = 0; v < static_cast<int32_t>(groups.size()); ++v)
          for (int32_t x = 0; x < lines.length(); ++x)
            wider[v].insert(wider[v].end(), groups[lines.Other(v, x)].begin(),
                            groups[lines.Other(v, x)].end());
        groups.swap(wider);
      }
    }
  }

  void Broadcast(Rank root, ChunkRange all, Moves& moves) const {
    const size_t k = a_.grid.dims.size();
    const int32_t start =
        static_cast<int32_t>(std::find(a_.rank.begin(), a_.rank.end(), root) - a_.rank.begin());
    for (int32_t lane = 0; lane < lanes_; ++lane) {
      std::vector<int32_t> has = {start};
      int32_t step = 0;
      for (size_t i = 0; i < k; ++i) {
        const Lines lines(a_.grid, (i + static_cast<size_t>(lane)) % k);
        std::vector<int32_t> reached = has;
        for (int32_t v : has) {
          for (int32_t way : {1, -1}) {
            int32_t at = v;
            for (int32_t hops = 1; lines.Goes(lines.At(v), way, hops, lane / static_cast<int32_t>(k));
                 ++hops) {
              const int32_t next = *lines.Next(at, way);
              Add(Piece(all, lane, lanes_), at, next, step + hops - 1, moves);
              reached.push_back(at = next);
            }
          }
        }
        has.swap(reached);
        step += lines.Steps();
      }
    }
  }

 private:
  // Vertices of a line, and of the grid, have all turns about equally often.
  int32_t Turn(int32_t v) const {
    int32_t turn = 0;
    for (size_t i = 0; i < a_.grid.dims.size(); ++i) {
      const int32_t weight = a_.grid.dims[i] >= lanes_ ? 1 : static_cast<int32_t>(i) + 1;
      turn += weight * (v / a_.grid.Stride(i) % a_.grid.dims[i]);
    }
    return turn;
  }
  void AllgatherAlong(const Lines& lines, int32_t parity, const std::vector<std::vector<int32_t>>& groups,
                      const Blocks& pieces, int32_t step, Moves& moves) const {
    std::vector<int32_t> sent;
    for (int32_t hops = 1; hops <= lines.Steps(); ++hops) {
      for (int32_t v = 0; v < static_cast<int32_t>(groups.size()); ++v) {
        for (int32_t way : {1, -1}) {
          // v passes on what started hops-1 before it.
          const int32_t x = lines.At(v) - way * (hops - 1);
          const int32_t start = (x % lines.length() + lines.length()) % lines.length();
          if (x != start && !lines.wraps()) continue;
          if (!lines.Goes(start, way, hops, parity)) continue;
          sent.clear();
          for (int32_t vertex : groups[lines.Other(v, start)]) sent.push_back(a_.member[vertex]);
          SendBlocks(pieces, sent, a_.rank[v], a_.rank[*lines.Next(v, way)], step + hops - 1, moves);
        }
      }
    }
  }
  void Add(ChunkRange chunks, int32_t from, int32_t to, int32_t step, Moves& moves) const {
    moves.Add({chunks, a_.rank[from], a_.rank[to], step, TransferOp::kCopy, std::nullopt});
  }

  Arrangement a_;
  int32_t lanes_;
};

// Per dimension the slowest hop and the narrowest.
StatusOr<Recipe> PlaceGridRings(const RankGraph& graph, const SynthesisRequest& request,
                                std::string_view engine, bool all_at_once) {
  XCCL_ASSIGN_OR_RETURN(Arrangement arrangement, Arrange(graph, request.collective->ranks(), engine));
  const Grid grid = arrangement.grid;
  const int32_t dims = static_cast<int32_t>(grid.dims.size());
  double fixed = 0, sequential = 0, share = 1.0 / request.collective->num_members();
  int64_t narrowest = std::numeric_limits<int64_t>::max(), latency = 0;
  bool shared_ports = false;  // behind a switch all of a rank's copies leave by one port
  for (int32_t h = 0; h < graph.num_hops(); ++h) {
    narrowest = std::min(narrowest, graph.hop(HopId(h)).bandwidth_bytes_per_s);
    latency = std::max(latency, graph.hop(HopId(h)).latency_ps);
    shared_ports |= graph.hop(HopId(h)).num_links > 1;
  }
  bool even_ring = false;
  for (int32_t i = 0; i < dims; ++i) {
    const Lines lines(grid, static_cast<size_t>(i));
    fixed += lines.Steps() * static_cast<double>(latency);
    // A ring's two ways share the load; the end of a line gets everything by one link.
    const double ways = grid.wraps[i] && !shared_ports ? 2 : 1;
    sequential += (grid.dims[i] - 1) * share / ways * 1e12 / static_cast<double>(narrowest);
    share *= grid.dims[i];
    even_ring |= grid.wraps[i] && grid.dims[i] % 2 == 0;
  }
  Recipe recipe;
  recipe.root = request.collective->ranks()[0];
  recipe.lanes = std::max(1, (all_at_once ? dims : 1) * (even_ring ? 2 : 1));
  if (!all_at_once && dims > 1) recipe.lanes = 1;
  recipe.allgather_cost =
      Cost{fixed, all_at_once && dims > 1 && !shared_ports ? sequential / dims : sequential};
  recipe.pipelines = true;
  const GridRings rings(std::move(arrangement), recipe.lanes);
  recipe.allgather = [rings](const Blocks& blocks, Moves& moves) { rings.Allgather(blocks, moves); };
  recipe.broadcast = [rings](Rank root, ChunkRange all, Moves& moves) { rings.Broadcast(root, all, moves); };
  return recipe;
}

StatusOr<Recipe> Place2dRing(const RankGraph& graph, const SynthesisRequest& request) {
  return PlaceGridRings(graph, request, "2d-ring", false);
}
StatusOr<Recipe> Place2dTorus(const RankGraph& graph, const SynthesisRequest& request) {
  return PlaceGridRings(graph, request, "2d-torus", true);
}

std::vector<CollectiveKind> Served() {
  return {CollectiveKind::kAllreduce,     CollectiveKind::kAllgather,      CollectiveKind::kAllgatherv,
          CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast,
          CollectiveKind::kReduce,        CollectiveKind::kBarrier};
}

}  // namespace

const TextbookEngine& Ring2dEngine() {
  static const TextbookEngine engine = {
      "2d-ring", "rings along one dimension of a grid after the other, both ways round; not exact", Served(),
      Place2dRing};
  return engine;
}

const TextbookEngine& Torus2dEngine() {
  static const TextbookEngine engine = {"2d-torus",
                                        "as 2d-ring, with a share of the data starting along each dimension; "
                                        "optimal on tori of equal sides; not exact",
                                        Served(), Place2dTorus};
  return engine;
}

}  // namespace xccl
