// The text is read as a stream of words, since its tabs do not align and its lines may be wrapped. Names of
// devices come until the first one repeats, then one row per device.
#include "topologies/nccl/nvidia_smi_matrix.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/nccl/nvidia_smi.h"

namespace xccl {
namespace {

constexpr int64_t kMostDevices = 1024;

Status Bad(std::string_view message) { return InvalidInput(fmt::format("nvidia-smi topo -m: {}", message)); }

// Removes escape sequences, since the header is underlined on terminals, and the bars of tables.
std::string WithoutEscapes(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i] == '|' ? ' ' : text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '[') ++i;
    while (i + 1 < text.size() && (text[i + 1] < '@' || text[i + 1] > '~')) ++i;
    ++i;
  }
  return plain;
}

// Without the rules of tables.
std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view word : WordsOf(text))
    if (word.find_first_not_of("-=:+") != std::string_view::npos) words.emplace_back(word);
  return words;
}

std::optional<int64_t> NumberAfter(std::string_view word, std::string_view prefix) {
  if (!word.starts_with(prefix)) return std::nullopt;
  const StatusOr<int64_t> number = ParseInteger(word.substr(prefix.size()), 0, 1'000'000);
  return number.ok() ? std::optional(*number) : std::nullopt;
}

std::optional<SmiLink> ParseSmiLink(std::string_view word) {
  using Kind = SmiLink::Kind;
  constexpr std::pair<std::string_view, Kind> kClasses[] = {
      {"X", Kind::kSelf},    {"PIX", Kind::kPix}, {"PXB", Kind::kPxb}, {"PHB", Kind::kPhb},
      {"NODE", Kind::kNode}, {"SYS", Kind::kSys}, {"SOC", Kind::kSys}};  // SOC: drivers before 390
  for (const auto& [name, kind] : kClasses)
    if (word == name) return SmiLink{kind, 0};
  const auto links = NumberAfter(word, "NV");
  return links && *links > 0 ? std::optional(SmiLink{Kind::kNvlink, *links}) : std::nullopt;
}

// The place of "GPU0" in a line "GPU0  X  NV4 ...", a row of the matrix, maybe after a prefix; npos: no row.
size_t RowIn(std::string_view line) {
  for (size_t at = line.find("GPU"); at != std::string_view::npos; at = line.find("GPU", at + 1)) {
    if (at > 0 && std::isalnum(static_cast<unsigned char>(line[at - 1])) != 0) continue;
    const std::vector<std::string_view> words = WordsOf(line.substr(at));
    if (words.empty() || !NumberAfter(words[0], "GPU")) continue;
    return words.size() > 1 && ParseSmiLink(words[1]) ? at : std::string_view::npos;
  }
  return std::string_view::npos;
}

// Removes what launchers and log collectors put before each line: "0: " (srun -l), "[1,0]<stdout>:" (mpirun),
// a time. Where all rows begin with one prefix, lines that begin otherwise come from other ranks.
std::vector<std::string> WithoutPrefixes(std::vector<std::string> lines) {
  std::vector<std::string> prefixes;
  for (const std::string& line : lines)
    if (const size_t at = RowIn(line); at != std::string::npos) prefixes.push_back(line.substr(0, at));
  if (prefixes.empty() || Trim(prefixes[0]).empty()) return lines;
  std::string prefix = prefixes[0];
  const bool alike = prefixes.size() == 1 || std::ranges::count(prefixes, prefix) > 1;
  prefix.resize(prefix.find_last_not_of(" \t") + 1);
  const size_t words = WordsOf(prefix).size();
  std::vector<std::string> rest;
  for (const std::string& line : lines) {
    if (alike && line.starts_with(prefix)) {
      rest.push_back(line.substr(prefix.size()));
    } else if (!alike) {
      std::string& shorter = rest.emplace_back();
      const std::vector<std::string_view> all = WordsOf(line);
      for (size_t w = words; w < all.size(); ++w) shorter += std::string(all[w]) + " ";
    }
  }
  return rest;
}

// The words from the header on: the last line before the first row that has the row's name.
std::vector<std::string> WordsOfMatrix(std::string_view text) {
  const std::vector<std::string> lines = WithoutPrefixes(Split(WithoutEscapes(text), '\n'));
  const auto row =
      std::ranges::find_if(lines, [](const std::string& line) { return RowIn(line) != std::string::npos; });
  auto first = lines.begin();
  if (row != lines.end()) {
    const std::vector<std::string> names = Words(*row);
    for (auto line = lines.begin(); line != row; ++line)
      if (const std::vector<std::string> words = Words(*line);
          std::ranges::find(words, names.front()) != words.end())
        first = line;
  }
  return Words(Join(std::vector<std::string>(first, lines.end()), "\n"));
}

