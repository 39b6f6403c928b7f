// Every network is built in two loops: end points to their leaf (or rail, edge switch, router), then
// switches to switches. Switches are added level by level from the end points up, so ids and links have
// that order. Planes follow each other. Cables between groups are circulant: their routers depend on the
// distance of the groups alone, so that adding one to every group's number is an automorphism.
#include "topologies/families/networks.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

constexpr int64_t kCap = int64_t{1} << 61;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The number of switches that end points attach to; such that stand in place of one are counted once.
int64_t NumLeaves(const Network& network) {
  switch (network.kind) {
    case NetworkShape::kSwitch:
    case NetworkShape::kFullMesh:
      return 1;
    case NetworkShape::kRails:
    case NetworkShape::kLeafSpine:
      return network.leaves;
    case NetworkShape::kFatTree:
      return CappedProduct(network.k, network.k / 2);
    case NetworkShape::kDragonfly:
      return CappedProduct(network.groups, network.routers);
  }
  return 1;
}

// The most of any leaf, but for named rails: of that rail.
int64_t EndpointsPerLeaf(const Network& network, int64_t endpoints, int64_t leaf = 0) {
  if (!network.rail_of.empty())
    return std::ranges::count(network.rail_of, leaf) *
           (endpoints / static_cast<int64_t>(network.rail_of.size()));
  if (network.kind == NetworkShape::kFatTree) return network.k / 2;
  return std::max<int64_t>(1, CeilDiv(endpoints, NumLeaves(network)));
}

int64_t LeafOf(const Network& network, int64_t endpoint, int64_t endpoints) {
  if (!network.rail_of.empty())
    return network.rail_of[static_cast<size_t>(endpoint) % network.rail_of.size()];
  if (network.kind == NetworkShape::kRails) return endpoint % network.leaves;
  const int64_t block = EndpointsPerLeaf(network, endpoints) * network.rails;
  return endpoint / block * network.rails + endpoint % network.rails;
}

// The bandwidth of one uplink of a leaf: its downlinks ÷ its uplinks ÷ the ratio, rounded down.
int64_t UplinkBandwidth(const Network& network, int64_t endpoints, int64_t leaf = 0) {
  if (network.oversubscription_num == 0 || HasOneLevel(network)) return network.uplink.bandwidth_bytes_per_s;
  const int64_t uplinks = network.kind == NetworkShape::kFatTree ? network.k / 2 : network.spines;
  const __int128 down = static_cast<__int128>(network.access.bandwidth_bytes_per_s) *
                        EndpointsPerLeaf(network, endpoints, leaf) * network.oversubscription_den;
  const __int128 each = down / (static_cast<__int128>(uplinks) * network.oversubscription_num);
  return static_cast<int64_t>(std::min<__int128>(each, kCap));
}

// `instead` is the attribute that the ratio stands in place of.
void ReadOversubscription(AttributeReader& reader, std::string_view instead, Network& network) {
  if (const auto text = reader.Text(instead); text && reader.Has("oversubscription"))
    return reader.Fail(fmt::format("both {} and oversubscription; expected one of them", instead));
  const std::optional<std::string_view> ratio = reader.Text("oversubscription");
  if (!ratio) return;
  const std::vector<std::string> parts = Split(*ratio, ':');
  const StatusOr<int64_t> num = ParseInteger(parts[0], 1, 1'000'000);
  const StatusOr<int64_t> den = parts.size() == 2 ? ParseInteger(parts[1], 1, 1'000'000) : 1;
  if (parts.size() > 2 || !num.ok() || !den.ok())
    return reader.Fail(fmt::format("oversubscription '{}': expected a ratio such as 2 or 3:2", *ratio));
  network.oversubscription_num = *num;
  network.oversubscription_den = *den;
}

}  // namespace

int64_t CappedProduct(int64_t a, int64_t b) {
  return static_cast<int64_t>(std::min<__int128>(static_cast<__int128>(a) * b, kCap));
}

