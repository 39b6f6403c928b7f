// Union-find groups devices by class: PIX under one PCIe switch, PXB under one more above it, PHB and NODE
// under one CPU.
#include "topologies/nccl/nvidia_smi.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "base/graph/union_find.h"
#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/networks.h"
#include "topologies/nccl/nvidia_smi_matrix.h"

namespace xccl {
namespace {

constexpr int64_t kMostPcieGeneration = 6;
constexpr int64_t kNvlinksOfUnknownArch = 18;  // as sm90 to sm103

// Sets the architecture and PCIe bandwidth of the GPUs from the lines of the query.
void ReadGpus(const NvidiaSmiTexts& texts, std::vector<SmiDevice>& devices) {
  std::map<std::string, std::vector<std::string>> lines;
  for (const std::string& line : Split(texts.gpus, '\n')) {
    std::vector<std::string> fields;
    for (const std::string& field : Split(line, ',')) fields.emplace_back(Trim(field));
    lines.emplace("GPU" + fields[0], std::move(fields));
  }
  for (SmiDevice& device : devices) {
    const auto known = lines.find(device.name);
    if (!device.gpu || known == lines.end()) continue;
    std::vector<std::string> fields = known->second;
    fields.resize(4);
    std::erase(fields[1], '.');
    if (const StatusOr<int64_t> sm = ParseInteger(fields[1], 10, 999); sm.ok())
      device.arch = GpuArch{static_cast<int32_t>(*sm), ""};
    const StatusOr<int64_t> generation = ParseInteger(fields[2], 1, kMostPcieGeneration),
                            width = ParseInteger(fields[3], 1, 32);
    if (generation.ok() && width.ok())
      device.bytes_per_s = *width * (kFirstPcieBytesPerS << (*generation - 1));
  }
}

// --nic-rate: a rate for all NICs, or NAME=RATE for one, several with commas.
Status ApplyNicRate(std::string_view text, std::vector<SmiDevice>& devices) {
  for (const std::string& item : Split(text, ',')) {
    const size_t equals = item.find('=');
    const std::string name = equals == std::string::npos ? "" : std::string(Trim(item.substr(0, equals)));
    const StatusOr<int64_t> rate =
        ParseBandwidth(Trim(std::string_view(item).substr(equals == std::string::npos ? 0 : equals + 1)));
    if (!rate.ok()) return UsageError(fmt::format("--nic-rate: {}", rate.status().message()));
    bool any = name.empty();
    std::vector<std::string> names;
    for (SmiDevice& device : devices) {
      if (device.gpu) continue;
      names.push_back(device.name);
      if (!name.empty() && device.name != name) continue;
      any = true;
      if (device.bytes_per_s == 0 || !name.empty()) device.bytes_per_s = *rate;
    }
    if (!any)
      return UsageError(fmt::format("--nic-rate: no NIC {}; {}", Shortened(name),
                                    names.empty() ? "the matrix has none" : "NICs are " + Join(names, ", ")));
  }
  return OkStatus();
}

// Flags supply what the texts leave out.
Status ApplyFlags(const LoadOptions& options, std::vector<SmiDevice>& devices) {
  if (options.pcie_gen && (*options.pcie_gen < 1 || *options.pcie_gen > kMostPcieGeneration))
    return UsageError(fmt::format("--pcie-gen={}: expected 1 to {}", *options.pcie_gen, kMostPcieGeneration));
  std::optional<GpuArch> arch;
  if (options.gpu_arch) {
    XCCL_ASSIGN_OR_RETURN(arch, ParseGpuArch(*options.gpu_arch));
  }
  for (SmiDevice& device : devices) {
    if (!device.gpu) continue;
    if (!device.arch) device.arch = arch;
    if (device.bytes_per_s == 0 && options.pcie_gen)
      device.bytes_per_s = kPcieLanes * (kFirstPcieBytesPerS << (*options.pcie_gen - 1));
  }
  return options.nic_rate ? ApplyNicRate(*options.nic_rate, devices) : OkStatus();
}

// An error with all flags that a matrix alone needs and that were not given.
Status AskForWhatIsMissing(const std::vector<SmiDevice>& devices) {
  std::vector<std::string> missing, flags;
  const auto lacks = [&](std::string_view what, std::string_view flag, auto which) {
    if (std::ranges::none_of(devices, which)) return;
    missing.emplace_back(what);
    flags.emplace_back(flag);
  };
  lacks("architecture of its GPUs", "--gpu-arch=sm90", [](const SmiDevice& d) { return d.gpu && !d.arch; });
  lacks("PCIe generation", "--pcie-gen=5", [](const SmiDevice& d) { return d.gpu && d.bytes_per_s == 0; });
  lacks("rate of its NICs", "--nic-rate=400Gbit/s",
        [](const SmiDevice& d) { return !d.gpu && d.bytes_per_s == 0; });
  if (missing.empty()) return OkStatus();
  return InvalidInput(fmt::format("nvidia-smi topo -m: the text does not state the {}; expected {}; hint: {}",
                                  Join(missing, ", the "), missing.size() == 1 ? "a flag" : "flags",
                                  Join(flags, " ")));
}

// The lowest index stands for a group.
class Groups {
 public:
  explicit Groups(size_t size) : sets_(size) {}
  int32_t Of(size_t i) { return sets_.Find(static_cast<int32_t>(i)); }
  void Join(size_t a, size_t b) { sets_.Join(std::max(Of(a), Of(b)), std::min(Of(a), Of(b))); }

