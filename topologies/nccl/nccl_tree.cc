// One walk over the document. A <pci> becomes one item: a GPU or a net if it holds just that, a bridge if
// it holds more, a device if it holds nothing. A GPU that several ranks share is a bridge above them. Unknown
// elements are ignored, as in NCCL.
#include "topologies/nccl/nccl_tree.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <pugixml.hpp>

#include "base/diagnostics.h"
#include "base/strings.h"
#include "base/units.h"
#include "topologies/nccl/nccl_constants.h"
#include "topologies/nccl/nccl_numbers.h"
#include "topologies/xml/parse_xml.h"

namespace xccl {
namespace {

constexpr int kMaxDepth = 64;
constexpr int64_t kMaxCount =
    1 << 20;  // the most links, and the largest number of a device, rail or NUMA node
constexpr int64_t kMaxPcieLanes = 32;

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// The contents of a <pci>, without the devices below its own <pci> children.
struct Contents {
  int pcis = 0, gpus = 0, nets = 0;
  pugi::xml_node gpu, net;
};

Contents ContentsOf(pugi::xml_node pci) {
  Contents contents;
  for (pugi::xml_node child : pci.children()) {
    const std::string_view name = child.name();
    if (name == "pci") ++contents.pcis;
    if (name == "gpu") {
      ++contents.gpus;
      contents.gpu = child;
    }
    if (name != "nic") continue;
    for (pugi::xml_node net : child.children("net")) {
      ++contents.nets;
      contents.net = net;
    }
  }
  return contents;
}

class NcclTreeReader {
 public:
  NcclTreeReader(std::string_view text, std::string_view file) {
    system_.text = text;
    system_.file = file;
  }

  StatusOr<NcclSystem> Read() {
    pugi::xml_document document;
    XCCL_RETURN_IF_ERROR(ParseXml(system_.text, system_.file, "system", document));
    const pugi::xml_node root = document.document_element();
    const std::string_view name = root.name();
    if (name == "graphs")
      return system_.At(
          OffsetOf(root),
          "an NCCL graph file (<graphs>), not a topology; expected <system>; hint: NCCL_TOPO_DUMP_FILE "
          "writes one");
    if (name != "system")
      return system_.At(OffsetOf(root), fmt::format("root element <{}>; expected <system>", name));
    const std::string_view version = root.attribute("version").value();
    if (version != "1" && version != "2")
      Warn(root, fmt::format("system version=\"{}\"; known are 1 (NCCL) and 2 (RCCL)", version));
    system_.name = root.attribute("name").value();
    for (pugi::xml_node child : root.children()) {
      if (child.type() != pugi::node_element || !status_.ok()) continue;
      if (std::string_view(child.name()) == "cpu")
        ReadCpu(child);
      else
        WarnUnknown(child);
    }
    if (!status_.ok()) return status_;
    if (system_.items.empty())
      return system_.At(OffsetOf(root), "a <system> without <cpu>; expected at least one");
    return std::move(system_);
  }

 private:
  // Offset of the element's '<'.
  static size_t OffsetOf(pugi::xml_node node) {
    return static_cast<size_t>(std::max<ptrdiff_t>(node.offset_debug() - 1, 0));
  }
  void Fail(pugi::xml_node node, std::string_view message) {
    if (status_.ok()) status_ = system_.At(OffsetOf(node), fmt::format("{}: {}", node.name(), message));
  }
  void Warn(pugi::xml_node node, std::string text) { system_.Warn(OffsetOf(node), std::move(text)); }
  void WarnUnknown(pugi::xml_node node) {
    Warn(node, fmt::format("unknown element <{}> left out", node.name()));
  }

  // The attribute's number as NCCL reads it, with a warning where the text is not plainly one. Absent: no
  // such attribute, or one with a value out of range, which is an error.
  std::optional<int64_t> Integer(pugi::xml_node node, const char* name, int64_t low, int64_t high) {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) return std::nullopt;
    const LeadingNumber<int64_t> number = ReadLeadingInteger(attribute.value());
    if (!number.plain)
      Warn(node, fmt::format("{}: {}=\"{}\" is no plain number; read as {}, as NCCL does", node.name(), name,
                             attribute.value(), number.value));
    if (number.value >= low && number.value <= high) return number.value;
    Fail(node, fmt::format("{}=\"{}\": expected a whole number {} to {}", name, attribute.value(),
                           low < -1 ? "up" : fmt::format("from {}", low), high));
    return std::nullopt;
  }

  // Absent where the attribute is empty or below zero, too: NCCL's -1 means that it does not know.
  std::optional<int32_t> Number(pugi::xml_node node, const char* name, int64_t high) {
    if (Trim(node.attribute(name).value()).empty()) return std::nullopt;
    const std::optional<int64_t> value = Integer(node, name, INT32_MIN, high);
    return value && *value >= 0 ? std::optional(static_cast<int32_t>(*value)) : std::nullopt;
  }

