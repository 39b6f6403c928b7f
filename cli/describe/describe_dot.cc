#include <fmt/core.h>

#include <map>
#include <tuple>

#include "base/units.h"
#include "cli/describe/describe.h"

namespace xccl {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n' || c == '\r') c = ' ';
    quoted += c;
  }
  return quoted + "\"";
}

std::string_view Style(NodeKind kind) {
  switch (kind) {
    case NodeKind::kGpu:
      return "shape=box, style=filled, fillcolor=palegreen";
    case NodeKind::kSwitch:
      return "shape=hexagon, style=filled, fillcolor=lightblue";
    case NodeKind::kNic:
      return "shape=cds, style=filled, fillcolor=wheat";
    case NodeKind::kCpu:
      return "shape=ellipse, style=filled, fillcolor=lightgray";
  }
  return "";
}

std::string NodeLine(const Topology& t, int32_t n, std::string_view indent) {
  const Node& node = t.node(NodeId(n));
  const std::optional<Rank> rank = t.RankOf(NodeId(n));
  const std::string label = rank ? fmt::format("rank {}", rank->value) : node.id;
  return fmt::format("{}n{} [label={}, {}];\n", indent, n, Quoted(label), Style(node.kind));
}

}  // namespace

std::string DescribeDot(const Topology& t) {
  std::string text = fmt::format("digraph {} {{\n  layout=fdp; overlap=false;\n", Quoted(t.name()));
  std::vector<std::string> of_host(static_cast<size_t>(t.num_hosts()));
  std::string outside;
  for (int32_t n = 0; n < t.num_nodes(); ++n) {
    const std::optional<HostId> host = t.node(NodeId(n)).host;
    (host ? of_host[host->index()] : outside) += NodeLine(t, n, host ? "    " : "  ");
  }
  for (size_t h = 0; h < of_host.size(); ++h)
    text += fmt::format("  subgraph cluster_{} {{\n    label={};\n{}  }}\n", h,
                        Quoted(t.spec().hosts[h].name), of_host[h]);
  text += outside;

  using Key = std::tuple<int32_t, int32_t, int64_t, int64_t, int64_t>;
  std::map<Key, int64_t> counts;
  const auto key = [](const Link& l, bool back) {
    return Key(back ? l.to.value : l.from.value, back ? l.from.value : l.to.value, l.bandwidth_bytes_per_s,
               l.latency_ps, l.overhead_ps);
  };
  for (const Link& link : t.spec().links) ++counts[key(link, false)];
  for (const Link& link : t.spec().links) {
    const auto forward = counts.find(key(link, false));
    if (forward == counts.end()) continue;  // drawn with an earlier link
    const int64_t count = forward->second;
    const auto back = counts.find(key(link, true));
    const bool duplex = back != counts.end() && back->second == count;
    text += fmt::format("  n{} -> n{} [label={}{}];\n", link.from.value, link.to.value,
                        Quoted((count > 1 ? fmt::format("{} x ", count) : "") +
                               FormatBandwidthShort(static_cast<double>(link.bandwidth_bytes_per_s))),
                        duplex ? ", dir=both" : "");
    counts.erase(forward);
    if (duplex) counts.erase(key(link, true));
  }
  return text + "}\n";
}

}  // namespace xccl
