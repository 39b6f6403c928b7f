// Packs broadcast trees of equal weight, a given number for each root. The search makes the loads of links as
// even as it can with this number of trees. They serve `--chunks`: every tree carries one chunk.
//
// Input: a machine, and roots with demands. Output: trees. Method: local search over trees that TreeGrower
// grows. No bound is known on how far the result is from the best trees.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/status.h"
#include "synth/common/fractional_packing.h"
#include "synth/common/packed_trees.h"

namespace xccl::forest {

// The sum that the search minimizes: Σ over the links of load^(2^squarings). `squarings` rises from `first`
// to `last` one by one. A low power weighs all links; a high power weighs almost only the busiest link.
struct EqualTreesAim {
  int32_t first = 2, last = 5;
  double latency = 0;  // the price of the mean latency of a link, in mean prices of a link
};

struct EqualTrees {
  PackedTrees trees;      // each of weight 1, sorted by root
  double s_per_byte = 0;  // time of the busiest link, if demands count bytes
};

// Packs `trees` trees for each root of the problem. part_of: by root, the part that its trees carry. Requires
// at least two members, that every root reaches every member, no symmetry and no pairs. Errors: kLimit if
// `work` is used up before every root has its trees. `work` counts the links that the search looks at. Cost:
// links × log for each tree and pass, and a few passes.
StatusOr<EqualTrees> PackEqualTrees(const PackingProblem& problem, std::span<const PartId> part_of,
                                    int64_t trees, const EqualTreesAim& aim, int64_t work);

}  // namespace xccl::forest
