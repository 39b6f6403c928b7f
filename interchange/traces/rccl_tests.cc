// Columns are found by their names, since programs built without MPI have fewer. Neither form names a root.
#include "interchange/traces/rccl_tests.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/json/json_value.h"
#include "base/strings.h"
#include "interchange/traces/nccl_tests_words.h"

namespace xccl {
namespace {

// A row's values by name in lower case, since the CSV has busbw where the JSON has busBw.
using Values = std::map<std::string, std::string>;

// "ReduceScatter" is reduce_scatter.
std::optional<CollectiveKind> CollectiveOf(std::string_view name) {
  const auto plain = [](std::string_view text) {
    std::string letters = Lower(text);
    std::erase(letters, '_');
    return letters;
  };
  for (const CollectiveKind kind : AllNamedCollectives())
    if (plain(ToString(kind)) == plain(name)) return kind;
  return std::nullopt;
}

std::vector<std::string> CellsOf(std::string_view line) {
  std::vector<std::string> cells;
  for (const std::string& field : Split(line, ',')) {
    std::string_view cell = Trim(field);
    if (cell.size() > 1 && cell.starts_with('"') && cell.ends_with('"'))
      cell = cell.substr(1, cell.size() - 2);
    cells.emplace_back(cell);
  }
  return cells;
}

std::string_view FirstLine(std::string_view text) {
  text = Trim(text.substr(0, std::min<size_t>(text.size(), 4096)));
  return Trim(text.substr(0, text.find('\n')));
}

class Rows {
 public:
  explicit Rows(const std::string& file) : file_(file) {}

  Status Add(const Values& values, const std::string& place) {
    const auto text = [&](const char* name) {
      const auto found = values.find(name);
      return found == values.end() ? std::string() : found->second;
    };
    if (text("inplace") != "0") {
      ++in_place_;
      return OkStatus();
    }
    Status wrong;
    const auto number = [&](const char* name, int64_t least) {
      const std::optional<int64_t> given = NumberOf<int64_t>(text(name));
      if (wrong.ok() && (!given || *given < least || *given > kMost))
        wrong = InvalidInput(fmt::format("{}: {} '{}'; expected a whole number from {} to {}", place, name,
                                         Shortened(text(name)), least, kMost));
      return given.value_or(0);
    };
    const bool has_nodes = values.contains("ranks");
    const int64_t gpus = has_nodes ? number("ranks", 1) * number("gpusperrank", 1) : number("gpus", 1);
    const int64_t hosts = values.contains("nodes") ? number("nodes", 1)
                          : has_nodes ? number("ranks", 1) / std::max<int64_t>(1, number("rankspernode", 1))
                                      : 1;
    const int64_t bytes = number("size", 0);
    if (!wrong.ok()) return wrong;
    const std::optional<double> us = NumberOf<double>(text("time"));
    if (!us || !(*us > 0) || !std::isfinite(*us))
      return InvalidInput(
          fmt::format("{}: time '{}'; expected more than 0 us", place, Shortened(text("time"))));
    const auto elements = NumberOf<double>(text(values.contains("#wrong") ? "#wrong" : "wrong"));
    NcclTestsRun& run =
        RunOf(text(values.contains("collective") ? "collective" : "name"), gpus, hosts, place);
    run.times.push_back({bytes, *us, static_cast<int64_t>(elements.value_or(0))});  // N/A: not checked
    return OkStatus();
  }

  StatusOr<std::vector<NcclTestsRun>> Ended() {
    if (runs_.empty())
      return InvalidInput(file_ + (in_place_ > 0 ? ": rows in place alone; expected some out of place"
                                                 : ": no row; expected a size and its time"));
    return std::move(runs_);
  }

 private:
  static constexpr int64_t kMost = int64_t{1} << 50;

  NcclTestsRun& RunOf(const std::string& name, int64_t gpus, int64_t hosts, const std::string& place) {
    const auto found = std::ranges::find_if(runs_, [&](const NcclTestsRun& run) {
      return run.program == name && run.ranks == gpus && run.hosts == hosts;
    });
    if (found != runs_.end()) return *found;
    NcclTestsRun& run = runs_.emplace_back();
    run.place = run.program_place = run.ranks_place = place;
    run.program = name;
    run.collective = CollectiveOf(name);
    run.ranks = gpus;
    run.hosts = hosts;
    run.names_root = false;
    return run;
  }

  const std::string& file_;
  std::vector<NcclTestsRun> runs_;
  int64_t in_place_ = 0;
};

StatusOr<std::vector<NcclTestsRun>> ReadCsv(std::string_view text, const std::string& file) {
  Rows rows(file);
  std::vector<std::string> names;
  int line = 0;
  for (const std::string& row : Split(text, '\n')) {
    ++line;
    if (Trim(row).empty()) continue;
    std::vector<std::string> cells = CellsOf(row);
    if (names.empty() || Lower(cells[0]) == names[0]) {  // files may be joined, each with its names
      names.clear();
      for (const std::string& cell : cells) names.push_back(Lower(cell));
      continue;
    }
    const std::string place = fmt::format("{}:{}", file, line);
    if (cells.size() != names.size())
      return InvalidInput(
          fmt::format("{}: a row of {} columns; expected {}", place, cells.size(), names.size()));
    Values values;
    for (size_t c = 0; c < cells.size(); ++c) values.emplace(names[c], std::move(cells[c]));
    XCCL_RETURN_IF_ERROR(rows.Add(values, place));
  }
  return rows.Ended();
}

StatusOr<std::vector<NcclTestsRun>> ReadJsonList(std::string_view text, const std::string& file) {
  constexpr const char* kNames[] = {"name", "nodes", "ranks",   "ranksPerNode", "gpusPerRank",
                                    "gpus", "size",  "inPlace", "time",         "wrong"};
  Rows rows(file);
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, file));
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> items, document.root().Items());
  for (size_t i = 0; i < items.size(); ++i) {
    Values values;
    for (const char* const name : kNames) {
      XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, items[i].Find(name));
      if (!value) continue;
      if (const StatusOr<std::string_view> word = value->String(); word.ok()) {
        values.emplace(Lower(name), *word);
        continue;
      }
      XCCL_ASSIGN_OR_RETURN(const double number, value->Number());
      values.emplace(Lower(name), std::floor(number) == number && std::abs(number) < 1e15
                                      ? fmt::format("{}", static_cast<int64_t>(number))
                                      : fmt::format("{}", number));
    }
    XCCL_RETURN_IF_ERROR(rows.Add(values, fmt::format("{}: [{}]", file, i)));
  }
  return rows.Ended();
}

}  // namespace

bool IsRcclTests(std::string_view text) {
  const std::string_view first = FirstLine(text);
  if (first.starts_with('['))
    return text.find("\"inPlace\"") != text.npos && text.find("\"busBw\"") != text.npos;
  const std::vector<std::string> names = CellsOf(Lower(first));
  return std::ranges::all_of(
      std::vector<std::string>{"collective", "size", "inplace", "time"},
      [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); });
}

StatusOr<std::vector<NcclTestsRun>> ReadRcclTests(std::string_view text, const std::string& file) {
  return Trim(text).starts_with('[') ? ReadJsonList(text, file) : ReadCsv(text, file);
}

}  // namespace xccl
