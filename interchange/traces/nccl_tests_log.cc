// A table is read by the line that names its columns, since versions have different columns. The text before
// that line's '#' is the prefix of the table's lines (log_prefix.h). The lines with one prefix form a stream.
// Each stream is read by itself, so that tables of ranks that print at once stay whole. A first pass finds
// the prefixes, and a second one gives each line to the stream with the longest prefix.
#include "interchange/traces/nccl_tests_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "base/strings.h"
#include "interchange/traces/log_prefix.h"
#include "interchange/traces/nccl_tests_words.h"

namespace xccl {
namespace {

constexpr std::pair<std::string_view, CollectiveKind> kPrograms[] = {
    {"all_reduce_perf", CollectiveKind::kAllreduce},
    {"all_gather_perf", CollectiveKind::kAllgather},
    {"reduce_scatter_perf", CollectiveKind::kReduceScatter},
    {"broadcast_perf", CollectiveKind::kBroadcast},
    {"reduce_perf", CollectiveKind::kReduce},
    {"alltoall_perf", CollectiveKind::kAlltoall},
    {"gather_perf", CollectiveKind::kGather},
    {"scatter_perf", CollectiveKind::kScatter}};

// The columns of a table's row that are read, counted from the column after the size.
struct Columns {
  size_t time = 0, count = 0;         // the first column of a time; number of columns
  std::optional<size_t> root, wrong;  // the first column of that name
};

std::optional<Columns> ColumnsOf(const std::vector<std::string_view>& words) {
  if (words.size() < 3 || words[0] != "size" || words[1] != "count") return std::nullopt;
  const auto at = [&](std::string_view name) -> std::optional<size_t> {
    const auto found = std::ranges::find(words, name);
    return found == words.end() ? std::nullopt : std::optional<size_t>(found - words.begin());
  };
  const std::optional<size_t> time = at("time");
  if (!time) return std::nullopt;
  return Columns{*time, words.size(), at("root"), at("#wrong")};
}

// Where the '#' of a line that names columns is.
std::optional<size_t> ColumnsBegin(std::string_view line) {
  if (line.find("count") == line.npos) return std::nullopt;
  for (size_t at = line.find('#'); at != line.npos; at = line.find('#', at + 1))
    if (ColumnsOf(WordsOf(line.substr(at + 1)))) return at;
  return std::nullopt;
}

// Calls `visit` with each line, without its end, and its number.
template <typename Visit>
void ForEachLine(std::string_view text, Visit visit) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// One run, as far as it was read.
struct Run {
  NcclTestsRun values;
  int line = 0;  // line that it begins with
  std::optional<Columns> columns;
  std::set<std::string, std::less<>> hosts;
  std::set<int64_t> listed;  // ranks
  Status wrong;              // error of the first row that cannot be read, or that runs are mixed
  bool mixed = false;
};

// The tables of the lines with one prefix.
class Stream {
 public:
  Stream(const std::string& file, LogPrefix prefix) : file_(file), prefix_(std::move(prefix)) {}

  const LogPrefix& prefix() const { return prefix_; }
  std::vector<Run>& runs() { return runs_; }

  // `line` is behind the prefix.
  void Line(std::string_view line, int number) {
    line_ = number;
    const std::vector<std::string_view> words = WordsOf(line);
    if (words.empty()) return;
    if (words[0].starts_with('#')) return Comment(line.substr(line.find('#') + 1));
    // A name of a host may begin with digits, but its line has no count.
    const std::optional<int64_t> size = NumberOf<int64_t>(words[0]);
    if (size && words.size() > 1 && NumberOf<int64_t>(words[1])) AddRow(*size, words);
  }

 private:
  std::string Place() const { return fmt::format("{}:{}", file_, line_); }
  // The run that the line belongs to, `begins`: which it may be the first line of.
  Run& At(bool begins) {
    if (runs_.empty() || (begins && runs_.back().columns)) {
      runs_.emplace_back();
      runs_.back().line = line_;
      runs_.back().values.place = Place();
    }
    return runs_.back();
  }
  static void SetWrong(Run& run, Status status) {
    if (run.wrong.ok()) run.wrong = std::move(status);
  }

  void Comment(std::string_view text) {
    constexpr std::string_view kProgram = "Collective test starting: ";
    const std::vector<std::string_view> words = WordsOf(text);
    if (words.empty()) return;
    if (const size_t at = text.find(kProgram); at != text.npos) {
      NcclTestsRun& run = At(true).values;
      run.program = std::string(Trim(text.substr(at + kProgram.size())));
      run.collective = CollectiveOfProgram(run.program);
      run.program_place = Place();
    } else if (words[0] == "nThread" || words[0] == "nccl-tests" || words[0] == "rccl-tests" ||
               text.find("Using devices") != text.npos) {
      At(true);
    } else if (const std::optional<Columns> columns = ColumnsOf(words)) {
      At(false).columns = columns;
    } else if (words.size() > 2 && words[0] == "Rank" && NumberOf<int64_t>(words[1])) {
      Device(words);
    } else if (words.size() > 1 && (words[1] == "ranks" || words[1] == "rank")) {
      NcclTestsRun& run = At(false).values;
      run.ranks = NumberOf<int64_t>(words[0]).value_or(0);  // a table of xccl-synth run
      run.ranks_place = Place();
    }
  }

