// Each rule is one pass over the flat tree, parents before children. Linear.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

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

Status AddGpusToSwitches(NcclSystem& system, const LoadOptions& options) {
  std::vector<bool> above_switch(system.items.size());
  for (const NcclItem& item : system.items)
    if (item.kind == NcclItemKind::kBridge) above_switch[item.parent] = true;
  if (!options.gpus_per_switch)
    return system.At(
        0, fmt::format("neither <gpu> elements nor devices of a GPU's class; expected one of them; hint: "
                       "--gpus-per-switch=1{}",
                       options.gpu_arch ? "" : " --gpu-arch=sm90"));
  const int32_t per_switch = *options.gpus_per_switch;
  if (per_switch < 1 || per_switch > kMaxGpusPerSwitch)
    return UsageError(fmt::format("--gpus-per-switch={}: expected 1 to {}", per_switch, kMaxGpusPerSwitch));
  std::vector<int64_t> fastest(system.items.size());
  for (const NcclItem& item : system.items)
    if (item.parent >= 0) fastest[item.parent] = std::max(fastest[item.parent], item.bandwidth_bytes_per_s);
  const int32_t before = system.size();
  for (int32_t i = 0; i < before; ++i) {
    if (system[i].kind != NcclItemKind::kBridge || above_switch[i]) continue;
    for (int32_t g = 0; g < per_switch; ++g) {
      NcclItem gpu;
      gpu.kind = NcclItemKind::kGpu;
      gpu.parent = i;
      gpu.offset = system[i].offset;
      const int64_t sibling = fastest[i];
      gpu.bandwidth_bytes_per_s = sibling > 0 ? sibling : kFallbackPcieBytesPerS;
      system.items.push_back(std::move(gpu));
    }
  }
  if (system.size() == before)
    return system.At(0, "no PCI switch for --gpus-per-switch; expected a <pci> that holds devices");
  system.Warn(
      0, fmt::format("{} GPUs that the file does not list, {} on each PCI switch, as --gpus-per-switch says",
                     system.size() - before, per_switch));
  return OkStatus();
}

Status SettleArchs(NcclSystem& system, const LoadOptions& options, bool derived) {
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
    if (!flag)
      return system.At(gpu.offset, fmt::format("{}; expected the GPU's architecture; hint: --gpu-arch=sm90",
                                               derived ? "no <gpu> element" : "gpu: neither sm nor gcn"));
    gpu.arch = flag;
  }
  return OkStatus();
}

// GPUs are the <gpu> elements; if there are none, PCI devices of a GPU's class; else the flag's number per
// switch.
Status FindGpus(NcclSystem& system, const LoadOptions& options) {
  const bool listed = !system.Live(NcclItemKind::kGpu).empty();
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
  XCCL_RETURN_IF_ERROR(SettleArchs(system, options, !listed));
  bool any_edges = false;
  for (int32_t gpu : system.Live(NcclItemKind::kGpu)) any_edges = any_edges || !system[gpu].edges.empty();
  if (!listed && !any_edges)
    system.Warn(
        0, "no <gpu> elements, so no NVLinks: only PCIe joins the GPUs (the library's machines have both)");
  return OkStatus();
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
      item.parent = above.parent;
    }
  }
}

}  // namespace

Status SettleNcclTree(NcclSystem& system, const LoadOptions& options) {
  XCCL_RETURN_IF_ERROR(FindGpus(system, options));
  FindNics(system);
  SettleBandwidths(system);
  RemoveUnused(system);
  FlattenBroadcomSwitches(system);
  JoinChains(system);
  return OkStatus();
}

}  // namespace xccl
