// Each port's line is looked up by its peer's port: two lines that name each other are a cable. A line whose
// peer names a third port is left out with a warning; a line whose peer has no line stands alone.
#include "topologies/fabric/ib_ports.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/fabric/degraded.h"
#include "topologies/fabric/ib_names.h"

namespace xccl {

IbPorts::IbPorts(std::string_view format, std::string_view file) : file_(file) { fabric_.format = format; }

int32_t IbPorts::NodeOf(IbKind kind, uint64_t id) {
  const auto [found, fresh] = index_[static_cast<int>(kind)].emplace(id, static_cast<int32_t>(nodes_.size()));
  if (fresh) nodes_.emplace_back().kind = kind;
  return found->second;
}

void IbPorts::Name(int32_t node, std::string_view name) {
  if (nodes_[node].name.empty()) nodes_[node].name = Trim(name);
}

void IbPorts::See(int32_t node, int32_t port) {
  int32_t& seen = nodes_[node].port;
  seen = seen == 0 || seen == port ? port : kSeveralPorts;
}

void IbPorts::Add(const IbPortLine& line) {
  See(line.node, line.port);
  See(line.peer, line.peer_port);
  ++nodes_[line.node].lines;
  const auto [found, fresh] =
      line_of_port_.emplace(Key(line.node, line.port), static_cast<int32_t>(lines_.size()));
  if (fresh) {
    lines_.push_back(line);
    return;
  }
  // ibnetdiscover -g lists some switches of a chassis twice.
  const IbPortLine& first = lines_[found->second];
  if (first.peer != line.peer || first.peer_port != line.peer_port || first.rate != line.rate)
    Warn("port twice", line.line,
         fmt::format("{} differs from its line {}; the first one counts", Say(line.node, line.port),
                     first.line));
}

void IbPorts::Warn(std::string_view sort, int32_t line, std::string_view text) {
  const auto [found, fresh] = warnings_.try_emplace(std::string(sort));
  if (fresh) {
    sorts_.emplace_back(sort);
    found->second.text = text;
  }
  found->second.lines.push_back(line);
}

std::string IbPorts::Say(int32_t node, int32_t port) const {
  const IbNode& said = nodes_[node];
  return fmt::format("port {} of '{}'", port,
                     Shortened(!said.name.empty() ? said.name : fmt::format("0x{:x}", said.guid)));
}

// A switch has lines or peers at several ports, or a peer that is named as an adapter is.
void IbPorts::GuessKinds() {
  constexpr int32_t kMostPorts = 2;  // of an adapter
  std::vector<bool> joins_adapter(nodes_.size(), false);
  for (const IbPortLine& line : lines_) {
    const auto look = [&](int32_t node, int32_t peer) {
      if (nodes_[node].kind == IbKind::kUnknown && LooksLikeIbAdapter(nodes_[peer].name))
        joins_adapter[node] = true;
    };
    look(line.node, line.peer);
    look(line.peer, line.node);
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    IbNode& node = nodes_[i];
    if (node.kind != IbKind::kUnknown) continue;
    const bool is_switch =
        !LooksLikeIbAdapter(node.name) && (node.port == kSeveralPorts || node.port > kMostPorts ||
                                           joins_adapter[i] || LooksLikeIbSwitch(node.name));
    node.kind = is_switch ? IbKind::kSwitch : IbKind::kAdapter;
  }
}

bool IbPorts::IsLeftOut(int32_t node) const {
  return nodes_[node].kind == IbKind::kRouter || IsIbAggregationNode(nodes_[node].name);
}

// Names of hosts, and for the cards without a name that of a named card of the same system.
void IbPorts::ReadHosts() {
  hosts_.resize(nodes_.size());
  devices_.resize(nodes_.size());
  std::unordered_map<uint64_t, std::string> host_of_system;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].kind != IbKind::kAdapter || IsIbAggregationNode(nodes_[i].name)) continue;
    const IbAdapterName name = ReadIbAdapterName(nodes_[i].name);
    hosts_[i] = name.host;
    devices_[i] = name.device;
    if (!name.host.empty() && nodes_[i].system_guid != 0)
      host_of_system.emplace(nodes_[i].system_guid, name.host);
  }
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].kind == IbKind::kAdapter && hosts_[i].empty())
      if (const auto found = host_of_system.find(nodes_[i].system_guid); found != host_of_system.end())
        hosts_[i] = found->second;
}

