// Sources of the figures. "NCCL" is NCCL 2.30.7: src/graph/tuning.cc (time of a hop by protocol, bandwidth of
// a channel), src/graph/topo.h (bandwidth of an NVLink) and src/sym_kernels.cc (kernels over symmetric
// memory, on which every threadblock reads from all ranks).
//
// NCCL's time of a hop of a ring is the time of one instruction that receives and sends. Here it is the sum
// of hop_ps, message_ps and the latency of the links, which is 1 us from GPU to GPU in the library of
// topologies. NCCL's hop on NVLink takes 3.4 us (simple), 1.9 us (LL128) and 0.6 us (LL). Simple holds the
// threadblock for about 2 us of it, which is an estimate: a poll and a barrier before the data, and after the
// data a barrier, a fence of the whole system and the store of the counter. None of them overlaps with the
// next message. LL128 has no fence. LL's hop leaves no time beside the link's. But NCCL's one-shot LL kernels
// take 4.5 us on Hopper, for the launch, sending a message, the link, and receiving a message; hence 0.5 us
// for a message.
//
// In one round trip a threadblock moves at most the bytes that it has in flight (Little's law). Its 512
// threads have 8 loads of 16 bytes each in flight, 64 KiB. A round trip over NVLink takes about 1.7 us on
// Hopper, which gives 38.7 GB/s.
//
// "RCCL" is RCCL 2.21.5 at commit 0cbce2a75: src/graph/tuning.cc (time of a hop by protocol, ratios of
// protocols' bandwidths), src/graph/rome_models.cc (table of each machine) and src/graph/topo.h (bandwidth of
// an xGMI link). An xGMI link takes 0.7 us in the library; the rest of RCCL's hop is the message's. RCCL has
// no figure for a channel's bandwidth, a launch, a hand-off or a one-shot message: these four are estimates
// from the figures of NVIDIA's GPUs.
#include "ir/known_machines.h"

#include <fmt/core.h>

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

// Returns a model with the figures that do not depend on the GPU, or that NCCL's tables give alike for all
// GPUs.
MachineModel OfGpu(std::string name, std::string source, int64_t nvlink_bytes_per_s) {
  MachineModel model;
  model.name = std::move(name);
  model.source = std::move(source);
  // An empty kernel in a CUDA graph, with the prologue of our kernels; an estimate. MSCCL++'s put of 1 KiB in
  // packets takes 4.07 us (its tutorial 3), which leaves 1.5 us for sending, the link and receiving.
  model.launch_ps = 5 * kPsPerUs / 2;
  // A barrier, a fence of the GPU, a store, a poll and a barrier; an estimate. NCCL's MSCCL interpreter does
  // the same between threadblocks.
  model.hand_off_ps = kPsPerUs;
  model.nvlink_bytes_per_s = nvlink_bytes_per_s;
  // ib_write_bw reaches 196 to 198 of 200 Gbit/s (HDR) and 388 to 394 of 400 Gbit/s (NDR).
  model.nic_per_mille = 970;
  // NCCL's latency of the network in a ring by LL, which has no fence.
  model.nic_hop_ps = 27 * kPsPerUs / 10;
  return model;
}

// Times of a message. The defaults are those of NCCL's tables, alike for all GPUs.
struct MessageTimes {
  int64_t simple_hop_ps = 2 * kPsPerUs / 5, simple_ps = 2 * kPsPerUs;
  int64_t ll_ps = kPsPerUs / 2;
  int64_t ll128_ps = 9 * kPsPerUs / 10;
};

// Bandwidths of a threadblock in bytes per second. `reads`: that of a threadblock that reads from all ranks
// by the simple protocol.
struct BlockRates {
  int64_t simple, ll, ll128, reads;
};

