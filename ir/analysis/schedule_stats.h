// Counts that describe a schedule; none is a time.
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
  // Rounds as in SCCL: in one round a link carries (its bandwidth ÷ the gcd of all bandwidths) chunks. A
  // step takes as many rounds as its fullest link.
  int64_t rounds = 0;
  int32_t depth = 0;  // the most transfers that any piece of data goes through in sequence
};

// Returns the counts; for a compressed schedule, those of its plain form. Requires: a normalized schedule
// that verifies. Cost: linear in transfers × chunks each moves × links of a path.
ScheduleStats Stats(const Schedule& schedule, const Collective& collective, const Topology& topology);

// The messages and bytes that a schedule puts on links at one size.
struct LinkUse {
  int64_t messages = 0;
  double message_bytes = 0;        // mean size of a message
  double between_hosts_bytes = 0;  // bytes that leave hosts; a byte counts each time it leaves a host
  // The slowest link that carries a message; 0 if no message is sent.
  int64_t slowest_bytes_per_s = 0;
  // Time that the fullest link needs for its bytes alone.
  double fullest_ps = 0;
};
// Returns the use of links; for a compressed schedule, that of its plain form. Requires: as Stats. Cost:
// linear in the links of all paths and of the topology, and in the chunks that the transfers move.
LinkUse LinkUseOf(const Schedule& schedule, const Collective& collective, const Topology& topology,
                  int64_t size_bytes);

// Returns the ranks, ascending, that carry data but are not members. Requires: as Stats. Linear.
std::vector<Rank> RelaysOf(const Schedule& schedule, const Collective& collective, const Topology& topology);

}  // namespace xccl
