// The fewest rounds of an allreduce in a given number of steps, whatever the number of chunks: SolvePrices
// with patterns of sums. Patterns are looked for among in-trees followed by out-trees first, then by Z3,
// which also proves that none is cheaper.
#pragma once

#include <cstdint>

#include "synth/smt/prices.h"
#include "synth/smt/question.h"
#include "synth/smt/sums.h"

namespace xccl::smt {

// Proves nothing where links carry so many chunks a round that their prices, whole numbers, would be too
// small. `problem` has one chunk, which every rank contributes to and needs; `images` may be empty. `target`:
// a bound that holds for any number of steps. Adds Z3's work to `work`. Requires: few ranks, since the trees
// are searched for with all ranks but one as needers (trees.h).
PriceResult PriceSums(const Machine& machine, const SumProblem& problem, const std::vector<Image>& images,
                      int32_t steps, const RoundsBound& target, const SolveLimits& limits, int64_t& work);

}  // namespace xccl::smt
