#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/json/json_writer.h"
#include "base/standard_streams.h"
#include "base/strings.h"

namespace xccl {
namespace {

constexpr auto kLines = JsonWriter::Layout::kLines;

void WriteCells(const Row& row, JsonWriter& json) {
  for (const auto& [name, cell] : row) {
    json.Key(name);
    const auto write = [&json](const auto& value) {
      using T = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<T, std::monostate>)
        json.Null();
      else if constexpr (std::is_same_v<T, double>)
        std::isfinite(value) ? json.Real(value) : json.Null();
      else if constexpr (std::is_same_v<T, std::vector<double>>) {
        json.BeginArray();
        for (const double number : value) std::isfinite(number) ? json.Real(number) : json.Null();
        json.EndArray();
      } else
        json.Value(value);
    };
    std::visit(write, cell);
  }
}

void WriteRows(const std::vector<Row>& rows, JsonWriter& json) {
  json.BeginArray(kLines);
  for (const Row& row : rows) {
    json.BeginObject(kLines);
    WriteCells(row, json);
    json.EndObject();
  }
  json.EndArray();
}

struct CellText {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const std::vector<std::string>& value) const { return Join(value, "; "); }
  std::string operator()(const std::vector<double>& value) const {
    std::string text;
    for (const double number : value)
      text += (text.empty() ? "" : " ") + (std::isfinite(number) ? fmt::format("{}", number) : "-");
    return text;
  }
  template <typename Number>
  std::string operator()(const Number& value) const {
    if constexpr (std::is_arithmetic_v<Number>)
      return fmt::format("{}", value);
    else
      return fmt::format("{}", fmt::join(value, " "));
  }
};

std::string Quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

}  // namespace

Cell OrNull(const std::optional<double>& value) {
  if (value) return *value;
  return std::monostate();
}

std::string ToJson(const std::vector<Row>& rows) {
  std::ostringstream text;
  JsonWriter json(text);
  WriteRows(rows, json);
  json.Finish();
  return text.str();
}

std::string ToJson(const Row& row, const std::string& name, const std::vector<Row>& rows) {
  std::ostringstream text;
  JsonWriter json(text);
  json.BeginObject(kLines);
  WriteCells(row, json);
  if (!name.empty()) {
    json.Key(name);
    WriteRows(rows, json);
  }
  json.EndObject();
  json.Finish();
  return text.str();
}

std::string ToCsv(const std::vector<Row>& rows, bool with_names) {
  std::string text;
  const auto line = [&](const Row& row, const auto& cell_of) {
    for (size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "," : "") + Quoted(cell_of(row[i]));
    text += '\n';
  };
  if (with_names && !rows.empty()) line(rows.front(), [](const auto& named) { return named.first; });
  for (const Row& row : rows)
    line(row, [](const auto& named) { return std::visit(CellText(), named.second); });
  return text;
}

std::string TableText(const std::vector<std::vector<std::string>>& rows, std::vector<size_t> least_widths) {
  std::vector<size_t> width = std::move(least_widths);
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()), 0);
    for (size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  // A column is right-aligned, with its header, if all its cells below the header are numbers.
  std::vector<bool> number(width.size(), rows.size() > 1);
  for (size_t r = 1; r < rows.size(); ++r)
    for (size_t c = 0; c < rows[r].size(); ++c)
      if (!rows[r][c].empty() && std::isdigit(static_cast<unsigned char>(rows[r][c][0])) == 0 &&
          rows[r][c][0] != '-')
        number[c] = false;
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += "  ";
      line += number[c] ? fmt::format("{:>{}}", row[c], width[c]) : fmt::format("{:<{}}", row[c], width[c]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string FileLine(const std::vector<std::string>& files) {
  constexpr std::string_view kUnits[] = {"B", "KB", "MB", "GB"};
  double size = 0;
  for (const std::string& file : files) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) return "";
    size += static_cast<double>(std::filesystem::file_size(file, error));
  }
  if (files.empty()) return "";
  size_t unit = 0;
  for (; size >= 1000 && unit + 1 < std::size(kUnits); ++unit) size /= 1000;
  const bool one_place = unit > 0 && size < 100;
  return fmt::format("{:<10}{}, {:.{}f} {}\n", files.size() == 1 ? "file" : "files",
                     files.size() == 1 ? files[0] : files.front() + " to " + files.back(), size,
                     one_place ? 1 : 0, kUnits[unit]);
}

std::string ShellWord(std::string_view word) {
  const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$&|;<>()*?[]{}#!`~") == word.npos;
  if (plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Status Print(std::string_view text) {
  const int error = WriteWhole(STDOUT_FILENO, text);
  if (error == 0) return OkStatus();
  return InvalidInput(std::string("standard output: cannot write: ") + std::strerror(error));
}

}  // namespace xccl
