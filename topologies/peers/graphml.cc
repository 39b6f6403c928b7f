#include "topologies/peers/graphml.h"

#include <fmt/core.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <pugixml.hpp>
#include <string>
#include <utility>

#include "base/diagnostics.h"
#include "base/strings.h"
#include "topologies/peers/graph.h"
#include "topologies/xml/parse_xml.h"

namespace xccl {
namespace {

constexpr int kMostNested = 100;

class GraphmlReader {
 public:
  GraphmlReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  StatusOr<PeerGraph> Read() {
    XCCL_RETURN_IF_ERROR(ParseXml(text_, file_, "graphml", document_));
    const pugi::xml_node root = document_.document_element();
    for (const pugi::xml_node key : root.children("key"))
      keys_[key.attribute("id").value()] = {key.attribute("for").value(), key.attribute("attr.name").value(),
                                            key.child_value("default")};
    const pugi::xml_node graph = root.child("graph");
    if (!graph) return InvalidInput(fmt::format("{}: a <graphml> without <graph>", file_));
    graph_.format = "GraphML";
    graph_.name = std::filesystem::path(file_).stem().string();
    XCCL_RETURN_IF_ERROR(Attributes(graph, "graph", graph_.attributes));
    XCCL_RETURN_IF_ERROR(AddNodes(graph, 0));
    XCCL_RETURN_IF_ERROR(AddEdges(graph));
    return std::move(graph_);
  }

 private:
  struct Key {
    std::string of, name, otherwise;
  };

  Status Bad(const pugi::xml_node& element, std::string_view message) const {
    return InvalidAt(LocationOfOffset(file_, text_, static_cast<size_t>(element.offset_debug())), message);
  }

  // <data> by the names of their keys; in drawings of yEd, the text of a label within.
  Status Attributes(const pugi::xml_node& element, std::string_view of, GraphAttributes& attributes) {
    for (const auto& [id, key] : keys_)
      if (!key.otherwise.empty() && (key.of == of || key.of == "all")) attributes[key.name] = key.otherwise;
    copied_bytes_ += BytesOf(attributes);
    if (copied_bytes_ > kMostCopiedBytes)
      return Bad(element, "more than 256 MiB of attributes by default; expected fewer or shorter ones");
    for (const pugi::xml_node data : element.children("data")) {
      const auto key = keys_.find(data.attribute("key").value());
      const pugi::xml_node label = data.find_node([](const pugi::xml_node& node) {
        return std::strcmp(node.name(), "NodeLabel") == 0 || std::strcmp(node.name(), "EdgeLabel") == 0;
      });
      if (label)
        attributes["label"] = std::string(Trim(label.child_value()));
      else if (key != keys_.end() && !key->second.name.empty())
        attributes[key->second.name] = std::string(Trim(data.child_value()));
    }
    return OkStatus();
  }

  Status AddNodes(const pugi::xml_node& graph, int depth) {
    if (depth > kMostNested) return Bad(graph, "graphs within graphs too deep");
    for (const pugi::xml_node element : graph.children("node")) {
      GraphNode node{element.attribute("id").value(), {}};
      if (node.id.empty()) return Bad(element, "a <node> without an id");
      if (const pugi::xml_node inner = element.child("graph")) {  // a group
        XCCL_RETURN_IF_ERROR(AddNodes(inner, depth + 1));
        continue;
      }
      if (!places_.emplace(node.id, graph_.nodes.size()).second)
        return Bad(element, fmt::format("a second node {}; expected another id", Shortened(node.id)));
      XCCL_RETURN_IF_ERROR(Attributes(element, "node", node.attributes));
      graph_.nodes.push_back(std::move(node));
    }
    return OkStatus();
  }

  // Edges may stand in any graph, and join nodes of any.
  Status AddEdges(const pugi::xml_node& graph) {
    const bool directed = std::strcmp(graph.attribute("edgedefault").value(), "undirected") != 0;
    for (const pugi::xml_node element : graph.children("edge")) {
      GraphEdge edge;
      for (const char* end : {"source", "target"}) {
        const auto found = places_.find(element.attribute(end).value());
        if (found == places_.end())
          return Bad(element, fmt::format("{}: no node {}", end, Shortened(element.attribute(end).value())));
        (*end == 's' ? edge.from : edge.to) = found->second;
      }
      edge.both = !element.attribute("directed").as_bool(directed);
      XCCL_RETURN_IF_ERROR(Attributes(element, "edge", edge.attributes));
      graph_.edges.push_back(std::move(edge));
    }
    for (const pugi::xml_node element : graph.children("node"))
      if (const pugi::xml_node inner = element.child("graph")) XCCL_RETURN_IF_ERROR(AddEdges(inner));
    return OkStatus();
  }

  std::string_view text_, file_;
  pugi::xml_document document_;
  std::map<std::string, Key, std::less<>> keys_;
  std::map<std::string, size_t, std::less<>> places_;
  int64_t copied_bytes_ = 0;
  PeerGraph graph_;
};

}  // namespace

bool IsGraphml(std::string_view text) { return RootName(text) == "graphml"; }

StatusOr<Topology> ReadGraphml(std::string_view text, std::string_view file, const LoadOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const PeerGraph graph, GraphmlReader(text, file).Read());
  return GraphTopology(graph, file, options);
}

}  // namespace xccl
