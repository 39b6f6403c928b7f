// Flows over time (Ford and Fulkerson 1958): an arc takes `capacity` in a unit of time, and what enters it
// comes out `cost` later. The most that gets from the sources to the sinks by time T is the largest T × value
// - cost of any flow that stands still, so that a step of the cheapest flow brings amount × (T - its cost).
// One series of steps gives the answer for every T.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/graph/min_cost_flow.h"

namespace xccl {

struct TimeQuery {
  std::span<const int32_t> sources, sinks;  // disjoint, not empty
  int64_t amount = 0;                       // to bring from the sources to the sinks; >= 0
  int64_t times = 1;                        // an arc takes `capacity` of it in so many units of time; > 0
};

// The least time in which `query.amount` reaches the sinks, rounded down. Absent if the time is not above
// `above` (the search ends as soon as that is known), or if no sink can be reached. Requires: amount × times,
// and the time × all capacities, are below 2^126.
std::optional<int64_t> LeastTime(MinCostFlow& network, const TimeQuery& query, int64_t above = -1);

// The most that can reach the sinks by `time`, less `query.amount`; the difference is multiplied by
// `query.times`.
__int128 SurplusBy(MinCostFlow& network, const TimeQuery& query, int64_t time);

}  // namespace xccl
