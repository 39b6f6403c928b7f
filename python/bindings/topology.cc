// Topologies: loaded, built node by node, changed; their nodes and links as columns.
#include "topologies/topology.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "draw/draw.h"
#include "draw/layout/layout.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/call.h"
#include "python/bindings/errors.h"
#include "python/bindings/pickle.h"
#include "topologies/fabric/job.h"
#include "topologies/failures.h"
#include "topologies/families/modify.h"
#include "topologies/load/load.h"
#include "topologies/paths.h"
#include "topologies/references.h"
#include "topologies/submachine.h"
#include "topologies/xml/native_xml.h"

namespace xccl::python {
namespace {

using SharedTopology = std::shared_ptr<Topology>;

SharedTopology Share(Topology topology) { return std::make_shared<Topology>(std::move(topology)); }

// A machine that grows node by node; Topology::Create checks the whole.
class Builder {
 public:
  Builder(std::string name, std::string source, std::string gpu_arch) : index_(spec_) {
    spec_.name = std::move(name);
    spec_.source = std::move(source);
    spec_.gpu_arch = std::move(gpu_arch);
  }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  int32_t AddNode(const std::string& kind, std::string id, const std::optional<std::string>& host,
                  bool multicast, bool reduce) {
    Node node{.id = std::move(id), .host = {}, .multicast = multicast, .reduce = reduce};
    for (const NodeKind known : kNodeKinds)
      if (NodeKindName(known) == kind) node.kind = known;
    if (host) node.host = HostNamed(*host);
    spec_.nodes.push_back(std::move(node));
    return static_cast<int32_t>(spec_.nodes.size()) - 1;
  }

  // The nodes that a reference as in XML names.
  std::vector<int32_t> Resolve(const std::string& reference) {
    if (const std::optional<NodeId> twice = index_.Update()) {
      const Node& node = spec_.nodes[twice->index()];
      Check(InvalidInput(fmt::format("{}: two nodes named {} {}; expected ids that differ", spec_.name,
                                     NodeKindName(node.kind), node.id)));
    }
    std::vector<int32_t> numbers;
    const StatusOr<std::vector<NodeId>> nodes = index_.Resolve(reference);
    Check(nodes.status(), spec_.name + ": link");
    for (const NodeId node : *nodes) numbers.push_back(node.value);
    return numbers;
  }
  void AddLink(NodeId tail, NodeId head, Link link, bool duplex) {
    link.from = tail;
    link.to = head;
    spec_.links.push_back(link);
    if (!duplex) return;
    std::swap(link.from, link.to);
    spec_.links.push_back(link);
  }

  SharedTopology Build() const { return Share(ValueOf(Topology::Create(spec_))); }

 private:
  HostId HostNamed(const std::string& name) {
    for (size_t h = 0; h < spec_.hosts.size(); ++h)
      if (spec_.hosts[h].name == name) return HostId(static_cast<int64_t>(h));
    spec_.hosts.push_back({name});
    return HostId(static_cast<int64_t>(spec_.hosts.size()) - 1);
  }

