#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "topologies/peers/graph.h"
#include "topologies/peers/json_formats.h"

namespace xccl {
namespace {

constexpr std::string_view kNodeAttributes[] = {"kind", "type",  "role",      "host",  "name",
                                                "node", "label", "multicast", "reduce"};
constexpr std::string_view kEdgeAttributes[] = {"bandwidth", "capacity", "rate",     "speed",
                                                "bw",        "weight",   "label",    "latency",
                                                "delay",     "alpha",    "overhead", "links"};

// A text, number or truth value as text; a tuple as Python writes it: (0, 'GPU', 3). Errors: anything else.
StatusOr<std::string> TextOf(const JsonValue& value, int depth = 0) {
  if (value.IsString()) return std::string(*value.String());
  if (value.IsBool()) return std::string(*value.Bool() ? "true" : "false");
  if (value.IsNumber()) {
    const double number = *value.Number();
    const bool whole = std::abs(number) < 1e15 && number == std::floor(number);
    return whole ? std::to_string(static_cast<int64_t>(number)) : fmt::format("{}", number);
  }
  std::vector<std::string> members;
  const StatusOr<std::vector<JsonValue>> items = value.Items();
  if (!items.ok()) {
    const StatusOr<std::span<const int64_t>> numbers = value.Integers(INT64_MIN, INT64_MAX);
    if (!numbers.ok()) return value.Error("expected a text, a number or a list of them");
    for (const int64_t number : *numbers) members.push_back(std::to_string(number));
    return fmt::format("({})", Join(members, ", "));
  }
  if (depth > 2) return value.Error("lists within lists too deep");
  for (const JsonValue& item : *items) {
    XCCL_ASSIGN_OR_RETURN(std::string member, TextOf(item, depth + 1));
    members.push_back(item.IsString() ? "'" + member + "'" : std::move(member));
  }
  return fmt::format("({})", Join(members, ", "));
}

Status ReadAttributes(const JsonValue& object, std::span<const std::string_view> names,
                      GraphAttributes& attributes) {
  for (const std::string_view name : names) {
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, object.Find(name));
    if (!value || value->IsNull()) continue;
    XCCL_ASSIGN_OR_RETURN(attributes[std::string(name)], TextOf(*value));
  }
  return OkStatus();
}

StatusOr<PeerGraph> ReadGraph(const JsonValue& root, std::string_view file) {
  PeerGraph graph;
  graph.format = "node-link JSON";
  graph.name = std::filesystem::path(file).stem().string();
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> directed, root.Find("directed"));
  const StatusOr<bool> one_way = directed ? directed->Bool() : true;
  if (!one_way.ok()) return one_way.status();
  const bool both = !*one_way;
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> about, root.Find("graph"));
  constexpr std::string_view kGraphAttributes[] = {"source", "arch"};
  if (about && about->Find("source").ok())
    XCCL_RETURN_IF_ERROR(ReadAttributes(*about, kGraphAttributes, graph.attributes));
  std::map<std::string, size_t, std::less<>> places;
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> nodes, root.GetItems("nodes"));
  for (const JsonValue& value : nodes) {
    GraphNode node;
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> id, value.Find("id"));
    XCCL_RETURN_IF_ERROR(ReadAttributes(value, kNodeAttributes, node.attributes));
    if (id) {
      XCCL_ASSIGN_OR_RETURN(node.id, TextOf(*id));
    } else if (const auto name = node.attributes.find("name"); name != node.attributes.end()) {
      node.id = name->second;
    } else {
      node.id = std::to_string(graph.nodes.size());
    }
    if (!places.emplace(node.id, graph.nodes.size()).second)
      return value.Error(fmt::format("a second node {}; expected another id", Shortened(node.id)));
    graph.nodes.push_back(std::move(node));
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> links, root.Find("links"));
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> edges, root.GetItems(links ? "links" : "edges"));
  for (const JsonValue& value : edges) {
    GraphEdge edge;
    edge.both = both;
    for (const std::string_view end : {"source", "target"}) {
      XCCL_ASSIGN_OR_RETURN(const JsonValue node, value.Get(end));
      XCCL_ASSIGN_OR_RETURN(const std::string id, TextOf(node));
      const auto found = places.find(id);
      if (found == places.end()) return node.Error(fmt::format("no node {}", Shortened(id)));
      (end == "source" ? edge.from : edge.to) = found->second;
    }
    XCCL_RETURN_IF_ERROR(ReadAttributes(value, kEdgeAttributes, edge.attributes));
    graph.edges.push_back(std::move(edge));
  }
  return graph;
}

}  // namespace

bool IsNodeLink(std::string_view text) {
  return HasJsonKey(text, "nodes") && (HasJsonKey(text, "links") || HasJsonKey(text, "edges")) &&
         HasJsonKey(text, "source") && HasJsonKey(text, "target");
}

StatusOr<Topology> ReadNodeLink(std::string_view text, std::string_view file, const LoadOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, std::string(file)));
  XCCL_ASSIGN_OR_RETURN(const PeerGraph graph, ReadGraph(document.root(), file));
  return GraphTopology(graph, file, options);
}

}  // namespace xccl
