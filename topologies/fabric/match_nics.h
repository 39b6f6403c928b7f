// Which NIC of a host's dump each adapter of a fabric's host is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/fabric/fabric.h"
#include "topologies/fabric/fabric_hosts.h"
#include "topologies/families/host_nics.h"
#include "topologies/host_facts.h"
#include "topologies/topology.h"

namespace xccl {

// A kind of host, whose copies stand at the ends of a fabric.
struct HostKind {
  std::string name;   // as the user gave it: "dgx.xml", "dgx-h100"
  Topology topology;  // of one host
  HostFacts facts;
};

enum class NicRule : uint8_t {
  kWhole,   // the file knows hosts alone: NICs in turn at the switches that list the host
  kName,    // mlx5_0 is mlx5_0
  kGuid,    // the guid of the dump, which is one host's, tells the device; that device on each host
  kNumber,  // HCA-1 is mlx5_0 or nic0
  kOrder,   // the first adapter is the first NIC
};
inline constexpr NicRule kNicRules[] = {NicRule::kWhole, NicRule::kName, NicRule::kGuid, NicRule::kNumber,
                                        NicRule::kOrder};
std::string_view ToString(NicRule rule);  // "device name (mlx5_0 is mlx5_0)"

struct NicMatch {
  NicRule rule = NicRule::kOrder;
  std::vector<std::vector<size_t>> nics;  // by port of the host: indices into the NICs; empty: none
};

// Keeps references to its arguments.
class NicMatcher {
 public:
  // `nics`: those of the kind that carry the ranks' traffic.
  NicMatcher(const HostKind& kind, std::span<const HostNic> nics, const Fabric& fabric,
             std::span<const FabricHost> hosts);

  // The first rule by which any port is a NIC. A number that is no number of a NIC rules that rule out,
  // except where the kind has names of devices; ports of one device are one NIC, unless the kind has a NIC
  // for each.
  NicMatch Match(const FabricHost& host) const;

 private:
  using Found = std::vector<std::optional<size_t>>;  // by port

  const FabricAdapter& Adapter(const FabricPort& port) const {
    return fabric_.adapters[static_cast<size_t>(port.adapter)];
  }
  Found ByName(const FabricHost& host) const;
  Found ByGuid(const FabricHost& host) const;
  Found ByNumber(const FabricHost& host) const;
  Found InOrder(const FabricHost& host) const;
  int64_t RateOf(const FabricPort& port) const;

  std::span<const HostNic> nics_;
  const Fabric& fabric_;
  std::map<std::string, std::vector<size_t>> named_;  // the NICs of a device; "a+b" is of both
  std::map<std::string, size_t> learned_;             // the NIC of a device, from the guids of one host
};

}  // namespace xccl
