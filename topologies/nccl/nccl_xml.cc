// The tree of the file is completed step by step (nccl_settle.cc), then written out as nodes and links.
// Cost: linear in the file, except for a sort of the GPUs and the links between all pairs of a host's NUMA
// nodes.
#include "topologies/nccl/nccl_xml.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/networks.h"
#include "topologies/nccl/nccl_constants.h"
#include "topologies/nccl/nccl_gpu_links.h"
#include "topologies/nccl/nccl_tree.h"
#include "topologies/safe_name.h"
#include "topologies/xml/parse_xml.h"

namespace xccl {
namespace {

constexpr size_t kMaxCpusPerHost = 256;

// "0000:0c:00.0" -> "0c", "0101:00:00.0" -> "0101.00", "ffff:ff:01.0" -> "ffff.ff.01.0". Drops what all
// busids share and the characters that node references use.
std::string ShortBusId(std::string_view busid) {
  std::string text(busid.starts_with("0000:") ? busid.substr(5) : busid);
  if (text.ends_with(":00.0")) text.resize(text.size() - 5);
  std::ranges::replace(text, ':', '.');
  return text;
}

// The number of "0x5c25730300f3e9b0"; 0 where there is none.
uint64_t Guid(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t guid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), guid, 16);
  return error == std::errc() && end == text.data() + text.size() ? guid : 0;
}

class DumpTopologyBuilder {
 public:
  explicit DumpTopologyBuilder(NcclSystem system) : system_(std::move(system)) {}

  StatusOr<Topology> Build() {
    XCCL_RETURN_IF_ERROR(OrderGpus());
    host_of_cpu_.resize(system_.items.size());
    node_.resize(system_.items.size());
    OrderHosts();
    AddNodes();
    AddGpuLinks();
    AddTreeLinks();
    XCCL_RETURN_IF_ERROR(AddCpuLinks());
    spec_.name = system_.name.empty() ? std::filesystem::path(system_.file).stem().string() : system_.name;
    const std::set<std::string> archs = Archs();
    spec_.source = Source(archs);
    if (archs.size() == 1 && CheckGpuArch(*archs.begin()).ok()) spec_.gpu_arch = *archs.begin();
    spec_.warnings = system_.Warnings();
    StatusOr<Topology> topology = Topology::Create(std::move(spec_));
    if (!topology.ok()) return Annotate(topology.status(), system_.file);
    return topology;
  }

  HostFacts Facts() {
    HostFacts facts;
    for (int32_t i = 0; i < system_.size(); ++i) {
      const NcclItem& item = Item(i);
      if (!node_[i] || item.removed) continue;
      if (item.kind == NcclItemKind::kNet)
        facts.nics[*node_[i]] =
            NicFacts{item.gdr.value_or(true), item.software, item.rail, item.plane, Guid(item.guid)};
      if (item.shared_gpu || item.adapter) facts.inside_devices.insert(*node_[i]);
    }
    facts.domain_nvswitch = domain_nvswitch_;
    return facts;
  }

 private:
  NcclItem& Item(int32_t index) { return system_[index]; }

  int32_t CpuOf(int32_t index) {
    while (Item(index).parent >= 0) index = Item(index).parent;
    return index;
  }

  // Orders GPUs by rank if they have ranks, else by dev, else by document order.
  Status OrderGpus() {
    gpus_ = system_.Live(NcclItemKind::kGpu);
    if (Item(gpus_.front()).rank) {
      std::ranges::stable_sort(gpus_, {}, [&](int32_t g) { return *Item(g).rank; });
      for (size_t i = 0; i + 1 < gpus_.size(); ++i)
        if (Item(gpus_[i]).rank == Item(gpus_[i + 1]).rank)
          return system_.At(Item(gpus_[i + 1]).offset,
                            fmt::format("gpu: rank=\"{}\": an earlier <gpu> has it; expected each rank once",
                                        *Item(gpus_[i]).rank));
      if (*Item(gpus_.back()).rank != static_cast<int32_t>(gpus_.size()) - 1)
        system_.Warn(Item(gpus_.front()).offset,
                     fmt::format("ranks are not 0..{}; renumbered in their order", gpus_.size() - 1));
    } else if (std::ranges::all_of(gpus_, [&](int32_t g) { return Item(g).dev.has_value(); })) {
      std::ranges::stable_sort(gpus_, {}, [&](int32_t g) { return *Item(g).dev; });
    }
    return OkStatus();
  }

