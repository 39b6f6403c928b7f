// The bars of exact and near-linear synthesis, all in one table: the request, its result, PASS or MISS.
// A second table counts them by group. Columns that are the same in all rows are named once, above the table.
//   bars [--group LETTERS] [--match TEXT] [--engine NAME] [--chunks N] [--misses | --counts | --across |
//   --list]
//        [--graphs FOLDER] [--limit CPU_SECONDS] [--memory MIB]
#include "bench/bars.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "base/files.h"
#include "base/standard_streams.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/units.h"
#include "bench/markdown_table.h"

namespace xccl {
namespace {

constexpr int kMissing = 77;  // exit status: files that the bars need are missing

enum class Show : uint8_t { kRows, kMisses, kCounts, kAcross, kList };

struct Flags {
  std::string groups;  // empty: all
  std::string match;   // part of the machine's name; empty: all
  std::string engine;  // empty: the bar's own
  Show show = Show::kRows;
  std::optional<int32_t> chunks;
  BarLimits limits;
};

constexpr const char* kUsage =
    "usage: bars [--group LETTERS] [--match TEXT] [--engine NAME] [--chunks N]\n"
    "            [--misses | --counts | --across | --list] [--graphs FOLDER] [--limit CPU_SECONDS]\n"
    "            [--memory MIB]\n";

StatusOr<Flags> ReadFlags(const std::vector<std::string>& words) {
  static const std::map<std::string_view, Show> kShows = {{"--misses", Show::kMisses},
                                                          {"--counts", Show::kCounts},
                                                          {"--across", Show::kAcross},
                                                          {"--list", Show::kList}};
  Flags flags;
  const char* const here = std::getenv("BUILD_WORKING_DIRECTORY");  // bazel run
  flags.limits.graphs_folder =
      fmt::format("{}../shared/data/graphs", here != nullptr ? here + std::string("/") : "");
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (const auto show = kShows.find(word); show != kShows.end()) {
      flags.show = show->second;
      continue;
    }
    if (i + 1 == words.size())
      return UsageError(fmt::format("'{}': no such flag, or its value is missing", word));
    const std::string& value = words[++i];
    if (word == "--group") {
      flags.groups = value;
    } else if (word == "--match") {
      flags.match = value;
    } else if (word == "--engine") {
      flags.engine = value;
    } else if (word == "--graphs") {
      flags.limits.graphs_folder = value;
    } else {
      XCCL_ASSIGN_OR_RETURN(const int64_t number, ParseInteger(value, 1, 1'000'000));
      if (word == "--chunks") {
        flags.chunks = static_cast<int32_t>(number);
      } else if (word == "--limit") {
        flags.limits.cpu_seconds = static_cast<double>(number);
      } else if (word == "--memory") {
        flags.limits.memory_mib = number;
      } else {
        return UsageError(fmt::format("'{}': no such flag", word));
      }
    }
  }
  return flags;
}

// The bars that are asked for, each once: without its own engine a bar may be like the one before it.
std::vector<Bar> ChosenBars(const Flags& flags) {
  std::vector<Bar> chosen;
  for (Bar bar : AllBars()) {
    if (!flags.groups.empty() && flags.groups.find(bar.group) == std::string::npos) continue;
    if (bar.machine.find(flags.match) == std::string::npos) continue;
    if (!flags.engine.empty()) bar.engine = flags.engine;
    if (flags.chunks) bar.chunks = *flags.chunks;
    if (chosen.empty() || bar != chosen.back()) chosen.push_back(bar);
  }
  return chosen;
}

struct Done {
  Bar bar;
  BarResult result;
  Misses misses;
};

std::string Short(const Bar& bar) { return bar.machine.substr(0, bar.machine.find('@')); }
std::string Ratio(const BarResult& result) {
  return fmt::format("{:.4f}", result.bound_us > 0 ? result.time_us / result.bound_us : 1);
}
// The published time over the bound; empty if the published figure is no time or bandwidth.
std::string PublishedRatio(const Bar& bar, const BarResult& result) {
  if (!result.made || result.bound_us <= 0 || bar.peer.empty()) return "";
  double us = bar.most_us;
  if (us <= 0 && bar.least_gb_per_s > 0) us = result.time_us * result.gb_per_s / bar.least_gb_per_s;
  return us > 0 ? fmt::format("{:.4f}", us / result.bound_us) : "";
}

void PrintRows(const std::vector<Done>& all, bool only_misses) {
  MarkdownTable table({"group", "machine", "ranks:", "chunks:", "collective", "size", "model", "engine",
                       "µs:", "bound µs:", "ratio:", "GB/s:", "depth:", "CPU s:", "bar",
                       "of the bar:", "published ÷ bound:", "published", "result"});
  for (const auto& [bar, result, misses] : all) {
    if (only_misses && misses.text.empty()) continue;
    const auto figure = [made = result.made](double value, int digits) {
      return made ? fmt::format("{:.{}f}", value, digits) : "";
    };
    table.Row(bar.group, Short(bar), result.ranks, bar.chunks > 0 ? std::to_string(bar.chunks) : "",
              ToString(bar.collective), FormatSize(bar.size_bytes), ToString(bar.model),
              result.winner.empty() || result.winner == bar.engine
                  ? bar.engine
                  : fmt::format("{}: {}", bar.engine, result.winner),
              figure(result.time_us, 2), figure(result.bound_us, 2), result.made ? Ratio(result) : "",
              figure(result.gb_per_s, 2), figure(result.depth, 0), figure(result.seconds, 4), Describe(bar),
              misses.by > 0 ? fmt::format("{:.3f}", misses.by) : "", PublishedRatio(bar, result), bar.peer,
              misses.text.empty() ? "PASS" : "MISS " + misses.text);
  }
  if (const std::string same = table.TakeOutEqualColumns(); !same.empty())
    fmt::print("In all rows: {}.\n\n", same);
  table.Print();
}

// The bars that a group misses: all of them if they are few, otherwise their number and the worst.
std::string MissedOf(std::vector<Done> missed) {
  constexpr size_t kNamed = 3;
  std::ranges::stable_sort(missed, [](const Done& a, const Done& b) {
    return (a.misses.by == 0 ? 1e9 : a.misses.by) > (b.misses.by == 0 ? 1e9 : b.misses.by);
  });
  const size_t named = missed.size() <= kNamed ? missed.size() : 1;
  std::vector<std::string> texts;
  for (const Done& done : std::span(missed).first(named))
    texts.push_back(fmt::format("{} on {}, {}, {}: {}", ToString(done.bar.collective), Short(done.bar),
                                FormatSize(done.bar.size_bytes), done.bar.engine, done.misses.text));
  return fmt::format("{}{}", missed.size() > kNamed ? fmt::format("{}; the worst: ", missed.size()) : "",
                     Join(texts, "; "));
}

void PrintCounts(const std::vector<Done>& all) {
  MarkdownTable table({"group", "what", "met:", "CPU s:", "missed"});
  for (const BarGroup& group : BarGroups()) {
    std::vector<Done> missed;
    int64_t bars = 0;
    double seconds = 0;
    for (const Done& done : all) {
      if (done.bar.group != group.letter) continue;
      ++bars;
      seconds += done.result.seconds;
      if (!done.misses.text.empty()) missed.push_back(done);
    }
    if (bars > 0)
      table.Row(group.letter, group.what,
                fmt::format("{} of {}", bars - static_cast<int64_t>(missed.size()), bars),
                fmt::format("{:.1f}", seconds), MissedOf(missed));
  }
  table.Print();
}

// A row for each machine, a column for each collective and size.
void PrintAcross(const std::vector<Done>& all) {
  std::vector<std::string> machines, columns = {"machine"};
  std::map<std::pair<std::string, std::string>, std::string> cells;
  const auto note = [](std::vector<std::string>& names, const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  std::set<int64_t> sizes;
  for (const Done& done : all) sizes.insert(done.bar.size_bytes);
  for (const auto& [bar, result, misses] : all) {
    std::string column(ToString(bar.collective));
    if (sizes.size() > 1) column += ", " + FormatSize(bar.size_bytes);
    note(machines, Short(bar));
    note(columns, column);
    cells.try_emplace(
        {Short(bar), column},
        result.made ? fmt::format("{}, {:.2f} GB/s, {:.2f} s", Ratio(result), result.gb_per_s, result.seconds)
                    : result.problem);
    if (!bar.peer.empty()) cells.try_emplace({Short(bar), "published"}, bar.peer);
  }
  if (std::ranges::any_of(cells, [](const auto& cell) { return cell.first.second == "published"; }))
    columns.emplace_back("published");
  MarkdownTable table(columns);
  for (const std::string& machine : machines) {
    std::vector<std::string> row = {machine};
    for (const std::string& column : std::span(columns).subspan(1)) row.push_back(cells[{machine, column}]);
    table.Add(row);
  }
  table.Print();
}

int Main(const std::vector<std::string>& words) {
  const StatusOr<Flags> flags = ReadFlags(words);
  if (!flags.ok()) {
    PrintError(fmt::format("bars: {}\n{}", flags.status().message(), kUsage));
    for (const BarGroup& group : BarGroups()) PrintError(fmt::format("  {} {}\n", group.letter, group.what));
    return 2;
  }
  const std::vector<Bar> bars = ChosenBars(*flags);
  if (flags->show == Show::kList) {
    for (const Bar& bar : bars)
      fmt::print("{} {} {} {} {} {}\n", bar.group, bar.machine, ToString(bar.collective),
                 FormatSize(bar.size_bytes), bar.engine, Describe(bar));
    return 0;
  }
  if (!IsDirectory(flags->limits.graphs_folder) &&
      std::ranges::any_of(bars, [](const Bar& bar) { return bar.machine.starts_with("graphs/"); })) {
    PrintError(fmt::format("skipped: {}: no folder of graphs; hint: --graphs FOLDER\n",
                           flags->limits.graphs_folder));
    return kMissing;
  }
  std::vector<Done> all;
  for (const Bar& bar : bars) {
    BarLimits limits = flags->limits;
    if (bar.total_seconds) limits.memory_mib = std::max<int64_t>(limits.memory_mib, 8192);
    const BarResult result = RunBar(bar, limits);
    all.push_back({bar, result, MissesOf(bar, result)});
    ShowProgress(fmt::format("{} {} {}", bar.group, bar.machine, ToString(bar.collective)));
  }
  if (flags->show == Show::kAcross) {
    PrintAcross(all);
    return 0;
  }
  if (flags->show != Show::kCounts) {
    PrintRows(all, flags->show == Show::kMisses);
    fmt::print("\n");
  }
  PrintCounts(all);
  return 0;
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) { return xccl::Main(std::vector<std::string>(argv + 1, argv + argc)); }
