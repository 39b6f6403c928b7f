// A text is made of sections of lines. Repeated things are grouped by the text that describes them: links by
// ends and numbers, GPUs by their bandwidth, hosts by a signature of their nodes and links, fabric switches
// by ports.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "base/wrap.h"
#include "cli/describe/describe.h"
#include "ir/known_machines.h"
#include "topologies/cuts.h"
#include "topologies/paths.h"
#include "topologies/references.h"

namespace xccl {
namespace {

constexpr size_t kWrap = 100;                  // columns
constexpr int32_t kMatrixRanks = 16;           // ranks of one host
constexpr size_t kMostLines = 16;              // lines of one list
constexpr int64_t kMostHopWork = 300'000'000;  // ranks x links
constexpr int32_t kMostFlowLinks = 300'000;

std::string KindName(NodeKind kind, int64_t count) {
  return fmt::format("{}{}", NodeKindName(kind), count == 1 ? "" : kind == NodeKind::kSwitch ? "es" : "s");
}

std::string Counted(NodeKind kind, int64_t count) {
  return fmt::format("{} {}", count, KindName(kind, count));
}

std::string Rate(int64_t bandwidth) { return FormatBandwidthShort(static_cast<double>(bandwidth)); }

std::string CountsOfKinds(const std::map<NodeKind, int64_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [kind, count] : counts) parts.push_back(Counted(kind, count));
  return Join(parts, ", ");
}

// "source   " and the words of `text`, wrapped, following lines indented.
std::string Wrapped(std::string_view label, std::string_view text) {
  constexpr size_t kLabel = 10;
  const std::string break_line = "\n" + std::string(kLabel, ' ');
  return fmt::format("{:<{}}{}\n", label, kLabel, Join(WrapWords(text, kWrap - kLabel), break_line));
}

// Lines under one label, at most kMostLines of them.
std::string Listed(std::string_view label, const std::vector<std::string>& lines, std::string_view what) {
  std::string text;
  for (size_t i = 0; i < lines.size() && i < kMostLines; ++i)
    text += fmt::format("{:<10}{}\n", i == 0 ? label : "", lines[i]);
  if (lines.size() > kMostLines)
    text += fmt::format("{:<10}and {} more {}\n", "", lines.size() - kMostLines, what);
  return text;
}

// An id without the number at its end: "leaf3" -> "leaf", "pci-0c" -> "pci", "group2.router7" ->
// "group.router".
std::string Stem(std::string_view id) {
  if (id.starts_with("pci-")) return "pci";
  std::string stem;
  for (char c : id)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) stem += c;
  while (stem.ends_with('-') || stem.ends_with('.') || stem.ends_with('_')) stem.pop_back();
  return stem;
}

// Groups kept in the order of their first members.
template <typename Value>
class Groups {
 public:
  Value& operator[](const std::string& key) {
    const auto [known, added] = index_.emplace(key, items_.size());
    if (added) items_.emplace_back(key, Value());
    return items_[known->second].second;
  }
  size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::map<std::string, size_t> index_;
  std::vector<std::pair<std::string, Value>> items_;
};

// A GPU's links to one kind of neighbour: "300GB/s to gpus (6 links)".
std::string GpuBandwidth(const Topology& t, Rank rank, bool out, std::string_view direction) {
  struct Total {
    int64_t bandwidth = 0, links = 0;
  };
  Groups<Total> totals;
  for (LinkId l : out ? t.Out(t.NodeOf(rank)) : t.In(t.NodeOf(rank))) {
    const Node& other = t.node(out ? t.link(l).to : t.link(l).from);
    std::string name = KindName(other.kind, 2);
    if (other.kind == NodeKind::kSwitch) name = Stem(other.id) == "pci" ? "PCIe" : Stem(other.id);
    Total& total = totals[name];
    total.bandwidth += t.link(l).bandwidth_bytes_per_s;
    ++total.links;
  }
  std::vector<std::string> parts;
  for (const auto& [name, total] : totals)
    parts.push_back(fmt::format("{} {} {}{}", Rate(total.bandwidth), direction, name,
                                total.links > 1 ? fmt::format(" ({} links)", total.links) : ""));
  return parts.empty() ? "no links" : Join(parts, ", ");
}

