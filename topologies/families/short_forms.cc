#include "topologies/families/short_forms.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "topologies/families/families.h"

namespace xccl {
namespace {

// `attributes` names the values between ':' and '@'; values after the first follow an 'x'.
struct Shape {
  std::string_view family;
  std::vector<std::string_view> attributes;
  std::string_view form;  // the family and its arguments
  std::string_view example;
};

const std::vector<Shape>& Shapes() {
  static const std::vector<Shape> shapes = {
      {"nvswitch", {"gpus"}, "nvswitch:N", "nvswitch:8"},
      {"full-mesh", {"ranks"}, "full-mesh:N", "full-mesh:8"},
      {"ring", {"ranks"}, "ring:N", "ring:16"},
      {"mesh", {"dims"}, "mesh:AxB", "mesh:8x8"},
      {"torus", {"dims"}, "torus:AxBxC", "torus:4x4x4"},
      {"hypercube", {"dim"}, "hypercube:D", "hypercube:6"},
      {"fat-tree", {}, "fat-tree:k=K", "fat-tree:k=4"},
      {"leaf-spine", {"leaves", "spines", "hosts"}, "leaf-spine:LxSxH", "leaf-spine:4x2x8"},
      {"dragonfly", {"groups", "routers", "hosts"}, "dragonfly:GxRxH", "dragonfly:5x2x2"},
  };
  return shapes;
}

const Shape* FindShape(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return nullptr;
  for (const Shape& shape : Shapes())
    if (shape.family == text.substr(0, colon)) return &shape;
  return nullptr;
}

Status ReadPositions(const Shape& shape, std::string_view text, std::vector<Attribute>& attributes) {
  const auto bad = [&] {
    return InvalidInput(fmt::format("'{}': expected something like {}", text, shape.example));
  };
  if (text.empty()) return bad();
  if (shape.attributes.empty()) return ReadPairs(text, attributes);
  if (shape.attributes.size() == 1) {
    attributes.emplace_back(shape.attributes[0], text);
    return OkStatus();
  }
  for (size_t i = 0; i < shape.attributes.size(); ++i) {
    const size_t cross = text.find('x');
    const bool last = i + 1 == shape.attributes.size();
    if ((cross == std::string_view::npos) != last) return bad();
    attributes.emplace_back(shape.attributes[i], text.substr(0, cross));
    if (!last) text.remove_prefix(cross + 1);
  }
  return OkStatus();
}

}  // namespace

std::vector<std::string_view> ShortForms() {
  std::vector<std::string_view> forms;
  for (const Shape& shape : Shapes()) forms.push_back(shape.form);
  return forms;
}

std::pair<std::string_view, std::string_view> ShortFormOf(std::string_view family) {
  for (const Shape& shape : Shapes())
    if (shape.family == family) return {shape.form, shape.example};
  return {};
}

bool IsShortForm(std::string_view text) { return FindShape(text) != nullptr; }

StatusOr<Topology> ReadShortForm(std::string_view text) {
  const Shape* shape = FindShape(text);
  if (shape == nullptr)
    return InvalidInput(fmt::format("{}: not a short form; expected one like torus:4x4", text));
  std::string_view positions = text.substr(shape->family.size() + 1), options;
  if (const size_t at = positions.find('@'); at != std::string_view::npos) {
    options = positions.substr(at + 1);
    positions = positions.substr(0, at);
  }
  std::vector<Attribute> attributes;
  if (Status read = ReadPositions(*shape, positions, attributes); !read.ok())
    return Annotate(std::move(read), text);
  if (Status read = ReadPairs(options, attributes); !read.ok()) return Annotate(std::move(read), text);
  std::vector<std::string_view> names;
  for (const Attribute& attribute : attributes) names.push_back(attribute.first);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return InvalidInput(fmt::format("{}: {} is given twice; expected it once", text, *twice));

  AttributeReader reader(shape->family, std::move(attributes));
  const Family family = ReadFamily(reader);
  if (Status read = reader.Finish(); !read.ok()) return Annotate(std::move(read), text);
  TopologySpec spec;
  spec.name = text;
  AddFamily(family, Place{}, spec);
  return Topology::Create(std::move(spec));
}

}  // namespace xccl
