// Networks of switches over given end points (NICs, or GPUs where a host has none): one switch, rails,
// leaf-spine, k-ary fat tree, dragonfly. And the limits on sizes that every reader and generator obeys.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topologies/families/attributes.h"
#include "topologies/topology.h"

namespace xccl {

inline constexpr int64_t kMaxNodes = int64_t{1} << 22;
inline constexpr int64_t kMaxLinks = int64_t{1} << 26;

struct TopologySize {
  int64_t nodes = 0;
  int64_t links = 0;
};
// Errors: "1000000000000 nodes; at most 4194304", the same for links. Without a place.
Status CheckSize(const TopologySize& size);
// a * b for a, b >= 0, or 2^62 where that is larger.
int64_t CappedProduct(int64_t a, int64_t b);

struct LinkNumbers {
  int64_t bandwidth_bytes_per_s = 50'000'000'000;
  int64_t latency_ps = 500'000;
  int64_t overhead_ps = 0;
};

// Where a family's nodes go.
struct Place {
  std::optional<HostId> host;  // absent: GPUs get the implicit host (or one each), switches none
  std::string prefix;          // before the ids of nodes without a host and the names of hosts
  int64_t first_gpu = 0;       // the number of the first GPU added
};

NodeId AddNode(NodeKind kind, std::string id, std::optional<HostId> host, TopologySpec& spec);
// Two links, forward first.
void AddCable(NodeId a, NodeId b, const LinkNumbers& numbers, TopologySpec& spec);

enum class NetworkKind { kSwitch, kRails, kLeafSpine, kFatTree, kDragonfly };

struct Network {
  NetworkKind kind = NetworkKind::kSwitch;
  int64_t leaves = 1;                // leaf-spine; rails: end points per host
  int64_t spines = 0;                // leaf-spine, rails (0: the rails are not joined)
  int64_t k = 0;                     // fat tree: ports of a switch, even
  int64_t groups = 0, routers = 0;   // dragonfly: groups, routers per group
  LinkNumbers access;                // end point to switch
  LinkNumbers uplink;                // switch to switch; bandwidth replaced by the ratio where one is given
  LinkNumbers global;                // dragonfly: between groups
  int64_t oversubscription_num = 0;  // 0: not given. Downlinks of a leaf : its uplinks = num : den
  int64_t oversubscription_den = 1;
  bool multicast = false;  // of every switch
  bool reduce = false;
  std::string id = "fabric";  // of the one switch
};

// The numbers that all links of an element share: bandwidth, latency, overhead.
LinkNumbers ReadNumbers(AttributeReader& reader, const LinkNumbers& otherwise = {});
// The attributes of one network kind except how many end points there are; errors stay in the reader.
Network ReadNetwork(NetworkKind kind, AttributeReader& reader);
// Errors where the end points do not fit (a k-ary tree holds k^3/4) or the ratio leaves no bandwidth.
Status CheckNetwork(const Network& network, int64_t endpoints);
TopologySize SizeOf(const Network& network, int64_t endpoints);  // of what AddNetwork adds; saturates
// Adds the switches and links; end points in order, host by host. Returns the topmost switches, which a
// further network may join. Requires: CheckNetwork and CheckSize passed.
std::vector<NodeId> AddNetwork(const Network& network, std::span<const NodeId> endpoints, const Place& place,
                               TopologySpec& spec);

}  // namespace xccl