std::string PerGpu(const Topology& t) {
  Groups<int64_t> texts;
  for (int32_t r = 0; r < t.num_ranks(); ++r) {
    const std::string out = GpuBandwidth(t, Rank(r), true, "to");
    const bool alike = out == GpuBandwidth(t, Rank(r), false, "to");
    ++texts[alike ? out : out + "; " + GpuBandwidth(t, Rank(r), false, "from")];
  }
  std::vector<std::string> lines;
  for (const auto& [text, count] : texts)
    lines.push_back(texts.size() == 1 ? text : fmt::format("{} of {}: {}", count, t.num_ranks(), text));
  return Listed("per gpu", lines, "kinds of GPUs");
}

// Says by which machine model plans for this machine are timed.
std::string Gpu(const Topology& t) {
  const std::string& arch = t.gpu_arch();
  if (arch.empty())
    return "not stated, so times are of ideal links; hint: arch=\"sm90\" in the file, or --gpu-arch=sm90";
  const std::optional<MachineModel> model = MachineOfArch(arch);
  return model ? fmt::format("{}: programs are timed by the machine model {}", arch, model->name)
               : fmt::format("{}: no machine model, so times are of ideal links; hint: --machine={}", arch,
                             ModelInstead(arch));
}

std::string Transfers(int32_t count) { return fmt::format("{} transfer{}", count, count == 1 ? "" : "s"); }

// "between hosts h0 and h1, h2", or "from ranks 0..3 to ranks 4..7".
std::string BetweenHalves(const Topology& t) {
  const Halves halves = HalvesOf(t);
  if (halves.from_hosts.empty()) {
    const auto range = [](const std::vector<Rank>& ranks) {
      return ranks.size() == 1 ? fmt::format("rank {}", ranks[0].value)
                               : fmt::format("ranks {}..{}", ranks.front().value, ranks.back().value);
    };
    return fmt::format("from {} to {}", range(halves.from), range(halves.to));
  }
  const auto names = [&](const std::vector<HostId>& hosts) {
    constexpr size_t kMostNamed = 4;
    const auto name = [&](HostId h) { return t.spec().hosts[h.index()].name; };
    if (hosts.size() > kMostNamed) return fmt::format("{}..{}", name(hosts.front()), name(hosts.back()));
    std::vector<std::string> all;
    for (const HostId h : hosts) all.push_back(name(h));
    return Join(all, ", ");
  };
  return fmt::format("between hosts {} and {}", names(halves.from_hosts), names(halves.to_hosts));
}

std::string Distances(const Topology& t) {
  if (t.num_ranks() < 2) return "";
  std::string text;
  const auto hops = RankHopsFrom(t, Rank(0)), back = RankHopsTo(t, Rank(0));
  const auto unreachable = [](const auto& h) {
    return std::find(h.begin(), h.end(), std::nullopt) - h.begin();
  };
  if (const auto r = unreachable(hops); r < t.num_ranks())
    return Wrapped("reach", fmt::format("rank 0 does not reach rank {}", r));
  if (const auto r = unreachable(back); r < t.num_ranks())
    return Wrapped("reach", fmt::format("rank {} does not reach rank 0", r));
  if (static_cast<int64_t>(t.num_ranks()) * t.num_links() <= kMostHopWork)
    text += Wrapped("hops", fmt::format("at most {} from rank to rank", Transfers(*RankDiameter(t))));
  else
    text +=
        Wrapped("hops", fmt::format("at most {} from rank 0", Transfers(**std::ranges::max_element(hops))));
  if (t.num_links() <= kMostFlowLinks) {
    text += Wrapped("halves", fmt::format("{} {}", Rate(CutBetweenHalves(t)), BetweenHalves(t)));
  }
  return text;
}

std::string LinkClasses(const Topology& t) {
  using Key = std::tuple<NodeKind, NodeKind, int64_t, int64_t, int64_t>;  // bandwidth negative: widest first
  std::map<Key, int64_t> counts;
  for (const Link& l : t.spec().links) {
    const NodeKind a = t.node(l.from).kind, b = t.node(l.to).kind;
    ++counts[Key(std::min(a, b), std::max(a, b), -l.bandwidth_bytes_per_s, l.latency_ps, l.overhead_ps)];
  }
  std::vector<std::string> lines;
  for (const auto& [key, count] : counts) {
    const auto& [a, b, bandwidth, latency, overhead] = key;
    lines.push_back(
        fmt::format("{:>6} {:<5}  {:<13}  {:>10}  {}{}", count, count == 1 ? "link" : "links",
                    KindName(a, 1) + "-" + KindName(b, 1), Rate(-bandwidth), FormatDuration(latency),
                    overhead > 0 ? fmt::format(" + {} a message", FormatDuration(overhead)) : ""));
  }
  return Listed("links", lines, "kinds of links");
}