FabricEnd IbPorts::EndOf(int32_t node, int32_t port) {
  const bool is_switch = nodes_[node].kind == IbKind::kSwitch;
  if (is_switch) return {true, ends_.at(Key(node, 0)), port};
  const auto [found, fresh] = ends_.emplace(Key(node, port), static_cast<int32_t>(fabric_.adapters.size()));
  if (fresh) {
    FabricAdapter& adapter = fabric_.adapters.emplace_back();
    adapter.host = hosts_[node];
    adapter.device = devices_[node];
    adapter.system_guid = nodes_[node].system_guid;
    const auto guid = port_guids_.find(Key(node, port));
    adapter.guid = guid == port_guids_.end() ? nodes_[node].guid : guid->second;
    models_of_adapters_.push_back(nodes_[node].device_id);
  }
  return {false, found->second, port};
}

void IbPorts::AddCable(const IbPortLine& line, const IbPortLine* other) {
  FabricCable& cable = fabric_.cables.emplace_back();
  cable.a = EndOf(line.node, line.port);
  cable.b = EndOf(line.peer, line.peer_port);
  cable.line = line.line;
  cable.bandwidth_bytes_per_s = IbBytesPerS(line.rate);
  cable.full_bandwidth_bytes_per_s = IbBytesPerS(line.full);
  if (other != nullptr) {
    const int64_t rate = IbBytesPerS(other->rate);
    if (rate != 0 && cable.bandwidth_bytes_per_s != 0 && rate != cable.bandwidth_bytes_per_s)
      Warn("rates", other->line,
           fmt::format("{} runs at {}, and its peer at {} by line {}; the slower one counts",
                       Say(other->node, other->port), ToString(other->rate), ToString(line.rate), line.line));
    if (cable.bandwidth_bytes_per_s == 0 || (rate != 0 && rate < cable.bandwidth_bytes_per_s))
      cable.bandwidth_bytes_per_s = rate;
    cable.full_bandwidth_bytes_per_s = std::max(cable.full_bandwidth_bytes_per_s, IbBytesPerS(other->full));
  }
  if (cable.full_bandwidth_bytes_per_s <= cable.bandwidth_bytes_per_s) cable.full_bandwidth_bytes_per_s = 0;
}

void IbPorts::MakeSwitches() {
  std::vector<std::string> names;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].kind != IbKind::kSwitch) continue;
    ends_.emplace(Key(static_cast<int32_t>(i), 0), static_cast<int32_t>(names.size()));
    names.push_back(nodes_[i].name);
    fabric_.switches.push_back({"", nodes_[i].guid});
    models_of_switches_.push_back(nodes_[i].device_id);
  }
  const std::vector<std::string> shorter = ShortIbSwitchNames(names);
  for (size_t i = 0; i < names.size(); ++i) fabric_.switches[i].name = shorter[i];
}

void IbPorts::Pair(int32_t index, bool adapters_have_lines) {
  const IbPortLine& line = lines_[index];
  const uint64_t here = Key(line.node, line.port);
  const uint64_t there = Key(line.peer, line.peer_port);
  if (IsLeftOut(line.node) || IsLeftOut(line.peer)) return;
  if (line.node == line.peer) {
    Warn("loop", line.line,
         fmt::format("{} is joined to the same device's port {}; left out", Say(line.node, line.port),
                     line.peer_port));
    return;
  }
  if (const auto found = line_of_port_.find(there); found != line_of_port_.end()) {
    const IbPortLine& other = lines_[found->second];
    if (Key(other.peer, other.peer_port) == here) {
      if (index < found->second) AddCable(line, &other);
      return;
    }
    Warn("third port", line.line,
         fmt::format("{} is joined to {}, which line {} joins to {}; left out", Say(line.node, line.port),
                     Say(line.peer, line.peer_port), other.line, Say(other.peer, other.peer_port)));
    return;
  }
  const auto [claim, fresh] = claims_.emplace(there, index);
  if (!fresh) {
    Warn("two claims", line.line,
         fmt::format("{} is joined to {}, which line {} joins to {}; left out", Say(line.node, line.port),
                     Say(line.peer, line.peer_port), lines_[claim->second].line,
                     Say(lines_[claim->second].node, lines_[claim->second].port)));
    return;
  }
  if (nodes_[line.peer].kind == IbKind::kSwitch || adapters_have_lines)
    Warn("one end", line.line,
         fmt::format("{} is joined to {}, which has no line of its own", Say(line.node, line.port),
                     Say(line.peer, line.peer_port)));
  AddCable(line, nullptr);
}