 private:
  UnionFind sets_;
};

class SmiTopologyBuilder {
 public:
  SmiTopologyBuilder(SmiMatrix matrix, const NvidiaSmiTexts& texts)
      : devices_(std::move(matrix.devices)), rows_(std::move(matrix.rows)), texts_(texts) {}

  StatusOr<Topology> Build() {
    spec_.name = texts_.name;
    spec_.source = "nvidia-smi topo -m; bandwidths and latencies as NCCL 2.28.9 assumes them";
    spec_.hosts = {Host{"h0"}};
    SetArch();
    AddDevices(true);
    AddNvlinks();
    AddPcie();
    WarnOfUnknownSpeeds(true, "PCIe link", "--pcie-gen=4");
    WarnOfUnknownSpeeds(false, "speed", "--nic-rate=400Gbit/s");
    return Topology::Create(std::move(spec_));
  }

 private:
  // Where all GPUs have the same.
  void SetArch() {
    std::set<std::string> archs;
    for (const SmiDevice& device : devices_)
      if (device.gpu) archs.insert(ToString(*device.arch));
    if (archs.size() == 1 && CheckGpuArch(*archs.begin()).ok()) spec_.gpu_arch = *archs.begin();
  }

  NodeId NewNode(NodeKind kind, std::string id) { return AddNode(kind, std::move(id), HostId(0), spec_); }
  void AddDevices(bool gpus) {
    nodes_.resize(devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i)
      if (devices_[i].gpu == gpus)
        nodes_[i] = NewNode(gpus ? NodeKind::kGpu : NodeKind::kNic,
                            gpus ? devices_[i].name.substr(3) : devices_[i].name);
  }
  // A device, or a PCIe switch with devices below it.
  struct PcieItem {
    std::optional<NodeId> node;  // absent: the device
    size_t device = 0;           // for a switch: one of the devices below it
    int64_t bandwidth = 0;       // towards the parent
  };

