// One walk over the document adds nodes and the links of families, and lists the link elements with their
// scopes. A second pass looks up their ends, so a link may stand before its nodes. A cluster walks its
// contents once per copy. Linear in nodes + links.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "base/diagnostics.h"
#include "base/strings.h"
#include "topologies/families/families.h"
#include "topologies/xml/native_xml.h"
#include "topologies/xml/native_xml_reader.h"
#include "topologies/xml/parse_xml.h"

namespace xccl {
namespace native_xml {
namespace {

bool IsOneOf(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<NodeKind> KindOf(std::string_view element) {
  for (NodeKind kind : kNodeKinds)
    if (NodeKindName(kind) == element) return kind;
  return std::nullopt;
}

// Says where an element stands that was seen somewhere else.
std::string Misplaced(const XmlElement& element, Context seen_in) {
  std::vector<std::string> places;
  for (const Context context : element.stands_in) places.push_back(fmt::format("<{}>", ToString(context)));
  return fmt::format("<{}> inside <{}>; it stands {}", element.name, ToString(seen_in),
                     places.empty() ? "around all others" : "in " + Either(places));
}

std::string BaseName(std::string_view file) {
  if (const size_t slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  if (file.ends_with(".xml")) file.remove_suffix(4);
  return std::string(file);
}

}  // namespace

std::vector<Attribute> AttributesOf(pugi::xml_node element) {
  std::vector<Attribute> attributes;
  for (const pugi::xml_attribute& attribute : element.attributes())
    attributes.emplace_back(attribute.name(), attribute.value());
  return attributes;
}

StatusOr<Topology> Reader::Read() {
  pugi::xml_document document;
  XCCL_RETURN_IF_ERROR(ParseXml(text_, file_, "topology", document));
  const pugi::xml_node root = document.document_element();
  if (std::string_view(root.name()) != "topology")
    return At(root, fmt::format("root element <{}>; expected <topology>", root.name()));
  XCCL_RETURN_IF_ERROR(ReadRoot(root));
  XCCL_RETURN_IF_ERROR(ResolveLinks());
  for (const std::string& source : sources_) {
    if (!spec_.source.empty()) spec_.source += "; ";
    spec_.source += source;
  }
  StatusOr<Topology> topology = Topology::Create(std::move(spec_));
  if (!topology.ok()) return Annotate(topology.status(), file_);
  return topology;
}

Status Reader::ReadRoot(pugi::xml_node root) {
  AttributeReader reader("topology", AttributesOf(root));
  spec_.name = reader.Text("name").value_or(BaseName(file_));
  if (const auto arch = reader.Text("arch")) {
    XCCL_RETURN_IF_ERROR(Check(root, CheckGpuArch(*arch)));
    spec_.gpu_arch = *arch;
  }
  XCCL_RETURN_IF_ERROR(Finish(root, reader));
  const ScopeIndex top = AddScope({});
  XCCL_RETURN_IF_ERROR(Walk(root, Context::kTopology, top, 0));
  const auto is_gpu = [](const Node& node) { return node.kind == NodeKind::kGpu; };
  if (std::none_of(spec_.nodes.begin(), spec_.nodes.end(), is_gpu))
    return At(root, "topology: no gpu; expected at least one");
  if (gpu_outside_hosts_ && !spec_.hosts.empty())
    return At(gpu_outside_hosts_,
              "a gpu outside of every host, while others have one; expected all in hosts");
  return OkStatus();
}

// Reads the children of a topology, a host or one copy of a cluster.
Status Reader::Walk(pugi::xml_node parent, Context context, ScopeIndex scope, int nesting) {
  for (pugi::xml_node child = parent.first_child(); child; child = child.next_sibling()) {
    if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata)
      return At(child, fmt::format("text inside <{}>; expected elements", parent.name()));
    if (child.type() == pugi::node_element) XCCL_RETURN_IF_ERROR(ReadElement(child, context, scope, nesting));
  }
  return OkStatus();
}

Status Reader::ReadElement(pugi::xml_node element, Context context, ScopeIndex scope, int nesting) {
  const std::string_view name = element.name();
  if (!StandsIn(name, context)) return Unexpected(element, context);
  if (name == "host") return ReadHost(element, scope, "", nesting);
  if (name == "cluster") return ReadCluster(element, scope, nesting);
  for (const pugi::xml_node& child : element.children())
    if (child.type() != pugi::node_comment)
      return At(child, fmt::format("contents inside <{}>; expected none", name));
  if (const std::optional<NodeKind> kind = KindOf(name)) return ReadNodes(element, *kind, scope);
  if (IsOneOf(name, FamilyNames())) return ReadFamilyElement(element, scope);
  if (name == "fabric") return context == Context::kTopology ? ReadFabricOfHosts(element, scope) : OkStatus();
  pending_.push_back({element, scope, spec_.links.size()});
  return Update(element);
}

Status Reader::Unexpected(pugi::xml_node element, Context context) const {
  const std::string_view name = element.name();
  std::vector<std::string_view> known;
  std::vector<std::string> here;  // the elements that may stand in this context
  for (const XmlElement& row : XmlElements()) {
    if (row.name == name) return At(element, Misplaced(row, context));
    if (row.stands_in.empty()) continue;
    known.push_back(row.name);
    std::string tag = fmt::format("<{}>", row.name);
    if (StandsIn(row.name, context) && (here.empty() || here.back() != tag)) here.push_back(std::move(tag));
  }
  std::string hint = DidYouMean(name, known);
  if (hint.empty()) hint = "; expected " + Either(here);
  return At(element, fmt::format("unknown element <{}>{}", name, hint));
}

Status Reader::ReadNodes(pugi::xml_node element, NodeKind kind, ScopeIndex scope) {
  AttributeReader reader(element.name(), AttributesOf(element));
  const bool counted = reader.Has("count");
  const int64_t count = reader.Integer("count", 1, kMaxNodes, 1);
  std::string id(counted ? reader.Text("id").value_or(kind == NodeKind::kGpu ? "" : element.name())
                         : reader.RequiredText("id"));
  const bool multicast = kind == NodeKind::kSwitch && reader.Bool("multicast", false);
  const bool reduce = kind == NodeKind::kSwitch && reader.Bool("reduce", false);
  XCCL_RETURN_IF_ERROR(Finish(element, reader));
  XCCL_RETURN_IF_ERROR(CheckRoom(element, {count, 0}));
  const ReferenceScope& in = scopes_[scope].references;
  if (kind == NodeKind::kGpu && !in.host && !gpu_outside_hosts_) gpu_outside_hosts_ = element;
  if (!in.host) id = in.prefix + id;
  for (int64_t i = 0; i < count; ++i) {
    std::string own = counted ? id + std::to_string(i) : id;
    XCCL_RETURN_IF_ERROR(CheckName(element, "id", own));
    AddNode(kind, std::move(own), in.host, spec_, multicast, reduce);
  }
  return Update(element);
}

Status Reader::ReadFamilyElement(pugi::xml_node element, ScopeIndex scope) {
  AttributeReader reader(element.name(), AttributesOf(element));
  const Family family = ReadFamily(reader);
  XCCL_RETURN_IF_ERROR(Finish(element, reader));
  XCCL_RETURN_IF_ERROR(CheckName(element, "id", family.id));
  XCCL_RETURN_IF_ERROR(CheckRoom(element, SizeOf(family)));
  const ReferenceScope& in = scopes_[scope].references;
  Place place{in.host, in.prefix, index_.GpusOf(in.host)};
  if (!in.host && family.kind == FamilyKind::kNetwork) {
    place.first_gpu = network_gpus_;
    network_gpus_ += family.hosts;
  } else if (!in.host && !gpu_outside_hosts_) {
    gpu_outside_hosts_ = element;
  }
  AddFamily(family, place, spec_);
  return Update(element);
}

// If `name_of_copy` is not empty, this is the host of one copy of a cluster.
Status Reader::ReadHost(pugi::xml_node element, ScopeIndex scope, const std::string& name_of_copy,
                        int nesting) {
  AttributeReader reader("host", AttributesOf(element));
  const std::string own(reader.Text("name").value_or(fmt::format("h{}", spec_.hosts.size())));
  const bool continued = reader.Bool("continued", false);
  XCCL_RETURN_IF_ERROR(Finish(element, reader));
  const std::string& prefix = scopes_[scope].references.prefix;
  std::string name = name_of_copy.empty() ? prefix + own : name_of_copy;
  XCCL_ASSIGN_OR_RETURN(const HostId host, OpenHost(element, std::move(name), continued));
  const ScopeIndex inside = AddScope({host, 0, std::nullopt, prefix});
  return Walk(element, Context::kHost, inside, nesting);
}

StatusOr<HostId> Reader::OpenHost(pugi::xml_node element, std::string name, bool continued) {
  XCCL_RETURN_IF_ERROR(CheckName(element, "name", name));
  const std::optional<HostId> known = index_.FindHost(name);
  if (continued && !known) return At(element, fmt::format("host {} continued; there is none before", name));
  if (continued) return *known;
  if (known) return At(element, fmt::format("a second host {}; expected another name", name));
  spec_.hosts.push_back(Host{std::move(name)});
  XCCL_RETURN_IF_ERROR(Check(element, CheckSize({static_cast<int64_t>(spec_.hosts.size()), 0}, most_)));
  XCCL_RETURN_IF_ERROR(Update(element));
  return HostId(static_cast<int64_t>(spec_.hosts.size()) - 1);
}

Status Reader::ResolveLinks() {
  if (pending_.empty()) return OkStatus();
  std::vector<Link> links;
  links.reserve(spec_.links.size() + 2 * pending_.size());
  size_t copied = 0;
  const auto copy_up_to = [&](size_t end) {
    links.insert(links.end(), spec_.links.begin() + static_cast<ptrdiff_t>(copied),
                 spec_.links.begin() + static_cast<ptrdiff_t>(end));
    copied = end;
  };
  for (const PendingLink& pending : pending_) {
    copy_up_to(pending.links_before);
    XCCL_RETURN_IF_ERROR(ResolveLink(pending, links));
  }
  copy_up_to(spec_.links.size());
  spec_.links = std::move(links);
  return OkStatus();
}

Status Reader::ResolveLink(const PendingLink& pending, std::vector<Link>& links) {
  AttributeReader reader("link", AttributesOf(pending.element));
  const std::string_view from_text = reader.RequiredText("from"), to_text = reader.RequiredText("to");
  LinkNumbers numbers;
  numbers.bandwidth_bytes_per_s = reader.RequiredBandwidth("bandwidth");
  numbers.latency_ps = reader.Latency("latency", 0);
  numbers.overhead_ps = reader.Latency("overhead", 0);
  const bool duplex = reader.Bool("duplex", true), pairwise = reader.Bool("pairwise", false);
  const int64_t count = reader.Integer("count", 1, kMaxLinks, 1);
  XCCL_RETURN_IF_ERROR(Finish(pending.element, reader));
  const auto bad = [&](std::string_view why) {
    return At(pending.element, fmt::format("link {}->{}: {}", Shortened(from_text), Shortened(to_text), why));
  };
  const ReferenceScope& scope = scopes_[pending.scope].references;
  const StatusOr<std::vector<NodeId>> from = index_.Resolve(from_text, scope);
  if (!from.ok()) return bad(from.status().message());
  const StatusOr<std::vector<NodeId>> to = index_.Resolve(to_text, scope);
  if (!to.ok()) return bad(to.status().message());
  if (pairwise && from->size() != to->size())
    return bad(fmt::format("pairwise joins {} nodes with {}; expected as many", from->size(), to->size()));
  const int64_t pairs =
      pairwise ? static_cast<int64_t>(from->size()) : CappedProduct(from->size(), to->size());
  const int64_t more = CappedProduct(pairs, (duplex ? 2 : 1) * count);
  const Status fits = CheckSize({0, more + static_cast<int64_t>(links.size())}, most_);
  if (!fits.ok()) return bad(fits.message());

  const size_t before = links.size();
  const auto add = [&](NodeId a, NodeId b) {
    for (int64_t i = 0; a != b && i < count; ++i) {
      links.push_back({a, b, numbers.bandwidth_bytes_per_s, numbers.latency_ps, numbers.overhead_ps});
      if (duplex)
        links.push_back({b, a, numbers.bandwidth_bytes_per_s, numbers.latency_ps, numbers.overhead_ps});
    }
  };
  if (pairwise) {
    for (size_t i = 0; i < from->size(); ++i) add((*from)[i], (*to)[i]);
  } else {
    // A duplex cable between two nodes that are on both sides is added once.
    std::unordered_map<int32_t, size_t> place_in_from;
    if (duplex && from->size() > 1 && to->size() > 1)
      for (size_t i = 0; i < from->size(); ++i) place_in_from.emplace((*from)[i].value, i);
    const std::set<NodeId> targets(to->begin(), place_in_from.empty() ? to->begin() : to->end());
    for (size_t i = 0; i < from->size(); ++i) {
      for (NodeId b : *to) {
        const auto earlier = place_in_from.find(b.value);
        const bool added =
            earlier != place_in_from.end() && earlier->second < i && targets.contains((*from)[i]);
        if (!added) add((*from)[i], b);
      }
    }
  }
  if (links.size() == before) return bad("joins a node to itself; expected two nodes");
  return OkStatus();
}

Status Reader::CheckRoom(pugi::xml_node element, TopologySize more) const {
  const TopologySize now = SizeSoFar();
  return Check(element, CheckSize({now.nodes + more.nodes, now.links + more.links}, most_));
}

Status Reader::Update(pugi::xml_node element) {
  XCCL_RETURN_IF_ERROR(CheckRoom(element, {}));
  const std::optional<NodeId> twice = index_.Update();
  if (!twice) return OkStatus();
  const Node& node = spec_.nodes[twice->index()];
  const std::string where = node.host ? " in host " + spec_.hosts[node.host->index()].name : "";
  return At(element,
            fmt::format("a second {} {}{}; expected another id", NodeKindName(node.kind), node.id, where));
}

Status Reader::Finish(pugi::xml_node element, AttributeReader& reader) {
  for (const std::string_view name : reader.asked()) XCCL_CHECK(HasAttribute(element.name(), name));
  if (const auto source = reader.Text("source");
      source && !source->empty() && !known_sources_.contains(*source)) {
    known_sources_.emplace(*source);
    sources_.emplace_back(*source);
  }
  return Check(element, reader.Finish());
}

ScopeIndex Reader::AddScope(ReferenceScope scope) {
  scopes_.push_back({std::move(scope), {}});
  return scopes_.size() - 1;
}

TopologySize Reader::SizeSoFar() const {
  return {static_cast<int64_t>(spec_.nodes.size()),
          static_cast<int64_t>(spec_.links.size() + pending_.size())};
}

Status Reader::AtOffset(size_t offset, std::string_view message) const {
  return InvalidAt(LocationOfOffset(file_, text_, offset), message);
}

Status Reader::At(pugi::xml_node element, std::string_view message) const {
  // pugixml gives the offset of an element's name, and of a text's first character.
  const ptrdiff_t offset = std::max<ptrdiff_t>(0, element.offset_debug());
  const bool after_bracket = element.type() == pugi::node_element && offset > 0;
  return AtOffset(static_cast<size_t>(after_bracket ? offset - 1 : offset), message);
}

Status Reader::Check(pugi::xml_node element, const Status& status) const {
  return status.ok() ? status : At(element, status.message());
}

Status Reader::CheckName(pugi::xml_node element, std::string_view attribute, std::string_view name) const {
  const Status good = CheckNodeName(name);
  return good.ok() ? good : At(element, fmt::format("{} {}", attribute, good.message()));
}

}  // namespace native_xml

StatusOr<Topology> ReadNativeXml(std::string_view text, std::string_view file, const TopologySize& most) {
  return native_xml::Reader(WithoutByteOrderMark(text), file, most).Read();
}

}  // namespace xccl
