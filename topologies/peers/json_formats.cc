#include "topologies/peers/json_formats.h"

#include <fmt/core.h>

#include <string>

namespace xccl {

bool HasJsonKey(std::string_view text, std::string_view key) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  const std::string quoted = fmt::format("\"{}\"", key);
  for (size_t at = text.find(quoted); at != std::string_view::npos; at = text.find(quoted, at + 1)) {
    const size_t next = text.find_first_not_of(" \t\r\n", at + quoted.size());
    if (next != std::string_view::npos && text[next] == ':') return true;
  }
  return false;
}

StatusOr<std::vector<double>> NumbersOf(const JsonValue& array, size_t most) {
  std::vector<double> numbers;
  if (const auto whole = array.Integers(INT64_MIN, INT64_MAX); whole.ok()) {
    numbers.assign(whole->begin(), whole->end());
  } else {
    XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> items, array.Items());
    for (const JsonValue& item : items) {
      XCCL_ASSIGN_OR_RETURN(const double number, item.Number());
      numbers.push_back(number);
    }
  }
  if (numbers.size() > most)
    return array.Error(fmt::format("{} numbers; expected at most {}", numbers.size(), most));
  return numbers;
}

StatusOr<std::vector<std::vector<double>>> MatrixOf(const JsonValue& array, size_t rows) {
  std::vector<std::vector<double>> matrix;
  if (const StatusOr<IntegerLists> lists = array.Lists(INT64_MIN, INT64_MAX); lists.ok()) {
    for (int64_t i = 0; i < lists->size(); ++i) matrix.emplace_back((*lists)[i].begin(), (*lists)[i].end());
  } else {
    XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> items, array.Items());
    for (const JsonValue& item : items) {
      XCCL_ASSIGN_OR_RETURN(std::vector<double> row, NumbersOf(item, rows));
      matrix.push_back(std::move(row));
    }
  }
  if (matrix.size() != rows) return array.Error(fmt::format("{} rows; expected {}", matrix.size(), rows));
  for (const std::vector<double>& row : matrix)
    if (row.size() != rows)
      return array.Error(fmt::format("a row of {} numbers; expected {}", row.size(), rows));
  return matrix;
}

}  // namespace xccl
