// Bounds the rounds of an allreduce in a given number of steps, for any number of chunks: SolvePrices() with
// patterns of sums. The search for a pattern tries an in-tree followed by an out-tree first. If no such
// pattern costs less than the limit, Z3 tries all patterns, or proves that none does. Without a limit, Z3
// only looks for a cheaper pattern for a short time.
#pragma once

#include <cstdint>

#include "synth/smt/prices.h"
#include "synth/smt/question.h"
#include "synth/smt/sums.h"

namespace xccl::smt {

// Returns the bound. `problem` has one chunk, which every rank contributes to and needs. `images` may be
// empty. `target` is a bound that holds for any number of steps. Adds Z3's work to `work`. Proves nothing if
// all links together carry more than 600 chunks per round, because prices are small whole numbers. Requires
// few ranks, because the tree search has all ranks but one as needers (trees.h).
PriceResult PriceSums(const Machine& machine, const SumProblem& problem, const std::vector<Image>& images,
                      int32_t steps, const RoundsBound& target, const SolveLimits& limits, int64_t& work);

}  // namespace xccl::smt