  // Hosts are the CPUs' host_hash values, in the order of their first ranks. Ranks are grouped by host.
  void OrderHosts() {
    std::map<std::string, HostId> hosts;
    const auto host = [&](int32_t cpu) {
      const auto [known, added] =
          hosts.emplace(Item(cpu).host_hash, HostId(static_cast<int64_t>(hosts.size())));
      if (added) spec_.hosts.push_back(Host{fmt::format("h{}", known->second.value)});
      host_of_cpu_[cpu] = known->second;
      return known->second;
    };
    for (int32_t gpu : gpus_) host(CpuOf(gpu));
    for (int32_t cpu : system_.Live(NcclItemKind::kCpu)) host(cpu);
    const auto by_host = [&](int32_t gpu) { return host_of_cpu_[CpuOf(gpu)]; };
    if (!std::ranges::is_sorted(gpus_, {}, by_host)) {
      if (Item(gpus_.front()).rank)
        system_.Warn(Item(gpus_.front()).offset,
                     "ranks of several hosts interleave; renumbered host by host");
      std::ranges::stable_sort(gpus_, {}, by_host);
    }
  }

  void AddNodes() {
    std::vector<int32_t> bridges = system_.Live(NcclItemKind::kBridge),
                         nets = system_.Live(NcclItemKind::kNet), cpus = system_.Live(NcclItemKind::kCpu);
    std::ranges::stable_sort(nets, {}, [&](int32_t n) { return Item(n).dev.value_or(INT32_MAX); });
    // One of no NUMA node, with numaid="-1", comes last.
    std::ranges::stable_sort(cpus, {},
                             [&](int32_t c) { return Item(c).numa < 0 ? INT32_MAX : Item(c).numa; });
    std::vector<std::vector<int32_t>> of_host(spec_.hosts.size());
    for (const std::vector<int32_t>* group : {&gpus_, &bridges, &nets, &cpus})
      for (int32_t i : *group) of_host[host_of_cpu_[CpuOf(i)].index()].push_back(i);
    for (size_t h = 0; h < of_host.size(); ++h) {
      const HostId host(static_cast<int64_t>(h));
      std::set<int32_t> devs;
      size_t gpus = 0;
      for (int32_t i : of_host[h])
        if (Item(i).kind == NcclItemKind::kGpu) {
          ++gpus;
          if (Item(i).dev) devs.insert(*Item(i).dev);
        }
      int32_t next_gpu = 0;
      for (int32_t i : of_host[h]) {
        const NcclItem& item = Item(i);
        switch (item.kind) {
          case NcclItemKind::kGpu:
            NewNode(i, NodeKind::kGpu, host, std::to_string(devs.size() == gpus ? *item.dev : next_gpu++));
            break;
          case NcclItemKind::kBridge:
            NewNode(i, NodeKind::kSwitch, host,
                    (item.shared_gpu ? "shared-" : "pci-") + ShortBusId(item.busid));
            break;
          case NcclItemKind::kNet:
            NewNode(i, NodeKind::kNic, host,
                    !item.name.empty()    ? item.name
                    : !item.busid.empty() ? "nic-" + ShortBusId(item.busid)
                                          : "nic");
            break;
          case NcclItemKind::kCpu:
            NewNode(i, NodeKind::kCpu, host, item.numa < 0 ? "cpu" : fmt::format("numa{}", item.numa));
            break;
          case NcclItemKind::kDevice:
            break;
        }
      }
    }
  }

