// Networks of switches over given end points (NICs, GPUs where a host has none, or the topmost switches of
// networks below): one switch, rails, leaf-spine, k-ary fat tree, dragonfly; and cables between copies,
// without a switch. Also the size limits that every reader and generator obeys.
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

inline constexpr int64_t kMaxNodes = int64_t{1} << 20;
inline constexpr int64_t kMaxLinks = int64_t{1} << 22;

struct TopologySize {
  int64_t nodes = 0;
  int64_t links = 0;
};
// Errors: "1000000000000 nodes; at most 1048576 are supported", and the same for links. The caller adds the
// place.
Status CheckSize(const TopologySize& size, const TopologySize& most = {kMaxNodes, kMaxLinks});
// a * b, or 2^62 if that is less. Requires: a, b >= 0.
int64_t CappedProduct(int64_t a, int64_t b);

struct LinkNumbers {
  int64_t bandwidth_bytes_per_s = 50'000'000'000;
  int64_t latency_ps = 500'000;
  int64_t overhead_ps = 0;
};

// Where the nodes of a family are added.
struct Place {
  std::optional<HostId> host;  // absent: GPUs get the implicit host (or one each), switches none
  std::string prefix;          // prefixes the names of hosts and the ids of nodes without a host
  int64_t first_gpu = 0;       // the number of the first GPU added
};

NodeId AddNode(NodeKind kind, std::string id, std::optional<HostId> host, TopologySpec& spec,
               bool multicast = false, bool reduce = false);
void AddLink(NodeId from, NodeId to, const LinkNumbers& numbers, TopologySpec& spec);
// Adds two links, the forward one first.
void AddCable(NodeId a, NodeId b, const LinkNumbers& numbers, TopologySpec& spec);

enum class NetworkShape { kSwitch, kRails, kLeafSpine, kFatTree, kDragonfly, kFullMesh };

struct Network {
  NetworkShape kind = NetworkShape::kSwitch;
  // Leaf-spine; rails: their number, which is that of a host's end points unless rail_of says otherwise; full
  // mesh: the end points of a copy.
  int64_t leaves = 1;
  int64_t count = 1;         // switch, rails: so many in place of each switch; end points join all of them
  int64_t rails = 1;         // leaf-spine, dragonfly: the end points of a host are on so many leaves in turn
  int64_t planes = 1;        // copies of the whole network over the same end points
  std::string plane_prefix;  // goes before the ids of switches, in hosts too: "plane1."
  // The ids of the rails, and the rail of end points 0, 1, ...; then again from the first. Empty: rail0,
  // rail1, ..., and the rails in turn.
  std::vector<std::string> rail_names;
  std::vector<int64_t> rail_of;
  int64_t spines = 0;               // leaf-spine; rails (0: the rails are not joined)
  int64_t k = 0;                    // fat tree: ports of a switch, even
  int64_t groups = 0, routers = 0;  // dragonfly: groups, routers per group
  int64_t global_links = 1;         // dragonfly, full mesh: cables of a pair of groups, or of copies
  LinkNumbers access;               // end point to switch
  // Bandwidths in place of that of `access`, for end points 0, 1, ...; then again from the first. Empty:
  // none.
  std::vector<int64_t> access_bytes_per_s;
  LinkNumbers uplink;  // switch to switch; oversubscription, if given, sets the bandwidth
  LinkNumbers global;  // dragonfly: between groups
  // A leaf's downlinks : its uplinks = num : den. 0: not given. In a network of one level the end points are
  // the leaves, and ApplyRatio turns the ratio into bandwidths.
  int64_t oversubscription_num = 0;
  int64_t oversubscription_den = 1;
  bool multicast = false;  // every switch multicasts
  bool reduce = false;
  std::string id = "fabric";  // kSwitch: the id of the switch
};

// Reads the numbers that all links of an element share: bandwidth, latency, overhead.
LinkNumbers ReadNumbers(AttributeReader& reader, const LinkNumbers& otherwise = {});
// Reads the attribute `type`: switch (also where it is absent), rails, leaf-spine, fat-tree, dragonfly,
// full-mesh.
NetworkShape ReadNetworkShape(AttributeReader& reader);
// Reads all other attributes of a network except the number of its end points. Rails have at least so many
// spines, and so many where nothing is said. The reader keeps the errors.
Network ReadNetwork(NetworkShape kind, AttributeReader& reader, const LinkNumbers& otherwise = {},
                    int64_t least_spines = 0);
// Reads what only a network over the end points of hosts has: planes, count, rails, links, and the
// oversubscription of a network of one level. The reader keeps the errors.
void ReadFabricAttributes(AttributeReader& reader, Network& network);
// True for one switch and for rails without spines: end points join the topmost switches.
bool HasOneLevel(const Network& network);
// The network of one plane. Requires: 0 <= plane < network.planes.
Network PlaneOf(const Network& network, int64_t plane);
// Sets the bandwidths of end points in a network of one level by its ratio: below[e] comes into end point e
// from below, in B/s. Errors: nothing comes in, or nothing is left.
Status ApplyRatio(std::span<const int64_t> below, Network& network);
// Errors: the end points do not fit (a k-ary tree holds k^3/4), or the ratio leaves no bandwidth.
Status CheckNetwork(const Network& network, int64_t endpoints);
// The nodes and links that AddNetwork adds; saturates.
TopologySize SizeOf(const Network& network, int64_t endpoints);
// Adds the switches and links. End points are ordered host by host. Returns the topmost switches, which
// another network may join, plane by plane; the end points themselves where there is no switch. Requires:
// CheckNetwork and CheckSize passed.
std::vector<NodeId> AddNetwork(const Network& network, std::span<const NodeId> endpoints, const Place& place,
                               TopologySpec& spec);

}  // namespace xccl
