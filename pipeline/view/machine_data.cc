// 1. Write the topology: the hosts, and a column for each property of nodes and of links.
// 2. Lay the machine out (draw/layout).
// 3. Write the drawing: a column for each property of items, of frames and of cables.
// Lengths are rounded to tenths of a pixel, the drawing's width and height to whole pixels.
#include "pipeline/view/machine_data.h"

#include <cmath>
#include <string>
#include <vector>

#include "draw/layout/layout.h"
#include "pipeline/view/writer.h"

namespace xccl::view {
namespace {

char KindLetter(NodeKind kind) { return NodeKindName(kind)[0]; }

char AbilityLetter(const Node& node) {
  if (node.multicast && node.reduce) return 'b';
  if (node.multicast) return 'm';
  return node.reduce ? 'r' : '-';
}

void WriteTopology(const Topology& topology, JsonWriter& json) {
  const TopologySpec& spec = topology.spec();
  json.BeginObject();
  json.Member("name", spec.name);
  json.Member("source", spec.source);
  json.Key("hosts");
  json.BeginArray();
  for (const Host& host : spec.hosts) json.String(host.name);
  json.EndArray();
  json.Key("nodes");
  json.BeginObject();
  Letters(json, "kind", spec.nodes, [](const Node& node) { return KindLetter(node.kind); });
  json.Key("id");
  json.BeginArray();
  for (const Node& node : spec.nodes) json.String(node.id);
  json.EndArray();
  Column(json, "host", spec.nodes, [](const Node& node) { return node.host ? node.host->value : -1; });
  Letters(json, "can", spec.nodes, AbilityLetter);
  json.EndObject();
  json.Key("links");
  json.BeginObject();
  Column(json, "from", spec.links, [](const Link& link) { return link.from.value; });
  Column(json, "to", spec.links, [](const Link& link) { return link.to.value; });
  Column(json, "bandwidth", spec.links, [](const Link& link) { return link.bandwidth_bytes_per_s; });
  Column(json, "latency", spec.links, [](const Link& link) { return link.latency_ps; });
  Column(json, "overhead", spec.links, [](const Link& link) { return link.overhead_ps; });
  json.EndObject();
  json.EndObject();
}

// Writes a list of lengths, rounded to a tenth of a pixel.
template <typename Items, typename Length>
void Lengths(JsonWriter& json, const char* key, const Items& items, Length&& length) {
  json.Key(key);
  json.BeginArray();
  for (const auto& item : items) json.Number(std::round(length(item) * 10) / 10);
  json.EndArray();
}

// Writes the lists of all items in a row as "KEY", and where each list begins as "KEY_first".
template <typename Items, typename List>
void Lists(JsonWriter& json, const std::string& key, const Items& items, List&& list) {
  std::vector<int64_t> first = {0};
  for (const auto& item : items) first.push_back(first.back() + std::ssize(list(item)));
  json.Member(key + "_first", first);
  json.Key(key);
  json.BeginArray();
  for (const auto& item : items)
    for (const auto& id : list(item)) json.Value(id);
  json.EndArray();
}

void WriteItems(const std::vector<DrawnItem>& items, JsonWriter& json) {
  json.BeginObject();
  Letters(json, "kind", items, [](const DrawnItem& item) { return KindLetter(item.kind); });
  Lengths(json, "x", items, [](const DrawnItem& item) { return item.x; });
  Lengths(json, "y", items, [](const DrawnItem& item) { return item.y; });
  Lengths(json, "width", items, [](const DrawnItem& item) { return item.width; });
  Lengths(json, "height", items, [](const DrawnItem& item) { return item.height; });
  json.Key("lines");
  json.BeginArray();
  for (const DrawnItem& item : items) {
    std::string text;
    for (const std::string& line : item.lines) text += (text.empty() ? "" : "\n") + line;
    json.String(text);
  }
  json.EndArray();
  Lists(json, "node", items, [](const DrawnItem& item) { return item.nodes; });
  json.EndObject();
}

void WriteFrames(const std::vector<DrawnFrame>& frames, JsonWriter& json) {
  json.BeginObject();
  json.Key("label");
  json.BeginArray();
  for (const DrawnFrame& frame : frames) json.String(frame.label);
  json.EndArray();
  Lengths(json, "label_x", frames, [](const DrawnFrame& frame) { return frame.label_at.x; });
  Lengths(json, "label_y", frames, [](const DrawnFrame& frame) { return frame.label_at.y; });
  Lengths(json, "left", frames, [](const DrawnFrame& frame) { return frame.left; });
  Lengths(json, "top", frames, [](const DrawnFrame& frame) { return frame.top; });
  Lengths(json, "width", frames, [](const DrawnFrame& frame) { return frame.width; });
  Lengths(json, "height", frames, [](const DrawnFrame& frame) { return frame.height; });
  json.EndObject();
}

char FormLetter(DrawnCable::Form form) {
  switch (form) {
    case DrawnCable::Form::kLine:
      return 'l';
    case DrawnCable::Form::kCurve:
      return 'c';
    case DrawnCable::Form::kStubs:
      return 's';
  }
  return 'l';
}

void WriteCables(const std::vector<DrawnCable>& cables, JsonWriter& json) {
  json.BeginObject();
  Column(json, "a", cables, [](const DrawnCable& cable) { return cable.a; });
  Column(json, "b", cables, [](const DrawnCable& cable) { return cable.b; });
  Letters(json, "form", cables, [](const DrawnCable& cable) { return FormLetter(cable.form); });
  Lists(json, "link", cables, [](const DrawnCable& cable) { return cable.links; });
  std::vector<int64_t> first = {0};
  std::vector<double> numbers;
  for (const DrawnCable& cable : cables) {
    for (const DrawnPoint& point : cable.points) {
      numbers.push_back(point.x);
      numbers.push_back(point.y);
    }
    first.push_back(std::ssize(numbers));
  }
  json.Member("point_first", first);
  Lengths(json, "point", numbers, [](double number) { return number; });
  json.EndObject();
}

}  // namespace

void WriteMachine(const Topology& topology, JsonWriter& json) {
  json.Key("topology");
  WriteTopology(topology, json);
  const MachineLayout layout = LayOut(topology);
  json.Key("drawing");
  json.BeginObject();
  json.Member("shape", layout.shape);
  json.Key("width");
  json.Number(std::round(layout.width));
  json.Key("height");
  json.Number(std::round(layout.height));
  json.Key("items");
  WriteItems(layout.items, json);
  json.Key("frames");
  WriteFrames(layout.frames, json);
  json.Key("cables");
  WriteCables(layout.cables, json);
  json.EndObject();
}

}  // namespace xccl::view
