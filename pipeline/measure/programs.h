// Makes the small programs that MeasureMachine runs. Each program comes with the collective whose parts it
// moves. A program verifies if all its lanes have paths. At a size of S bytes each part has S bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// Size of a small message in bytes. Its bytes add no measurable time.
inline constexpr int64_t kSmallBytes = 16;
// How many equal steps run in a row when one step is measured. The clock's error is divided by this number.
inline constexpr int32_t kInARow = 64;
// Messages in flight that keep a connection busy while the sender waits for acknowledgements.
inline constexpr int32_t kInFlight = 8;

// Two ranks and the links from one to the other.
struct Lane {
  Rank from, to;
  std::vector<LinkId> path;
};

// Returns a program in which one message goes round a ring of ranks `rounds` times and returns to its sender.
// Requires at least two lanes, which begin at different ranks. Each lane ends where the next one begins.
StatusOr<LoweredProgram> Rounds(int32_t ranks, std::span<const Lane> ring, int32_t rounds, Protocol protocol);

// Returns a program in which each lane moves its own part with `blocks` threadblocks at either end. Each
// threadblock sends or receives an equal share of the part. Requires that no two lanes have the same ends.
StatusOr<LoweredProgram> Flows(int32_t ranks, std::span<const Lane> lanes, int32_t blocks, Protocol protocol);

// Returns a program for a sum. One threadblock of the rank at which all lanes end adds up the parts that
// arrive over the lanes and its own part. Requires at least two lanes.
StatusOr<LoweredProgram> AddUp(int32_t ranks, std::span<const Lane> lanes, Protocol protocol);

// Returns a program in which the lane's source makes `hand_offs` + 1 copies of its part, each from the copy
// before, and sends the last copy. With `several`, two threadblocks copy alternately; otherwise one
// threadblock makes all copies. Requires an even `hand_offs`.
StatusOr<LoweredProgram> Copies(int32_t ranks, const Lane& lane, int32_t hand_offs, bool several);

// The links of a multicast through one switch.
struct SwitchTree {
  LinkId up;                  // from the root to the switch
  std::vector<LinkId> down;   // from the switch to the members
  std::vector<Rank> members;  // members[i] is at the end of down[i]
};
// Returns a program in which `blocks` threadblocks of the root multicast an equal share of its part each.
// Requires at least two members.
StatusOr<LoweredProgram> Multicasts(const Topology& topology, const SwitchTree& tree, int32_t blocks);

}  // namespace xccl