  static std::string LowerAttribute(pugi::xml_node node, const char* name) {
    return Lower(Trim(node.attribute(name).value()));
  }

  // A PCI class as NCCL writes it, "0x030200". Files made by hand have it without 0x, or without the first 0.
  static std::string ClassOf(pugi::xml_node node, const char* name) {
    std::string text = LowerAttribute(node, name);
    const bool prefixed = text.starts_with("0x");
    const std::string digits = text.substr(prefixed ? 2 : 0);
    if (digits.empty() || digits.find_first_not_of("0123456789abcdef") != std::string::npos) return text;
    return (digits.size() == 5 && digits[0] != '0' ? "0x0" : "0x") + digits;
  }

  static uint64_t Hex16(pugi::xml_node node, const char* name) {
    std::string text = LowerAttribute(node, name);
    if (!text.starts_with("0x")) text.insert(0, "0x");
    return static_cast<uint64_t>(ReadLeadingInteger(text).value) & 0xffff;
  }

  NcclItem& Add(NcclItemKind kind, int32_t parent, pugi::xml_node node) {
    NcclItem& item = system_.items.emplace_back();
    item.kind = kind;
    item.parent = parent;
    item.offset = OffsetOf(node);
    return item;
  }

  void ReadCpu(pugi::xml_node node) {
    const auto index = static_cast<int32_t>(system_.items.size());
    NcclItem& item = Add(NcclItemKind::kCpu, -1, node);
    item.numa = static_cast<int32_t>(Integer(node, "numaid", INT32_MIN, kMaxCount).value_or(0));
    item.host_hash = LowerAttribute(node, "host_hash");
    item.cpu.arch = node.attribute("arch").value();
    item.cpu.vendor = node.attribute("vendor").value();
    item.cpu.family = static_cast<int32_t>(Integer(node, "familyid", INT32_MIN, INT32_MAX).value_or(0));
    item.cpu.model = static_cast<int32_t>(Integer(node, "modelid", INT32_MIN, INT32_MAX).value_or(0));
    ReadChildren(node, index, 1);
  }

  // Reads the children of a <cpu> or of a bridge; `parent` is the index of its item.
  void ReadChildren(pugi::xml_node node, int32_t parent, int depth) {
    for (pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element || !status_.ok()) continue;
      const std::string_view name = child.name();
      if (name == "pci") {
        ReadPci(child, parent, depth + 1);
      } else if (name == "gpu" || name == "net") {
        NcclItem& item = Add(name == "gpu" ? NcclItemKind::kGpu : NcclItemKind::kNet, parent, child);
        item.bandwidth_bytes_per_s = kLocalBytesPerS;
        item.local = true;
        if (name == "gpu") item.busid = LowerAttribute(child, "busid");
        name == "gpu" ? ReadGpu(child, item) : ReadNet(child, item);
        item.software =
            name == "net" && system_[parent].kind == NcclItemKind::kCpu && item.gdr == false && !IsBond(item);
        if (item.part) item.bandwidth_bytes_per_s = kPartBytesPerS;
      } else if (name == "nic") {
        WarnWithoutNet(child);
        ReadChildren(child, parent, depth + 1);
      } else if (name == "pcilink") {
        ReadEdge(child, system_[parent]);
      } else {
        WarnUnknown(child);
      }
    }
  }

  void ReadPci(pugi::xml_node node, int32_t parent, int depth) {
    if (depth > kMaxDepth) return Fail(node, fmt::format("nested deeper than {}", kMaxDepth));
    const Contents contents = ContentsOf(node);
    const auto index = static_cast<int32_t>(system_.items.size());
    NcclItem& item = Add(NcclItemKind::kDevice, parent, node);
    ReadPciAttributes(node, item);
    WarnWithoutNet(node.child("nic"));
    if (contents.pcis + contents.gpus + contents.nets < 2 && contents.pcis == 0) {
      WarnOfUnknownIn(node);
      if (contents.gpus == 1) {
        item.kind = NcclItemKind::kGpu;
        ReadGpu(contents.gpu, item);
      } else if (contents.nets == 1) {
        item.kind = NcclItemKind::kNet;
        ReadNet(contents.net, item);
      }
    } else {
      item.kind = NcclItemKind::kBridge;
      item.shared_gpu = contents.gpus > 1 && contents.pcis + contents.nets == 0;
      item.adapter = contents.nets > 1 && contents.pcis + contents.gpus == 0;
      ReadChildren(node, index, depth);
    }
  }

