#include "draw/layout/sketch.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace xccl {
namespace {

std::string_view NameOfKind(NodeKind kind) {
  switch (kind) {
    case NodeKind::kGpu:
      return "GPU";
    case NodeKind::kSwitch:
      return "switch";
    case NodeKind::kNic:
      return "NIC";
    case NodeKind::kCpu:
      return "CPU";
  }
  return "";
}

// At most so many characters of UTF-8.
std::string Shortened(const std::string& text, size_t most) {
  std::string made;
  size_t characters = 0;
  for (const char c : text) {
    if ((c & 0xC0) != 0x80 && ++characters > most) return made + "…";
    made += c;
  }
  return made;
}

size_t Characters(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::string> FoldedLines(const Topology& topology, const NodeGroup& nodes, int32_t ranks) {
  if (ranks == 0) {
    const std::string first = Shortened(topology.node(nodes.front()).id, 16);
    return {Counted(std::ssize(nodes), NameOfKind(topology.node(nodes.front()).kind)), "from " + first};
  }
  std::set<HostId> hosts;
  int32_t first = topology.num_ranks();
  for (const NodeId node : nodes) {
    if (topology.node(node).host) hosts.insert(*topology.node(node).host);
    if (const std::optional<Rank> rank = topology.RankOf(node)) first = std::min(first, rank->value);
  }
  const std::string gpus = Counted(ranks, "GPU");
  if (std::ssize(hosts) == 1 && topology.num_hosts() > 1)
    return {Shortened(topology.spec().hosts[hosts.begin()->index()].name, 12), gpus};
  const std::string from = fmt::format("from {}", first);
  if (hosts.size() > 1 && std::ssize(hosts) != ranks) return {Counted(std::ssize(hosts), "host"), gpus};
  return {gpus, from};
}

}  // namespace

double TextWidth(const std::string& text) { return 7.2 * static_cast<double>(Characters(text)); }

DrawnItem MakeItem(const Topology& topology, const NodeGroup& nodes) {
  DrawnItem item;
  item.nodes = nodes;
  std::ranges::sort(item.nodes);
  item.kind = topology.node(item.nodes.front()).kind;
  for (const NodeId node : item.nodes) {
    if (!topology.IsGpu(node)) continue;
    item.kind = NodeKind::kGpu;
    ++item.ranks;
  }
  item.folded = item.nodes.size() > 1;
  if (item.folded) {
    item.lines = FoldedLines(topology, item.nodes, item.ranks);
  } else if (const std::optional<Rank> rank = topology.RankOf(item.nodes.front())) {
    item.lines = {fmt::format("{}", rank->value)};
  } else {
    item.lines = {Shortened(topology.node(item.nodes.front()).id, 14)};
  }
  item.width = 34;
  for (const std::string& line : item.lines) item.width = std::max(item.width, TextWidth(line) + 12);
  item.height = kItemHeight + 15 * static_cast<double>(item.lines.size() - 1);
  return item;
}

std::vector<int32_t> Runs(int32_t count, int32_t most) {
  int32_t runs = std::min(count, most);
  // Equal runs are easier to read, where there are not too few of them.
  for (int32_t equal = runs; equal * 3 >= most && equal > 0; --equal) {
    if (count % equal != 0) continue;
    runs = equal;
    break;
  }
  std::vector<int32_t> first;
  for (int32_t r = 0; r <= runs; ++r)
    first.push_back(static_cast<int32_t>(int64_t{count} * r / std::max(runs, 1)));
  return first;
}

void Shift(Sketch& sketch, double dx, double dy) {
  for (DrawnItem& item : sketch.items) {
    item.x += dx;
    item.y += dy;
  }
  for (DrawnFrame& frame : sketch.frames) {
    frame.left += dx;
    frame.top += dy;
    frame.label_at = {frame.label_at.x + dx, frame.label_at.y + dy};
  }
  for (DrawnCable& cable : sketch.shaped) {
    for (DrawnPoint& point : cable.points) {
      point.x += dx;
      point.y += dy;
    }
  }
}

void Flip(Sketch& sketch) {
  for (DrawnItem& item : sketch.items) item.y = sketch.height - item.y;
  for (DrawnFrame& frame : sketch.frames) {
    frame.top = sketch.height - frame.top - frame.height;
    frame.label_at.y = sketch.height - frame.label_at.y;
  }
  for (DrawnCable& cable : sketch.shaped)
    for (DrawnPoint& point : cable.points) point.y = sketch.height - point.y;
}

void Insert(const Sketch& part, double x, double y, Sketch& whole) {
  Sketch moved = part;
  Shift(moved, x, y);
  const auto first = static_cast<int32_t>(whole.items.size());
  for (DrawnCable& cable : moved.shaped) {
    cable.a += first;
    cable.b += first;
  }
  whole.items.insert(whole.items.end(), moved.items.begin(), moved.items.end());
  whole.frames.insert(whole.frames.end(), moved.frames.begin(), moved.frames.end());
  whole.shaped.insert(whole.shaped.end(), moved.shaped.begin(), moved.shaped.end());
  whole.width = std::max(whole.width, x + part.width);
  whole.height = std::max(whole.height, y + part.height);
}

}  // namespace xccl
