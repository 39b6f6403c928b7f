// Where rings lie: directed cycles through the members that together use the links well.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
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
  int64_t latency_ps = 0;  // of the slowest hop
};

inline constexpr int32_t kMaxRings = 32;

// As many rings as raise the bandwidth: edge-disjoint cycles of a grid, a torus or a full mesh in both
// directions; elsewhere a search that keeps domains together, enters and leaves them over different NICs, and
// holds links' remaining bandwidth. Errors: kInvalidInput when no cycle was found.
StatusOr<Rings> PlaceRings(const RankGraph& graph, std::span<const Rank> members, std::string_view engine);

}  // namespace xccl