void SetProtocols(const MessageTimes& times, const BlockRates& rates, MachineModel& model) {
  const auto set = [&](Protocol protocol, const ProtocolCost& cost) {
    model.protocols[static_cast<size_t>(protocol)] = cost;
  };
  const ProtocolLine ll = LineOf(Protocol::kLl), ll128 = LineOf(Protocol::kLl128);
  set(Protocol::kSimple, {.hop_ps = times.simple_hop_ps,
                          .message_ps = times.simple_ps,
                          .block_bytes_per_s = rates.simple,
                          .read_bytes_per_s = rates.reads});
  set(Protocol::kLl, {.hop_ps = 0,
                      .message_ps = times.ll_ps,
                      .block_bytes_per_s = rates.ll,
                      .read_bytes_per_s = rates.ll,
                      .data_bytes = ll.data_bytes,
                      .wire_bytes = ll.wire_bytes});
  set(Protocol::kLl128, {.hop_ps = 0,
                         .message_ps = times.ll128_ps,
                         .block_bytes_per_s = rates.ll128,
                         .read_bytes_per_s = rates.ll128,
                         .data_bytes = ll128.data_bytes,
                         .wire_bytes = ll128.wire_bytes});
}

// Sets the protocols by NCCL's times. `simple` and `ll128`: the bandwidth of NCCL's channel by these
// protocols; LL has half of LL128's.
void SetNcclProtocols(int64_t simple, int64_t ll128, int64_t reads, MachineModel& model) {
  SetProtocols({}, {.simple = simple, .ll = ll128 / 2, .ll128 = ll128, .reads = reads}, model);
}

// Returns a model of an AMD GPU. `ll_percent`: LL's bandwidth in a ring, in percent of the simple protocol's.
MachineModel OnXgmi(std::string name, std::string source, int64_t xgmi_bytes_per_s, const MessageTimes& times,
                    int64_t ll_percent) {
  MachineModel model = OfGpu(std::move(name), std::move(source), xgmi_bytes_per_s);
  // An estimate: the launch on NVIDIA's GPUs × 12.0 us ÷ 6.6 us, base latencies of LL in RCCL and NCCL.
  model.launch_ps = 45 * kPsPerUs / 10;
  // RCCL's latency of the network in a ring by LL, in its default table and that of MI300X. The table of 16
  // dies of MI250X has 35.4 us.
  model.nic_hop_ps = 95 * kPsPerUs / 10;
  // An estimate by Little's law: 64 KiB in flight for a round trip of 1.6 us. The round trip is twice RCCL's
  // hop by LL, whose 0.8 us are the link's alone.
  const int64_t rate = 41 * kGb;
  // LL128: RCCL's ratio for MI250X; its table for MI300X has none.
  SetProtocols(
      times, {.simple = rate, .ll = rate * ll_percent / 100, .ll128 = rate * 41 / 100, .reads = rate}, model);
  return model;
}

constexpr std::string_view kNames[] = {"ampere", "b200", "blackwell", "gb300", "hopper", "mi250x", "mi300x"};

}  // namespace

MachineModel AmpereModel() {
  // 12 NVLinks, which reach 20 of their 25 GB/s. NCCL's channels: perChMaxTreeBw 24, perChMaxRingLL128Bw 20.
  // NCCL has no figure for reads from all ranks before Hopper, so `reads` is the rate of Ampere's channel ×
  // Hopper's ratio of reads to channel.
  MachineModel model =
      OfGpu("ampere", "NCCL 2.30 tuning tables, Ampere on NVLink; launch estimated", 240 * kGb);
  SetNcclProtocols(24 * kGb, 20 * kGb, 43 * kGb, model);
  return model;
}

MachineModel HopperModel() {
  // 18 NVLinks, which reach 20.6 of their 25 GB/s. NCCL's channels: perChMaxTreeBw 38.7, perChMaxRingLL128Bw
  // 36.7. A threadblock of AllReduce_RSxLD_AGxST reads 65 GiB/s.
  MachineModel model =
      OfGpu("hopper", "NCCL 2.30 tuning tables, Hopper on NVLink; launch estimated", 3708 * kGb / 10);
  SetNcclProtocols(387 * kGb / 10, 367 * kGb / 10, 65 * kGib, model);
  model.switch_per_mille = 850;  // nvlsEfficiency
  return model;
}

