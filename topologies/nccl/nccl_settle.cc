// Each rule is one pass over the flat tree, parents before children. Linear.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.h"
#include "topologies/nccl/nccl_bus_index.h"
#include "topologies/nccl/nccl_constants.h"
#include "topologies/nccl/nccl_tree.h"

namespace xccl {
namespace {

std::vector<int32_t> ChildCounts(const NcclSystem& system) {
  std::vector<int32_t> counts(system.items.size());
  for (const NcclItem& item : system.items)
    if (!item.removed && item.parent >= 0) ++counts[item.parent];
  return counts;
}

// A dump lists a NIC again where several ranks saw it under different CPUs.
void DropRepeatedNets(NcclSystem& system) {
  std::set<std::tuple<std::string, std::string, std::optional<int32_t>, std::optional<int64_t>, std::string>>
      seen;
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
  if (std::ranges::any_of(system.items, [](const NcclItem& i) { return i.kind == NcclItemKind::kNet; }))
    return;
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
    for (NcclEdge& edge : item.edges)  // but for one between the two levels
      if (BusKey(edge.target) != BusKey(above.busid)) above.edges.push_back(std::move(edge));
  }
}

// By item: a bridge with an edge of its own, <pcilink>, at either end.
std::vector<bool> BridgesWithEdges(const NcclSystem& system) {
  const BusIndex buses(system);
  std::vector<bool> ends(system.items.size());
  for (int32_t i = 0; i < system.size(); ++i) {
    if (system.items[i].removed || system.items[i].kind != NcclItemKind::kBridge) continue;
    for (const NcclEdge& edge : system.items[i].edges) {
      int32_t target = buses.Find(system, i, edge.target);
      while (target >= 0 && system.items[target].removed) target = system.items[target].replaced_by;
      if (target >= 0 && target != i) ends[i] = ends[target] = true;
    }
  }
  return ends;
}

// Merges a bridge that has only one device below it, and no edge of its own, into that device's link to its
// parent.
void JoinChains(NcclSystem& system) {
  const std::vector<int32_t> children = ChildCounts(system);
  const std::vector<bool> with_edges = BridgesWithEdges(system);
  for (int32_t i = 0; i < system.size(); ++i) {
    NcclItem& item = system[i];
    if (item.removed || item.parent < 0) continue;
    while (true) {
      NcclItem& above = system[item.parent];
      if (above.kind != NcclItemKind::kBridge || children[item.parent] != 1 || with_edges[item.parent]) break;
      for (const NcclEdge& edge : above.edges)
        system.Warn(
            edge.offset,
            fmt::format("a pcilink to {}, which is no other switch of this file; left out", edge.target));
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
  XCCL_RETURN_IF_ERROR(FindNcclGpus(system, options));
  DropRepeatedNets(system);
  FindNics(system);
  SettleBandwidths(system);
  RemoveUnused(system);
  FlattenBroadcomSwitches(system);
  JoinChains(system);
  return OkStatus();
}

}  // namespace xccl