// The links that leave a node: "gpu 0, gpu 1 at 24GB/s; cpu numa0 at 24GB/s". Long lists become counts.
std::string Ports(const Topology& t, NodeId node, bool names) {
  struct Ends {
    std::vector<std::string> ids;
    NodeKind kind = NodeKind::kGpu;
    int64_t bandwidth = 0;
  };
  Groups<Ends> groups;
  for (LinkId l : t.Out(node)) {
    const Node& to = t.node(t.link(l).to);
    Ends& ends = groups[fmt::format("{} {} {}", static_cast<int>(to.kind), t.link(l).bandwidth_bytes_per_s,
                                    to.host.has_value())];
    ends.kind = to.kind;
    ends.bandwidth = t.link(l).bandwidth_bytes_per_s;
    ends.ids.push_back(to.id);
  }
  std::vector<std::string> parts;
  for (const auto& [key, ends] : groups) {
    const auto count = static_cast<int64_t>(ends.ids.size());
    parts.push_back(fmt::format("{} at {}",
                                names && count <= 4 ? KindName(ends.kind, count) + " " + Join(ends.ids, " ")
                                                    : Counted(ends.kind, count),
                                Rate(ends.bandwidth)));
  }
  return parts.empty() ? "no links" : Join(parts, "; ");
}

std::string Powers(const Node& node) {
  if (node.multicast && node.reduce) return "; multicasts and reduces";
  if (node.multicast) return "; multicasts";
  return node.reduce ? "; reduces" : "";
}

// The GPUs of its host that a NIC reaches over the fewest links, by id.
std::string GpusNear(const Topology& t, NodeId nic) {
  std::set<NodeId> seen = {nic};
  std::vector<NodeId> frontier = {nic}, gpus;
  while (!frontier.empty() && gpus.empty()) {
    std::vector<NodeId> next;
    for (NodeId n : frontier)
      for (LinkId l : t.Out(n)) {
        const NodeId to = t.link(l).to;
        if (t.node(to).host != t.node(nic).host || !seen.insert(to).second) continue;
        (t.IsGpu(to) ? gpus : next).push_back(to);
      }
    frontier.swap(next);
  }
  if (gpus.size() > 4)
    return fmt::format("near {}", Counted(NodeKind::kGpu, static_cast<int64_t>(gpus.size())));
  std::vector<std::string> ids;
  std::ranges::sort(gpus);
  for (NodeId n : gpus) ids.push_back(t.node(n).id);
  return ids.empty() ? "near no gpu"
                     : fmt::format("near {} {}", KindName(NodeKind::kGpu, static_cast<int64_t>(ids.size())),
                                   Join(ids, " "));
}

// A NIC's bandwidth towards its host.
int64_t HostSide(const Topology& t, NodeId nic) {
  int64_t sum = 0;
  for (LinkId l : t.Out(nic))
    if (t.node(t.link(l).to).host == t.node(nic).host) sum += t.link(l).bandwidth_bytes_per_s;
  return sum;
}

class HostTexts {
 public:
  explicit HostTexts(const Topology& t) : t_(t), nodes_(static_cast<size_t>(t.num_hosts())) {
    for (int32_t n = 0; n < t.num_nodes(); ++n)
      if (const auto host = t.node(NodeId(n)).host) nodes_[host->index()].push_back(NodeId(n));
  }

  std::string All() const {
    Groups<std::vector<HostId>> groups;
    std::vector<int32_t> place(static_cast<size_t>(t_.num_nodes()));
    for (int32_t h = 0; h < t_.num_hosts(); ++h) {
      const std::vector<NodeId>& nodes = nodes_[static_cast<size_t>(h)];
      for (size_t i = 0; i < nodes.size(); ++i) place[nodes[i].index()] = static_cast<int32_t>(i);
      groups[Signature(HostId(h), place)].emplace_back(h);
    }
    std::string text;
    size_t shown = 0;
    for (const auto& [signature, hosts] : groups) {
      if (++shown > kMostLines) break;
      text += One(hosts);
    }
    if (groups.size() > kMostLines)
      text += fmt::format("\nand {} more kinds of hosts\n", groups.size() - kMostLines);
    return text;
  }