Status CheckSize(const TopologySize& size, const TopologySize& most) {
  const auto check = [](int64_t count, int64_t limit, std::string_view what) {
    if (count <= limit) return OkStatus();
    const std::string shown = count >= kCap ? "2^61 or more" : std::to_string(count);
    return InvalidInput(fmt::format("{} {}; at most {} are supported", shown, what, limit));
  };
  XCCL_RETURN_IF_ERROR(check(size.nodes, most.nodes, "nodes"));
  return check(size.links, most.links, "links");
}

NodeId AddNode(NodeKind kind, std::string id, std::optional<HostId> host, TopologySpec& spec, bool multicast,
               bool reduce) {
  spec.nodes.push_back(Node{kind, std::move(id), host, multicast, reduce});
  return NodeId(static_cast<int64_t>(spec.nodes.size()) - 1);
}

void AddLink(NodeId from, NodeId to, const LinkNumbers& numbers, TopologySpec& spec) {
  spec.links.push_back({from, to, numbers.bandwidth_bytes_per_s, numbers.latency_ps, numbers.overhead_ps});
}

void AddCable(NodeId a, NodeId b, const LinkNumbers& numbers, TopologySpec& spec) {
  AddLink(a, b, numbers, spec);
  AddLink(b, a, numbers, spec);
}

LinkNumbers ReadNumbers(AttributeReader& reader, const LinkNumbers& otherwise) {
  return {reader.Bandwidth("bandwidth", otherwise.bandwidth_bytes_per_s),
          reader.Latency("latency", otherwise.latency_ps), reader.Latency("overhead", otherwise.overhead_ps)};
}

NetworkShape ReadNetworkShape(AttributeReader& reader) {
  constexpr std::array<std::string_view, 6> kTypes = {"switch",    "rails",    "leaf-spine", "fat-tree",
                                                      "dragonfly", "full-mesh"};  // by NetworkShape
  const std::string_view type = reader.Text("type").value_or(kTypes[0]);
  const auto known = std::ranges::find(kTypes, type);
  if (known != kTypes.end()) return static_cast<NetworkShape>(known - kTypes.begin());
  reader.Fail(fmt::format("unknown type '{}'{}", type, DidYouMean(type, kTypes)));
  return NetworkShape::kSwitch;
}

Network ReadNetwork(NetworkShape kind, AttributeReader& reader, const LinkNumbers& otherwise,
                    int64_t least_spines) {
  constexpr int64_t kMost = 1'000'000'000;
  Network network;
  network.kind = kind;
  network.access = ReadNumbers(reader, otherwise);
  network.uplink = network.access;
  if (kind == NetworkShape::kFullMesh) return network;
  if (kind != NetworkShape::kSwitch)
    network.uplink.latency_ps = reader.Latency("uplink-latency", network.access.latency_ps);
  network.global = network.uplink;
  network.multicast = reader.Bool("multicast", false);
  network.reduce = reader.Bool("reduce", false);
  switch (kind) {
    case NetworkShape::kSwitch:
      if (const auto id = reader.Text("id")) network.id = *id;
      return network;
    case NetworkShape::kRails:
      network.spines = reader.Integer("spines", least_spines, kMost, least_spines);
      break;
    case NetworkShape::kLeafSpine:
      network.leaves = reader.RequiredInteger("leaves", 1, kMost);
      network.spines = reader.RequiredInteger("spines", 1, kMost);
      break;
    case NetworkShape::kFatTree:
      network.k = reader.RequiredInteger("k", 2, kMost);
      if (network.k % 2 != 0) reader.Fail(fmt::format("k '{}': expected an even number", network.k));
      break;
    case NetworkShape::kFullMesh:
      break;
    case NetworkShape::kDragonfly:
      network.groups = reader.RequiredInteger("groups", 1, kMost);
      network.routers = reader.RequiredInteger("routers", 1, kMost);
      network.global.bandwidth_bytes_per_s =
          reader.Bandwidth("global-bandwidth", network.access.bandwidth_bytes_per_s);
      network.global_links = reader.Integer("global-links", 1, kMost, 1);
      network.global.latency_ps = reader.Latency("global-latency", network.uplink.latency_ps);
      return network;
  }
  network.uplink.bandwidth_bytes_per_s =
      reader.Bandwidth("uplink-bandwidth", network.access.bandwidth_bytes_per_s);
  ReadOversubscription(reader, "uplink-bandwidth", network);
  return network;
}