// Reads the names in the header, up to the word at `at`, where the first row begins.
StatusOr<std::vector<SmiDevice>> ReadHeader(const std::vector<std::string>& words, size_t& at) {
  static const std::set<std::string> kOtherColumns = {"CPU", "NUMA", "GPU", "Affinity", "ID"};
  std::vector<SmiDevice> devices;
  while (at < words.size() && !NumberAfter(words[at], "GPU")) ++at;
  for (; at < words.size(); ++at) {
    if (kOtherColumns.contains(words[at])) continue;
    if (!devices.empty() && words[at] == devices.front().name) return devices;
    if (words[at] == "Legend:" || ParseSmiLink(words[at])) break;
    devices.push_back(
        SmiDevice{words[at], NumberAfter(words[at], "GPU").has_value(), std::nullopt, "", std::nullopt, 0});
    if (static_cast<int64_t>(devices.size()) > kMostDevices)
      return Bad(fmt::format("more than {} devices", kMostDevices));
  }
  return Bad("no matrix of GPUs; expected a header 'GPU0 GPU1 ...' and a row for each");
}

// Reads the columns after the matrix: CPU affinity "0-31,64-95", then NUMA affinity "0", "0-1" or "N/A".
// Absent unless the latter is a single NUMA node.
std::optional<int32_t> NumaOf(const std::vector<std::string>& words, size_t at, size_t end) {
  if (at + 1 >= end) return std::nullopt;
  const auto numa = NumberAfter(words[at + 1], "");
  return numa ? std::optional(static_cast<int32_t>(*numa)) : std::nullopt;
}

// Reads "NIC0: mlx5_0" lines after the matrix.
void NameNics(const std::vector<std::string>& words, size_t at, std::vector<SmiDevice>& devices) {
  for (; at + 1 < words.size(); ++at) {
    if (!words[at].ends_with(':')) continue;
    for (SmiDevice& device : devices)
      if (!device.gpu && device.name + ":" == words[at]) device.name = words[at + 1];
  }
}

}  // namespace

StatusOr<SmiMatrix> ReadSmiMatrix(std::string_view text) {
  const std::vector<std::string> words = WordsOfMatrix(text);
  size_t at = 0;
  SmiMatrix matrix;
  XCCL_ASSIGN_OR_RETURN(matrix.devices, ReadHeader(words, at));
  const size_t count = matrix.devices.size();
  const auto row_starts = [&](size_t w, size_t row) {
    return row < count && words[w] == matrix.devices[row].name;
  };
  for (size_t row = 0; row < count; ++row) {
    const std::string& name = matrix.devices[row].name;
    if (at >= words.size() || !row_starts(at, row))
      return Bad(fmt::format("no row {}; expected one for each column", name));
    ++at;
    std::vector<SmiLink>& cells = matrix.rows.emplace_back();
    for (size_t column = 0; column < count; ++column, ++at) {
      const auto connection = at < words.size() ? ParseSmiLink(words[at]) : std::nullopt;
      const std::string place = fmt::format("{} to {}", name, matrix.devices[column].name);
      if (at >= words.size()) return Bad(fmt::format("{}: the text ends", place));
      if (!connection)
        return Bad(fmt::format("{}: '{}'; expected X, NV#, PIX, PXB, PHB, NODE or SYS", place, words[at]));
      if ((connection->kind == SmiLink::Kind::kSelf) != (row == column))
        return Bad(fmt::format("{}: '{}'; expected X on the diagonal alone", place, words[at]));
      cells.push_back(*connection);
    }
    size_t end = at;
    while (end < words.size() && !row_starts(end, row + 1) && words[end] != "Legend:") ++end;
    matrix.devices[row].numa = NumaOf(words, at, end);
    if (at < end && words[at].find_first_of("0123456789") == 0) matrix.devices[row].cpus = words[at];
    at = end;
  }
  NameNics(words, at, matrix.devices);
  return matrix;
}

bool IsNvidiaSmiMatrix(std::string_view text) {
  const std::vector<std::string> lines = Split(WithoutEscapes(text), '\n');
  return std::ranges::any_of(lines, [](const std::string& line) { return RowIn(line) != std::string::npos; });
}

}  // namespace xccl
