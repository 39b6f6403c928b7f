// A cluster is N copies of its contents. If the contents are one host (its parts, or one <host>), copy i is
// the host NAMEi. If the contents are several hosts or clusters, copy i is a pod, and "NAMEi." precedes the
// names inside. A fabric joins the copies: one network over the nodes that each copy attaches to it, or one
// for each plane. A switch that a fabric with planes has added stays in its plane: a fabric above with planes
// joins it to the switches of that plane alone.
#include <fmt/core.h>

#include <unordered_map>

#include "base/strings.h"
#include "topologies/xml/native_xml_reader.h"

namespace xccl::native_xml {
namespace {

constexpr int kMaxNesting = 8;

}  // namespace

Status Reader::ReadCluster(pugi::xml_node element, ScopeIndex scope, int nesting) {
  AttributeReader reader("cluster", AttributesOf(element));
  const int64_t copies = reader.RequiredInteger("hosts", 1, kMaxNodes);
  const std::string_view name = reader.Text("name").value_or("");
  XCCL_RETURN_IF_ERROR(Finish(element, reader));
  if (nesting >= kMaxNesting)
    return At(element, fmt::format("clusters nested more than {} deep; expected fewer levels", kMaxNesting));
  std::vector<ScopeIndex> members;
  const size_t first_link = spec_.links.size();
  XCCL_RETURN_IF_ERROR(ReadCopies(element, scope, copies, name, nesting + 1, members));
  for (const pugi::xml_node& child : element.children("fabric")) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<EndPoint> tops, ReadFabric(child, members, scope, first_link));
    scopes_[scope].tops.insert(scopes_[scope].tops.end(), tops.begin(), tops.end());
  }
  return OkStatus();
}

Status Reader::ReadCopies(pugi::xml_node element, ScopeIndex scope, int64_t copies, std::string_view name,
                          int nesting, std::vector<ScopeIndex>& members) {
  int hosts = 0, clusters = 0, others = 0;
  for (const pugi::xml_node& child : element.children()) {
    const std::string_view child_name = child.name();
    if (child.type() != pugi::node_element || child_name == "fabric") continue;
    ++(child_name == "host" ? hosts : child_name == "cluster" ? clusters : others);
  }
  if (hosts + clusters + others == 0) return At(element, "cluster: nothing inside; expected one host");
  const bool pods = clusters > 0 || hosts > 1;
  if (!pods && hosts == 1 && others > 0)
    return At(element, "cluster: a <host> beside parts of one; expected either");
  const TopologySize before = SizeSoFar();
  const size_t hosts_before = spec_.hosts.size();
  const std::string outer = scopes_[scope].references.prefix;
  std::string stem(name.empty() ? (pods ? "pod" : "h") : name);
  if (!pods && hosts == 1 && name.empty()) stem = element.child("host").attribute("name").as_string("h");
  for (int64_t copy = 0; copy < copies; ++copy) {
    const std::string own = fmt::format("{}{}{}", outer, stem, copy);
    members.push_back(scopes_.size());
    if (pods) {
      const ScopeIndex pod = AddScope({std::nullopt, static_cast<int32_t>(spec_.nodes.size()), 0, own + "."});
      XCCL_RETURN_IF_ERROR(Walk(element, Context::kCluster, pod, nesting));
      scopes_[pod].references.last = static_cast<int32_t>(spec_.nodes.size());
    } else if (hosts == 1) {
      XCCL_RETURN_IF_ERROR(ReadHost(element.child("host"), scope, own, nesting));
    } else {
      XCCL_ASSIGN_OR_RETURN(const HostId host, OpenHost(element, own, false));
      const ScopeIndex inside = AddScope({host, 0, std::nullopt, outer});
      XCCL_RETURN_IF_ERROR(Walk(element, Context::kCluster, inside, nesting));
    }
    if (copy == 0) XCCL_RETURN_IF_ERROR(CheckCopies(element, copies, before, hosts_before));
  }
  return OkStatus();
}

// Checks, after the first copy, that all copies will fit.
Status Reader::CheckCopies(pugi::xml_node element, int64_t copies, const TopologySize& before,
                           size_t hosts_before) {
  const TopologySize first = SizeSoFar();
  const TopologySize all{before.nodes + CappedProduct(first.nodes - before.nodes, copies),
                         before.links + CappedProduct(first.links - before.links, copies)};
  XCCL_RETURN_IF_ERROR(Check(element, CheckSize(all, most_)));
  const int64_t hosts = CappedProduct(static_cast<int64_t>(spec_.hosts.size() - hosts_before), copies);
  if (hosts > kMaxNodes)
    return At(element, fmt::format("{} hosts; at most {} are supported", hosts, kMaxNodes));
  return OkStatus();
}

// Reads a fabric directly in the topology, which joins the hosts before it.
Status Reader::ReadFabricOfHosts(pugi::xml_node element, ScopeIndex scope) {
  if (spec_.hosts.empty())
    return At(element, "fabric: no host before it; expected <host> or <cluster> elements");
  std::vector<ScopeIndex> members;
  for (size_t h = 0; h < spec_.hosts.size(); ++h)
    members.push_back(AddScope({HostId(static_cast<int64_t>(h)), 0, std::nullopt, ""}));
  return ReadFabric(element, members, scope, 0).status();
}

