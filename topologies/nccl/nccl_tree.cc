// One walk over the document. A <pci> becomes one item: a GPU or a net if it holds just that, a bridge if
// it holds more, a device if it holds nothing. A GPU that several ranks share is a bridge above them. Unknown
// elements are ignored, as in NCCL.
#include "topologies/nccl/nccl_tree.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <pugixml.hpp>

#include "base/diagnostics.h"
#include "base/strings.h"
#include "base/units.h"
#include "topologies/xml/parse_xml.h"

namespace xccl {
namespace {

constexpr int kMaxDepth = 64;
constexpr int64_t kMaxCount = 1 << 20;  // of bonded links, lanes, devices

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

  std::optional<int64_t> Integer(pugi::xml_node node, const char* name, int64_t low, int64_t high) {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) return std::nullopt;
    const std::string_view text = attribute.value();
    if (const StatusOr<int64_t> value = ParseInteger(text, low, high); value.ok()) return *value;
    Fail(node, fmt::format("{}=\"{}\": expected a whole number from {} to {}", name, text, low, high));
    return std::nullopt;
  }

  // Absent where the attribute is -1, too.
  std::optional<int32_t> Number(pugi::xml_node node, const char* name, int64_t high) {
    const std::optional<int64_t> value = Integer(node, name, -1, high);
    return value && *value >= 0 ? std::optional(static_cast<int32_t>(*value)) : std::nullopt;
  }

  uint64_t Hex16(pugi::xml_node node, const char* name) {
    std::string_view text = node.attribute(name).value();
    if (text.starts_with("0x")) text.remove_prefix(2);
    uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return value & 0xffff;
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
    item.numa = static_cast<int32_t>(Integer(node, "numaid", -1, kMaxCount).value_or(0));
    item.host_hash = node.attribute("host_hash").value();
    item.cpu.arch = node.attribute("arch").value();
    item.cpu.vendor = node.attribute("vendor").value();
    item.cpu.family = static_cast<int32_t>(Integer(node, "familyid", -1, INT32_MAX).value_or(0));
    item.cpu.model = static_cast<int32_t>(Integer(node, "modelid", -1, INT32_MAX).value_or(0));
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
        if (name == "gpu") item.busid = Lower(child.attribute("busid").value());
        name == "gpu" ? ReadGpu(child, item) : ReadNet(child, item);
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
    if (contents.pcis + contents.gpus + contents.nets == 0) return;
    if (contents.gpus == 1 && contents.pcis + contents.nets == 0) {
      item.kind = NcclItemKind::kGpu;
      ReadGpu(contents.gpu, item);
    } else if (contents.nets == 1 && contents.pcis + contents.gpus == 0) {
      item.kind = NcclItemKind::kNet;
      ReadNet(contents.net, item);
    } else {
      item.kind = NcclItemKind::kBridge;
      item.shared_gpu = contents.gpus > 1 && contents.pcis + contents.nets == 0;
      ReadChildren(node, index, depth);
    }
  }

  void WarnWithoutNet(pugi::xml_node nic) {
    if (nic && !nic.child("net")) Warn(nic, "a <nic> without <net>, so without a name and a speed");
  }

  void ReadPciAttributes(pugi::xml_node node, NcclItem& item) {
    item.busid = Lower(node.attribute("busid").value());
    if (item.busid.empty()) Warn(node, "pci without busid");
    item.pci_class = Lower(node.attribute("class").value());
    item.pci_id = Hex16(node, "vendor") << 48 | Hex16(node, "device") << 32 |
                  Hex16(node, "subsystem_vendor") << 16 | Hex16(node, "subsystem_device");
    int64_t lanes = Integer(node, "link_width", 0, 1024).value_or(kPcieLanes);
    if (lanes == 0) {
      Warn(node, fmt::format("link_width=\"0\"; {} lanes assumed, as NCCL does", kPcieLanes));
      lanes = kPcieLanes;
    }
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
    item.part = !node.attribute("mlopart").empty();
    const std::string_view sm_text = node.attribute("sm").value();
    const StatusOr<int64_t> sm = sm_text.empty() ? StatusOr<int64_t>(0) : ParseInteger(sm_text, 0, 100'000);
    if (!sm.ok())
      return Fail(node, fmt::format("sm=\"{}\": expected a compute capability such as 90", sm_text));
    const std::string_view gcn = node.attribute("gcn").value();
    // RCCL writes an sm, too, which means nothing.
    item.amd = !gcn.empty() || node.child("xgmi") || item.pci_id >> 48 == kAmdVendor;
    if (!gcn.empty())
      item.arch = GpuArchOfGcn(gcn);
    else if (*sm > 0 && !item.amd)
      item.arch = GpuArch{static_cast<int32_t>(*sm), ""};
    if (item.arch && !IsKnownArch(*item.arch))
      Warn(node,
           fmt::format("sm=\"{}\" is no architecture that is known here; taken for the one before it", *sm));
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
    item.port = node.attribute("port").value();
    item.guid = node.attribute("guid").value();
    if (const pugi::xml_attribute gdr = node.attribute("gdr"))
      item.gdr = std::string_view(gdr.value()) != "0";
    int64_t mbps = Integer(node, "speed", INT32_MIN, 1'000'000'000).value_or(0);
    if (mbps <= 0) {
      Warn(node, fmt::format("net without speed; {} Mbit/s assumed, as NCCL does", kDefaultNetMbps));
      mbps = kDefaultNetMbps;
    }
    const int64_t net = mbps * kBytesPerSPerMbps;
    // A PCIe slot slower than its net limits it; a slot without a stated speed does not.
    item.bandwidth_bytes_per_s =
        item.bandwidth_bytes_per_s == 0 ? net : std::min(item.bandwidth_bytes_per_s, net);
    const double latency_us = node.attribute("latency").as_double();
    if (latency_us > 0 && latency_us < 1e6) item.latency_ps = static_cast<int64_t>(latency_us * 1e6);
  }

  void ReadEdge(pugi::xml_node node, NcclItem& item) {
    NcclEdge edge;
    edge.offset = OffsetOf(node);
    const std::string_view name = node.name();
    edge.target = Lower(node.attribute("target").value());
    edge.target_class = Lower(node.attribute("tclass").value());
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
