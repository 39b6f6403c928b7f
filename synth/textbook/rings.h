// Where rings lie: directed cycles through the members that together use the links well.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "synth/common/moves.h"
#include "synth/common/rank_graph.h"

namespace xccl {

struct Ring {
  std::vector<Rank> order;  // every member once
  std::vector<HopId> hops;  // hops[i]: from order[i] to order[i+1], the last one back to order[0]
};

// Invariant: all rings together, each at bandwidth_bytes_per_s, overload no link.
struct Rings {
  std::vector<Ring> rings;  // at least one; of one member: no hops
  int64_t bandwidth_bytes_per_s = 0;
  int64_t latency_ps = 0;  // the slowest hop's
};

// More rings make pieces small and programs large; a rank with more links is rare.
inline constexpr int32_t kMaxRings = 32;

// As many rings as raise the bandwidth: edge-disjoint cycles of a grid, a torus or a full mesh in both
// directions; elsewhere a search that keeps domains together, enters and leaves them over different NICs, and
// holds links' remaining bandwidth. Errors: kInvalidInput when no cycle was found.
StatusOr<Rings> PlaceRings(const RankGraph& graph, std::span<const Rank> members, std::string_view engine);

// An allgather round these rings of the same members: in step s everyone hands its successor what started s
// before it. f(owner, ring, move) for every move, its chunks unset, step by step.
template <typename F>
void ForRingMoves(std::span<const Ring> rings, F f) {
  const int32_t n = static_cast<int32_t>(rings[0].order.size());
  for (int32_t s = 0; s + 1 < n; ++s) {
    for (int32_t r = 0; r < static_cast<int32_t>(rings.size()); ++r) {
      const Ring& ring = rings[r];
      for (int32_t p = 0; p < n; ++p)
        f(ring.order[(p - s + n) % n], r,
          Move{{}, ring.order[p], ring.order[(p + 1) % n], s, TransferOp::kCopy, ring.hops[p]});
    }
  }
}

}  // namespace xccl