// Two adapters of one name and port are of two hosts that share a name, such as an installer's.
void IbPorts::DropSharedHosts() {
  std::unordered_map<std::string, int32_t> line_of;  // by host, device and port
  std::unordered_set<std::string> shared;
  for (const FabricCable& cable : fabric_.cables)
    for (const FabricEnd& end : {cable.a, cable.b}) {
      if (end.is_switch) continue;
      const FabricAdapter& adapter = fabric_.adapters[end.index];
      if (adapter.host.empty() || adapter.device.empty()) continue;
      const auto [found, fresh] =
          line_of.emplace(fmt::format("{}\n{}\n{}", adapter.host, adapter.device, end.port), cable.line);
      if (fresh) continue;
      shared.insert(adapter.host);
      Warn("shared host", cable.line,
           fmt::format("'{} {}' is the name of a second adapter, after line {}; the hosts of that name are "
                       "not known",
                       Shortened(adapter.host), Shortened(adapter.device), found->second));
    }
  for (FabricAdapter& adapter : fabric_.adapters)
    if (shared.contains(adapter.host)) adapter.host.clear();
}

void IbPorts::WarnOfHosts() {
  const auto count = std::ranges::count_if(fabric_.adapters,
                                           [](const FabricAdapter& adapter) { return adapter.host.empty(); });
  if (count > 0)
    fabric_.warnings.push_back(
        fmt::format("{}: the names of {} do not tell their hosts", file_, Counted(count, "adapter")));
}

void IbPorts::WarnOfLeftOut() {
  int64_t routers = 0;
  int64_t reducers = 0;
  for (const IbNode& node : nodes_) {
    const bool router = node.kind == IbKind::kRouter;
    routers += router ? 1 : 0;
    reducers += !router && IsIbAggregationNode(node.name) ? 1 : 0;
  }
  if (routers > 0)
    fabric_.warnings.push_back(fmt::format("{}: left out {}", file_, Counted(routers, "router")));
  if (reducers > 0)
    fabric_.warnings.push_back(fmt::format("{}: left out {}, the ports of switches that reduce (SHARP)",
                                           file_, Counted(reducers, "aggregation node")));
}

void IbPorts::InferDegraded() {
  for (const int32_t index : MarkDegraded(fabric_, models_of_switches_, models_of_adapters_)) {
    const FabricCable& cable = fabric_.cables[index];
    Warn("degraded", cable.line,
         fmt::format("a cable of {} where cables alike have {}: taken as degraded",
                     FormatBandwidthShort(static_cast<double>(cable.bandwidth_bytes_per_s)),
                     FormatBandwidthShort(static_cast<double>(cable.full_bandwidth_bytes_per_s))));
  }
}

void IbPorts::WriteWarnings() {
  for (const std::string& sort : sorts_) {
    const auto& [said, lines] = warnings_.at(sort);
    std::string text = fmt::format("{}:{}: {}", file_, lines[0], said);
    if (lines.size() > 1) text += lines.size() == 2 ? "; likewise in line " : "; likewise in lines ";
    std::vector<std::string> further;
    for (const auto line : std::span(lines).subspan(1)) further.push_back(std::to_string(line));
    text += SomeOf(further);
    fabric_.warnings.push_back(std::move(text));
  }
}

StatusOr<Fabric> IbPorts::Build(bool infer_degraded) && {
  GuessKinds();
  ReadHosts();
  MakeSwitches();
  const bool adapters_have_lines = std::ranges::any_of(
      nodes_, [](const IbNode& node) { return node.kind == IbKind::kAdapter && node.lines > 0; });
  for (size_t i = 0; i < lines_.size(); ++i) Pair(static_cast<int32_t>(i), adapters_have_lines);
  if (fabric_.cables.empty())
    return InvalidInput(
        fmt::format("{}: {} lists no cable; expected ports that name the ports at their other ends", file_,
                    fabric_.format));
  DropSharedHosts();
  if (infer_degraded) InferDegraded();
  WriteWarnings();
  WarnOfHosts();
  WarnOfLeftOut();
  return std::move(fabric_);
}

}  // namespace xccl
