// Grids are row-major, the last dimension fastest. Each cable is added from its lower end, and a torus'
// wrapping cable from the last coordinate to the first. All is linear in nodes + links.
#include "topologies/families/families.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

constexpr std::array<std::string_view, 9> kNames = {
    "nvswitch", "full-mesh", "ring", "mesh", "torus", "hypercube", "fat-tree", "leaf-spine", "dragonfly"};
constexpr int64_t kMost = 1'000'000'000;
constexpr int64_t kNvswitchBandwidth = 450'000'000'000;

void ReadDims(AttributeReader& reader, Family& family) {
  const std::string_view text = reader.RequiredText("dims");
  if (reader.failed()) return;
  for (const std::string& part : Split(text, 'x')) {
    const StatusOr<int64_t> extent = ParseInteger(part, 1, kMost);
    if (!extent.ok())
      return reader.Fail(
          fmt::format("dims '{}': expected whole numbers from 1 to {}, such as 4x4x4", text, kMost));
    family.dims.push_back(*extent);
  }
  if (family.dims.size() > 32)
    reader.Fail(fmt::format("dims of {} dimensions; at most 32 are supported", family.dims.size()));
}

// Mesh and torus take one value for all dimensions, or a list with one value per dimension.
template <typename Parse>
void ReadPerDimension(AttributeReader& reader, std::string_view name, Parse parse,
                      int64_t LinkNumbers::*field, Family& family) {
  const std::optional<std::string_view> text = reader.Text(name);
  if (!text) return;
  const std::vector<std::string> parts = Split(*text, ',');
  if (parts.size() != 1 && parts.size() != family.dims.size())
    return reader.Fail(fmt::format("{} '{}': {} values; expected one, or one for each of the {} dimensions",
                                   name, *text, parts.size(), family.dims.size()));
  for (size_t d = 0; d < family.dims.size(); ++d) {
    const StatusOr<int64_t> value = parse(Trim(parts[parts.size() == 1 ? 0 : d]));
    if (!value.ok()) return reader.Fail(fmt::format("{} {}", name, value.status().message()));
    family.links[d].*field = *value;
  }
}

void ReadNetworkFamily(AttributeReader& reader, Family& family) {
  family.kind = FamilyKind::kNetwork;
  NetworkShape kind = NetworkShape::kDragonfly;
  if (reader.element() == "leaf-spine") kind = NetworkShape::kLeafSpine;
  if (reader.element() == "fat-tree") {
    const bool k = reader.Has("k"), leaves = reader.Has("leaves"), rails = reader.Has("rails");
    if (k + leaves + rails != 1)
      return reader.Fail("expected one of k (a k-ary tree), leaves (leaf-spine) and rails (rail-optimised)");
    kind = k ? NetworkShape::kFatTree : leaves ? NetworkShape::kLeafSpine : NetworkShape::kRails;
  }
  Network& network = family.network =
      ReadNetwork(kind, reader, {}, 1);  // rails that no spine joins would not be connected
  switch (kind) {
    case NetworkShape::kSwitch:
    case NetworkShape::kFullMesh:
      break;
    case NetworkShape::kRails:
      family.gpus_per_host = network.leaves = reader.RequiredInteger("rails", 1, kMost);
      family.hosts = reader.RequiredInteger("hosts", 1, kMost);
      break;
    case NetworkShape::kLeafSpine:
      family.hosts = CappedProduct(network.leaves, reader.RequiredInteger("hosts", 1, kMost));
      break;
    case NetworkShape::kFatTree:
      family.hosts = CappedProduct(CappedProduct(network.k, network.k / 2), network.k / 2);
      break;
    case NetworkShape::kDragonfly:
      family.hosts = CappedProduct(CappedProduct(network.groups, network.routers),
                                   reader.RequiredInteger("hosts", 1, kMost));
      break;
  }
  const int64_t gpus = CappedProduct(family.hosts, family.gpus_per_host);
  if (const Status fits = CheckNetwork(network, gpus); !fits.ok()) reader.Fail(fits.message());
}

int64_t NumGpus(const Family& family) {
  if (family.kind == FamilyKind::kNetwork) return CappedProduct(family.hosts, family.gpus_per_host);
  if (family.kind == FamilyKind::kHypercube) return int64_t{1} << std::min<int64_t>(family.dims[0], 62);
  int64_t product = 1;
  for (int64_t extent : family.dims) product = CappedProduct(product, extent);
  return product;
}

void AddGrid(const Family& family, NodeId first, TopologySpec& spec) {
  std::vector<int64_t> stride(family.dims.size(), 1);
  for (size_t d = family.dims.size(); d-- > 1;) stride[d - 1] = stride[d] * family.dims[d];
  const int64_t nodes = NumGpus(family);
  for (int64_t n = 0; n < nodes; ++n) {
    for (size_t d = 0; d < family.dims.size(); ++d) {
      const int64_t extent = family.dims[d], at = n / stride[d] % extent;
      const bool last = at == extent - 1;
      if (last && (!family.wraps || extent <= 2)) continue;
      const int64_t to = last ? n - at * stride[d] : n + stride[d];
      AddCable(NodeId(first.value + n), NodeId(first.value + to), family.links[d], spec);
    }
  }
}

