#include "bench/scale_machines.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/load/load.h"
#include "topologies/submachine.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

// Hosts of 8 GPUs with a NIC each: rails in a pod, and a core with half of the pods' bandwidth.
std::string RailsXml(int64_t pods, int64_t hosts) {
  constexpr int64_t kSpines = 16, kGbPerS = 50, kGpus = 8, kOversubscribed = 2;
  return fmt::format(R"(<topology name="rails:{0}x{1}" arch="sm90">
  <cluster hosts="{0}" name="pod">
    <cluster hosts="{1}">
      <nvswitch gpus="8" bandwidth="450GB/s" latency="500ns" multicast="true" reduce="true"/>
      <nic id="nic" count="8"/>
      <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="400Gbit/s" latency="0ns"/>
      <fabric type="rails" bandwidth="400Gbit/s" latency="1300ns" spines="16" uplink-latency="300ns"
              oversubscription="1"/>
    </cluster>
    <fabric id="core" type="switch" bandwidth="{2}GB/s" latency="300ns"/>
  </cluster>
</topology>
)",
                     pods, hosts, hosts * kGpus * kGbPerS / kSpines / kOversubscribed);
}

// One NVLink domain a rack; the core has the rails' whole bandwidth.
std::string RacksXml(int64_t units) {
  return fmt::format(R"(<topology name="nvl72:{0}" arch="sm100">
  <cluster hosts="{0}" name="su">
    <cluster hosts="8" name="rack">
      <cluster hosts="18" name="tray">
        <gpu count="4"/>
        <nic id="nic" count="4"/>
        <link from="gpu:*" to="nvswitch" bandwidth="900GB/s" latency="500ns"/>
        <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="400Gbit/s" latency="0ns"/>
      </cluster>
      <switch id="nvswitch" multicast="true" reduce="true"/>
    </cluster>
    <switch id="rail" count="4"/>
    <link from="*/nic0" to="rail0" bandwidth="400Gbit/s" latency="1300ns"/>
    <link from="*/nic1" to="rail1" bandwidth="400Gbit/s" latency="1300ns"/>
    <link from="*/nic2" to="rail2" bandwidth="400Gbit/s" latency="1300ns"/>
    <link from="*/nic3" to="rail3" bandwidth="400Gbit/s" latency="1300ns"/>
    <fabric id="core" type="switch" count="16" attach="rail*" bandwidth="450GB/s" latency="300ns"/>
  </cluster>
</topology>
)",
                     units);
}

// Without every n-th cable between switches, and without 3 hosts far from each other.
StatusOr<Topology> Damaged(const Topology& whole) {
  constexpr size_t kCables = 100;
  constexpr int32_t kHosts = 3;
  TopologySpec spec = whole.spec();
  const auto is_switch = [&](NodeId n) { return spec.nodes[n.index()].kind == NodeKind::kSwitch; };
  std::vector<std::pair<NodeId, NodeId>> cables;
  for (const Link& link : spec.links)
    if (link.from < link.to && is_switch(link.from) && is_switch(link.to))
      cables.emplace_back(link.from, link.to);
  std::vector<std::pair<NodeId, NodeId>> failed;
  const size_t stride = std::max<size_t>(1, cables.size() / kCables);
  for (size_t i = 0; i < cables.size() && failed.size() < kCables; i += stride) failed.push_back(cables[i]);
  std::ranges::sort(failed);
  std::erase_if(spec.links, [&](const Link& link) {
    return std::ranges::binary_search(failed,
                                      std::pair(std::min(link.from, link.to), std::max(link.from, link.to)));
  });
  XCCL_ASSIGN_OR_RETURN(const Topology less, Topology::Create(std::move(spec)));
  std::vector<Rank> left;
  for (int32_t r = 0; r < less.num_ranks(); ++r) {
    bool missing = false;
    for (int32_t h = 0; h < kHosts; ++h)
      missing |= less.HostOf(Rank(r)) == HostId(static_cast<int64_t>(h) * less.num_hosts() / kHosts);
    if (!missing) left.push_back(Rank(r));
  }
  return MembersAlone(less, left).topology;
}

}  // namespace

StatusOr<Topology> ReadScaledMachine(const std::string& name) {
  constexpr std::string_view kDamaged = "damaged:";
  if (name.starts_with(kDamaged)) {
    XCCL_ASSIGN_OR_RETURN(const Topology whole, ReadScaledMachine(name.substr(kDamaged.size())));
    return Damaged(whole);
  }
  const std::vector<std::string> numbers = Split(name.substr(name.find(':') + 1), 'x');
  const auto number = [&](size_t i) -> StatusOr<int64_t> {
    return ParseInteger(i < numbers.size() ? numbers[i] : "", 1, 1 << 20);
  };
  if (name.starts_with("rails:")) {
    XCCL_ASSIGN_OR_RETURN(const int64_t pods, number(0));
    XCCL_ASSIGN_OR_RETURN(const int64_t hosts, number(1));
    return ReadNativeXml(RailsXml(pods, hosts), name);
  }
  if (name.starts_with("nvl72:")) {
    XCCL_ASSIGN_OR_RETURN(const int64_t units, number(0));
    return ReadNativeXml(RacksXml(units), name);
  }
  if (name.starts_with("dgx-h100:")) {
    XCCL_ASSIGN_OR_RETURN(const int64_t hosts, number(0));
    LoadOptions options;
    options.hosts = static_cast<int32_t>(hosts);
    return LoadTopology("dgx-h100", options);
  }
  return LoadTopology(name);
}

}  // namespace xccl