  // Warns of unknown elements inside a <pci> that stands for one device.
  void WarnOfUnknownIn(pugi::xml_node pci) {
    for (pugi::xml_node child : pci.children()) {
      const std::string_view name = child.name();
      if (child.type() == pugi::node_element && name != "gpu" && name != "nic" && name != "pcilink")
        WarnUnknown(child);
      for (pugi::xml_node inside : child.children())
        if (name == "nic" && inside.type() == pugi::node_element && std::string_view(inside.name()) != "net")
          WarnUnknown(inside);
    }
  }

  void WarnWithoutNet(pugi::xml_node nic) {
    if (nic && !nic.child("net")) Warn(nic, "a <nic> without <net>, so without a name and a speed");
  }

  // sysfs has 0, 63 or 255 lanes, or none at all, where it does not know.
  int64_t LanesOf(pugi::xml_node node) {
    const pugi::xml_attribute width = node.attribute("link_width");
    if (!width) return kPcieLanes;
    const LeadingNumber<int64_t> lanes = ReadLeadingInteger(width.value());
    const bool possible = lanes.value > 0 && lanes.value <= kMaxPcieLanes;
    if (!possible)
      Warn(node, fmt::format("link_width=\"{}\"; {} lanes assumed, as NCCL does{}", width.value(), kPcieLanes,
                             lanes.value == 0 ? "" : " for 0"));
    else if (!lanes.plain)
      Warn(node, fmt::format("link_width=\"{}\" is no plain number; read as {}, as NCCL does", width.value(),
                             lanes.value));
    return possible ? lanes.value : kPcieLanes;
  }

  void ReadPciAttributes(pugi::xml_node node, NcclItem& item) {
    item.busid = LowerAttribute(node, "busid");
    if (item.busid.empty()) Warn(node, "pci without busid");
    item.pci_class = ClassOf(node, "class");
    item.pci_id = Hex16(node, "vendor") << 48 | Hex16(node, "device") << 32 |
                  Hex16(node, "subsystem_vendor") << 16 | Hex16(node, "subsystem_device");
    const int64_t lanes = LanesOf(node);
    const pugi::xml_attribute text = node.attribute("link_speed");
    if (!text) return;
    const PcieSpeed speed = ParsePcieSpeed(text.value());
    if (!speed.present)
      Warn(node,
           fmt::format("link_speed=\"{}\" is no PCIe speed; 8 GT/s assumed, as NCCL does", text.value()));
    else if (!speed.known)
      Warn(node,
           fmt::format("link_speed=\"{}\" is not as NCCL writes it (it would assume 8 GT/s); read by its "
                       "number",
                       text.value()));
    item.bandwidth_bytes_per_s = lanes * speed.bytes_per_s_per_lane;
    item.one_slow_lane = item.bandwidth_bytes_per_s == kFirstPcieBytesPerS;
  }

