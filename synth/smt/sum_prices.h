// Bounds the rounds of an allreduce in a given number of steps, for any number of chunks: SolvePrices() with
// patterns of sums. The search for a pattern tries an in-tree followed by an out-tree first. Then Z3 tries
// all patterns, and proves that no pattern is cheaper.
#pragma once

#include <cstdint>

#include "synth/smt/prices.h"
#include "synth/smt/question.h"
#include "synth/smt/sums.h"

namespace xccl::smt {

// Returns the bound. `problem` has one chunk, which every rank contributes to and needs. `images` may be
// empty. `target` is a bound that holds for any number of steps. Adds Z3's work to `work`. Proves nothing if
// links carry many chunks per round, because prices are small whole numbers. Requires few ranks, because the
// tree search has all ranks but one as needers (trees.h).
PriceResult PriceSums(const Machine& machine, const SumProblem& problem, const std::vector<Image>& images,
                      int32_t steps, const RoundsBound& target, const SolveLimits& limits, int64_t& work);

}  // namespace xccl::smt