  NodeId NewNode(int32_t index, NodeKind kind, std::optional<HostId> host, const std::string& id) {
    std::string unique = SafeName(id);
    for (int n = 2; !taken_.emplace(host ? host->value : -1, kind, unique).second; ++n)
      unique = fmt::format("{}-{}", SafeName(id), n);
    const NodeId node = AddNode(kind, std::move(unique), host, spec_);
    if (index >= 0) node_[index] = node;
    return node;
  }

  // The nodes of a pair of items, or of an item, in place of the items.
  std::map<std::pair<int32_t, int32_t>, int64_t> LinksBetweenNodes() const {
    std::map<std::pair<int32_t, int32_t>, int64_t> links;
    for (const auto& [ends, bandwidth] : gpu_links_.between)
      links[{node_[ends.first]->value, node_[ends.second]->value}] = bandwidth;
    return links;
  }
  std::map<NodeId, int64_t> Nodes(const std::map<int32_t, int64_t>& items) const {
    std::map<NodeId, int64_t> nodes;
    for (const auto& [item, bandwidth] : items) nodes[*node_[item]] = bandwidth;
    return nodes;
  }

  void AddGpuLinks() {
    gpu_links_ = ReadNcclGpuLinks(system_, gpus_);
    const auto links = LinksBetweenNodes();
    for (const auto& [ends, bandwidth] : links) {
      const auto back = links.find({ends.second, ends.first});
      const NodeId from(ends.first), to(ends.second);
      const int64_t returned = back == links.end() ? 0 : back->second;
      if (bandwidth != returned && (from < to || returned == 0))
        system_.Warn(
            0, fmt::format("gpu {} lists {} to gpu {}, which lists {} back", spec_.nodes[from.index()].id,
                           FormatBandwidth(bandwidth), spec_.nodes[to.index()].id,
                           returned == 0 ? "none" : FormatBandwidth(returned)));
      if (from < to || returned == 0) AddLink(from, to, {bandwidth, kGpuLinkLatencyPs}, spec_);
      if (from < to && returned > 0) AddLink(to, from, {returned, kGpuLinkLatencyPs}, spec_);
    }
    std::map<NodeId, std::pair<NodeId, int64_t>> cpus;  // by node, so in the order of ranks
    for (const auto& [item, bandwidth] : gpu_links_.to_cpu)
      cpus[*node_[item]] = {*node_[CpuOf(item)], bandwidth};
    for (const auto& [node, cpu] : cpus) AddCable(node, cpu.first, {cpu.second, kGpuLinkLatencyPs}, spec_);
    for (const auto& [key, nvswitch] : gpu_links_.switches) {
      const NodeId added = AddNvswitch(nvswitch);
      if (key == kHiddenNvswitch) domain_nvswitch_ = added;
    }
  }

  NodeId AddNvswitch(const NcclGpuLinks::Nvswitch& nvswitch) {
    const std::map<NodeId, int64_t> ports = Nodes(nvswitch.ports);
    std::set<HostId> hosts;
    for (const auto& [node, bandwidth] : ports) hosts.insert(*spec_.nodes[node.index()].host);
    const NodeId added = NewNode(
        -1, NodeKind::kSwitch, hosts.size() == 1 ? std::optional(*hosts.begin()) : std::nullopt, "nvswitch");
    spec_.nodes[added.index()].multicast = spec_.nodes[added.index()].reduce = nvswitch.nvls;
    for (const auto& [node, bandwidth] : ports)
      AddCable(node, added, {bandwidth, kGpuSwitchLatencyPs}, spec_);
    return added;
  }

