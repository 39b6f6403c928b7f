// Attributes that several elements share are lists of their own, which rows put together.
#include "topologies/xml/elements.h"

#include <fmt/core.h>

#include <algorithm>

namespace xccl {
namespace {

using Attributes = std::vector<XmlAttribute>;

Attributes Joined(std::initializer_list<Attributes> lists) {
  Attributes all;
  for (const Attributes& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

constexpr XmlAttribute kLatency = {"latency", "700ns", "500ns", "how much later what was sent arrives"};
constexpr XmlAttribute kOverhead = {"overhead", "50ns", "0ns", "how long each message occupies the link"};
constexpr XmlAttribute kMulticast = {"multicast", "true", "false", "can copy a message to several links"};
constexpr XmlAttribute kReduce = {"reduce", "true", "false", "can add up messages of several links"};

Attributes Numbers(std::string_view bandwidth) {
  return {{"bandwidth", "25GB/s", bandwidth, "of a link, in one direction"}, kLatency, kOverhead};
}

Attributes PerDimension() {
  return {{"dims", "4x4", "required", "extents; the last dimension is the fastest in the numbers of ranks"},
          {"bandwidth", "25GB/s,50GB/s", "50GB/s", "of a link: one value, or one for each dimension"},
          {"latency", "700ns,1us", "500ns", "likewise"},
          {"overhead", "50ns", "0ns", "likewise"}};
}

// NetworkNumbers: the attributes of all networks of switches. Levels: the attributes of networks with spines
// or core switches.
Attributes NetworkNumbers() {
  return Joined({{{"bandwidth", "25GB/s", "50GB/s", "of a link at an end point, in one direction"}},
                 {kLatency, kOverhead, kMulticast, kReduce}});
}
Attributes Levels() {
  return Joined({NetworkNumbers(),
                 {{"uplink-latency", "1us", "`latency`", "of links between switches"},
                  {"uplink-bandwidth", "100GB/s", "`bandwidth`", "of links between switches"},
                  {"oversubscription", "3:2", "none",
                   "a leaf's downlinks ÷ its uplinks; in place of `uplink-bandwidth`"}}});
}
Attributes DragonflyNumbers() {
  return Joined({{{"groups", "2", "required", "groups; each pair has `global-links` cables"},
                  {"routers", "2", "required", "switches of a group, a full mesh"}},
                 NetworkNumbers(),
                 {{"uplink-latency", "1us", "`latency`", "of links between routers of a group"},
                  {"global-links", "4", "1", "cables of a pair of groups, on routers in turn"},
                  {"global-bandwidth", "100GB/s", "`bandwidth`", "of cables between groups"},
                  {"global-latency", "2us", "`uplink-latency`", "of cables between groups"}}});
}

constexpr XmlAttribute kSpines = {"spines", "2", "required", "switches that join all leaves"};
constexpr XmlAttribute kK = {"k", "4", "required", "ports of a switch, an even number"};
constexpr XmlAttribute kCount = {"count", "2", "1",
                                 "switches in place of each one; each end point joins all of them"};
constexpr XmlAttribute kRails = {"rails", "2", "1",
                                 "leaves or routers that the end points of a host are dealt to in turn"};
constexpr XmlAttribute kHosts = {"hosts", "2", "required", "hosts of a leaf, with a GPU each"};

// The attributes of one form of fabric: `own`, which it has alone, and `type`, `planes`, `attach` and
// `prefix`, which every form has.
Attributes FabricOf(std::string_view type, const Attributes& own) {
  const bool plain = type == "switch";
  return Joined(
      {{{"type", type, plain ? "switch" : "required", "chooses this form"}},
       own,
       {{"planes", "2", "1",
         "copies of the network: an end point has a link to each, a switch of a plane to its own"},
        {"attach", "gpu:*", "topmost switches, else NICs, else GPUs", "the nodes of a copy that are joined"},
        {"prefix", "net.", "none", "goes before the names of the switches"}}});
}

const std::vector<XmlContext> kAnywhere = {XmlContext::kTopology, XmlContext::kHost, XmlContext::kCluster};
const std::vector<XmlContext> kOutside = {XmlContext::kTopology, XmlContext::kCluster};

std::vector<XmlElement> Structure() {
  return {
      {"topology",
       "",
       {},
       "The root: one machine.",
       {{"name", "my-machine", "the file's", "the machine's name"},
        {"arch", "sm90", "unknown", "architecture of the GPUs, by which commands know the machine's model"}}},
      {"host",
       "",
       kOutside,
       "A machine with its own GPUs. A file without hosts has one, implied.",
       {{"name", "h0", "h0, h1, ...", "its name"},
        {"continued", "false", "false", "what it contains belongs to the host of that name before it"}}},
      {"cluster",
       "",
       kOutside,
       "Copies of what it contains: hosts, or pods of hosts.",
       {{"hosts", "2", "required", "the number of copies"},
        {"name", "node", "h, or pod", "what the copies' names begin with"}}},
  };
}

std::vector<XmlElement> NodesAndLinks() {
  const auto node = [](std::string_view id, std::string_view stem) -> Attributes {
    return {{"id", id, "required without `count`", "its name; with `count` what the names begin with"},
            {"count", "2", "1, named as `id` says", stem}};
  };
  return {
      {"gpu", "", kAnywhere, "A rank. Ranks are numbered as GPUs stand in the file.",
       node("7", "so many, named 0, 1, ...")},
      {"switch", "", kAnywhere, "Forwards and holds no data.",
       Joined({node("nvswitch", "so many, named switch0, switch1, ..."), {kMulticast, kReduce}})},
      {"nic", "", kAnywhere, "A network device of a host.", node("nic", "so many, named nic0, nic1, ...")},
      {"cpu", "", kAnywhere, "A socket, with its PCIe root.", node("cpu", "so many, named cpu0, cpu1, ...")},
      {"link",
       "",
       kAnywhere,
       "Links between nodes, from all of `from` to all of `to`.",
       {{"from", "gpu:0", "required", "references: [topologies.md](topologies.md)"},
        {"to", "gpu:1", "required", "likewise"},
        {"bandwidth", "25GB/s", "required", "of a link, in one direction"},
        {"latency", "700ns", "0ns", kLatency.meaning},
        {"overhead", "50ns", "0ns", kOverhead.meaning},
        {"duplex", "false", "true", "a link of the same numbers goes back"},
        {"pairwise", "true", "false", "joins the first with the first, the second with the second, ..."},
        {"count", "2", "1", "parallel links"}}},
  };
}

std::vector<XmlElement> Families() {
  const XmlAttribute ranks = {"ranks", "4", "required", "how many"};
  const auto family = [](std::string_view name, std::string_view form, std::string_view meaning,
                         Attributes attributes) -> XmlElement {
    return {name, form, kAnywhere, meaning, std::move(attributes)};
  };
  return {
      family("nvswitch", "", "GPUs around one switch.",
             Joined({{{"gpus", "4", "required", "how many"},
                      {"id", "nvswitch", "nvswitch", "the switch's name"}},
                     Numbers("450GB/s"),
                     {kMulticast, kReduce}})),
      family("full-mesh", "", "A cable between each pair of ranks.", Joined({{ranks}, Numbers("50GB/s")})),
      family("ring", "", "A cycle of ranks.", Joined({{ranks}, Numbers("50GB/s")})),
      family("mesh", "", "A grid of ranks.", PerDimension()),
      family("torus", "", "A grid with cables from the last of a row to the first.", PerDimension()),
      family("hypercube", "", "2^dim ranks.",
             Joined({{{"dim", "3", "required", "dimensions"}}, Numbers("50GB/s")})),
      family("fat-tree", "of k", "A k-ary fat tree of k³/4 hosts of one GPU.", Joined({{kK}, Levels()})),
      family("fat-tree", "of leaves", "The same as leaf-spine.",
             Joined({{{"leaves", "2", "required", "switches with hosts"}, kSpines, kHosts}, Levels()})),
      family("fat-tree", "of rails", "GPU j of every host on rail switch j, rails joined by spines.",
             Joined({{{"rails", "2", "required", "rail switches, and GPUs of a host"},
                      {"hosts", "2", "required", "how many"},
                      {"spines", "2", "1", "switches that join all rails"}},
                     Levels()})),
      family("leaf-spine", "", "Leaves with hosts of one GPU, each leaf on each spine.",
             Joined({{{"leaves", "2", "required", "switches with hosts"}, kSpines, kHosts}, Levels()})),
      family("dragonfly", "", "Groups of routers, each router with hosts of one GPU.",
             Joined({{{"hosts", "2", "required", "hosts of a router"}}, DragonflyNumbers()})),
  };
}

std::vector<XmlElement> Fabrics() {
  const auto fabric = [](std::string_view type, std::string_view meaning,
                         const Attributes& own) -> XmlElement {
    return {"fabric", type, kOutside, meaning, FabricOf(type, own)};
  };
  return {
      fabric(
          "switch", "One switch joins the copies of a cluster, or all hosts before it.",
          Joined({{{"id", "core", "fabric", "the switch's name"}, kCount},
                  NetworkNumbers(),
                  {{"oversubscription", "7", "none",
                    "what comes up into an end point, a switch ÷ its links up; in place of `bandwidth`"}}})),
      fabric("rails", "A switch for the first end point of every copy, one for the second, ...",
             Joined({{{"spines", "2", "0", "switches that join all rails"}, kCount}, Levels()})),
      fabric("leaf-spine", "End points on leaves in turn, each leaf on each spine.",
             Joined({{{"leaves", "2", "required", "switches with end points"}, kSpines, kRails}, Levels()})),
      fabric("fat-tree", "A k-ary fat tree over the end points.", Joined({{kK}, Levels()})),
      fabric("dragonfly", "Groups of routers over the end points.", Joined({DragonflyNumbers(), {kRails}})),
      fabric("full-mesh",
             "Cables between each pair of copies, on their end points in turn, without a switch.",
             Joined({{{"links", "4", "1", "cables of a pair"}}, Numbers("50GB/s")})),
  };
}

}  // namespace

std::string_view ToString(XmlContext context) {
  switch (context) {
    case XmlContext::kTopology:
      return "topology";
    case XmlContext::kHost:
      return "host";
    case XmlContext::kCluster:
      return "cluster";
  }
  return "";
}

std::span<const XmlElement> XmlElements() {
  static const std::vector<XmlElement> elements = [] {
    std::vector<XmlElement> all;
    for (auto&& some : {Structure(), NodesAndLinks(), Families(), Fabrics()})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }();
  return elements;
}

bool StandsIn(std::string_view element, XmlContext context) {
  return std::ranges::any_of(XmlElements(), [&](const XmlElement& row) {
    return row.name == element && std::ranges::find(row.stands_in, context) != row.stands_in.end();
  });
}

bool HasAttribute(std::string_view element, std::string_view attribute) {
  if (attribute == "source") return true;
  return std::ranges::any_of(XmlElements(), [&](const XmlElement& row) {
    return row.name == element &&
           std::ranges::find(row.attributes, attribute, &XmlAttribute::name) != row.attributes.end();
  });
}

std::string XmlReference() {
  std::string text;
  for (const XmlElement& element : XmlElements()) {
    text += fmt::format("### {}{}{}\n\n{}", element.name, element.form.empty() ? "" : ", ", element.form,
                        element.meaning);
    std::string places;
    for (const XmlContext context : element.stands_in)
      places += fmt::format("{}{}", places.empty() ? "" : ", ", ToString(context));
    if (!places.empty()) text += fmt::format(" It stands in: {}.", places);
    text += "\n\n| attribute | example | without it | what it says |\n|---|---|---|---|\n";
    for (const XmlAttribute& attribute : element.attributes)
      text += fmt::format("| `{}` | `{}` | {} | {} |\n", attribute.name, attribute.example,
                          attribute.otherwise, attribute.meaning);
    text += "\n";
  }
  text.pop_back();
  return text;
}

}  // namespace xccl