void ReadFabricAttributes(AttributeReader& reader, Network& network) {
  constexpr int64_t kMost = 1'000'000'000;
  network.planes = reader.Integer("planes", 1, kMost, 1);
  if (network.kind == NetworkShape::kSwitch || network.kind == NetworkShape::kRails)
    network.count = reader.Integer("count", 1, kMost, 1);
  if (network.kind == NetworkShape::kSwitch) ReadOversubscription(reader, "bandwidth", network);
  if (network.kind == NetworkShape::kFullMesh) network.global_links = reader.Integer("links", 1, kMost, 1);
  const bool leaf_spine = network.kind == NetworkShape::kLeafSpine;
  if (!leaf_spine && network.kind != NetworkShape::kDragonfly) return;
  network.rails = reader.Integer("rails", 1, kMost, 1);
  const int64_t leaves = leaf_spine ? network.leaves : network.routers;
  if (leaves % network.rails != 0)
    reader.Fail(fmt::format("rails '{}': {} {}; expected a number that divides them", network.rails, leaves,
                            leaf_spine ? "leaves" : "routers a group"));
}

bool HasOneLevel(const Network& network) {
  return network.kind == NetworkShape::kSwitch ||
         (network.kind == NetworkShape::kRails && network.spines == 0);
}

Network PlaneOf(const Network& network, int64_t plane) {
  Network one = network;
  if (network.planes > 1) one.plane_prefix += fmt::format("plane{}.", plane);
  one.planes = 1;
  return one;
}

Status ApplyRatio(std::span<const int64_t> below, Network& network) {
  network.access_bytes_per_s.clear();
  for (const int64_t from_below : below) {
    if (from_below == 0)
      return InvalidInput(
          fmt::format("oversubscription without {}a fabric below; expected {}clusters with a fabric inside",
                      network.kind == NetworkShape::kRails ? "spines or " : "",
                      network.kind == NetworkShape::kRails ? "spines of 1 or more, or " : ""));
    const __int128 each = static_cast<__int128>(from_below) * network.oversubscription_den /
                          (static_cast<__int128>(network.oversubscription_num) * network.count);
    if (each == 0)
      return InvalidInput("the oversubscription leaves an uplink less than 1 B/s; expected a smaller one");
    network.access_bytes_per_s.push_back(static_cast<int64_t>(std::min<__int128>(each, kCap)));
  }
  return OkStatus();
}

Status CheckNetwork(const Network& network, int64_t endpoints) {
  if (network.kind == NetworkShape::kFatTree) {
    const int64_t most = CappedProduct(CappedProduct(network.k, network.k / 2), network.k / 2);
    if (endpoints > most)
      return InvalidInput(
          fmt::format("{} end points; a fat tree of k={} has {} ports", endpoints, network.k, most));
  }
  bool none_left = UplinkBandwidth(network, endpoints) <= 0;
  for (int64_t rail : network.rail_of)
    none_left = none_left || UplinkBandwidth(network, endpoints, rail) <= 0;
  if (none_left)
    return InvalidInput("the oversubscription leaves an uplink less than 1 B/s; expected a smaller one");
  return OkStatus();
}

