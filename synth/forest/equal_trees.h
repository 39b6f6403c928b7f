// Broadcast trees of equal weight, a given number for each root, that load the links nearly as evenly as that
// many trees can. They serve `--chunks`: every tree carries one chunk.
//
// In: a machine, the roots, their demands. Out: trees. Method: local search over trees that TreeGrower grows;
// no bound on how far the result is from the best such trees is known.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/status.h"
#include "synth/common/fractional_packing.h"
#include "synth/common/packed_trees.h"

namespace xccl::forest {

// The sum that the search minimises: Σ over the links of load^(2^squarings), first for `first` squarings,
// then for one more at a time up to `last`. A low power looks at all links, a high one at the busiest alone.
struct EqualTreesAim {
  int32_t first = 2, last = 5;
  double latency = 0;  // what the mean latency of a link costs, in mean prices of a link
};

struct EqualTrees {
  PackedTrees trees;      // of weight 1, root by root
  double s_per_byte = 0;  // of the busiest link, when each root's demand counts bytes
};

// `trees` trees for each root of the problem; part_of: the part that each root's trees carry. Requires: two
// members or more, each of which can be reached from every root; no symmetry, no pairs. Errors: kLimit when
// `work` is used up before every root has its trees. Cost: links × log a tree and pass, some passes; `work`
// counts links.
StatusOr<EqualTrees> PackEqualTrees(const PackingProblem& problem, std::span<const PartId> part_of,
                                    int64_t trees, const EqualTreesAim& aim, int64_t work);

}  // namespace xccl::forest
