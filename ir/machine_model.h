// The time that a machine adds to that of its links when a program runs on it: the launch, the cost of a
// protocol per message, and the rate of a threadblock. The figures are NCCL's, or those that `tune`
// measured (machine.json of a plan book). SimulateProgram uses them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "ir/program.h"

namespace xccl {

struct ProtocolCost {
  int64_t hop_ps = 0;             // from the arrival of a message's last byte until its receiver continues
  int64_t block_bytes_per_s = 0;  // rate at which one threadblock moves data; 0: no limit
  // `data_bytes` of data occupy `wire_bytes` on a link, because flags travel with the data.
  int32_t data_bytes = 1, wire_bytes = 1;
  bool operator==(const ProtocolCost&) const = default;

  int64_t WireBytes(int64_t bytes) const;  // rounded up; saturates
  int64_t BlockPs(int64_t bytes) const;    // 0 if block_bytes_per_s is 0
};

struct MachineModel {
  std::string source;                                 // source of the figures
  int64_t launch_ps = 0;                              // duration of an operation that moves nothing
  std::array<ProtocolCost, kNumProtocols> protocols;  // by Protocol
  bool operator==(const MachineModel&) const = default;

  const ProtocolCost& CostOf(Protocol protocol) const { return protocols[static_cast<size_t>(protocol)]; }
};

// A Hopper GPU on NVLink by the tuning tables of NCCL 2.30. A hop costs its time beyond that of LL, which
// the links' latency covers. The launch is an estimate.
MachineModel HopperModel();

// Reads and writes machine.json: {"format":1, "source":"...", "launch_ps":N,
// "protocols":{"simple":{"hop_ps":N, "block_bytes_per_s":N, "data_bytes":N, "wire_bytes":N}, "ll":{...},
// "ll128":{...}}}. Written atomically. Errors: kInvalidInput naming the place.
Status WriteMachineModel(const MachineModel& model, const std::string& path);
StatusOr<MachineModel> ReadMachineModel(const std::string& path);

}  // namespace xccl