void AddNetworkFamily(const Family& family, const Place& place, TopologySpec& spec) {
  std::vector<NodeId> gpus;
  for (int64_t h = 0; h < family.hosts; ++h) {
    std::optional<HostId> host = place.host;
    if (!host) {
      host = HostId(static_cast<int64_t>(spec.hosts.size()));
      spec.hosts.push_back(Host{fmt::format("{}h{}", place.prefix, spec.hosts.size())});
    }
    for (int64_t g = 0; g < family.gpus_per_host; ++g) {
      const bool numbered_in_host = family.gpus_per_host > 1 && !place.host;
      const int64_t number = numbered_in_host ? g : place.first_gpu + h * family.gpus_per_host + g;
      gpus.push_back(AddNode(NodeKind::kGpu, std::to_string(number), host, spec));
    }
  }
  AddNetwork(family.network, gpus, place, spec);
}

}  // namespace

std::span<const std::string_view> FamilyNames() { return kNames; }

Family ReadFamily(AttributeReader& reader) {
  Family family;
  const std::string_view name = reader.element();
  LinkNumbers otherwise;
  if (name == "nvswitch") {
    family.kind = FamilyKind::kNvswitch;
    family.dims = {reader.RequiredInteger("gpus", 1, kMost)};
    family.multicast = reader.Bool("multicast", false);
    family.reduce = reader.Bool("reduce", false);
    if (const auto id = reader.Text("id")) family.id = *id;
    otherwise.bandwidth_bytes_per_s = kNvswitchBandwidth;
  } else if (name == "full-mesh" || name == "ring") {
    family.kind = name == "ring" ? FamilyKind::kGrid : FamilyKind::kFullMesh;
    family.dims = {reader.RequiredInteger("ranks", 1, kMost)};
  } else if (name == "hypercube") {
    family.kind = FamilyKind::kHypercube;
    family.dims = {reader.RequiredInteger("dim", 0, 62)};
  } else if (name == "mesh" || name == "torus") {
    family.wraps = name == "torus";
    ReadDims(reader, family);
    family.links.resize(family.dims.size());
    ReadPerDimension(reader, "bandwidth", ParseBandwidth, &LinkNumbers::bandwidth_bytes_per_s, family);
    ReadPerDimension(reader, "latency", ParseLatency, &LinkNumbers::latency_ps, family);
    ReadPerDimension(reader, "overhead", ParseLatency, &LinkNumbers::overhead_ps, family);
  } else {
    ReadNetworkFamily(reader, family);
  }
  if (family.kind != FamilyKind::kNetwork && family.links.empty())
    family.links = {ReadNumbers(reader, otherwise)};
  if (reader.failed()) return family;
  if (const Status fits = CheckSize(SizeOf(family)); !fits.ok()) reader.Fail(fits.message());
  return family;
}

TopologySize SizeOf(const Family& family) {
  const int64_t gpus = NumGpus(family);
  switch (family.kind) {
    case FamilyKind::kNvswitch:
      return {gpus + 1, 2 * gpus};
    case FamilyKind::kFullMesh:
      return {gpus, CappedProduct(gpus, gpus - 1)};
    case FamilyKind::kHypercube:
      return {gpus, CappedProduct(gpus, family.dims[0])};
    case FamilyKind::kGrid: {
      int64_t links = 0;
      for (int64_t extent : family.dims) {
        const int64_t cables = family.wraps && extent > 2 ? extent : extent - 1;  // per line or ring
        links = std::min(int64_t{1} << 61, links + CappedProduct(gpus / extent, 2 * cables));
      }
      return {gpus, links};
    }
    case FamilyKind::kNetwork: {
      TopologySize size = SizeOf(family.network, gpus);
      size.nodes += gpus;
      return size;
    }
  }
  return {};
}

void AddFamily(const Family& family, const Place& place, TopologySpec& spec) {
  if (family.kind == FamilyKind::kNetwork) return AddNetworkFamily(family, place, spec);
  const int64_t gpus = NumGpus(family);
  const NodeId first(static_cast<int64_t>(spec.nodes.size()));
  for (int64_t g = 0; g < gpus; ++g)
    AddNode(NodeKind::kGpu, std::to_string(place.first_gpu + g), place.host, spec);
  const auto gpu = [&](int64_t g) { return NodeId(first.value + g); };
  switch (family.kind) {
    case FamilyKind::kNvswitch: {
      const std::string id = place.host ? family.id : place.prefix + family.id;
      const NodeId nvswitch =
          AddNode(NodeKind::kSwitch, id, place.host, spec, family.multicast, family.reduce);
      for (int64_t g = 0; g < gpus; ++g) AddCable(gpu(g), nvswitch, family.links[0], spec);
      break;
    }
    case FamilyKind::kFullMesh:
      for (int64_t i = 0; i < gpus; ++i)
        for (int64_t j = i + 1; j < gpus; ++j) AddCable(gpu(i), gpu(j), family.links[0], spec);
      break;
    case FamilyKind::kHypercube:
      for (int64_t i = 0; i < gpus; ++i)
        for (int64_t bit = 1; bit < gpus; bit <<= 1)
          if ((i & bit) == 0) AddCable(gpu(i), gpu(i | bit), family.links[0], spec);
      break;
    case FamilyKind::kGrid:
      AddGrid(family, first, spec);
      break;
    case FamilyKind::kNetwork:
      break;
  }
}

}  // namespace xccl
