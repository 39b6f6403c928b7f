#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/units.h"
#include "cli/describe/describe.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

// How one GPU reaches another, and what a cell and its legend say of it.
enum class PathKind { kDirect, kSwitch, kPix, kPxb, kPhb, kSys, kNet, kGpus };
struct PathText {
  std::string_view label, meaning;
};
constexpr std::array<PathText, 8> kTexts = {{{"n", "GB/s over direct links"},
                                             {"SW", "through switches"},
                                             {"PIX", "through one PCIe switch"},
                                             {"PXB", "through several PCIe switches"},
                                             {"PHB", "through one CPU"},
                                             {"SYS", "through several CPUs"},
                                             {"NET", "through NICs"},
                                             {"-", "only through other GPUs, or not at all"}}};

bool IsPcie(const Node& node) { return node.id.starts_with("pci"); }

PathKind KindOf(const Topology& t, std::span<const LinkId> path, std::set<std::string>& switches) {
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
  if (nic) return PathKind::kNet;
  if (cpus > 0) return cpus == 1 ? PathKind::kPhb : PathKind::kSys;
  if (others > 0) return PathKind::kSwitch;
  return pcie == 1 ? PathKind::kPix : PathKind::kPxb;
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

std::string Meaning(PathKind kind, const Legend& legend) {
  std::string text(kTexts[static_cast<size_t>(kind)].meaning);
  if (kind == PathKind::kDirect || kind == PathKind::kGpus) return text;
  if (legend.switches.size() == 1) text = "through " + *legend.switches.begin();
  text += ", " + FormatBandwidthShort(static_cast<double>(legend.least));
  if (legend.most != legend.least) text += " to " + FormatBandwidthShort(static_cast<double>(legend.most));
  return text;
}

}  // namespace

std::string GpuMatrix(const Topology& t, std::span<const Rank> ranks) {
  std::array<Legend, kTexts.size()> legends;
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
      PathKind kind = PathKind::kGpus;
      int64_t bandwidth = direct;
      if (const Neighbour* best = table.Find(0, to)) {
        kind = PathKind::kDirect;
        if (best->path.size() > 1 && best->bandwidth_bytes_per_s > direct) {
          std::set<std::string> switches;
          kind = KindOf(t, best->path, switches);
          bandwidth = best->bandwidth_bytes_per_s;
          if (kind == PathKind::kSwitch) legends[static_cast<size_t>(kind)].switches.merge(switches);
        }
      }
      Legend& legend = legends[static_cast<size_t>(kind)];
      legend.least = legend.most == 0 ? bandwidth : std::min(legend.least, bandwidth);
      legend.most = std::max(legend.most, std::max<int64_t>(bandwidth, 1));
      cells[i].push_back(kind == PathKind::kDirect ? GbPerSText(bandwidth)
                                                   : std::string(kTexts[static_cast<size_t>(kind)].label));
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
      text += fmt::format("    {:<3}  {}\n", kTexts[w].label, Meaning(static_cast<PathKind>(w), legends[w]));
  return text;
}

}  // namespace xccl
