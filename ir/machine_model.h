// The time that a machine adds to its links' time when a program runs on it: the launch, the cost of messages
// and hand-offs to threadblocks, the rate of a threadblock, and the share of its datasheet's bandwidth that a
// link reaches. The figures were published (ir/known_machines.h) or measured by `tune` (machine.json of a
// plan book). SimulateProgram uses them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// The most bytes that a threadblock on a GPU has in flight: 512 threads with 8 loads of 16 bytes each
// (device/move.h).
inline constexpr int64_t kBlockBytesInFlight = 64 << 10;

struct ProtocolCost {
  int64_t hop_ps = 0;  // from the arrival of a message's last byte until its receiver can see it
  // Time that an instruction which sends or receives holds its threadblock beside the bytes: polls, barriers,
  // a fence and a flag. It counts once, whatever the number of peers.
  int64_t message_ps = 0;
  int64_t block_bytes_per_s = 0;  // rate at which one threadblock moves data; 0: no limit
  // Rate at which one threadblock reads the operands of a fan-in: its members' messages and its own. 0: the
  // rate at which it moves data.
  int64_t read_bytes_per_s = 0;
  // `data_bytes` of data occupy `wire_bytes` on a link, because flags travel with the data.
  int32_t data_bytes = 1, wire_bytes = 1;
  bool operator==(const ProtocolCost&) const = default;

  int64_t WireBytes(int64_t bytes) const;  // rounded up; saturates
  // Returns how long an instruction holds its threadblock while it moves `bytes` bytes, without message_ps.
  int64_t BlockPs(int64_t bytes) const;
  // Returns how long a fan-in of `operands` operands of `bytes` bytes each holds its threadblock, without
  // message_ps.
  int64_t FanInPs(int64_t bytes, int64_t operands) const;
};

struct MachineModel {
  std::string name = {};    // name of a known machine (ir/known_machines.h): "hopper"; not in files
  std::string source;       // source of the figures
  int64_t launch_ps = 0;    // duration of an operation that moves nothing
  int64_t hand_off_ps = 0;  // from the end of an instruction until another threadblock of its GPU goes on
  // Most that all NVLinks of a GPU carry together in one direction; 0: as much as the topology says.
  int64_t nvlink_bytes_per_s = 0;
  int32_t nic_per_mille = 1000;  // share of its line rate that a NIC reaches; 1..1000
  int64_t nic_hop_ps = 0;        // time that a message through NICs takes beside its links' time
  // Share of a link's bandwidth that multicasts and sums in switches reach; 1..1000.
  int32_t switch_per_mille = 1000;
  std::array<ProtocolCost, kNumProtocols> protocols;  // by Protocol
  bool operator==(const MachineModel&) const = default;

  const ProtocolCost& CostOf(Protocol protocol) const { return protocols[static_cast<size_t>(protocol)]; }
};

// Returns the bandwidth that each link of the topology reaches, in bytes per second, by link. A link counts
// as an NVLink if it joins two GPUs, or a GPU and a switch that has only GPUs on it.
std::vector<int64_t> ReachedBandwidths(const Topology& topology, const MachineModel& model);
// Returns the topology with ReachedBandwidths as its links' bandwidths.
Topology WithReachedBandwidths(const Topology& topology, const MachineModel& model);

// Reads and writes machine.json (docs/ir.md §12): {"format":2, "source":"...", "launch_ps":N,
// "hand_off_ps":N, "nvlink_bytes_per_s":N, "nic_per_mille":N, "nic_hop_ps":N, "switch_per_mille":N,
// "protocols":{"simple":{"hop_ps":N, "message_ps":N, "block_bytes_per_s":N, "read_bytes_per_s":N,
// "data_bytes":N, "wire_bytes":N}, "ll":{...}, "ll128":{...}}}. Format 1, which is read as well, lacks
// hand_off_ps, nvlink_bytes_per_s, nic_per_mille, nic_hop_ps, switch_per_mille, message_ps and
// read_bytes_per_s. Written atomically. Errors: kInvalidInput naming the place.
Status WriteMachineModel(const MachineModel& model, const std::string& path);
StatusOr<MachineModel> ReadMachineModel(const std::string& path);

}  // namespace xccl