  void AddNvlinks() {
    std::optional<NodeId> nvswitch;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (!devices_[i].gpu) continue;
      int64_t sum = 0, most = 0;
      for (const SmiLink& c : rows_[i]) {
        sum += c.links;
        most = std::max(most, c.links);
      }
      const int64_t per_link = GpuLinkBytesPerS(*devices_[i].arch);
      if (sum > NvlinksOf(*devices_[i].arch).value_or(kNvlinksOfUnknownArch)) {
        if (!nvswitch) {
          nvswitch = NewNode(NodeKind::kSwitch, "nvswitch");
          Node& node = spec_.nodes[nvswitch->index()];
          node.multicast = node.reduce = HasNvls(*devices_[i].arch);
        }
        AddCable(nodes_[i], *nvswitch, {most * per_link, kGpuSwitchLatencyPs}, spec_);
        continue;
      }
      for (size_t j = i + 1; j < devices_.size(); ++j)
        if (rows_[i][j].links > 0)
          AddCable(nodes_[i], nodes_[j], {rows_[i][j].links * per_link, kGpuLinkLatencyPs}, spec_);
    }
  }

  // Adds a PCIe switch for each PIX group of two or more devices, and one above each PXB group of two or more
  // PIX groups. Returns the switches and devices that are joined to a CPU directly, each identified by one of
  // its devices.
  std::vector<PcieItem> AddSwitches() {
    using Kind = SmiLink::Kind;
    Groups pix = GroupsOf({Kind::kPix}), pxb = GroupsOf({Kind::kPix, Kind::kPxb});
    std::map<int32_t, std::map<int32_t, std::vector<PcieItem>>> trees;  // PXB group -> PIX group -> devices
    for (size_t i = 0; i < devices_.size(); ++i)
      trees[pxb.Of(i)][pix.Of(i)].push_back(PcieItem{std::nullopt, i, PcieOf(i)});
    int32_t switches = 0;
    const auto join = [&](const std::vector<PcieItem>& units) {
      if (units.size() == 1) return units[0];
      PcieItem joined{NewNode(NodeKind::kSwitch, fmt::format("pci{}", switches++)), units[0].device, 0};
      for (const PcieItem& unit : units) {
        below_switches_.emplace_back(unit, *joined.node);
        joined.bandwidth = std::max(joined.bandwidth, unit.bandwidth);
      }
      return joined;
    };
    std::vector<PcieItem> tops;
    for (const auto& [top, tree] : trees) {
      std::vector<PcieItem> parts;
      for (const auto& [group, units] : tree) parts.push_back(join(units));
      tops.push_back(join(parts));
    }
    return tops;
  }

  void AddPcie() {
    using Kind = SmiLink::Kind;
    const std::vector<PcieItem> tops = AddSwitches();
    AddDevices(false);
    Groups group = GroupsOf({Kind::kPix, Kind::kPxb, Kind::kPhb, Kind::kNode});
    std::map<std::string, size_t> first_of_node;  // by NUMA node, else by CPU list
    for (size_t i = 0; i < devices_.size(); ++i) {
      const std::string node =
          devices_[i].numa ? fmt::format("numa {}", *devices_[i].numa) : devices_[i].cpus;
      if (!node.empty()) group.Join(first_of_node.emplace(node, i).first->second, i);
    }
    std::map<int32_t, int32_t> numa;  // by group: its NUMA node
    for (size_t i = 0; i < devices_.size(); ++i)
      if (devices_[i].numa) numa.emplace(group.Of(i), *devices_[i].numa);
    std::map<int32_t, NodeId> cpus;
    std::set<std::string> ids;
    for (const PcieItem& top : tops) {
      const int32_t of = group.Of(top.device);
      if (cpus.contains(of)) continue;
      std::string id = numa.contains(of) ? fmt::format("numa{}", numa[of]) : "cpu0";
      for (int n = 1; !ids.insert(id).second; ++n) id = fmt::format("cpu{}", n);
      cpus.emplace(of, NewNode(NodeKind::kCpu, id));
    }
    const auto node = [&](const PcieItem& unit) { return unit.node.value_or(nodes_[unit.device]); };
    for (const auto& [unit, above] : below_switches_)
      AddCable(node(unit), above, {unit.bandwidth, kPcieLatencyPs}, spec_);
    for (const PcieItem& top : tops) {
      const auto cpu = cpus.find(group.Of(top.device));
      XCCL_CHECK(cpu != cpus.end());
      AddCable(node(top), cpu->second, {top.bandwidth, kPcieLatencyPs}, spec_);
    }
    const CpuLink cpu_link = CpuLinkOf(texts_.cpu);
    const int64_t between = cpu_link.bytes_per_s;
    if (!cpu_link.known && cpus.size() > 1)
      spec_.warnings.push_back(
          fmt::format("nvidia-smi topo -m: the CPU is not known; {} between NUMA nodes assumed",
                      FormatBandwidth(between)));
    for (auto a = cpus.begin(); a != cpus.end(); ++a)
      for (auto b = std::next(a); b != cpus.end(); ++b)
        AddCable(a->second, b->second, {between, kPcieLatencyPs}, spec_);
  }

