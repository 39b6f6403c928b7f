// Each rule is one pass over the flat tree, parents before children. Linear.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "topologies/nccl/nccl_constants.h"
#include "topologies/nccl/nccl_tree.h"

namespace xccl {
namespace {

constexpr int32_t kMaxGpusPerSwitch = 1024;

bool IsGpuClass(std::string_view pci_class) {
  return pci_class.starts_with("0x03") || pci_class.starts_with("0x12");
}

std::vector<int32_t> ChildCounts(const NcclSystem& system) {
  std::vector<int32_t> counts(system.items.size());
  for (const NcclItem& item : system.items)
    if (!item.removed && item.parent >= 0) ++counts[item.parent];
  return counts;
}

void DropGpusWithoutRank(NcclSystem& system) {
  const std::vector<int32_t> gpus = system.Live(NcclItemKind::kGpu);
  if (std::ranges::none_of(gpus, [&](int32_t g) { return system[g].rank.has_value(); })) return;
  for (int32_t g : gpus) {
    if (system[g].rank) continue;
    system.Warn(system[g].offset, "a <gpu> without rank among others with one; left out, as NCCL does");
    system[g].removed = true;
  }
}

// Adds GPUs to each lowest PCI switch; in a file without switches, to each CPU.
Status AddGpusToSwitches(NcclSystem& system, const LoadOptions& options) {
  if (!options.gpus_per_switch)
    return system.At(0,
                     "neither <gpu> elements nor devices of a GPU's class; expected one of them; hint: "
                     "--gpus-per-switch=1");
  const int32_t per_switch = *options.gpus_per_switch;
  if (per_switch < 1 || per_switch > kMaxGpusPerSwitch)
    return UsageError(fmt::format("--gpus-per-switch={}: expected 1 to {}", per_switch, kMaxGpusPerSwitch));
  const bool switches = !system.Live(NcclItemKind::kBridge).empty();
  std::vector<bool> above_switch(system.items.size());
  std::vector<int64_t> fastest(system.items.size());
  for (const NcclItem& item : system.items) {
    if (item.parent < 0) continue;
    if (item.kind == NcclItemKind::kBridge) above_switch[item.parent] = true;
    if (item.kind == NcclItemKind::kDevice)
      fastest[item.parent] = std::max(fastest[item.parent], item.bandwidth_bytes_per_s);
  }
  const int32_t before = system.size();
  for (int32_t i = 0; i < before; ++i) {
    if (system[i].kind != (switches ? NcclItemKind::kBridge : NcclItemKind::kCpu) || above_switch[i])
      continue;
    const int64_t slot = fastest[i] > 0 ? fastest[i] : system[i].bandwidth_bytes_per_s;
    for (int32_t g = 0; g < per_switch; ++g) {
      NcclItem gpu;
      gpu.kind = NcclItemKind::kGpu;
      gpu.parent = i;
      gpu.offset = system[i].offset;
      gpu.bandwidth_bytes_per_s = slot > 0 ? slot : kFallbackPcieBytesPerS;
      system.items.push_back(std::move(gpu));
    }
  }
  system.Warn(0, fmt::format("{} GPUs that the file does not list, {} on each {}, as --gpus-per-switch says",
                             system.size() - before, per_switch, switches ? "PCI switch" : "<cpu>"));
  return OkStatus();
}

std::optional<GpuArch> ArchOfDevice(const NcclItem& item) {
  return GpuArchOfPci(static_cast<uint16_t>(item.pci_id >> 48), static_cast<uint16_t>(item.pci_id >> 32));
}

// Only links need an architecture: their bandwidth depends on it. GPUs without links may lack one.
Status SettleArchs(NcclSystem& system, const LoadOptions& options) {
  std::optional<GpuArch> flag;
  if (options.gpu_arch) {
    XCCL_ASSIGN_OR_RETURN(flag, ParseGpuArch(*options.gpu_arch));
  }
  for (int32_t index : system.Live(NcclItemKind::kGpu)) {
    NcclItem& gpu = system[index];
    if (gpu.arch && flag && !(*gpu.arch == *flag))
      system.Warn(gpu.offset, fmt::format("the file says {}; --gpu-arch={} has no effect",
                                          ToString(*gpu.arch), *options.gpu_arch));
    if (gpu.arch) continue;
    gpu.arch = flag ? flag : ArchOfDevice(gpu);
    const auto link = std::ranges::find(gpu.edges, NcclEdge::Kind::kGpuLink, &NcclEdge::kind);
    if (flag || link == gpu.edges.end()) continue;
    if (!gpu.amd)
      return system.At(
          gpu.offset,
          fmt::format("gpu: nvlink, but no sm; expected the GPU's architecture; hint: --gpu-arch={}",
                      ToString(gpu.arch.value_or(GpuArch{90, ""}))));
    system.Warn(gpu.offset,
                fmt::format("xgmi, but no gcn; {} a link assumed, as RCCL does; hint: --gpu-arch={}",
                            FormatBandwidth(GpuLinkBytesPerS(GpuArch{})),
                            ToString(gpu.arch.value_or(GpuArch{std::nullopt, "90a"}))));
    gpu.arch = GpuArch{};
  }
  return OkStatus();
}

// GPUs are the <gpu> elements; if there are none, PCI devices of a GPU's class; else the flag's number per
// switch.
Status FindGpus(NcclSystem& system, const LoadOptions& options) {
  const bool listed = !system.Live(NcclItemKind::kGpu).empty();
  system.lists_gpus = listed;
  bool derived = false;
  for (NcclItem& item : system.items) {
    if (item.kind != NcclItemKind::kDevice || !IsGpuClass(item.pci_class)) continue;
    if (listed) {
      system.Warn(item.offset, "a device of a GPU's class without <gpu>; left out");
    } else {
      item.kind = NcclItemKind::kGpu;
      derived = true;
    }
  }
  if (listed || derived) {
    if (options.gpus_per_switch)
      system.Warn(0, fmt::format("the file lists its GPUs; --gpus-per-switch={} has no effect",
                                 *options.gpus_per_switch));
  } else {
    XCCL_RETURN_IF_ERROR(AddGpusToSwitches(system, options));
  }
  if (listed) DropGpusWithoutRank(system);
  XCCL_RETURN_IF_ERROR(SettleArchs(system, options));
  const auto may_have_links = [&](int32_t gpu) {
    return !system[gpu].arch || UsuallyHasGpuLinks(*system[gpu].arch);
  };
  const std::vector<int32_t> gpus = system.Live(NcclItemKind::kGpu);
  if (!listed && gpus.size() > 1 && std::ranges::any_of(gpus, may_have_links))
    system.Warn(
        0, "no <gpu> elements, so no NVLinks: only PCIe joins the GPUs (the library's machines have both)");
  return OkStatus();
}

// A dump lists a NIC again where several ranks saw it under different CPUs.
void DropRepeatedNets(NcclSystem& system) {
  std::set<std::tuple<std::string, std::string, std::optional<int32_t>, std::string, std::string>> seen;
  for (int32_t index : system.Live(NcclItemKind::kNet)) {
    NcclItem& net = system[index];
    if (net.name.empty()) continue;
    int32_t cpu = index;
    while (system[cpu].parent >= 0) cpu = system[cpu].parent;
    if (seen.emplace(system[cpu].host_hash, net.name, net.dev, net.port, net.guid).second) continue;
    system.Warn(net.offset, fmt::format("net {} is listed before with the same dev, port and guid; one NIC, "
                                        "where it is listed first",
                                        net.name));
    net.removed = true;
  }
}

// NICs are the <net> elements; if there are none, PCI devices of a NIC's class or without a class.
void FindNics(NcclSystem& system) {
  if (!system.Live(NcclItemKind::kNet).empty()) return;
  for (int32_t index : system.Live(NcclItemKind::kDevice)) {
    NcclItem& item = system[index];
    if (!item.pci_class.empty() && !item.pci_class.starts_with("0x02")) continue;
    if (item.pci_class.empty()) system.Warn(item.offset, "a device without class; taken for a NIC");
    system.Warn(item.offset, "a NIC without <net>, so without a speed; that of its PCIe link assumed");
    item.kind = NcclItemKind::kNet;
  }
}

// Sets bandwidths towards the parent that the file does not state, or that it states for a virtual bridge.
// Children come after their parents, so one backward pass sees all devices of a bridge before the bridge.
void SettleBandwidths(NcclSystem& system) {
  std::vector<int64_t> fastest(system.items.size());
  for (int32_t i = system.size() - 1; i >= 0; --i) {
    NcclItem& item = system[i];
    if (item.parent < 0 || item.removed) continue;
    const int64_t below = fastest[i];
    if (item.kind == NcclItemKind::kDevice && item.bandwidth_bytes_per_s == 0) continue;
    if (item.bandwidth_bytes_per_s == 0 && below > 0) {
      system.Warn(item.offset, "a PCI bridge without link_speed; that of its fastest device assumed");
      item.bandwidth_bytes_per_s = below;
    } else if (item.bandwidth_bytes_per_s == 0) {
      system.Warn(item.offset, "a PCI device without link_speed; 8 GT/s assumed, as NCCL does");
      item.bandwidth_bytes_per_s = kFallbackPcieBytesPerS;
    } else if (item.kind == NcclItemKind::kBridge && item.one_slow_lane &&
               below > item.bandwidth_bytes_per_s) {
      system.Warn(item.offset,
                  "a bridge of 2.5 GT/s x1 above a faster device; taken for virtual, as fast as the device");
      item.bandwidth_bytes_per_s = below;
    }
    if (item.local) continue;
    int64_t& of_parent = fastest[item.parent];
    of_parent = std::max(of_parent, item.bandwidth_bytes_per_s);
  }
}

// Removes devices that are neither GPU nor NIC, then bridges and CPUs with nothing left below them.
void RemoveUnused(NcclSystem& system) {
  std::vector<int32_t> children = ChildCounts(system);
  for (int32_t i = system.size() - 1; i >= 0; --i) {
    NcclItem& item = system[i];
    const bool empty = item.kind == NcclItemKind::kBridge || item.kind == NcclItemKind::kCpu;
    if (item.kind != NcclItemKind::kDevice && !(empty && children[i] == 0)) continue;
    item.removed = true;
    if (item.parent >= 0) --children[item.parent];
  }
}

// Broadcom's PEX chips show two levels of switches for one chip; NCCL removes the lower level too. Gen4
// parts are 1000:c010 1000:a0xx on both levels; Gen5 parts are 1000:c030 with 1000:0xxx above and 1000:1xxx
// below.
int BroadcomGeneration(uint64_t pci_id, uint64_t level) {
  if ((pci_id & 0xfffffffffffff000) == 0x1000c0101000a000) return 4;
  if ((pci_id & 0xfffffffffffff000) == (0x1000c03010000000 | level << 12)) return 5;
  return 0;
}

void FlattenBroadcomSwitches(NcclSystem& system) {
  for (NcclItem& item : system.items) {
    if (item.removed || item.parent < 0) continue;
    NcclItem& above = system[item.parent];
    if (above.removed) item.parent = above.replaced_by;
    const int generation = BroadcomGeneration(item.pci_id, 1);
    if (item.kind != NcclItemKind::kBridge || above.removed || above.kind != NcclItemKind::kBridge ||
        generation == 0 || BroadcomGeneration(above.pci_id, 0) != generation)
      continue;
    item.removed = true;
    item.replaced_by = item.parent;
  }
}

// Merges a bridge that has only one device below it into that device's link to its parent.
void JoinChains(NcclSystem& system) {
  const std::vector<int32_t> children = ChildCounts(system);
  for (int32_t i = 0; i < system.size(); ++i) {
    NcclItem& item = system[i];
    if (item.removed || item.parent < 0) continue;
    while (true) {
      NcclItem& above = system[item.parent];
      if (above.kind != NcclItemKind::kBridge || children[item.parent] != 1) break;
      above.removed = true;
      above.replaced_by = i;
      item.bandwidth_bytes_per_s = std::min(item.bandwidth_bytes_per_s, above.bandwidth_bytes_per_s);
      item.local = item.local && above.local;
      item.parent = above.parent;
    }
  }
}

}  // namespace

Status SettleNcclTree(NcclSystem& system, const LoadOptions& options) {
  XCCL_RETURN_IF_ERROR(FindGpus(system, options));
  DropRepeatedNets(system);
  FindNics(system);
  SettleBandwidths(system);
  RemoveUnused(system);
  FlattenBroadcomSwitches(system);
  JoinChains(system);
  return OkStatus();
}

}  // namespace xccl
