// A cluster is N copies of its contents. If the contents are one host (its parts, or one <host>), copy i is
// the host NAMEi. If the contents are several hosts or clusters, copy i is a pod, and "NAMEi." precedes the
// names inside. A fabric joins the copies: one network over the nodes that each copy attaches to it.
#include <fmt/core.h>

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
    return At(element, fmt::format("clusters nested more than {} deep", kMaxNesting));
  std::vector<ScopeIndex> members;
  XCCL_RETURN_IF_ERROR(ReadCopies(element, scope, copies, name, nesting + 1, members));
  for (const pugi::xml_node& child : element.children("fabric")) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<NodeId> tops, ReadFabric(child, members, scope));
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
  XCCL_RETURN_IF_ERROR(Check(element, CheckSize(all)));
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
  return ReadFabric(element, members, scope).status();
}

StatusOr<std::vector<NodeId>> Reader::ReadFabric(pugi::xml_node element,
                                                 const std::vector<ScopeIndex>& members, ScopeIndex scope) {
  AttributeReader reader("fabric", AttributesOf(element));
  const NetworkKind kind = ReadNetworkKind(reader);
  Network network = ReadNetwork(kind, reader);
  const std::optional<std::string_view> attach = reader.Text("attach");
  Place place{std::nullopt, scopes_[scope].references.prefix, 0};
  place.prefix += reader.Text("prefix").value_or("");
  XCCL_RETURN_IF_ERROR(Finish(element, reader));
  XCCL_RETURN_IF_ERROR(Check(element, CheckNodeName(place.prefix + network.id)));

  std::vector<NodeId> endpoints;
  for (size_t m = 0; m < members.size(); ++m) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<NodeId> own, AttachedTo(element, attach, members[m]));
    endpoints.insert(endpoints.end(), own.begin(), own.end());
    if (kind != NetworkKind::kRails) continue;
    if (m == 0) network.leaves = static_cast<int64_t>(own.size());
    if (network.leaves != static_cast<int64_t>(own.size()))
      return At(element, fmt::format("fabric: rails need as many end points on every host; the first has {}, "
                                     "number {} has {}",
                                     network.leaves, m, own.size()));
  }
  const auto count = static_cast<int64_t>(endpoints.size());
  if (const Status fits = CheckNetwork(network, count); !fits.ok())
    return At(element, fmt::format("fabric: {}", fits.message()));
  XCCL_RETURN_IF_ERROR(CheckRoom(element, SizeOf(network, count)));
  std::vector<NodeId> tops = AddNetwork(network, endpoints, place, spec_);
  XCCL_RETURN_IF_ERROR(Update(element));
  return tops;
}

// The nodes that a copy attaches: those the fabric names, else the topmost switches of the clusters inside,
// else its NICs, else its GPUs.
StatusOr<std::vector<NodeId>> Reader::AttachedTo(pugi::xml_node fabric,
                                                 std::optional<std::string_view> attach,
                                                 ScopeIndex member) const {
  const Scope& scope = scopes_[member];
  if (!attach && !scope.tops.empty()) return scope.tops;
  StatusOr<std::vector<NodeId>> nodes = index_.Resolve(attach.value_or("nic:*"), scope.references);
  if (!attach && !nodes.ok()) nodes = index_.Resolve("gpu:*", scope.references);
  if (!nodes.ok()) return At(fabric, fmt::format("fabric: {}", nodes.status().message()));
  return nodes;
}

}  // namespace xccl::native_xml
