// The small programs that MeasureMachine and MeasureHosts run. Each moves a part of the collective that it
// comes with, and verifies where its lanes have paths. At a size of S bytes each part has S bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// A message of so few bytes takes as long as one of a byte: a line of every protocol holds more.
inline constexpr int64_t kSmallBytes = 16;
// Steps of one kind in a row, over which the clock's error is shared out.
inline constexpr int32_t kInARow = 64;
// Messages under way that keep a connection busy: they cover the way of an acknowledgement several times.
inline constexpr int32_t kInFlight = 8;

// Two ranks and the links from one to the other.
struct Lane {
  Rank from, to;
  std::vector<LinkId> path;
};

// A message makes so many rounds of a ring of ranks and ends where it began. Each lane ends where the next
// begins, and no two begin at one rank. Requires: two lanes or more.
StatusOr<LoweredProgram> Rounds(int32_t ranks, std::span<const Lane> ring, int32_t rounds, Protocol protocol);

// Each lane moves a part of its own, cut into as many messages as it has threadblocks at either end.
// Requires: no two lanes have the same ends.
StatusOr<LoweredProgram> Flows(int32_t ranks, std::span<const Lane> lanes, int32_t blocks, Protocol protocol);

// One threadblock of the rank at which all lanes end adds up what the lanes bring, and its own part.
// Requires: two lanes or more.
StatusOr<LoweredProgram> AddUp(int32_t ranks, std::span<const Lane> lanes, Protocol protocol);

// The lane's source copies its part `hand_offs` + 1 times, each copy from the one before, and sends the last.
// Two threadblocks take turns where `several` is set; else one does all. Requires: hand_offs is even.
StatusOr<LoweredProgram> Copies(int32_t ranks, const Lane& lane, int32_t hand_offs, bool several);

// A switch that multicasts, and links of its GPUs.
struct SwitchTree {
  LinkId up;                  // from the root
  std::vector<LinkId> down;   // to the members
  std::vector<Rank> members;  // by link
};
// `blocks` threadblocks of the root multicast its part, in as many messages. Requires: two members or more.
StatusOr<LoweredProgram> Multicasts(const Topology& topology, const SwitchTree& tree, int32_t blocks);

}  // namespace xccl