TopologySize SizeOf(const Network& network, int64_t endpoints) {
  const int64_t leaves = CappedProduct(NumLeaves(network), network.count);
  TopologySize size{leaves, CappedProduct(CappedProduct(2, endpoints), network.count)};
  const auto add = [](int64_t& to, int64_t more) { to = std::min(kCap, to + std::min(more, kCap)); };
  const auto add_cables_between = [&](int64_t groups) {
    add(size.links, CappedProduct(CappedProduct(groups, groups - 1), network.global_links));
  };
  switch (network.kind) {
    case NetworkShape::kSwitch:
      break;
    case NetworkShape::kRails:
    case NetworkShape::kLeafSpine:
      add(size.nodes, network.spines);
      add(size.links, CappedProduct(CappedProduct(2, leaves), network.spines));
      break;
    case NetworkShape::kFatTree: {
      const int64_t half = network.k / 2, per_layer = CappedProduct(size.nodes, half);
      add(size.nodes, CappedProduct(network.k, half));
      add(size.nodes, CappedProduct(half, half));
      add(size.links, CappedProduct(4, per_layer));
      break;
    }
    case NetworkShape::kDragonfly:
      add(size.links, CappedProduct(size.nodes, network.routers - 1));
      add_cables_between(network.groups);
      break;
    case NetworkShape::kFullMesh:
      size = {};
      add_cables_between(endpoints / network.leaves);
      break;
  }
  return {CappedProduct(size.nodes, network.planes), CappedProduct(size.links, network.planes)};
}

namespace {

class NetworkAdder {
 public:
  NetworkAdder(const Network& network, const Place& place, TopologySpec& spec)
      : network_(network), place_(place), spec_(spec) {}

  std::vector<NodeId> Switches(std::string_view name, int64_t count) {
    std::vector<NodeId> switches;
    for (int64_t i = 0; i < count; ++i) switches.push_back(Switch(fmt::format("{}{}", name, i)));
    return switches;
  }
  std::vector<NodeId> Switches(std::span<const std::string> ids) {
    std::vector<NodeId> switches;
    for (const std::string& id : ids) switches.push_back(Switch(id));
    return switches;
  }
  // `count` switches in place of each that the ids name: "rail0.0", "rail0.1".
  std::vector<NodeId> InPlaceOf(std::span<const std::string> ids) {
    if (network_.count == 1) return Switches(ids);
    std::vector<NodeId> switches;
    for (const std::string& id : ids)
      for (int64_t i = 0; i < network_.count; ++i) switches.push_back(Switch(fmt::format("{}.{}", id, i)));
    return switches;
  }
  NodeId Switch(std::string id) {
    id = network_.plane_prefix + id;
    if (!place_.host) id = place_.prefix + id;
    return AddNode(NodeKind::kSwitch, std::move(id), place_.host, spec_, network_.multicast, network_.reduce);
  }
  void Attach(std::span<const NodeId> endpoints, std::span<const NodeId> leaves) {
    const auto count = static_cast<int64_t>(endpoints.size());
    const std::vector<int64_t>& own = network_.access_bytes_per_s;
    for (int64_t e = 0; e < count; ++e) {
      LinkNumbers numbers = network_.access;
      if (!own.empty()) numbers.bandwidth_bytes_per_s = own[static_cast<size_t>(e) % own.size()];
      const int64_t first = LeafOf(network_, e, count) * network_.count;
      for (int64_t i = first; i < first + network_.count; ++i)
        AddCable(endpoints[e], leaves[i], numbers, spec_);
    }
  }

  // Edge and aggregation switches of pod p start at p*half. Aggregation switch a of every pod joins the
  // cores from a*half on.
  std::vector<NodeId> FatTree(std::span<const NodeId> endpoints, const LinkNumbers& uplink) {
    const int64_t half = network_.k / 2;
    const std::vector<NodeId> edge = Switches("edge", network_.k * half);
    const std::vector<NodeId> aggregation = Switches("aggregation", network_.k * half);
    std::vector<NodeId> core = Switches("core", half * half);
    Attach(endpoints, edge);
    for (int64_t pod = 0; pod < network_.k; ++pod)
      for (int64_t e = 0; e < half; ++e)
        for (int64_t a = 0; a < half; ++a)
          AddCable(edge[pod * half + e], aggregation[pod * half + a], uplink, spec_);
    for (int64_t pod = 0; pod < network_.k; ++pod)
      for (int64_t a = 0; a < half; ++a)
        for (int64_t c = 0; c < half; ++c)
          AddCable(aggregation[pod * half + a], core[a * half + c], uplink, spec_);
    return core;
  }

