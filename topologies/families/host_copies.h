// Copies of hosts, of one kind or of several, before anything joins their NICs. --hosts (join_hosts.h) and
// fabrics that files describe (topologies/fabric) begin with them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "topologies/host_facts.h"
#include "topologies/topology.h"

namespace xccl {

// Between a NIC and its switch: TE-CCL's measured alpha for InfiniBand.
inline constexpr int64_t kNicLinkLatencyPs = 1'300'000;

struct HostCopy {
  const Topology* of = nullptr;  // a machine of one host; it outlives the copy
  std::string name;
  // The switches that it shares with the other copies of that machine in its domain; empty: none.
  std::span<const NodeId> shared;
  int32_t domain = 0;
};

class HostCopies {
 public:
  // The nodes are those of each copy in turn, then the switches of domains, which are in no host; a domain of
  // one copy keeps its switches there. If there are several domains, their number follows the id of a switch.
  explicit HostCopies(std::span<const HostCopy> copies);

  NodeId Copy(size_t host, NodeId node) const { return nodes_[host][node.index()]; }
  // Hosts, nodes and links; no name.
  TopologySpec& all() { return all_; }

 private:
  std::vector<std::vector<NodeId>> nodes_;  // by copy, and node of the machine that it is a copy of
  TopologySpec all_;
};

// The switches that hosts of one NVLink domain share: the NVSwitch that the facts name, else, if there is an
// --nvlink-domain, the switches that join GPUs alone. Errors: kUsage, if there is an --nvlink-domain and no
// such switch, or one host has more GPUs.
StatusOr<std::vector<NodeId>> SwitchesOfDomain(const Topology& topology, const HostFacts& facts,
                                               std::optional<int32_t> nvlink_domain);

}  // namespace xccl