  TopologySpec spec_;
  NodeIndex index_;
};

py::dict Nodes(const SharedTopology& topology) {
  const std::vector<Node>& nodes = topology->spec().nodes;
  std::vector<int32_t> ranks;
  std::vector<std::string> names, kinds, hosts;
  for (int32_t n = 0; n < topology->num_nodes(); ++n) {
    const Node& node = nodes[static_cast<size_t>(n)];
    const std::optional<Rank> rank = topology->RankOf(NodeId(n));
    ranks.push_back(rank ? rank->value : -1);
    names.push_back(topology->NodeName(NodeId(n)));
    kinds.emplace_back(NodeKindName(node.kind));
    hosts.push_back(node.host ? topology->spec().hosts[node.host->index()].name : "");
  }
  py::dict columns;
  columns["name"] = names;
  columns["kind"] = kinds;
  columns["host"] = hosts;
  columns["rank"] = Owned(std::move(ranks));
  columns["multicast"] = ViewField(topology, nodes, &Node::multicast);
  columns["reduce"] = ViewField(topology, nodes, &Node::reduce);
  return columns;
}

py::dict Links(const SharedTopology& topology) {
  const std::vector<Link>& links = topology->spec().links;
  static_assert(sizeof(NodeId) == sizeof(int32_t));
  const auto ends = [&](NodeId Link::*end) {
    return View(topology, links.empty() ? nullptr : &(links.data()->*end).value, links.size(), sizeof(Link));
  };
  std::vector<std::string> names;
  for (int32_t l = 0; l < topology->num_links(); ++l) names.push_back(topology->LinkName(LinkId(l)));
  py::dict columns;
  columns["name"] = names;
  columns["source"] = ends(&Link::from);
  columns["target"] = ends(&Link::to);
  columns["bandwidth_bytes_per_s"] = ViewField(topology, links, &Link::bandwidth_bytes_per_s);
  columns["latency_ps"] = ViewField(topology, links, &Link::latency_ps);
  columns["overhead_ps"] = ViewField(topology, links, &Link::overhead_ps);
  return columns;
}

// The ranks that one rank reaches through no other GPU, and the best path to each.
py::dict Neighbours(const Topology& topology, int32_t rank) {
  if (rank < 0 || rank >= topology.num_ranks())
    Check(UsageError(fmt::format("rank: no rank {}; ranks are 0..{}", rank, topology.num_ranks() - 1)));
  const NeighbourTable table = GpuNeighboursOf(topology, Rank(rank));
  std::vector<int32_t> ranks;
  std::vector<int64_t> bandwidths, latencies;
  py::list paths;
  for (const Neighbour& neighbour : table[size_t{0}]) {
    ranks.push_back(neighbour.rank.value);
    bandwidths.push_back(neighbour.bandwidth_bytes_per_s);
    latencies.push_back(neighbour.latency_ps);
    py::list path;
    for (const LinkId link : neighbour.path) path.append(link.value);
    paths.append(path);
  }
  py::dict columns;
  columns["rank"] = Owned(std::move(ranks));
  columns["bandwidth_bytes_per_s"] = Owned(std::move(bandwidths));
  columns["latency_ps"] = Owned(std::move(latencies));
  columns["path"] = paths;
  return columns;
}

std::vector<Rank> RanksOf(const Topology& topology, const std::vector<int32_t>& numbers) {
  std::vector<Rank> ranks;
  for (const int32_t number : numbers) {
    if (number < 0 || number >= topology.num_ranks())
      Check(UsageError(fmt::format("ranks: no rank {}; ranks are 0..{}", number, topology.num_ranks() - 1)));
    ranks.emplace_back(number);
  }
  if (ranks.empty()) Check(UsageError("ranks: none; expected at least one"));
  return ranks;
}

void BindUnits(py::module_& module) {
  module.def("parse_size", [](const std::string& text) { return ValueOf(ParseSize(text)); });
  module.def("parse_sizes", [](const std::string& text) { return ValueOf(ParseSizeList(text)); });
  module.def("parse_latency", [](const std::string& text) { return ValueOf(ParseLatency(text)); });
  module.def("parse_bandwidth", [](const std::string& text) { return ValueOf(ParseBandwidth(text)); });
  module.def("format_size", &FormatSize);
  module.def("format_time", &FormatDurationShort);
  module.def("format_bandwidth", &FormatBandwidthShort);
}

void BindBuilder(py::module_& module) {
  py::class_<Builder>(module, "TopologyBuilder")
      .def(py::init<std::string, std::string, std::string>())
      .def("node", &Builder::AddNode)
      .def("resolve", &Builder::Resolve)
      .def("link",
           [](Builder& builder, int32_t from, int32_t to, int64_t bandwidth, int64_t latency,
              int64_t overhead, bool duplex) {
             builder.AddLink(NodeId(from), NodeId(to),
                             {.from = {},
                              .to = {},
                              .bandwidth_bytes_per_s = bandwidth,
                              .latency_ps = latency,
                              .overhead_ps = overhead},
                             duplex);
           })
      .def("build", &Builder::Build);
}

}  // namespace

void BindTopology(py::module_& module) {
  BindUnits(module);
  BindBuilder(module);
  py::class_<LoadOptions>(module, "LoadOptions")
      .def(py::init<>())
      .def_readwrite("gpu_arch", &LoadOptions::gpu_arch)
      .def_readwrite("gpus_per_switch", &LoadOptions::gpus_per_switch)
      .def_readwrite("gpu_busids", &LoadOptions::gpu_busids)
      .def_readwrite("pcie_gen", &LoadOptions::pcie_gen)
      .def_readwrite("nic_rate", &LoadOptions::nic_rate)
      .def_readwrite("link", &LoadOptions::link)
      .def_readwrite("nvlink_domain", &LoadOptions::nvlink_domain)
      .def_readwrite("hosts", &LoadOptions::hosts)
      .def_readwrite("rails", &LoadOptions::rails)
      .def_readwrite("no_rails", &LoadOptions::no_rails)
      .def_readwrite("fabric", &LoadOptions::fabric)
      .def_readwrite("host_kinds", &LoadOptions::host_kinds)
      .def_readwrite("hosts_file", &LoadOptions::hosts_file)
      .def_readwrite("job", &LoadOptions::job)
      .def_readwrite("plain_switches", &LoadOptions::plain_switches)
      .def_readwrite("without_links", &LoadOptions::without_links)
      .def_readwrite("degrades", &LoadOptions::degrades);
  py::class_<Topology, SharedTopology>(module, "Topology")
      .def_static("load",
                  [](const std::string& text, const LoadOptions& options) {
                    return Share(ValueOf(LoadTopology(text, options)));
                  })
      .def_static("from_xml",
                  [](const std::string& xml, const std::string& name) {
                    return Share(ValueOf(ReadNativeXml(xml, name)));
                  })
      .def("to_xml", [](const Topology& topology) { return TextOf(WriteNativeXml(topology)); })
      .def("to_svg",
           [](const SharedTopology& topology) {
             return TextOf(Watched({}, [=](const Caller&) -> StatusOr<std::string> {
               return TopologySvg(*topology, LayOut(*topology));
             }));
           })
      .def("to_dot",
           [](const SharedTopology& topology) {
             return TextOf(Watched({}, [=](const Caller&) -> StatusOr<std::string> {
               return TopologyDot(*topology, LayOut(*topology));
             }));
           })
      .def("modified",
           [](const Topology& topology, const LoadOptions& options) {
             Topology modified = ValueOf(Modify(topology, options));
             return Share(options.job ? ValueOf(TakeJob(modified, *options.job)) : std::move(modified));
           })
      .def("members_alone",
           [](const Topology& topology, const std::vector<int32_t>& ranks) {
             Submachine made = MembersAlone(topology, RanksOf(topology, ranks));
             const auto submachine = std::make_shared<Submachine>(std::move(made));
             return py::make_tuple(Share(submachine->topology), View(submachine, submachine->rank),
                                   View(submachine, submachine->link));
           })
      .def("fail_cables",
           [](const Topology& topology, int32_t cables, uint64_t seed) {
             Failure failure = ValueOf(FailCables(topology, cables, seed, {}));
             return py::make_tuple(Share(std::move(failure.topology)), failure.cables);
           })
      .def_property_readonly("name", [](const Topology& t) { return TextOf(t.name()); })
      .def_property_readonly("source", [](const Topology& t) { return TextOf(t.spec().source); })
      .def_property_readonly("gpu_arch", &Topology::gpu_arch)
      .def_property_readonly("num_ranks", &Topology::num_ranks)
      .def_property_readonly("num_nodes", &Topology::num_nodes)
      .def_property_readonly("num_links", &Topology::num_links)
      .def_property_readonly("num_hosts", &Topology::num_hosts)
      .def_property_readonly("diameter", &RankDiameter)
      .def_property_readonly("warnings", [](const Topology& t) { return t.spec().warnings; })
      .def("nodes", &Nodes)
      .def("links", &Links)
      .def("neighbours", &Neighbours)
      .def(py::pickle([](const Topology& t) { return StateOf(t); }, &TopologyOfState))
      .def("equals", [](const Topology& a, const Topology& b) { return a == b; });
  module.def("library_names", &LibraryNames);
}

}  // namespace xccl::python
