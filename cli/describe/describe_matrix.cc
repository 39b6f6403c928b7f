#include "cli/describe/describe_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/units.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

enum class Way { kDirect, kSwitch, kPix, kPxb, kPhb, kSys, kNet, kGpus };
constexpr std::array<std::string_view, 8> kLabels = {"n", "SW", "PIX", "PXB", "PHB", "SYS", "NET", "-"};

struct Cell {
  Way way = Way::kGpus;
  int64_t bandwidth = 0;
  std::string text;
};

bool IsPcie(const Node& node) { return node.id.starts_with("pci"); }

Way WayOf(const Topology& t, std::span<const LinkId> path, std::set<std::string>& switches) {
  int cpus = 0, pcie = 0, others = 0;
  bool nic = false;
  for (LinkId l : path.first(path.size() - 1)) {
    const Node& node = t.node(t.link(l).to);
    switch (node.kind) {
      case NodeKind::kGpu:
        break;
      case NodeKind::kSwitch:
        IsPcie(node) ? ++pcie : ++others;
        if (!IsPcie(node)) switches.insert(node.id);
        break;
      case NodeKind::kNic:
        nic = true;
        break;
      case NodeKind::kCpu:
        ++cpus;
        break;
    }
  }
  if (nic) return Way::kNet;
  if (cpus > 0) return cpus == 1 ? Way::kPhb : Way::kSys;
  if (others > 0) return Way::kSwitch;
  return pcie == 1 ? Way::kPix : Way::kPxb;
}

std::string GbPerSText(int64_t bandwidth) {
  std::string text = FormatBandwidthShort(static_cast<double>(bandwidth));
  if (text.ends_with("GB/s")) text.resize(text.size() - 4);
  return text;
}

struct Legend {
  int64_t least = 0, most = 0;
  std::set<std::string> switches;
};

std::string Meaning(Way way, const Legend& legend) {
  std::string text;
  switch (way) {
    case Way::kDirect:
      return "GB/s over direct links";
    case Way::kSwitch:
      text = legend.switches.size() == 1 ? "through " + *legend.switches.begin() : "through switches";
      break;
    case Way::kPix:
      text = "through one PCIe switch";
      break;
    case Way::kPxb:
      text = "through several PCIe switches";
      break;
    case Way::kPhb:
      text = "through one CPU";
      break;
    case Way::kSys:
      text = "through several CPUs";
      break;
    case Way::kNet:
      text = "through NICs";
      break;
    case Way::kGpus:
      return "only through other GPUs, or not at all";
  }
  text += ", " + FormatBandwidthShort(static_cast<double>(legend.least));
  if (legend.most != legend.least) text += " to " + FormatBandwidthShort(static_cast<double>(legend.most));
  return text;
}

}  // namespace

std::string GpuMatrix(const Topology& t, std::span<const Rank> ranks) {
  std::array<Legend, kLabels.size()> legends;
  std::vector<std::vector<std::string>> cells(ranks.size());
  size_t width = 3, head = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const NodeId from = t.NodeOf(ranks[i]);
    head = std::max(head, t.node(from).id.size() + 4);
    width = std::max(width, t.node(from).id.size());
    const NeighbourTable table = GpuNeighboursOf(t, ranks[i]);
    for (Rank to : ranks) {
      if (to == ranks[i]) {
        cells[i].emplace_back("X");
        continue;
      }
      int64_t direct = 0;
      for (LinkId l : t.Out(from))
        if (t.link(l).to == t.NodeOf(to)) direct += t.link(l).bandwidth_bytes_per_s;
      Way way = Way::kGpus;
      int64_t bandwidth = direct;
      if (const Neighbour* best = table.Find(0, to)) {
        way = Way::kDirect;
        if (best->path.size() > 1 && best->bandwidth_bytes_per_s > direct) {
          std::set<std::string> switches;
          way = WayOf(t, best->path, switches);
          bandwidth = best->bandwidth_bytes_per_s;
          legends[static_cast<size_t>(way)].switches.merge(switches);
        }
      }
      Legend& legend = legends[static_cast<size_t>(way)];
      legend.least = legend.most == 0 ? bandwidth : std::min(legend.least, bandwidth);
      legend.most = std::max(legend.most, std::max<int64_t>(bandwidth, 1));
      cells[i].push_back(way == Way::kDirect ? GbPerSText(bandwidth)
                                             : std::string(kLabels[static_cast<size_t>(way)]));
      width = std::max(width, cells[i].back().size());
    }
  }
  std::string text = fmt::format("  {:{}}", "", head);
  for (Rank r : ranks) text += fmt::format("  {:>{}}", t.node(t.NodeOf(r)).id, width);
  text += '\n';
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += fmt::format("  {:{}}", "gpu " + t.node(t.NodeOf(ranks[i])).id, head);
    for (const std::string& cell : cells[i]) text += fmt::format("  {:>{}}", cell, width);
    text += '\n';
  }
  for (size_t w = 0; w < legends.size(); ++w)
    if (legends[w].most > 0)
      text += fmt::format("    {:<3}  {}\n", kLabels[w], Meaning(static_cast<Way>(w), legends[w]));
  return text;
}

}  // namespace xccl