  void Device(const std::vector<std::string_view>& words) {
    Run& run = At(false);
    const int64_t rank = *NumberOf<int64_t>(words[1]);
    if (!run.listed.insert(rank).second && !run.mixed) {
      run.mixed = true;
      run.wrong = InvalidInput(fmt::format(
          "{}: rank {} twice, as where several runs print at once; expected one, or a prefix to tell them "
          "apart by, as of mpirun --tag-output or srun --label",
          Place(), rank));
    }
    ++run.values.ranks;
    run.values.ranks_place = Place();
    const auto on = std::ranges::find(words, "on");
    if (on != words.end() && on + 1 != words.end()) run.hosts.emplace(on[1]);
  }

  void AddRow(int64_t size, const std::vector<std::string_view>& words) {
    Run& run = At(false);
    if (!run.columns)
      return SetWrong(run, InvalidInput(Place() + ": a row before the line that names the columns, '# size "
                                                  "count type ... time'"));
    const Columns& columns = *run.columns;
    // Other lines may stand in the middle of a row.
    const auto cut = [&](const std::string& text) {
      SetWrong(run, InvalidInput(Place() + ": " + text));
      ++run.values.cut_rows;
    };
    if (words.size() < columns.count)
      return cut(fmt::format("a row of {} columns; expected {}", words.size(), columns.count));
    const std::string_view time = words[columns.time];
    const std::optional<double> us = NumberOf<double>(time);
    if (!us || !(*us > 0) || !std::isfinite(*us))
      return cut(fmt::format("time '{}'; expected more than 0 us", Shortened(time)));
    if (columns.root)
      if (const auto root = NumberOf<int64_t>(words[*columns.root]); root && *root >= 0)
        run.values.root = root;
    int64_t wrong = 0;
    if (columns.wrong)  // N/A: not checked
      wrong = static_cast<int64_t>(NumberOf<double>(words[*columns.wrong]).value_or(0));
    run.values.times.push_back({size, *us, wrong});
  }

  const std::string& file_;
  LogPrefix prefix_;
  int line_ = 0;
  std::vector<Run> runs_;
};

// One for each prefix that a table's lines have, the longest first. A text without a table has one stream.
std::vector<Stream> StreamsOf(std::string_view text, const std::string& file) {
  std::vector<LogPrefix> prefixes;
  ForEachLine(text, [&](std::string_view line, int) {
    const std::optional<size_t> begin = ColumnsBegin(line);
    if (!begin) return;
    LogPrefix prefix(line.substr(0, *begin));
    if (std::ranges::find(prefixes, prefix) == prefixes.end()) prefixes.push_back(std::move(prefix));
  });
  if (prefixes.empty()) prefixes.emplace_back("");
  std::ranges::stable_sort(prefixes, std::ranges::greater(), &LogPrefix::length);
  std::vector<Stream> streams;
  for (LogPrefix& prefix : prefixes) streams.emplace_back(file, std::move(prefix));
  return streams;
}

NcclTestsRun Finished(Run run, const std::string& file) {
  run.values.hosts = std::ssize(run.hosts);
  for (std::string* place : {&run.values.program_place, &run.values.ranks_place})
    if (place->empty()) *place = file;
  return std::move(run.values);
}

}  // namespace

std::optional<CollectiveKind> CollectiveOfProgram(std::string_view program) {
  // A program may have more behind its name, as all_reduce_perf_mpi.
  for (const auto& [name, kind] : kPrograms)
    if (program.starts_with(name)) return kind;
  const StatusOr<CollectiveKind> ours = ParseCollectiveKind(program);
  return ours.ok() ? std::optional(*ours) : std::nullopt;
}

bool HasNcclTestsTable(std::string_view text) {
  bool has = false;
  ForEachLine(text, [&](std::string_view line, int) { has = has || ColumnsBegin(line); });
  return has;
}

StatusOr<std::vector<NcclTestsRun>> ReadNcclTestsLog(std::string_view text, const std::string& file) {
  std::vector<Stream> streams = StreamsOf(text, file);
  ForEachLine(text, [&](std::string_view line, int number) {
    const StampedLine stamped(line);
    for (Stream& stream : streams)
      if (const std::optional<std::string_view> rest = stream.prefix().Behind(stamped)) {
        stream.Line(*rest, number);
        return;
      }
  });
  std::vector<Run> runs;
  bool has_table = false;
  Status wrong;
  for (Stream& stream : streams)
    for (Run& run : stream.runs()) {
      has_table = has_table || run.columns;
      if (wrong.ok()) wrong = run.wrong;
      if (run.mixed) return run.wrong;
      if (!run.values.times.empty()) runs.push_back(std::move(run));
    }
  if (!has_table && wrong.ok())
    return InvalidInput(file + ": no table of nccl-tests; expected a line '# size count type ... time'");
  if (runs.empty())
    return wrong.ok() ? InvalidInput(file + ": a table without a row; expected a size and its time") : wrong;
  std::ranges::stable_sort(runs, {}, &Run::line);
  std::vector<NcclTestsRun> finished;
  for (Run& run : runs) finished.push_back(Finished(std::move(run), file));
  return finished;
}

}  // namespace xccl
