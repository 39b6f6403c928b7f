// Sources of the figures. "NCCL" is NCCL 2.30.7: src/graph/tuning.cc (time of a hop by protocol, bandwidth of
// a channel), src/graph/topo.h (bandwidth of an NVLink) and src/sym_kernels.cc (kernels over symmetric
// memory, on which every threadblock reads from all ranks).
//
// A hop of a ring is one instruction that receives and sends: its links, 1 us from GPU to GPU in the library,
// hop_ps and message_ps. NCCL's hop on NVLink takes 3.4 us (simple), 1.9 us (LL128) and 0.6 us (LL). Simple
// holds the threadblock for about 2 us of it: a poll and a barrier before the data, and a barrier, a fence of
// the whole system and the store of the counter after it, none of which overlaps with the next message; this
// split is an estimate. LL128 has no fence. LL's hop is all link, but NCCL's one-shot LL kernels take
// 4.5 us on Hopper for a launch, one message sent, the link and one received, hence 0.5 us.
//
// In one round trip a threadblock moves at most the bytes that it has in flight (Little's law). Its 512
// threads have 8 loads of 16 bytes each in flight, 64 KiB; over NVLink that takes about 1.7 us on
// Hopper, 38.7 GB/s.
#include "ir/known_machines.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "base/units.h"
#include "ir/protocol_lines.h"

namespace xccl {
namespace {

constexpr int64_t kGb = 1'000'000'000;
constexpr int64_t kGib = int64_t{1} << 30;

// A model with the figures that NCCL's tables give alike for all GPUs.
MachineModel OnNvlink(std::string name, std::string source, int64_t nvlink_bytes_per_s) {
  MachineModel model;
  model.name = std::move(name);
  model.source = std::move(source);
  // An empty kernel in a CUDA graph, with the prologue of ours; an estimate that leaves the 4.07 us of
  // MSCCL++'s put of 1 KiB in packets (its tutorial 3) 1.5 us for two messages' ends and the link.
  model.launch_ps = 5 * kPsPerUs / 2;
  // A barrier, a fence of the GPU, a store, a poll and a barrier; an estimate. NCCL's MSCCL interpreter does
  // the same between threadblocks.
  model.hand_off_ps = kPsPerUs;
  model.nvlink_bytes_per_s = nvlink_bytes_per_s;
  // ib_write_bw reaches 196 to 198 of 200 Gbit/s (HDR) and 388 to 394 of 400 Gbit/s (NDR).
  model.nic_per_mille = 970;
  // The network's latency in a ring by LL, which has no fence.
  model.nic_hop_ps = 27 * kPsPerUs / 10;
  return model;
}

// `simple`, `ll128`: a channel's bandwidth in bytes per second, which LL halves. `reads`: that of a
// threadblock that reads from all ranks.
void SetProtocols(int64_t simple, int64_t ll128, int64_t reads, MachineModel& model) {
  const auto set = [&](Protocol protocol, const ProtocolCost& cost) {
    model.protocols[static_cast<size_t>(protocol)] = cost;
  };
  const ProtocolLine ll = LineOf(Protocol::kLl), ll128_line = LineOf(Protocol::kLl128);
  set(Protocol::kSimple, {.hop_ps = 2 * kPsPerUs / 5,
                          .message_ps = 2 * kPsPerUs,
                          .block_bytes_per_s = simple,
                          .read_bytes_per_s = reads});
  set(Protocol::kLl, {.hop_ps = 0,
                      .message_ps = kPsPerUs / 2,
                      .block_bytes_per_s = ll128 / 2,
                      .read_bytes_per_s = ll128 / 2,
                      .data_bytes = ll.data_bytes,
                      .wire_bytes = ll.wire_bytes});
  set(Protocol::kLl128, {.hop_ps = 0,
                         .message_ps = 9 * kPsPerUs / 10,
                         .block_bytes_per_s = ll128,
                         .read_bytes_per_s = ll128,
                         .data_bytes = ll128_line.data_bytes,
                         .wire_bytes = ll128_line.wire_bytes});
}

constexpr std::string_view kNames[] = {"ampere", "blackwell", "hopper"};

}  // namespace

MachineModel AmpereModel() {
  // 12 NVLinks of 20 GB/s of 25. Channels: perChMaxTreeBw 24, perChMaxRingLL128Bw 20. NCCL has no figure for
  // reads from all ranks before Hopper: the rate of Ampere's channel × Hopper's ratio of reads to channel.
  MachineModel model =
      OnNvlink("ampere", "NCCL 2.30 tuning tables, Ampere on NVLink; launch estimated", 240 * kGb);
  SetProtocols(24 * kGb, 20 * kGb, 43 * kGb, model);
  return model;
}

MachineModel HopperModel() {
  // 18 NVLinks of 20.6 GB/s of 25. Channels: perChMaxTreeBw 38.7, perChMaxRingLL128Bw 36.7. A threadblock of
  // AllReduce_RSxLD_AGxST reads 65 GiB/s.
  MachineModel model =
      OnNvlink("hopper", "NCCL 2.30 tuning tables, Hopper on NVLink; launch estimated", 3708 * kGb / 10);
  SetProtocols(387 * kGb / 10, 367 * kGb / 10, 65 * kGib, model);
  model.switch_per_mille = 850;  // nvlsEfficiency
  return model;
}

MachineModel BlackwellModel() {
  // 18 NVLinks of 40.1 GB/s of 50. Channels: perChMaxTreeBw 70, perChMaxRingLL128Bw 40 (73.4 until 2.29). A
  // threadblock of the symmetric kernels reads 55 GiB/s, less than a channel moves: the channel's.
  MachineModel model = OnNvlink("blackwell", "NCCL 2.30 tuning tables, Blackwell on NVLink; launch estimated",
                                7218 * kGb / 10);
  SetProtocols(70 * kGb, 40 * kGb, 70 * kGb, model);
  model.switch_per_mille = 740;  // nvlsEfficiency
  return model;
}

std::span<const std::string_view> KnownMachineNames() { return kNames; }

std::optional<MachineModel> KnownMachine(std::string_view name) {
  if (name == "ampere") return AmpereModel();
  if (name == "blackwell") return BlackwellModel();
  if (name == "hopper") return HopperModel();
  return std::nullopt;
}

std::optional<MachineModel> MachineOfArch(std::string_view arch) {
  if (!arch.starts_with("sm")) return std::nullopt;
  int32_t sm = 0;
  const auto [end, error] = std::from_chars(arch.data() + 2, arch.data() + arch.size(), sm);
  if (error != std::errc() || end != arch.data() + arch.size()) return std::nullopt;
  if (sm >= 80 && sm < 90) return AmpereModel();
  if (sm >= 90 && sm < 100) return HopperModel();
  if (sm >= 100 && sm < 130) return BlackwellModel();
  return std::nullopt;
}

}  // namespace xccl
