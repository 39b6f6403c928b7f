// Proves that a schedule does what its collective says on its topology. Rules (docs/ir.md has the same list):
//   S1 columns agree in length, steps start at 0 and do not decrease, values are in range
//   S2 a path is a chain or tree of links from src to dst that passes no GPU; every link of a
//      multicast starts where an earlier one ended, every link of an in-switch reduction ends where a
//      later one starts; only switches that multicast branch, only switches that reduce join
//   S3 a sender holds what it sends, from before the transfer's step; so does the target of a reduction
//   S4 nothing is reduced twice: what a reduction adds is disjoint from what is there
//   S5 two writes to one (rank, chunk) in one step both reduce
//   S6 the postcondition holds at the end
//   S7 in a compressed schedule: generators are commuting automorphisms of the orders stated, no
//      translation keeps a rank in place, members map to members and parts to equal parts, and the
//      columns move only chunks of the lowest rank of each orbit
//   S8 of a damaged machine: lost and slow links make a whole machine, of which S2 and S7 hold; detours are
//      chains of links that are there, and every translate of a path over a lost link has one
//   S9 with lost hosts: all ranks take part, and the columns are those of the whole machine's ranks; each
//      chunk is sent along a tree to or from the rank of its block; all that heirs of lost ranks take over
//      has a path; in an alltoall a rank that passes a chunk on is lost only with an end of the pair
// Never repairs. Shares no code with synthesizers or the simulator.
#pragma once

#include <string_view>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/verify/traffic.h"
#include "ir/violation.h"
#include "topologies/topology.h"

namespace xccl {

inline constexpr std::string_view kScheduleRules[] = {"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9"};

// All violations up to kMaxViolations, by step where there is one. Cost: linear in transfers × chunks each
// moves, chunk by chunk; besides the index, memory for one chunk's sets (ranks² bits). A compressed
// schedule costs only as much as its columns. Adds the traffic of the columns' transfers to `traffic`, where
// it is given and no hosts are lost.
std::vector<Violation> VerifySchedule(const Schedule& schedule, const Collective& collective,
                                      const Topology& machine, Traffic* traffic = nullptr);

}  // namespace xccl
