#include "cli/output_json.h"

#include <nlohmann/json.hpp>

#include "ir/violation.h"

namespace xccl {
namespace {

using Json = nlohmann::ordered_json;

Json CellJson(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
          return nullptr;
        else
          return value;
      },
      cell);
}

Json RowJson(const Row& row) {
  Json object = Json::object();
  for (const auto& [name, cell] : row) object[name] = CellJson(cell);
  return object;
}

std::string Text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

Cell OrNull(const std::optional<double>& value) {
  if (value) return *value;
  return std::monostate();
}

std::string ToJson(const Row& row) { return Text(RowJson(row)); }

std::string ToJson(const std::vector<Row>& rows) {
  Json array = Json::array();
  for (const Row& row : rows) array.push_back(RowJson(row));
  return Text(array);
}

std::string ToJson(const Row& row, const std::string& name, const std::vector<Row>& rows) {
  Json object = RowJson(row);
  object[name] = Json::array();
  for (const Row& each : rows) object[name].push_back(RowJson(each));
  return Text(object);
}

std::string ViolationsJson(const std::vector<Violation>& violations) {
  Json array = Json::array();
  for (const Violation& violation : violations)
    array.push_back(
        RowJson({{"rule", violation.rule}, {"where", violation.where}, {"text", violation.text}}));
  return Text(Json{{"ok", violations.empty()}, {"violations", array}});
}

}  // namespace xccl