// The links from `first_link` on are those of the copies and of fabrics before this one.
StatusOr<std::vector<Reader::EndPoint>> Reader::ReadFabric(pugi::xml_node element,
                                                           const std::vector<ScopeIndex>& members,
                                                           ScopeIndex scope, size_t first_link) {
  AttributeReader reader("fabric", AttributesOf(element));
  const NetworkShape kind = ReadNetworkShape(reader);
  Network network = ReadNetwork(kind, reader);
  ReadFabricAttributes(reader, network);
  const std::optional<std::string_view> attach = reader.Text("attach");
  Place place{std::nullopt, scopes_[scope].references.prefix, 0};
  place.prefix += reader.Text("prefix").value_or("");
  XCCL_RETURN_IF_ERROR(Finish(element, reader));
  XCCL_RETURN_IF_ERROR(CheckName(element, "id", place.prefix + network.id));
  XCCL_RETURN_IF_ERROR(CheckRoom(element, {network.planes, 0}));

  XCCL_ASSIGN_OR_RETURN(const auto copies, AttachedTo(element, network, attach, members));
  std::vector<EndPoint> tops;
  for (int64_t p = 0; p < network.planes; ++p) {
    const std::optional<int64_t> plane = network.planes > 1 ? std::optional(p) : std::nullopt;
    XCCL_ASSIGN_OR_RETURN(const std::vector<NodeId> own,
                          AddPlane(element, PlaneOf(network, p), copies, plane, place, first_link));
    for (const NodeId node : own) tops.push_back({node, plane});
  }
  XCCL_RETURN_IF_ERROR(Update(element));
  return tops;
}

// Adds the network over the end points of a plane (absent: over all of them). Returns its topmost switches.
StatusOr<std::vector<NodeId>> Reader::AddPlane(pugi::xml_node fabric, Network network,
                                               const std::vector<std::vector<EndPoint>>& copies,
                                               std::optional<int64_t> plane, const Place& place,
                                               size_t first_link) {
  const auto bad = [&](std::string_view why) { return At(fabric, fmt::format("fabric: {}", why)); };
  const bool alike = network.kind == NetworkShape::kRails || network.kind == NetworkShape::kFullMesh;
  std::vector<NodeId> endpoints;
  for (size_t c = 0; c < copies.size(); ++c) {
    const size_t before = endpoints.size();
    for (const EndPoint& end : copies[c])
      if (!plane || !end.plane || *end.plane == *plane) endpoints.push_back(end.node);
    const auto own = static_cast<int64_t>(endpoints.size() - before);
    if (own % network.rails != 0)
      return bad(
          fmt::format("rails '{}': number {} has {} end points; expected a multiple", network.rails, c, own));
    if (!alike) continue;
    if (c == 0) network.leaves = own;
    if (network.leaves != own)
      return bad(fmt::format("{} as many end points on every host; the first has {}, number {} has {}",
                             network.kind == NetworkShape::kRails ? "rails need" : "a full mesh needs",
                             network.leaves, c, own));
  }
  if (endpoints.empty())
    return bad(
        fmt::format("no end point on plane {}; expected as many planes as the fabric below has", *plane));
  if (network.oversubscription_num != 0 && HasOneLevel(network))
    if (const Status ratio = ApplyRatio(BandwidthsFromBelow(endpoints, first_link), network); !ratio.ok())
      return bad(ratio.message());
  const auto count = static_cast<int64_t>(endpoints.size());
  if (const Status fits = CheckNetwork(network, count); !fits.ok()) return bad(fits.message());
  XCCL_RETURN_IF_ERROR(CheckRoom(fabric, SizeOf(network, count)));
  return AddNetwork(network, endpoints, place, spec_);
}

// The sum of the links that fabrics and families lead into each end point.
std::vector<int64_t> Reader::BandwidthsFromBelow(const std::vector<NodeId>& endpoints,
                                                 size_t first_link) const {
  std::unordered_map<int32_t, int64_t> into;
  for (const NodeId node : endpoints) into.emplace(node.value, 0);
  for (size_t l = first_link; l < spec_.links.size(); ++l)
    if (const auto end = into.find(spec_.links[l].to.value); end != into.end())
      end->second += spec_.links[l].bandwidth_bytes_per_s;
  std::vector<int64_t> below;
  for (const NodeId node : endpoints) below.push_back(into[node.value]);
  return below;
}

// The nodes that each copy attaches: those the fabric names, else the topmost switches of the clusters
// inside, else its NICs, else its GPUs.
StatusOr<std::vector<std::vector<Reader::EndPoint>>> Reader::AttachedTo(
    pugi::xml_node fabric, const Network& network, std::optional<std::string_view> attach,
    const std::vector<ScopeIndex>& members) const {
  std::vector<std::vector<EndPoint>> copies;
  for (const ScopeIndex member : members) {
    const Scope& scope = scopes_[member];
    std::vector<EndPoint>& own = copies.emplace_back();
    if (!attach && !scope.tops.empty()) {
      own = scope.tops;
    } else {
      StatusOr<std::vector<NodeId>> nodes = index_.Resolve(attach.value_or("nic:*"), scope.references);
      if (!attach && !nodes.ok()) nodes = index_.Resolve("gpu:*", scope.references);
      if (!nodes.ok()) return At(fabric, fmt::format("fabric: {}", nodes.status().message()));
      for (const NodeId node : *nodes) own.push_back({node, std::nullopt});
    }
    for (const EndPoint& end : own)
      if (network.planes > 1 && end.plane.value_or(0) >= network.planes)
        return At(fabric,
                  fmt::format("fabric: planes '{}': an end point is on plane {}; expected as many planes "
                              "as the fabric below has",
                              network.planes, *end.plane));
  }
  return copies;
}

}  // namespace xccl::native_xml
