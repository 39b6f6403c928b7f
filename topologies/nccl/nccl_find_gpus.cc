// GPUs are the <gpu> elements; if there are none, PCI devices of a GPU's class, or the devices that flags
// name. Each rule is one pass over the flat tree.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/nccl/nccl_bus_index.h"
#include "topologies/nccl/nccl_constants.h"
#include "topologies/nccl/nccl_tree.h"

namespace xccl {
namespace {

constexpr int32_t kMaxGpusPerSwitch = 1024;

bool IsGpuClass(std::string_view pci_class) {
  return pci_class.starts_with("0x03") || pci_class.starts_with("0x12");
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

// Where devices have neither a class nor a switch above them, only their bus ids tell them apart.
Status AskForGpus(const NcclSystem& system) {
  constexpr size_t kMostShown = 64;
  std::string without_class;
  const std::vector<int32_t> devices = system.Live(NcclItemKind::kDevice);
  for (size_t d = 0; d < std::min(devices.size(), kMostShown); ++d)
    if (const NcclItem& item = system.items[devices[d]]; item.pci_class.empty() && !item.busid.empty())
      without_class += (without_class.empty() ? "" : ",") + item.busid;
  if (without_class.empty() || !system.Live(NcclItemKind::kBridge).empty())
    return system.At(0,
                     "neither <gpu> elements nor devices of a GPU's class; expected one of them; hint: "
                     "--gpus-per-switch=1");
  return system.At(0,
                   fmt::format("neither <gpu> elements nor classes of devices; expected the bus ids of the "
                               "GPUs; hint: --gpu-busids={} without those of NICs",
                               without_class));
}

// Adds GPUs to each lowest PCI switch; in a file without switches, to each CPU.
Status AddGpusToSwitches(NcclSystem& system, const LoadOptions& options) {
  if (!options.gpus_per_switch) return AskForGpus(system);
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

uint16_t VendorOf(const NcclItem& item) { return static_cast<uint16_t>(item.pci_id >> 48); }

std::optional<GpuArch> ArchOfDevice(const NcclItem& item) {
  return GpuArchOfPci(VendorOf(item), static_cast<uint16_t>(item.pci_id >> 32));
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

// Nearly every server has a display adapter of its management controller, and some have one in the CPU.
// Vendors that are known to make the file's GPUs make all of them; a device whose vendor is not stated may be
// one.
std::vector<int32_t> DevicesOfGpuClass(NcclSystem& system) {
  constexpr uint16_t kAspeed = 0x1a03, kMatrox = 0x102b;
  std::vector<int32_t> found;
  std::set<uint16_t> with_known_arch, makers;
  for (int32_t index : system.Live(NcclItemKind::kDevice)) {
    const NcclItem& item = system[index];
    if (!IsGpuClass(item.pci_class)) continue;
    found.push_back(index);
    if (ArchOfDevice(item)) with_known_arch.insert(VendorOf(item));
    if (VendorOf(item) == kNvidiaVendor || VendorOf(item) == kAmdVendor) makers.insert(VendorOf(item));
  }
  if (!with_known_arch.empty()) makers = with_known_arch;
  std::erase_if(found, [&](int32_t index) {
    const uint16_t vendor = VendorOf(system[index]);
    const bool other =
        vendor == kAspeed || vendor == kMatrox || (!makers.empty() && !makers.contains(vendor));
    if (vendor == 0 && other)
      system.Warn(system[index].offset,
                  "a display adapter without a vendor, taken for a GPU like the others");
    if (vendor == 0 || !other) return false;
    system.Warn(system[index].offset,
                fmt::format("a display adapter of vendor 0x{:04x}, which is no GPU here; left out", vendor));
    return true;
  });
  return found;
}

// The devices that --gpu-busids names; their ranks are in its order.
Status TakeGpusByBusid(NcclSystem& system, std::string_view busids) {
  int32_t next = 0;
  for (const std::string& text : Split(busids, ',')) {
    const std::string key = BusKey(Trim(text));
    if (Trim(text).empty()) continue;
    bool any = false;
    std::vector<std::string> names;
    for (int32_t index : system.Live(NcclItemKind::kDevice)) {
      NcclItem& item = system[index];
      names.push_back(item.busid);
      if (BusKey(item.busid) != key) continue;
      item.kind = NcclItemKind::kGpu;
      item.dev = next;
      any = true;
    }
    if (!any)
      return system.At(0, fmt::format("--gpu-busids: no device {} without <gpu> and <net>; devices are {}",
                                      Shortened(Trim(text)), Join(names, ", ")));
    ++next;
  }
  if (next == 0)
    return UsageError("--gpu-busids: no bus id; expected some such as 0000:17:00.0,0000:65:00.0");
  return OkStatus();
}

void WarnOfFlagsWithoutEffect(NcclSystem& system, const LoadOptions& options) {
  if (options.gpus_per_switch)
    system.Warn(0, fmt::format("the file lists its GPUs; --gpus-per-switch={} has no effect",
                               *options.gpus_per_switch));
  if (options.gpu_busids)
    system.Warn(0,
                fmt::format("the file lists its GPUs; --gpu-busids={} has no effect", *options.gpu_busids));
}

// Finds the GPUs of a file that lists none: the devices that flags name, else the devices of a GPU's class.
Status DeriveGpus(NcclSystem& system, const LoadOptions& options) {
  if (options.gpu_busids) return TakeGpusByBusid(system, *options.gpu_busids);
  const std::vector<int32_t> devices = DevicesOfGpuClass(system);
  for (int32_t index : devices) system[index].kind = NcclItemKind::kGpu;
  if (devices.empty()) return AddGpusToSwitches(system, options);
  WarnOfFlagsWithoutEffect(system, options);
  return OkStatus();
}

void WarnOfDerivedGpus(NcclSystem& system, const LoadOptions& options) {
  const auto may_have_links = [&](int32_t gpu) {
    return !system[gpu].arch || UsuallyHasGpuLinks(*system[gpu].arch);
  };
  const std::vector<int32_t> gpus = system.Live(NcclItemKind::kGpu);
  if (gpus.size() > 1 && std::ranges::any_of(gpus, may_have_links))
    system.Warn(
        0, "no <gpu> elements, so no NVLinks: only PCIe joins the GPUs (the library's machines have both)");
  else if (!options.gpu_busids && !options.gpus_per_switch)
    system.Warn(0, "no <gpu> elements; devices of a GPU's class taken for the GPUs");
}

// "0000:20:00" of "0000:20:00.3".
std::string_view WithoutFunction(std::string_view busid) { return busid.substr(0, busid.rfind('.')); }

// AMD's drivers show a GPU in a partitioned mode as one function for each partition. They share the slot and
// the links of the device, and meet inside it.
void GroupPartitions(NcclSystem& system) {
  std::map<std::pair<int32_t, std::string>, std::vector<int32_t>> devices;  // by parent and bus id
  for (int32_t i = 0; i < system.size(); ++i) {
    const NcclItem& item = system[i];
    const bool amd = item.amd || VendorOf(item) == kAmdVendor;
    if (item.kind == NcclItemKind::kGpu && amd && item.busid.find('.') != std::string::npos)
      devices[{item.parent, std::string(WithoutFunction(item.busid))}].push_back(i);
  }
  std::map<int32_t, const std::vector<int32_t>*> by_first;
  for (const auto& [key, partitions] : devices)
    if (partitions.size() > 1) by_first[partitions.front()] = &partitions;
  if (by_first.empty()) return;
  std::vector<NcclItem> items;
  std::vector<int32_t> moved(system.items.size()), above(system.items.size(), -1);
  for (int32_t i = 0; i < system.size(); ++i) {
    NcclItem item = std::move(system[i]);
    if (item.parent >= 0) item.parent = moved[item.parent];
    if (const auto group = by_first.find(i); group != by_first.end()) {
      NcclItem device;
      device.kind = NcclItemKind::kBridge;
      device.shared_gpu = true;
      device.parent = item.parent;
      device.offset = item.offset;
      device.busid = fmt::format("{}.0", WithoutFunction(item.busid));
      device.bandwidth_bytes_per_s = item.bandwidth_bytes_per_s;
      for (int32_t partition : *group->second) above[partition] = static_cast<int32_t>(items.size());
      items.push_back(std::move(device));
    }
    if (above[i] >= 0) {
      NcclItem& device = items[above[i]];
      device.bandwidth_bytes_per_s = std::max(device.bandwidth_bytes_per_s, item.bandwidth_bytes_per_s);
      if (item.busid == device.busid) item.busid.clear();
      item.parent = above[i];
      item.bandwidth_bytes_per_s = kLocalBytesPerS;
      item.local = true;
    }
    moved[i] = static_cast<int32_t>(items.size());
    items.push_back(std::move(item));
  }
  system.items = std::move(items);
}

}  // namespace

Status FindNcclGpus(NcclSystem& system, const LoadOptions& options) {
  system.lists_gpus = !system.Live(NcclItemKind::kGpu).empty();
  if (system.lists_gpus) {
    for (const NcclItem& item : system.items)
      if (item.kind == NcclItemKind::kDevice && IsGpuClass(item.pci_class))
        system.Warn(item.offset, "a device of a GPU's class without <gpu>; left out");
    WarnOfFlagsWithoutEffect(system, options);
    DropGpusWithoutRank(system);
  } else {
    XCCL_RETURN_IF_ERROR(DeriveGpus(system, options));
  }
  XCCL_RETURN_IF_ERROR(SettleArchs(system, options));
  if (!system.lists_gpus) WarnOfDerivedGpus(system, options);
  GroupPartitions(system);
  return OkStatus();
}

}  // namespace xccl