  // The routers of a group form a full mesh.
  std::vector<NodeId> Dragonfly(std::span<const NodeId> endpoints) {
    const int64_t groups = network_.groups, per_group = network_.routers;
    std::vector<NodeId> routers = Switches("router", groups * per_group);
    Attach(endpoints, routers);
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t i = 0; i < per_group; ++i)
        for (int64_t j = i + 1; j < per_group; ++j)
          AddCable(routers[g * per_group + i], routers[g * per_group + j], network_.uplink, spec_);
    CablesBetween(routers, per_group, network_.global);
    return routers;
  }

  // Groups of `per_group` routers, with as many cables for each pair of groups as global_links says. The
  // cables of group g to g+1, g+2, ... start at its routers in turn.
  void CablesBetween(std::span<const NodeId> routers, int64_t per_group, const LinkNumbers& numbers) {
    const auto groups = static_cast<int64_t>(routers.size()) / per_group;
    const auto end = [&](int64_t group, int64_t other, int64_t cable) {
      const int64_t distance = (other - group + groups) % groups;
      return routers[group * per_group + ((distance - 1) * network_.global_links + cable) % per_group];
    };
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t h = g + 1; h < groups; ++h)
        for (int64_t c = 0; c < network_.global_links; ++c)
          AddCable(end(g, h, c), end(h, g, c), numbers, spec_);
  }

 private:
  const Network& network_;
  const Place& place_;
  TopologySpec& spec_;
};

}  // namespace

std::vector<NodeId> AddNetwork(const Network& network, std::span<const NodeId> endpoints, const Place& place,
                               TopologySpec& spec) {
  if (network.planes > 1) {
    std::vector<NodeId> all;
    for (int64_t p = 0; p < network.planes; ++p) {
      const std::vector<NodeId> tops = AddNetwork(PlaneOf(network, p), endpoints, place, spec);
      all.insert(all.end(), tops.begin(), tops.end());
    }
    return all;
  }
  NetworkAdder add(network, place, spec);
  LinkNumbers uplink = network.uplink;
  const auto count = static_cast<int64_t>(endpoints.size());
  uplink.bandwidth_bytes_per_s = UplinkBandwidth(network, count);
  switch (network.kind) {
    case NetworkShape::kSwitch: {
      std::vector<NodeId> switches = network.count == 1 ? std::vector<NodeId>{add.Switch(network.id)}
                                                        : add.Switches(network.id, network.count);
      add.Attach(endpoints, switches);
      return switches;
    }
    case NetworkShape::kRails:
    case NetworkShape::kLeafSpine: {
      const std::string_view name = network.kind == NetworkShape::kRails ? "rail" : "leaf";
      std::vector<std::string> names = network.rail_names;
      for (int64_t l = 0; network.rail_names.empty() && l < network.leaves; ++l)
        names.push_back(fmt::format("{}{}", name, l));
      std::vector<NodeId> leaves = add.InPlaceOf(names);
      std::vector<NodeId> spines = add.Switches("spine", network.spines);
      add.Attach(endpoints, leaves);
      for (size_t l = 0; l < leaves.size(); ++l) {
        uplink.bandwidth_bytes_per_s =
            UplinkBandwidth(network, count, static_cast<int64_t>(l) / network.count);
        for (NodeId spine : spines) AddCable(leaves[l], spine, uplink, spec);
      }
      return spines.empty() ? leaves : spines;
    }
    case NetworkShape::kFatTree:
      return add.FatTree(endpoints, uplink);
    case NetworkShape::kDragonfly:
      return add.Dragonfly(endpoints);
    case NetworkShape::kFullMesh:
      add.CablesBetween(endpoints, network.leaves, network.access);
      return {endpoints.begin(), endpoints.end()};
  }
  return {};
}

}  // namespace xccl
