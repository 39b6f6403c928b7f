// Counts that describe a schedule to people: none of them is a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

struct ScheduleStats {
  int64_t transfers = 0;
  int64_t messages = 0;
  int32_t steps = 0;
  // SCCL's rounds: a link carries bandwidth ÷ gcd of all bandwidths chunks in one round; a step takes as many
  // rounds as its fullest link.
  int64_t rounds = 0;
  int32_t depth = 0;  // most transfers that any piece of data goes through, one after the other
};

// Of a compressed schedule, the counts of its plain form. Requires: a normalized schedule that verifies.
// Cost: linear in transfers × chunks each moves × links of a path.
ScheduleStats Stats(const Schedule& schedule, const Collective& collective, const Topology& topology);

// The ranks that are no members and carry data for those that are, ascending. Requires: as Stats. Linear.
std::vector<Rank> RelaysOf(const Schedule& schedule, const Collective& collective, const Topology& topology);

}  // namespace xccl
