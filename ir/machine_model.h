// What a machine adds to its links' own time when a program runs on it: the launch, what each protocol costs
// a message, how fast one threadblock moves data. In: NCCL's own figures, or what `tune` measured
// (machine.json of a plan book); out: terms that SimulateProgram adds up.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "ir/program.h"

namespace xccl {

struct ProtocolCost {
  int64_t hop_ps = 0;             // from the arrival of a message's last byte until its receiver goes on
  int64_t block_bytes_per_s = 0;  // data that one threadblock moves; 0: as fast as its links
  // `data_bytes` of data take `wire_bytes` on a link: flags travel with the data.
  int32_t data_bytes = 1, wire_bytes = 1;
  bool operator==(const ProtocolCost&) const = default;

  int64_t WireBytes(int64_t bytes) const;  // rounded up; saturates
  int64_t BlockPs(int64_t bytes) const;    // 0 where block_bytes_per_s is
};

struct MachineModel {
  std::string source;                                 // where the figures come from
  int64_t launch_ps = 0;                              // of an operation that does nothing
  std::array<ProtocolCost, kNumProtocols> protocols;  // by Protocol
  bool operator==(const MachineModel&) const = default;

  const ProtocolCost& CostOf(Protocol protocol) const { return protocols[static_cast<size_t>(protocol)]; }
};

// A Hopper GPU on NVLink by NCCL 2.30's own model (its tuning tables): hops beyond LL's, which the links'
// latency stands for, and a channel's rate. The launch is an estimate.
MachineModel HopperModel();

// machine.json: {"format":1, "source":"...", "launch_ps":N, "protocols":{"simple":{"hop_ps":N,
// "block_bytes_per_s":N, "data_bytes":N, "wire_bytes":N}, "ll":{...}, "ll128":{...}}}. Written atomically.
// Errors: kInvalidInput naming the place.
Status WriteMachineModel(const MachineModel& model, const std::string& path);
StatusOr<MachineModel> ReadMachineModel(const std::string& path);

}  // namespace xccl
