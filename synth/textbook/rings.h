// Places rings on a machine: directed cycles through the members that together use the links well.
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

// Rings that run at once. Invariant: no link is overloaded if each ring carries bandwidth_bytes_per_s.
struct Rings {
  std::vector<Ring> rings;  // at least one; a ring of one member has no hops
  int64_t bandwidth_bytes_per_s = 0;
  int64_t latency_ps = 0;  // of the slowest hop
};

// The most rings of a machine. More rings make pieces small and programs large; few ranks have more links.
inline constexpr int32_t kMaxRings = 32;

// Returns the rings with the most total bandwidth that it finds, at most kMaxRings. If all ranks are members,
// a grid, a torus or a full mesh gets edge-disjoint cycles in both directions. Other rings are searched and
// overload no link; if possible, they keep the members of a domain together, and enter and leave a domain
// over different NICs. Errors: kInvalidInput if no cycle was found.
StatusOr<Rings> PlaceRings(const RankGraph& graph, std::span<const Rank> members, std::string_view engine);

// Calls f(owner, ring, move) for every move of an allgather round `rings`, step by step. In step s each rank
// sends its successor the block of `owner`, the rank s places before the sender. `ring` is an index of
// `rings`, whose orders have the same length. Moves have no chunks yet.
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
