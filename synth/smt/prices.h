// How many rounds a collective needs in a given number of steps, whatever the number of chunks: a linear
// program over all patterns that serve one chunk, and an exact rational from its prices.
//
// Every chunk is served by a *pattern*: sends (edge, step) by which it gets where it must within the steps
// (for copies a tree). Let a send over a capacity in a step cost price(capacity, step). All chunks together
// cost at least Σ chunks × cheapest pattern, and R rounds have room for at most R × the largest, over steps,
// of Σ per_round × price. So R >= (Σ chunks × cheapest pattern) ÷ (that largest sum), for any prices. The
// best prices are the dual of the program that shares the chunks out over patterns, which is solved by adding
// patterns (Gilmore and Gomory 1961). Chunks disturb each other at the capacities alone, so enough chunks
// reach that bound.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "synth/smt/instance.h"

namespace xccl::smt {

using Pattern = std::vector<Send>;  // of one chunk

// A rational, rounds for one chunk of every class: at least numerator ÷ denominator. Zero: nothing was
// proved.
struct RoundsBound {
  int64_t numerator = 0, denominator = 1;
  bool operator==(const RoundsBound&) const = default;
  bool IsLessThan(const RoundsBound& other) const;
  // Rounds for `times` as many chunks, rounded up.
  int64_t Rounds(int64_t times = 1) const;
};
RoundsBound InLowestTerms(const RoundsBound& bound);

// Chunks that are alike, and alike under translations.
struct ChunkOrbit {
  int32_t chunk = 0;   // one of the class that represents the orbit
  int64_t chunks = 0;  // of all its classes together
};

using EdgePrices = std::vector<std::vector<int64_t>>;  // [step][edge], >= 0
struct Priced {
  Pattern pattern;       // the cheapest that was found; empty: none is cheaper than what was asked for
  int64_t cost = 0;      // of the pattern
  bool proved = false;   // no pattern costs less (where the pattern is empty: less than what was asked for)
  bool stopped = false;  // a limit was met: nothing is known
};
// Patterns of an orbit's representative that cost less than `below`. It need not be the cheapest.
using PatternSearch = std::function<Priced(size_t orbit, const EdgePrices& prices, int64_t below)>;

struct PriceOptions {
  int32_t steps = 0;
  // A price is the same in all steps: valid for any number of steps up to `steps`, weaker where there are
  // few.
  bool untimed = false;
  int64_t scale = int64_t{1} << 20;  // prices that are no small fractions are rounded to this
  RoundsBound target = {};  // known by other means: no plan is better, and one that is as good will do
  std::function<bool()> stopped = {};
};

struct PriceResult {
  RoundsBound bound;        // proved
  bool infeasible = false;  // proved: some chunk has no pattern at all
};

// `images` is a group that keeps the chunks' classes. Deterministic as long as `stopped` is. Cost: rounds of
// the program (tens to some hundreds) × orbits × one search.
PriceResult SolvePrices(const Machine& machine, const std::vector<Image>& images,
                        const std::vector<ChunkOrbit>& orbits, const PatternSearch& search,
                        const PriceOptions& options);

// SolvePrices for copies, whose patterns are trees. Proves nothing if a search over trees would be long.
// Requires: every need can be met within the steps.
RoundsBound PriceCopies(const Machine& machine, const CopyProblem& problem, const std::vector<Image>& images,
                        const PriceOptions& options);

}  // namespace xccl::smt
