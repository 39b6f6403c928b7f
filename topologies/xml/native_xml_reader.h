// The implementation of ReadNativeXml, in two files: native_xml_read.cc reads the document, nodes, links,
// hosts and families; native_xml_cluster.cc reads clusters and fabrics. Not for use elsewhere.
#pragma once

#include <functional>
#include <pugixml.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topologies/families/attributes.h"
#include "topologies/families/networks.h"
#include "topologies/references.h"
#include "topologies/topology.h"
#include "topologies/xml/elements.h"

namespace xccl::native_xml {

using Context = XmlContext;

using ScopeIndex = size_t;

class Reader {
 public:
  Reader(std::string_view text, std::string_view file, const TopologySize& most)
      : text_(text), file_(file), most_(most), index_(spec_) {}
  StatusOr<Topology> Read();

 private:
  // A link element whose ends are looked up once all nodes are known.
  struct PendingLink {
    pugi::xml_node element;
    ScopeIndex scope;
    size_t links_before;  // links that families added before it
  };
  struct EndPoint {
    NodeId node;
    std::optional<int64_t> plane;  // of the fabric with planes whose topmost switch it is
  };
  struct Scope {
    ReferenceScope references;
    std::vector<EndPoint> tops;  // topmost switches of the clusters inside
  };

  // native_xml_read.cc
  Status ReadRoot(pugi::xml_node root);
  Status Walk(pugi::xml_node parent, Context context, ScopeIndex scope, int nesting);
  Status ReadElement(pugi::xml_node element, Context context, ScopeIndex scope, int nesting);
  Status ReadNodes(pugi::xml_node element, NodeKind kind, ScopeIndex scope);
  Status ReadFamilyElement(pugi::xml_node element, ScopeIndex scope);
  Status ReadHost(pugi::xml_node element, ScopeIndex scope, const std::string& name_of_copy, int nesting);
  StatusOr<HostId> OpenHost(pugi::xml_node element, std::string name, bool continued);
  Status ResolveLinks();
  Status ResolveLink(const PendingLink& pending, std::vector<Link>& links);
  Status Unexpected(pugi::xml_node element, Context context) const;

  // native_xml_cluster.cc
  Status ReadCluster(pugi::xml_node element, ScopeIndex scope, int nesting);
  Status ReadCopies(pugi::xml_node element, ScopeIndex scope, int64_t copies, std::string_view name,
                    int nesting, std::vector<ScopeIndex>& members);
  Status CheckCopies(pugi::xml_node element, int64_t copies, const TopologySize& before, size_t hosts_before);
  StatusOr<std::vector<EndPoint>> ReadFabric(pugi::xml_node element, const std::vector<ScopeIndex>& members,
                                             ScopeIndex scope, size_t first_link);
  StatusOr<std::vector<std::vector<EndPoint>>> AttachedTo(pugi::xml_node fabric, const Network& network,
                                                          std::optional<std::string_view> attach,
                                                          const std::vector<ScopeIndex>& members) const;
  StatusOr<std::vector<NodeId>> AddPlane(pugi::xml_node fabric, Network network,
                                         const std::vector<std::vector<EndPoint>>& copies,
                                         std::optional<int64_t> plane, const Place& place, size_t first_link);
  std::vector<int64_t> BandwidthsFromBelow(const std::vector<NodeId>& endpoints, size_t first_link) const;
  Status ReadFabricOfHosts(pugi::xml_node element, ScopeIndex scope);

  // Registers what an element added: checks sizes and ids.
  Status Update(pugi::xml_node element);
  // Reports unknown attributes, and keeps the element's source.
  Status Finish(pugi::xml_node element, AttributeReader& reader);
  ScopeIndex AddScope(ReferenceScope scope);
  TopologySize SizeSoFar() const;
  Status CheckRoom(pugi::xml_node element, TopologySize more) const;
  Status AtOffset(size_t offset, std::string_view message) const;
  Status At(pugi::xml_node element, std::string_view message) const;
  Status Check(pugi::xml_node element,
               const Status& status) const;  // the status with the element's place in its message
  // Checks the value of an attribute that names a node or a host.
  Status CheckName(pugi::xml_node element, std::string_view attribute, std::string_view name) const;

  std::string_view text_, file_;
  TopologySize most_;
  TopologySpec spec_;
  NodeIndex index_;
  std::vector<Scope> scopes_;
  std::vector<PendingLink> pending_;
  pugi::xml_node gpu_outside_hosts_;
  int64_t network_gpus_ = 0;  // GPUs of fat trees and the like, which share one numbering
  std::vector<std::string> sources_;
  std::set<std::string, std::less<>> known_sources_;
};

std::vector<Attribute> AttributesOf(pugi::xml_node element);

}  // namespace xccl::native_xml
