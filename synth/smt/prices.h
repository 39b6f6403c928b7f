// Bounds the rounds of a collective in a given number of steps, for any number of chunks. The bound is an
// exact rational that the prices of a linear program prove.
//
// A *pattern* is a set of sends (edge, step) that serves one chunk: the chunk gets within the steps to all
// ranks that need it. For copies a pattern is a tree. Let a send over a capacity in a step cost
// price(capacity, step). All chunks together then cost at least Σ chunks × cheapest pattern. R rounds have
// room for at most R × M, where M is the largest Σ per_round × price of a step. So R >= (Σ chunks × cheapest
// pattern) ÷ M for any prices.
//
// The best prices are the dual of the linear program that distributes the chunks over patterns. That program
// is solved by adding patterns (Gilmore and Gomory 1961). Chunks compete only for capacities, so schedules of
// enough chunks reach the best bound.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "synth/smt/instance.h"

namespace xccl::smt {

using Pattern = std::vector<Send>;  // the sends of one chunk

// A lower bound on the rounds for one chunk per part: numerator ÷ denominator; zero: nothing is known.
struct RoundsBound {
  int64_t numerator = 0, denominator = 1;
  bool operator==(const RoundsBound&) const = default;
  bool IsLessThan(const RoundsBound& other) const;
  // Returns the rounds for `times` as many chunks, rounded up.
  int64_t Rounds(int64_t times = 1) const;
};
RoundsBound InLowestTerms(const RoundsBound& bound);

// Chunks that are interchangeable, directly or under translations.
struct ChunkOrbit {
  int32_t chunk = 0;   // a chunk that represents the orbit
  int64_t chunks = 0;  // number of chunks in the orbit
};

using EdgePrices = std::vector<std::vector<int64_t>>;  // [step][edge], >= 0
struct Priced {
  Pattern pattern;       // cheapest pattern found; empty: no pattern below the limit was found
  int64_t cost = 0;      // price of the pattern
  bool proved = false;   // no pattern costs less; if `pattern` is empty, less than the limit
  bool stopped = false;  // work or time ran out, or the search failed: nothing is known
};
// Searches for a pattern of the orbit's representative that costs less than `below`. The pattern found is not
// always the cheapest. A search may ignore `below` and return the cheapest pattern.
using PatternSearch = std::function<Priced(size_t orbit, const EdgePrices& prices, int64_t below)>;

struct PriceOptions {
  int32_t steps = 0;
  // A capacity has one price for all steps. The bound then holds for any number of steps up to `steps`, but
  // is weaker if there are few steps.
  bool untimed = false;
  int64_t scale = int64_t{1} << 20;  // prices without a small common denominator: multiples of 1/scale
  RoundsBound target = {};           // bound proved by other means; returned if prices cannot prove more
  std::function<bool()> stopped = {};
};

struct PriceResult {
  RoundsBound bound;        // what the prices prove, or the target
  bool infeasible = false;  // it is proved that some chunk has no pattern
};

// Finds the best bound, or a lower one if a limit ends the search. `images` is a group that maps classes of
// chunks to each other. The result is deterministic if `search` and `stopped` are. Cost: rounds of the method
// (tens to some hundreds) × orbits × one search.
PriceResult SolvePrices(const Machine& machine, const std::vector<Image>& images,
                        const std::vector<ChunkOrbit>& orbits, const PatternSearch& search,
                        const PriceOptions& options);

// Returns the bound of SolvePrices() for copies, whose patterns are trees. Returns zero if a search over
// trees would be long. Requires that every need can be met within the steps.
RoundsBound PriceCopies(const Machine& machine, const CopyProblem& problem, const std::vector<Image>& images,
                        const PriceOptions& options);

}  // namespace xccl::smt