  void ReadGpu(pugi::xml_node node, NcclItem& item) {
    item.dev = Number(node, "dev", kMaxCount);
    item.rank = Number(node, "rank", INT32_MAX);
    item.part = Number(node, "mlopart", kMaxCount).has_value();
    const int32_t sm = Number(node, "sm", 100'000).value_or(0);
    const std::string_view gcn = node.attribute("gcn").value();
    // RCCL writes an sm, too, which means nothing.
    item.amd = !gcn.empty() || node.child("xgmi") || item.pci_id >> 48 == kAmdVendor;
    if (!gcn.empty())
      item.arch = GpuArchOfGcn(gcn);
    else if (sm > 0 && !item.amd)
      item.arch = GpuArch{sm, ""};
    if (item.arch && !IsKnownArch(*item.arch))
      Warn(node, fmt::format("{}=\"{}\" is no architecture that is known here; {} {}, as {} assumes",
                             item.amd ? "gcn" : "sm", item.amd ? std::string(gcn) : std::to_string(sm),
                             FormatBandwidth(GpuLinkBytesPerS(*item.arch)),
                             item.amd ? "an xGMI link" : "an NVLink", item.amd ? "RCCL" : "NCCL"));
    for (pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view name = child.name();
      if (name == "nvlink" || name == "xgmi" || name == "c2c")
        ReadEdge(child, item);
      else
        WarnUnknown(child);
    }
  }

  void ReadNet(pugi::xml_node node, NcclItem& item) {
    item.name = node.attribute("name").value();
    item.dev = Number(node, "dev", kMaxCount);
    item.port = Integer(node, "port", INT32_MIN, INT32_MAX);
    item.guid = node.attribute("guid").value();
    item.rail = Number(node, "rail", kMaxCount);
    item.plane = Number(node, "plane", kMaxCount);
    if (const auto gdr = Integer(node, "gdr", INT32_MIN, INT32_MAX)) item.gdr = *gdr != 0;
    // NCCL 2.30 leaves NICs that it has merged, and those for gin and rma alone, in the dump with net="0".
    item.removed = Integer(node, "net", INT32_MIN, INT32_MAX).value_or(1) == 0;
    int64_t mbps = Number(node, "speed", 1'000'000'000).value_or(0);
    if (mbps == 0) {
      mbps = kDefaultNetMbps;
      if (!item.removed) Warn(node, fmt::format("net without speed; {} Mbit/s assumed, as NCCL does", mbps));
    }
    const int64_t net = mbps * kBytesPerSPerMbps;
    // A PCIe slot slower than its net limits it; a slot without a stated speed does not.
    item.bandwidth_bytes_per_s =
        item.bandwidth_bytes_per_s == 0 ? net : std::min(item.bandwidth_bytes_per_s, net);
    item.latency_ps = LatencyOf(node);
  }

  // The latency in picoseconds, from a number of microseconds; 0 where there is none or it is 1 s or more.
  int64_t LatencyOf(pugi::xml_node net) {
    const std::string_view text = net.attribute("latency").value();
    const LeadingNumber<double> us = ReadLeadingFloat(text);
    if (!us.plain && !Trim(text).empty())
      Warn(net,
           fmt::format("net: latency=\"{}\" is no plain number; read as {}, as NCCL does", text, us.value));
    return us.value > 0 && us.value < 1e6 ? static_cast<int64_t>(us.value * 1e6) : 0;
  }

  // True if the interface combines several: a bond or team, as Linux names them, or NICs that NCCL has merged
  // ("mlx5_0+mlx5_1").
  static bool IsBond(const NcclItem& net) {
    return net.name.starts_with("bond") || net.name.starts_with("team") ||
           net.name.find('+') != std::string::npos;
  }

  void ReadEdge(pugi::xml_node node, NcclItem& item) {
    NcclEdge edge;
    edge.offset = OffsetOf(node);
    const std::string_view name = node.name();
    edge.target = LowerAttribute(node, "target");
    edge.target_class = ClassOf(node, "tclass");
    if (name == "pcilink") {
      edge.kind = NcclEdge::Kind::kPcilink;
    } else {
      const std::optional<int64_t> count = Integer(node, "count", 0, kMaxCount);
      if (!count) Warn(node, fmt::format("{} without count; 1 assumed", name));
      edge.count = count.value_or(1);
      if (edge.count == 0) return;
    }
    if (name == "c2c") {
      edge.kind = NcclEdge::Kind::kC2c;
      const int64_t mb_per_s = Integer(node, "bw", 0, 100'000'000).value_or(0);
      if (mb_per_s == 0) return Fail(node, "no bw; expected the MB/s of one link");
      if (edge.count > 1024)
        return Fail(node, fmt::format("count=\"{}\": expected at most 1024", edge.count));
      edge.bandwidth_bytes_per_s = edge.count * mb_per_s * 1'000'000;
    } else if (edge.target.empty()) {
      return Fail(node, "no target; expected a busid");
    }
    item.edges.push_back(std::move(edge));
  }

  Status status_;  // the first error
  NcclSystem system_;
};

}  // namespace

Status NcclSystem::At(size_t offset, std::string_view message) const {
  return InvalidAt(LocationOfOffset(file, text, offset), message);
}

void NcclSystem::Warn(size_t offset, std::string warning) {
  Warning& known =
      warnings_.try_emplace(std::move(warning), Warning{offset, warnings_.size(), 0}).first->second;
  ++known.count;
  known.offset = std::min(known.offset, offset);
}

std::vector<std::string> NcclSystem::Warnings() const {
  std::map<std::pair<size_t, size_t>, std::string> sorted;
  for (const auto& [what, warning] : warnings_)
    sorted[{warning.offset, warning.order}] =
        warning.count > 1 ? fmt::format("{} ({} times)", what, warning.count) : what;
  std::vector<std::string> lines;
  Location at{std::string(file)};
  size_t reached = 0;
  for (const auto& [place, what] : sorted) {
    const Location on = LocationOfOffset(file, text.substr(reached), place.first - reached);
    at.column = on.line == 1 ? at.column + on.column - 1 : on.column;
    at.line += on.line - 1;
    reached = place.first;
    lines.push_back(fmt::format("{}: {}", ToString(at), what));
  }
  return lines;
}

std::vector<int32_t> NcclSystem::Live(NcclItemKind kind) const {
  std::vector<int32_t> found;
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].kind == kind && !items[i].removed) found.push_back(static_cast<int32_t>(i));
  return found;
}

StatusOr<NcclSystem> ReadNcclTree(std::string_view text, std::string_view file) {
  return NcclTreeReader(text, file).Read();
}

}  // namespace xccl
