// Writes the expanded form: every node, then every link, in the order of their ids. Consecutive links that
// are each other's reverse become one duplex element. Linear.
#include <fmt/format.h>

#include <iterator>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/references.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

class XmlWriter {
 public:
  explicit XmlWriter(const TopologySpec& spec) : spec_(spec), index_(spec) { index_.Update(); }

  std::string Write() {
    Line("<topology name=\"{}\"{}{}>", EscapedXml(spec_.name),
         spec_.gpu_arch.empty() ? "" : fmt::format(" arch=\"{}\"", spec_.gpu_arch),
         spec_.source.empty() ? "" : fmt::format(" source=\"{}\"", EscapedXml(spec_.source)));
    if (HasImplicitHost())
      for (const Node& node : spec_.nodes) WriteNode("  ", node);
    else
      WriteHosts();
    WriteLinks();
    Line("</topology>");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  // True if the reader would make up the same hosts when there is no host element.
  bool HasImplicitHost() const {
    if (spec_.hosts.size() != 1 || spec_.hosts[0].name != "host") return false;
    for (const Node& node : spec_.nodes)
      if (node.host && node.kind != NodeKind::kGpu) return false;
    return true;
  }

  void WriteNode(std::string_view indent, const Node& node) {
    Line("{}<{} id=\"{}\"{}{}/>", indent, NodeKindName(node.kind), EscapedXml(node.id),
         node.multicast ? " multicast=\"true\"" : "", node.reduce ? " reduce=\"true\"" : "");
  }

  // Writes runs of nodes of one host. Hosts are declared in the order of their ids, so some precede their
  // nodes.
  void WriteHosts() {
    size_t declared = 0;
    const auto declare_up_to = [&](size_t end) {
      for (; declared < end; ++declared)
        Line("  <host name=\"{}\"/>", EscapedXml(spec_.hosts[declared].name));
    };
    for (size_t n = 0; n < spec_.nodes.size();) {
      const std::optional<HostId> host = spec_.nodes[n].host;
      if (host) {
        if (host->index() > declared) declare_up_to(host->index());
        const bool continued = host->index() < declared;
        Line("  <host name=\"{}\"{}>", EscapedXml(spec_.hosts[host->index()].name),
             continued ? " continued=\"true\"" : "");
        if (!continued) ++declared;
      }
      for (; n < spec_.nodes.size() && spec_.nodes[n].host == host; ++n)
        WriteNode(host ? "    " : "  ", spec_.nodes[n]);
      if (host) Line("  </host>");
    }
    declare_up_to(spec_.hosts.size());
  }

  void WriteLinks() {
    for (size_t l = 0; l < spec_.links.size(); ++l) {
      const Link& link = spec_.links[l];
      Link back = link;
      std::swap(back.from, back.to);
      const bool duplex = l + 1 < spec_.links.size() && spec_.links[l + 1] == back;
      if (duplex) ++l;
      Line("  <link from=\"{}\" to=\"{}\" bandwidth=\"{}\" latency=\"{}\"{}{}/>",
           EscapedXml(index_.Reference(link.from)), EscapedXml(index_.Reference(link.to)),
           FormatBandwidth(link.bandwidth_bytes_per_s), FormatDuration(link.latency_ps),
           link.overhead_ps == 0 ? "" : fmt::format(" overhead=\"{}\"", FormatDuration(link.overhead_ps)),
           duplex ? "" : " duplex=\"false\"");
    }
  }

  const TopologySpec& spec_;
  NodeIndex index_;
  std::string text_;
};

}  // namespace

std::string WriteNativeXml(const Topology& topology) { return XmlWriter(topology.spec()).Write(); }

}  // namespace xccl