 private:
  // Equal for hosts that differ in name alone.
  std::string Signature(HostId host, const std::vector<int32_t>& place) const {
    std::string key;
    for (NodeId n : nodes_[host.index()]) {
      const Node& node = t_.node(n);
      key += fmt::format("{}{}{}{}:", static_cast<int>(node.kind), node.kind == NodeKind::kGpu ? "" : node.id,
                         node.multicast, node.reduce);
      for (LinkId l : t_.Out(n)) {
        const Link& link = t_.link(l);
        const bool inside = t_.node(link.to).host == host;
        key += fmt::format("{},{},{},{};", inside ? place[link.to.index()] : -1, link.bandwidth_bytes_per_s,
                           link.latency_ps, link.overhead_ps);
      }
    }
    return key;
  }

  std::string Heading(const std::vector<HostId>& hosts, const std::vector<Rank>& ranks) const {
    const auto name = [&](HostId h) { return t_.spec().hosts[h.index()].name; };
    std::map<NodeKind, int64_t> kinds;
    for (NodeId n : nodes_[hosts[0].index()]) ++kinds[t_.node(n).kind];
    const size_t count = hosts.size();
    std::string text = count > 1                  ? fmt::format("\n{} hosts alike, ", count)
                       : name(hosts[0]) == "host" ? "\nhost: "
                                                  : fmt::format("\nhost {}: ", name(hosts[0]));
    if (count > 1) {
      const bool consecutive = hosts.back().value - hosts.front().value == static_cast<int32_t>(count) - 1;
      if (consecutive) {
        text += fmt::format("{} to {}: ", name(hosts.front()), name(hosts.back()));
      } else {
        for (size_t i = 0; i < count && i < 4; ++i) text += name(hosts[i]) + " ";
        text += count > 4 ? "...: " : ": ";
      }
    }
    text += CountsOfKinds(kinds);
    if (count == 1 && !ranks.empty() && t_.num_hosts() > 1)
      text += ranks.size() == 1 ? fmt::format(" (rank {})", ranks[0].value)
                                : fmt::format(" (ranks {} to {})", ranks.front().value, ranks.back().value);
    return text + (count > 1 ? " each\n" : "\n");
  }

  std::string One(const std::vector<HostId>& hosts) const {
    const HostId host = hosts[0];
    std::vector<Rank> ranks;
    std::vector<std::string> switches, cpus;
    Groups<std::vector<std::string>> nics;
    bool ids_are_ranks = true;
    for (NodeId n : nodes_[host.index()]) {
      const Node& node = t_.node(n);
      switch (node.kind) {
        case NodeKind::kGpu:
          ids_are_ranks = ids_are_ranks && node.id == std::to_string(t_.RankOf(n)->value);
          ranks.push_back(*t_.RankOf(n));
          break;
        case NodeKind::kSwitch:
          switches.push_back(fmt::format("{}: {}{}", node.id, Ports(t_, n, true), Powers(node)));
          break;
        case NodeKind::kNic:
          nics[fmt::format("{}, {}", Rate(HostSide(t_, n)), GpusNear(t_, n))].push_back(node.id);
          break;
        case NodeKind::kCpu:
          cpus.push_back(fmt::format("{}: {}", node.id, Ports(t_, n, true)));
          break;
      }
    }
    // PCIe switches come after all other switches, because there are many of them.
    std::stable_partition(switches.begin(), switches.end(),
                          [](const std::string& line) { return !line.starts_with("pci"); });
    std::string text = Heading(hosts, ranks);
    const size_t heading = text.size();
    if (ranks.size() > 1 && ranks.size() <= kMatrixRanks) text += GpuMatrix(t_, ranks);
    if (!ids_are_ranks && hosts.size() == 1 && t_.num_hosts() == 1 && ranks.size() <= kMatrixRanks) {
      std::vector<std::string> names;
      for (Rank r : ranks) names.push_back(fmt::format("{} is gpu {}", r.value, t_.node(t_.NodeOf(r)).id));
      text += Wrapped("  ranks", Join(names, ", "));
    }
    text += Listed("  switch", switches, "switches");
    std::vector<std::string> lines;
    for (const auto& [what, ids] : nics) lines.push_back(fmt::format("{}: {}", NameList(ids), what));
    text += Listed("  nic", lines, "kinds of nics");
    text += Listed("  cpu", cpus, "cpus");
    return t_.num_hosts() == 1 && text.size() == heading ? "" : text;
  }

