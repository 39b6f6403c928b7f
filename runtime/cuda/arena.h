// The device memory that connects ranks. Every rank has one arena, which its peers map: the slots it receives
// into, its counters, its peers' records of their buffers, its threadblocks' state. The layout follows from
// the Program alone, so all ranks know it of each other and exchange only the arena's address. The tables
// that a kernel reads (device/abi.h) are made from the addresses.
//
// Groups. The ranks of a group, root and members, are a *team*. Every rank of a team has one region in its
// arena with slots for each group of the team, at the same place in all of them. One multicast object over
// the regions thus serves all groups. A region begins and ends at a multiple of kRegionAlignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "device/abi.h"
#include "ir/program.h"
#include "runtime/cuda/driver.h"

namespace xccl::cuda {

using device::kWindows;

// The properties that every rank must share to be connected.
struct ArenaShape {
  int32_t instances = 1;
  int32_t slots = 2;
  int64_t slot_bytes = 0;
  int32_t blocks_per_rank = 0;
  std::vector<int32_t> host_of = {};  // by rank; empty: all are of this host
  bool operator==(const ArenaShape&) const = default;
};

struct ArenaOptions {
  int64_t slot_bytes = 0;            // wanted; 0: up to 1 MiB, and 16 MiB a connection
  int64_t largest_message = 0;       // where no slot_bytes are wanted, slots are no larger; 0: not known
  int64_t memory_limit = 1LL << 30;  // for a rank's arena, and its slots of connections between hosts
  std::string memory_hint = "--slot-memory";  // the caller's name of memory_limit, for errors
  std::vector<int32_t> host_of = {};          // as ArenaShape's
};

// The shape within the limit: slots shrink to no less than 4 KiB. Errors: kInvalidInput "NAME: connections of
// rank 3: ... need N bytes; the limit is M bytes; hint: --slot-memory".
StatusOr<ArenaShape> ChooseShape(const Program& program, int32_t blocks_per_rank, int32_t instances,
                                 const ArenaOptions& options, const std::string& name);

// The alignment that a driver may demand of memory bound to a multicast object: 2 MiB on GPUs so far.
inline constexpr int64_t kRegionAlignment = 2 << 20;

struct Team {
  std::vector<Rank> ranks;      // ascending
  std::vector<int32_t> groups;  // in Program::groups, ascending
  int64_t bytes = 0;            // size of a region
  bool operator==(const Team&) const = default;
};
// The ranks of groups of switches, in the order of their first groups. The slots of groups[g] and instance i
// lie in a region at (g × instances
// + i) × GroupSlotsBytes(shape).
std::vector<Team> TeamsOf(const Program& program, const ArenaShape& shape);
int64_t GroupSlotsBytes(const ArenaShape& shape);

// Byte offsets within a rank's arena.
struct ArenaLayout {
  struct End {
    Rank peer;
    bool sends = false;
    bool of_switch = false;  // the connection is in a group of a switch
    size_t peer_end = 0;     // index of the other end in the peer's layout
    int64_t counter = 0;     // head where it receives, tail where it sends
    int64_t steps = 0, entry = 0;
    std::optional<int64_t> slots = {};  // in this rank's memory; if it receives or sends to a reduce group
    // Set if the peer is of another host: the place of this end among this rank's cells and slots of
    // connections between hosts (runtime/cuda/proxy.h). Then counter, entry and slots are not used.
    std::optional<int32_t> cell = {};
  };
  // The end of a group that this rank is the root of.
  struct GroupEnd {
    size_t group = 0;                 // in Program::groups
    std::optional<size_t> team = {};  // in TeamsOf; absent in a fan-in
    int64_t slots = 0;                // in the team's regions
    std::vector<size_t> ends = {};    // its members' ends, in order
    int64_t steps = 0, holds = 0, members = 0;
  };
  std::vector<End> ends;                        // [k × instances + instance], k as in device::RankArgs
  std::vector<GroupEnd> groups;                 // likewise
  std::vector<std::optional<int64_t>> regions;  // by team
  int64_t blocks = 0;                           // BlockStates
  int64_t stop = 0;
  int64_t fifo = 0;   // device::Fifo, where there are cells
  int32_t cells = 0;  // ends whose peer is of another host
  // Deltas: [rank of the program][kWindows], then, where there are teams, the rows of
  // GroupConnection::switch_delta.
  int64_t windows = 0;
  int64_t connections = 0;        // device::Connection, one an end
  int64_t group_connections = 0;  // device::GroupConnection
  int64_t slot_arrays = 0;        // number of arrays of slots × slot_bytes
  int64_t bytes = 0;
};

// The result is by rank. Cost: linear in connections × instances + ranks.
IdVector<Rank, ArenaLayout> LayoutArenas(const Program& program, const ArenaShape& shape);

// A rank's memory of connections with other hosts, as its device sees it.
struct RemoteMemory {
  DevicePointer slots = 0, cells = 0;
};

// A rank's device::Connections. `arenas`: the address of every rank's arena as this rank sees it; only the
// addresses of peers on this host are read.
std::vector<device::Connection> ConnectionsOf(const IdVector<Rank, ArenaLayout>& layouts,
                                              const ArenaShape& shape, Rank rank,
                                              std::span<const DevicePointer> arenas,
                                              const RemoteMemory& remote = {});
// The parts of a root's arena that describe its groups: device::GroupMembers, to be written at
// ArenaLayout::GroupEnd::members, and the GroupConnections. `switches`: by team.
struct TeamSwitch {
  DevicePointer multicast = 0;   // the address at which a switch serves the team's regions; 0: none does
  bool reaches_buffers = false;  // the switch reaches buffers that all ranks register
};
struct GroupTables {
  std::vector<std::vector<device::GroupMember>> members;  // as ArenaLayout::groups
  std::vector<device::GroupConnection> connections;
};
GroupTables GroupTablesOf(const Program& program, const IdVector<Rank, ArenaLayout>& layouts,
                          const ArenaShape& shape, Rank rank, std::span<const DevicePointer> arenas,
                          std::span<const TeamSwitch> switches, const RemoteMemory& remote = {});

}  // namespace xccl::cuda