  // The bandwidth of a device's own slot; if unknown, what NCCL assumes (Gen3 x16).
  int64_t PcieOf(size_t device) const {
    return devices_[device].bytes_per_s > 0 ? devices_[device].bytes_per_s : kFallbackPcieBytesPerS;
  }
  void WarnOfUnknownSpeeds(bool gpus, std::string_view what, std::string_view flag) {
    std::vector<std::string> names;
    for (const SmiDevice& device : devices_)
      if (device.gpu == gpus && device.bytes_per_s == 0) names.push_back(device.name);
    if (names.empty()) return;
    spec_.warnings.push_back(
        fmt::format("nvidia-smi topo -m: the {} of {} is not known; {} assumed; hint: {}", what,
                    Join(names, ", "), FormatBandwidth(kFallbackPcieBytesPerS), flag));
  }
  Groups GroupsOf(const std::set<SmiLink::Kind>& kinds) {
    Groups groups(devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i)
      for (size_t j = 0; j < devices_.size(); ++j)
        if (kinds.contains(rows_[i][j].kind)) groups.Join(i, j);
    return groups;
  }

  std::vector<SmiDevice> devices_;
  std::vector<std::vector<SmiLink>> rows_;
  const NvidiaSmiTexts& texts_;
  std::vector<NodeId> nodes_;  // by device index
  std::vector<std::pair<PcieItem, NodeId>> below_switches_;
  TopologySpec spec_;
};

}  // namespace

StatusOr<Topology> ReadNvidiaSmi(const NvidiaSmiTexts& texts, const LoadOptions& options) {
  XCCL_ASSIGN_OR_RETURN(SmiMatrix matrix, ReadSmiMatrix(texts.matrix));
  ReadGpus(texts, matrix.devices);
  for (SmiDevice& device : matrix.devices)
    if (const auto rate = texts.nic_bytes_per_s.find(device.name); rate != texts.nic_bytes_per_s.end())
      if (!device.gpu) device.bytes_per_s = rate->second;
  XCCL_RETURN_IF_ERROR(ApplyFlags(options, matrix.devices));
  for (const SmiDevice& device : matrix.devices)
    if (device.gpu && !device.arch)
      return InvalidInput(fmt::format(
          "nvidia-smi: no compute_cap of {}; expected one such as 9.0; hint: --gpu-arch=sm90", device.name));
  return SmiTopologyBuilder(std::move(matrix), texts).Build();
}

StatusOr<Topology> ReadNvidiaSmiMatrix(std::string_view text, std::string_view file,
                                       const LoadOptions& options) {
  const auto read = [&]() -> StatusOr<Topology> {
    XCCL_ASSIGN_OR_RETURN(SmiMatrix matrix, ReadSmiMatrix(text));
    XCCL_RETURN_IF_ERROR(ApplyFlags(options, matrix.devices));
    XCCL_RETURN_IF_ERROR(AskForWhatIsMissing(matrix.devices));
    NvidiaSmiTexts texts;
    texts.name = std::filesystem::path(file).stem().string();
    return SmiTopologyBuilder(std::move(matrix), texts).Build();
  };
  StatusOr<Topology> topology = read();
  if (!topology.ok() && topology.status().code() != StatusCode::kUsage)
    return Annotate(topology.status(), file);
  return topology;
}

}  // namespace xccl