  static std::string NameList(const std::vector<std::string>& ids) {
    if (ids.size() <= 4) return Join(ids, " ");
    return fmt::format("{} to {} ({})", ids.front(), ids.back(), ids.size());
  }

  const Topology& t_;
  std::vector<std::vector<NodeId>> nodes_;  // by host
};

// "32 leaves, 8 spines": the fabric's switches by how far from NICs they are, or from GPUs where there
// is no NIC; empty for one level.
std::string Levels(const Topology& t) {
  std::vector<int32_t> level(static_cast<size_t>(t.num_nodes()), 0);
  std::vector<NodeId> reached;
  const auto reach = [&](NodeId node, int32_t at) {
    if (t.node(node).host || level[node.index()] != 0) return;
    level[node.index()] = at;
    reached.push_back(node);
  };
  const bool nics =
      std::ranges::any_of(t.spec().nodes, [](const Node& n) { return n.kind == NodeKind::kNic; });
  for (const Link& link : t.spec().links)
    if (t.node(link.from).kind == (nics ? NodeKind::kNic : NodeKind::kGpu)) reach(link.to, 1);
  for (size_t i = 0; i < reached.size(); ++i)
    for (LinkId l : t.Out(reached[i])) reach(t.link(l).to, level[reached[i].index()] + 1);
  std::map<int32_t, int64_t> counts;
  for (NodeId node : reached) ++counts[level[node.index()]];
  if (counts.size() < 2) return "";
  std::vector<std::string> parts;
  for (const auto& [at, count] : counts)
    parts.push_back(at == 1   ? count == 1 ? "1 leaf" : fmt::format("{} leaves", count)
                      : at == 2 ? xccl::Counted(count, "spine")
                    : at == 3 ? xccl::Counted(count, "core")
                              : fmt::format("{} at level {}", count, at));
  return fmt::format("{:<10}{}\n", "  levels", Join(parts, ", "));
}

std::string Fabric(const Topology& t) {
  Groups<std::vector<NodeId>> groups;
  for (int32_t n = 0; n < t.num_nodes(); ++n) {
    const Node& node = t.node(NodeId(n));
    if (node.host) continue;
    groups[fmt::format("{}\n{}\n{}", Stem(node.id), Ports(t, NodeId(n), false), Powers(node))].emplace_back(
        n);
  }
  if (groups.size() == 0) return "";
  std::vector<std::string> lines;
  for (const auto& [key, nodes] : groups) {
    const std::vector<std::string> parts = Split(key, '\n');
    const std::string& first = t.node(nodes.front()).id;
    lines.push_back(nodes.size() == 1
                        ? fmt::format("{}: {}{}", first, parts[1], parts[2])
                        : fmt::format("{} to {} ({} alike): {}{}", first, t.node(nodes.back()).id,
                                      nodes.size(), parts[1], parts[2]));
  }
  return "\nfabric\n" + Levels(t) + Listed("  switch", lines, "kinds of switches");
}

}  // namespace

std::string DescribeText(const Topology& t) {
  std::map<NodeKind, int64_t> kinds;
  for (const Node& node : t.spec().nodes) ++kinds[node.kind];
  std::string text = fmt::format("{}: {} rank{} on {} host{}\n", t.name(), t.num_ranks(),
                                 t.num_ranks() == 1 ? "" : "s", t.num_hosts(), t.num_hosts() == 1 ? "" : "s");
  if (!t.spec().source.empty()) text += Wrapped("source", t.spec().source);
  text += Wrapped("gpu", Gpu(t));
  text += Wrapped("nodes", CountsOfKinds(kinds));
  text += PerGpu(t) + Distances(t) + LinkClasses(t);
  return text + HostTexts(t).All() + Fabric(t);
}

}  // namespace xccl