MachineModel BlackwellModel() {
  // 18 NVLinks, which reach 40.1 of their 50 GB/s. NCCL's channels: perChMaxTreeBw 70, perChMaxRingLL128Bw 40
  // (73.4 until 2.29). A threadblock of the symmetric kernels reads 55 GiB/s, less than a channel moves, so
  // `reads` is the rate of the channel.
  MachineModel model =
      OfGpu("blackwell", "NCCL 2.30 tuning tables, Blackwell on NVLink; launch estimated", 7218 * kGb / 10);
  SetNcclProtocols(70 * kGb, 40 * kGb, 70 * kGb, model);
  model.switch_per_mille = 740;  // nvlsEfficiency
  return model;
}

MachineModel Gb300Model() {
  MachineModel model = BlackwellModel();
  model.name = "gb300";
  model.source = "NCCL 2.30 tuning tables, Blackwell on NVLink; launch and GB300 estimated";
  return model;
}

MachineModel Mi250xModel() {
  // 7 xGMI links, which reach 36 of their 50 GB/s. Table 4, that of 16 GPUs, has 3.6 us for a hop of a ring
  // (simple), 2.2 us (LL128) and 0.8 us (LL). Without the link, 2.9 us of the 3.6 us are left. They are split
  // as for NVIDIA's GPUs: 1 part for the hop and 5 for the message. LL has 0.15 of simple's bandwidth.
  return OnXgmi(
      "mi250x", "RCCL 2.21 tuning tables, MI250X on xGMI; launch and bytes in flight estimated", 252 * kGb,
      {.simple_hop_ps = 5 * kPsPerUs / 10, .simple_ps = 24 * kPsPerUs / 10, .ll128_ps = 15 * kPsPerUs / 10},
      15);
}

MachineModel Mi300xModel() {
  // 7 xGMI links, which reach 48 of their 64 GB/s. Table 5, that of 8 GPUs with 7 links each, has 2.1 us for
  // a hop of a ring (simple) and 0.8 us (LL; LL128 in rocm-systems 03a89144). Without the link, 1.4 us of the
  // 2.1 us are left. They are split as for NVIDIA's GPUs: 1 part for the hop and 5 for the message. LL has
  // 0.08 of simple's bandwidth. LL128's message takes as long as LL's, because its hop does.
  return OnXgmi(
      "mi300x", "RCCL 2.21 tuning tables, MI300X on xGMI; launch and bytes in flight estimated", 336 * kGb,
      {.simple_hop_ps = 2 * kPsPerUs / 10, .simple_ps = 12 * kPsPerUs / 10, .ll128_ps = 5 * kPsPerUs / 10},
      8);
}

std::span<const std::string_view> KnownMachineNames() { return kNames; }

std::optional<MachineModel> KnownMachine(std::string_view name) {
  if (name == "ampere") return AmpereModel();
  if (name == "b200" || name == "blackwell") return BlackwellModel();
  if (name == "gb300") return Gb300Model();
  if (name == "hopper") return HopperModel();
  if (name == "mi250x") return Mi250xModel();
  if (name == "mi300x") return Mi300xModel();
  return std::nullopt;
}

std::optional<MachineModel> MachineOfArch(std::string_view arch) {
  if (arch == "gfx90a") return Mi250xModel();
  if (arch == "gfx942") return Mi300xModel();
  if (!arch.starts_with("sm")) return std::nullopt;
  int32_t sm = 0;
  const auto [end, error] = std::from_chars(arch.data() + 2, arch.data() + arch.size(), sm);
  if (error != std::errc() || end != arch.data() + arch.size()) return std::nullopt;
  if (sm >= 80 && sm < 90) return AmpereModel();
  if (sm >= 90 && sm < 100) return HopperModel();
  if (sm == 103) return Gb300Model();
  if (sm >= 100 && sm < 130) return BlackwellModel();
  return std::nullopt;
}

std::string_view ModelInstead(std::string_view arch) { return arch.starts_with("gfx") ? "mi300x" : "ampere"; }

std::string WhyNoModel(std::string_view arch) {
  if (arch.empty())
    return "no machine model: the topology has no arch; hint: arch=\"sm90\" in its file, --gpu-arch=sm90 or "
           "--machine=hopper";
  return MachineOfArch(arch)
             ? ""
             : fmt::format("no machine model of {}; hint: --machine={}", arch, ModelInstead(arch));
}

}  // namespace xccl