  void AddTreeLinks() {
    for (int32_t i = 0; i < system_.size(); ++i) {
      const NcclItem& item = Item(i);
      if (item.removed || item.parent < 0 || !node_[i]) continue;
      AddCable(*node_[i], *node_[item.parent],
               {item.bandwidth_bytes_per_s, (item.local ? 0 : kPcieLatencyPs) + item.latency_ps}, spec_);
    }
    for (int32_t i = 0; i < system_.size(); ++i) {
      if (Item(i).removed) continue;
      for (const NcclEdge& edge : Item(i).edges) {
        if (edge.kind != NcclEdge::Kind::kPcilink) continue;
        const int32_t named = gpu_links_.buses.Find(system_, i, edge.target);
        int32_t target = named;
        while (target >= 0 && Item(target).removed) target = Item(target).replaced_by;
        if (target == i && named != i) continue;  // between the two levels of one chip
        if (target < 0 || target == i || !node_[i] || Item(target).kind != NcclItemKind::kBridge)
          system_.Warn(
              edge.offset,
              fmt::format("a pcilink to {}, which is no other switch of this file; left out", edge.target));
        else
          AddLink(*node_[i], *node_[target], {kLocalBytesPerS, kPcieLatencyPs}, spec_);
      }
    }
  }

  Status AddCpuLinks() {
    std::vector<std::vector<int32_t>> of_host(spec_.hosts.size());
    for (int32_t cpu : system_.Live(NcclItemKind::kCpu)) of_host[host_of_cpu_[cpu].index()].push_back(cpu);
    for (const std::vector<int32_t>& cpus : of_host) {
      if (cpus.size() > kMaxCpusPerHost)
        return system_.At(
            Item(cpus.front()).offset,
            fmt::format("{} <cpu> elements in one host; expected at most {}", cpus.size(), kMaxCpusPerHost));
      for (size_t a = 0; a < cpus.size(); ++a) {
        const CpuLink link = CpuLinkOf(Item(cpus[a]).cpu);
        if (!link.known && cpus.size() > 1)
          system_.Warn(Item(cpus[a]).offset,
                       fmt::format("a <cpu> without a known arch and vendor; {} between NUMA nodes assumed",
                                   FormatBandwidth(link.bytes_per_s)));
        for (size_t b = a + 1; b < cpus.size(); ++b)
          AddCable(*node_[cpus[a]], *node_[cpus[b]],
                   {std::min(link.bytes_per_s, CpuLinkOf(Item(cpus[b]).cpu).bytes_per_s), kPcieLatencyPs},
                   spec_);
      }
    }
    return OkStatus();
  }

  // The architectures of the GPUs that have one.
  std::set<std::string> Archs() {
    std::set<std::string> archs;
    for (int32_t gpu : gpus_)
      if (Item(gpu).arch) archs.insert(ToString(*Item(gpu).arch));
    return archs;
  }

  std::string Source(const std::set<std::string>& archs) const {
    const std::string known = Join(std::vector<std::string>(archs.begin(), archs.end()), ", ");
    return fmt::format("{}{}; bandwidths and latencies as NCCL 2.28.9 assumes them",
                       std::filesystem::path(system_.file).filename().string(),
                       known.empty() ? "" : fmt::format(" ({})", known));
  }

  NcclSystem system_;

  std::vector<int32_t> gpus_;                // items, in rank order
  std::vector<HostId> host_of_cpu_;          // by item
  std::vector<std::optional<NodeId>> node_;  // by item
  NcclGpuLinks gpu_links_;
  std::optional<NodeId> domain_nvswitch_;
  std::set<std::tuple<int32_t, NodeKind, std::string>> taken_;
  TopologySpec spec_;
};

}  // namespace

bool IsNcclXml(std::string_view text) {
  const std::string_view name = RootName(text);
  return name == "system" || name == "graphs";
}

StatusOr<Topology> ReadNcclXml(std::string_view text, std::string_view file, const LoadOptions& options,
                               HostFacts* facts) {
  XCCL_ASSIGN_OR_RETURN(NcclSystem system, ReadNcclTree(text, file));
  XCCL_RETURN_IF_ERROR(SettleNcclTree(system, options));
  DumpTopologyBuilder builder(std::move(system));
  StatusOr<Topology> topology = builder.Build();
  if (topology.ok() && facts != nullptr) *facts = builder.Facts();
  return topology;
}

}  // namespace xccl
