// Flows over time (Ford and Fulkerson 1958): an arc takes `capacity` in a unit of time, and what enters it
// comes out `cost` later. What gets from the sources to the sinks by time T is the largest T × value - cost
// of any flow that stands still, so that a step of the cheapest flow brings amount × (T - its cost). One
// series of steps gives the answer for every T.
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

// The least time, rounded down, if it is above `above`. The search ends as soon as it is known to be not.
// Absent, too, where no sink is reached. Requires: amount × times, and the time × all capacities, are below
// 2^126.
std::optional<int64_t> LeastTime(MinCostFlow& network, const TimeQuery& query, int64_t above = -1);

// What can get there by `time`, less the query's amount, both multiplied by `times`.
__int128 SurplusBy(MinCostFlow& network, const TimeQuery& query, int64_t time);

}  // namespace xccl
