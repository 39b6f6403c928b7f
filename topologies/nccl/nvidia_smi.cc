// The text is read as a stream of words, since its tabs do not align and its lines may be wrapped. Names of
// devices come until the first one repeats, then one row per device. Union-find then groups devices by
// class: PIX under one PCIe switch, PXB under one more above it, PHB and NODE under one CPU.
#include "topologies/nccl/nvidia_smi.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "base/graph/union_find.h"
#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/networks.h"

namespace xccl {
namespace {

constexpr int64_t kMostDevices = 1024;

struct DeviceLink {
  enum class Kind { kSelf, kNvlink, kPix, kPxb, kPhb, kNode, kSys };
  Kind kind = Kind::kSys;
  int64_t links = 0;  // kNvlink
};

struct Device {
  std::string name;  // GPU0, mlx5_0
  bool gpu = false;
  std::optional<int32_t> numa;
  std::string cpus;  // affinity: "0-31,64-95"; may be empty
  GpuArch arch;
  int64_t pcie_bytes_per_s = 0;  // 0: unknown
};

struct Matrix {
  std::vector<Device> devices;  // columns
  std::vector<std::vector<DeviceLink>> rows;
};

Status Bad(std::string_view message) { return InvalidInput(fmt::format("nvidia-smi topo -m: {}", message)); }

// Removes escape sequences: on terminals the header is underlined.
std::string WithoutEscapes(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '[') ++i;
    while (i + 1 < text.size() && (text[i + 1] < '@' || text[i + 1] > '~')) ++i;
    ++i;
  }
  return plain;
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::optional<int64_t> NumberAfter(std::string_view word, std::string_view prefix) {
  if (!word.starts_with(prefix)) return std::nullopt;
  const StatusOr<int64_t> number = ParseInteger(word.substr(prefix.size()), 0, 1'000'000);
  return number.ok() ? std::optional(*number) : std::nullopt;
}

std::optional<DeviceLink> ParseDeviceLink(std::string_view word) {
  using Kind = DeviceLink::Kind;
  constexpr std::pair<std::string_view, Kind> kClasses[] = {
      {"X", Kind::kSelf},    {"PIX", Kind::kPix}, {"PXB", Kind::kPxb}, {"PHB", Kind::kPhb},
      {"NODE", Kind::kNode}, {"SYS", Kind::kSys}, {"SOC", Kind::kSys}};  // SOC: drivers before 390
  for (const auto& [name, kind] : kClasses)
    if (word == name) return DeviceLink{kind, 0};
  const auto links = NumberAfter(word, "NV");
  return links && *links > 0 ? std::optional(DeviceLink{Kind::kNvlink, *links}) : std::nullopt;
}

// Reads the names in the header, up to the word at `at`, where the first row begins.
StatusOr<std::vector<Device>> ReadHeader(const std::vector<std::string>& words, size_t& at) {
  static const std::set<std::string> kOtherColumns = {"CPU", "NUMA", "GPU", "Affinity", "ID"};
  std::vector<Device> devices;
  while (at < words.size() && !NumberAfter(words[at], "GPU")) ++at;
  for (; at < words.size(); ++at) {
    if (kOtherColumns.contains(words[at])) continue;
    if (!devices.empty() && words[at] == devices.front().name) return devices;
    if (words[at] == "Legend:" || ParseDeviceLink(words[at])) break;
    devices.push_back(Device{words[at], NumberAfter(words[at], "GPU").has_value(), std::nullopt, "", {}, 0});
    if (static_cast<int64_t>(devices.size()) > kMostDevices)
      return Bad(fmt::format("more than {} devices", kMostDevices));
  }
  return Bad("no matrix of GPUs; expected a header 'GPU0 GPU1 ...' and a row for each");
}

// Reads the columns after the matrix: CPU affinity "0-31,64-95", then NUMA affinity "0", "0-1" or "N/A".
// Absent unless the latter is a single NUMA node.
std::optional<int32_t> NumaOf(const std::vector<std::string>& words, size_t at, size_t end) {
  if (at + 1 >= end) return std::nullopt;
  const auto numa = NumberAfter(words[at + 1], "");
  return numa ? std::optional(static_cast<int32_t>(*numa)) : std::nullopt;
}

// Reads "NIC0: mlx5_0" lines after the matrix.
void NameNics(const std::vector<std::string>& words, size_t at, std::vector<Device>& devices) {
  for (; at + 1 < words.size(); ++at) {
    if (!words[at].ends_with(':')) continue;
    for (Device& device : devices)
      if (!device.gpu && device.name + ":" == words[at]) device.name = words[at + 1];
  }
}

StatusOr<Matrix> ReadMatrix(std::string_view text) {
  const std::vector<std::string> words = Words(WithoutEscapes(text));
  size_t at = 0;
  Matrix matrix;
  XCCL_ASSIGN_OR_RETURN(matrix.devices, ReadHeader(words, at));
  const size_t count = matrix.devices.size();
  const auto row_starts = [&](size_t w, size_t row) {
    return row < count && words[w] == matrix.devices[row].name;
  };
  for (size_t row = 0; row < count; ++row) {
    const std::string& name = matrix.devices[row].name;
    if (at >= words.size() || !row_starts(at, row))
      return Bad(fmt::format("no row {}; expected one for each column", name));
    ++at;
    std::vector<DeviceLink>& cells = matrix.rows.emplace_back();
    for (size_t column = 0; column < count; ++column, ++at) {
      const auto connection = at < words.size() ? ParseDeviceLink(words[at]) : std::nullopt;
      const std::string place = fmt::format("{} to {}", name, matrix.devices[column].name);
      if (at >= words.size()) return Bad(fmt::format("{}: the text ends", place));
      if (!connection)
        return Bad(fmt::format("{}: '{}'; expected X, NV#, PIX, PXB, PHB, NODE or SYS", place, words[at]));
      if ((connection->kind == DeviceLink::Kind::kSelf) != (row == column))
        return Bad(fmt::format("{}: '{}'; expected X on the diagonal alone", place, words[at]));
      cells.push_back(*connection);
    }
    size_t end = at;
    while (end < words.size() && !row_starts(end, row + 1) && words[end] != "Legend:") ++end;
    matrix.devices[row].numa = NumaOf(words, at, end);
    if (at < end && words[at].find_first_of("0123456789") == 0) matrix.devices[row].cpus = words[at];
    at = end;
  }
  NameNics(words, at, matrix.devices);
  return matrix;
}

// Sets the architecture and PCIe bandwidth of the GPUs from the lines of the query.
Status ReadGpus(const NvidiaSmiTexts& texts, const LoadOptions& options, std::vector<Device>& devices) {
  std::optional<GpuArch> flag;
  if (options.gpu_arch) {
    XCCL_ASSIGN_OR_RETURN(flag, ParseGpuArch(*options.gpu_arch));
  }
  std::map<std::string, std::vector<std::string>> lines;
  for (const std::string& line : Split(texts.gpus, '\n')) {
    std::vector<std::string> fields;
    for (const std::string& field : Split(line, ',')) fields.emplace_back(Trim(field));
    lines.emplace("GPU" + fields[0], std::move(fields));
  }
  for (Device& device : devices) {
    if (!device.gpu) continue;
    std::vector<std::string> fields;
    if (const auto known = lines.find(device.name); known != lines.end()) fields = known->second;
    fields.resize(4);
    std::erase(fields[1], '.');
    const StatusOr<int64_t> sm = ParseInteger(fields[1], 10, 999);
    if (!sm.ok() && !flag)
      return InvalidInput(fmt::format(
          "nvidia-smi: no compute_cap of {}; expected one such as 9.0; hint: --gpu-arch=sm90", device.name));
    device.arch = sm.ok() ? GpuArch{static_cast<int32_t>(*sm), ""} : *flag;
    const StatusOr<int64_t> generation = ParseInteger(fields[2], 1, 6),
                            width = ParseInteger(fields[3], 1, 32);
    if (generation.ok() && width.ok())
      device.pcie_bytes_per_s = *width * (kFirstPcieBytesPerS << (*generation - 1));
  }
  return OkStatus();
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
  SmiTopologyBuilder(Matrix matrix, const NvidiaSmiTexts& texts)
      : devices_(std::move(matrix.devices)), rows_(std::move(matrix.rows)), texts_(texts) {}

  StatusOr<Topology> Build() {
    spec_.name = texts_.name;
    spec_.source = "nvidia-smi topo -m; bandwidths and latencies as NCCL 2.28.9 assumes them";
    spec_.hosts = {Host{"h0"}};
    SetArch();
    AddDevices(true);
    AddNvlinks();
    AddPcie();
    return Topology::Create(std::move(spec_));
  }

 private:
  // Where all GPUs have the same.
  void SetArch() {
    std::set<std::string> archs;
    for (const Device& device : devices_)
      if (device.gpu) archs.insert(ToString(device.arch));
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
      for (const DeviceLink& c : rows_[i]) {
        sum += c.links;
        most = std::max(most, c.links);
      }
      const int64_t per_link = GpuLinkBytesPerS(devices_[i].arch);
      if (sum > NvlinksOf(devices_[i].arch).value_or(0)) {
        if (!nvswitch) {
          nvswitch = NewNode(NodeKind::kSwitch, "nvswitch");
          Node& node = spec_.nodes[nvswitch->index()];
          node.multicast = node.reduce = HasNvls(devices_[i].arch);
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
  // of those. Returns what joins a CPU directly, each identified by one of its devices.
  std::vector<PcieItem> AddSwitches() {
    using Kind = DeviceLink::Kind;
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
    using Kind = DeviceLink::Kind;
    const std::vector<PcieItem> tops = AddSwitches();
    AddDevices(false);
    Groups group = GroupsOf({Kind::kPix, Kind::kPxb, Kind::kPhb, Kind::kNode});
    std::map<std::string, size_t> first_of_node;  // by NUMA node, else by CPU list
    for (size_t i = 0; i < devices_.size(); ++i) {
      const std::string node =
          devices_[i].numa ? fmt::format("numa {}", *devices_[i].numa) : devices_[i].cpus;
      if (!node.empty()) group.Join(first_of_node.emplace(node, i).first->second, i);
    }
    std::map<int32_t, int32_t> numa;  // of the groups
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
    const int64_t between = CpuLinkOf(texts_.cpu).bytes_per_s;
    for (auto a = cpus.begin(); a != cpus.end(); ++a)
      for (auto b = std::next(a); b != cpus.end(); ++b)
        AddCable(a->second, b->second, {between, kPcieLatencyPs}, spec_);
  }

  // The bandwidth of a device's own slot; if unknown, what NCCL assumes (Gen3 x16).
  int64_t PcieOf(size_t device) {
    const Device& d = devices_[device];
    if (d.gpu && d.pcie_bytes_per_s > 0) return d.pcie_bytes_per_s;
    const auto known = texts_.nic_bytes_per_s.find(d.name);
    if (!d.gpu && known != texts_.nic_bytes_per_s.end()) return known->second;
    spec_.warnings.push_back(fmt::format("nvidia-smi topo -m: the {} of {} is not known; 12GB/s assumed",
                                         d.gpu ? "PCIe link" : "speed", d.name));
    return kFallbackPcieBytesPerS;
  }
  Groups GroupsOf(const std::set<DeviceLink::Kind>& kinds) {
    Groups groups(devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i)
      for (size_t j = 0; j < devices_.size(); ++j)
        if (kinds.contains(rows_[i][j].kind)) groups.Join(i, j);
    return groups;
  }

  std::vector<Device> devices_;
  std::vector<std::vector<DeviceLink>> rows_;
  const NvidiaSmiTexts& texts_;
  std::vector<NodeId> nodes_;  // by device index
  std::vector<std::pair<PcieItem, NodeId>> below_switches_;
  TopologySpec spec_;
};

}  // namespace

StatusOr<Topology> ReadNvidiaSmi(const NvidiaSmiTexts& texts, const LoadOptions& options) {
  XCCL_ASSIGN_OR_RETURN(Matrix matrix, ReadMatrix(texts.matrix));
  XCCL_RETURN_IF_ERROR(ReadGpus(texts, options, matrix.devices));
  return SmiTopologyBuilder(std::move(matrix), texts).Build();
}

}  // namespace xccl
