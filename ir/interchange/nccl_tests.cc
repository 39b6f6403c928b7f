// The table is read by the line that names its columns, since versions differ in their number.
#include "ir/interchange/nccl_tests.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "base/json/json_value.h"
#include "base/strings.h"
#include "base/units.h"

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

// A program may have more behind its name, as all_reduce_perf_mpi.
std::optional<CollectiveKind> CollectiveOf(std::string_view program) {
  for (const auto& [name, kind] : kPrograms)
    if (program.starts_with(name)) return kind;
  const StatusOr<CollectiveKind> ours = ParseCollectiveKind(program);
  return ours.ok() ? std::optional(*ours) : std::nullopt;
}

template <typename Number>
std::optional<Number> NumberOf(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

// Where a table's row has what counts: columns after the size.
struct Columns {
  size_t time = 0, count = 0;         // of the first time; of all
  std::optional<size_t> root, wrong;  // of the first such column
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

class Table {
 public:
  explicit Table(const std::string& file) : file_(file) {}

  Status Line(std::string_view line) {
    ++line_;
    const std::vector<std::string_view> words = WordsOf(line);
    if (words.empty()) return OkStatus();
    if (words[0].starts_with('#')) {
      Comment(line.substr(line.find('#') + 1));
      return OkStatus();
    }
    if (const std::optional<int64_t> size = NumberOf<int64_t>(words[0])) return AddRow(*size, words);
    return OkStatus();
  }

  StatusOr<NcclTestsRun> Ended() {
    if (!columns_)
      return InvalidInput(file_ + ": no table of nccl-tests; expected a line '# size count type ... time'");
    if (run_.times.empty())
      return InvalidInput(file_ + ": a table without a row; expected a size and its time");
    run_.hosts = std::ssize(hosts_);
    for (std::string* place : {&run_.program_place, &run_.ranks_place})
      if (place->empty()) *place = file_;
    return std::move(run_);
  }

 private:
  std::string Place() const { return fmt::format("{}:{}", file_, line_); }
  Status Error(const std::string& text) const { return InvalidInput(Place() + ": " + text); }

  void Comment(std::string_view text) {
    constexpr std::string_view kProgram = "Collective test starting: ";
    const std::vector<std::string_view> words = WordsOf(text);
    if (const size_t at = text.find(kProgram); at != text.npos) {
      run_.program = std::string(Trim(text.substr(at + kProgram.size())));
      run_.collective = CollectiveOf(run_.program);
      run_.program_place = Place();
    } else if (const std::optional<Columns> columns = ColumnsOf(words)) {
      columns_ = columns;
    } else if (words.size() > 2 && words[0] == "Rank" && NumberOf<int64_t>(words[1])) {
      ++run_.ranks;
      run_.ranks_place = Place();
      const auto on = std::ranges::find(words, "on");
      if (on != words.end() && on + 1 != words.end()) hosts_.emplace(on[1]);
    } else if (words.size() > 1 && (words[1] == "ranks" || words[1] == "rank")) {
      run_.ranks = NumberOf<int64_t>(words[0]).value_or(0);  // of xccl-synth run
      run_.ranks_place = Place();
    }
  }

  Status AddRow(int64_t size, const std::vector<std::string_view>& words) {
    // A name of a host may begin with digits, but its line has no count.
    if (words.size() < 2 || !NumberOf<int64_t>(words[1])) return OkStatus();
    if (!columns_) return Error("a row before the line that names the columns, '# size count type ... time'");
    if (words.size() < columns_->count)
      return Error(fmt::format("a row of {} columns; expected {}", words.size(), columns_->count));
    const std::string time(words[columns_->time]);
    const std::optional<double> us = NumberOf<double>(time);
    if (!us || !(*us > 0) || !std::isfinite(*us))
      return Error(fmt::format("time '{}'; expected more than 0 us", Shortened(time)));
    if (columns_->root)
      if (const auto root = NumberOf<int64_t>(words[*columns_->root]); root && *root >= 0) run_.root = root;
    int64_t wrong = 0;
    if (columns_->wrong)
      wrong =
          static_cast<int64_t>(NumberOf<double>(words[*columns_->wrong]).value_or(0));  // N/A: not checked
    run_.times.push_back({size, *us, wrong});
    return OkStatus();
  }

  const std::string& file_;
  int line_ = 0;
  NcclTestsRun run_;
  std::optional<Columns> columns_;
  std::set<std::string, std::less<>> hosts_;
};

StatusOr<NcclTestsRun> ReadTable(std::string_view text, const std::string& file) {
  Table table(file);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    XCCL_RETURN_IF_ERROR(table.Line(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return table.Ended();
}

// The values of one size. Roots are texts with blanks: "    -1".
Status AddResult(const JsonValue& result, NcclTestsRun& run) {
  NcclTestsTime time;
  XCCL_ASSIGN_OR_RETURN(time.bytes, result.GetInteger("size", 0, kForeverPs));
  XCCL_ASSIGN_OR_RETURN(const JsonValue out_of_place, result.Get("out_of_place"));
  XCCL_ASSIGN_OR_RETURN(const JsonValue us, out_of_place.Get("time"));
  XCCL_ASSIGN_OR_RETURN(time.us, us.Number());
  if (time.us <= 0) return us.Error(fmt::format("{}; expected more than 0", time.us));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> wrong, out_of_place.Find("nwrong"));
  if (wrong) {
    const StatusOr<double> elements = wrong->Number();
    if (elements.ok()) time.wrong = static_cast<int64_t>(*elements);  // null or text: not checked
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> root, result.Find("root"));
  if (root) {
    const StatusOr<std::string_view> text = root->String();
    const std::optional<int64_t> rank = text.ok() ? NumberOf<int64_t>(Trim(*text)) : std::nullopt;
    if (rank && *rank >= 0) run.root = rank;
  }
  run.times.push_back(time);
  return OkStatus();
}

StatusOr<NcclTestsRun> ReadJson(std::string_view text, const std::string& file) {
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, file));
  const JsonValue root = document.root();
  NcclTestsRun run;
  run.is_json = true;
  run.program_place = file + ": args";
  run.ranks_place = file + ": devices";
  XCCL_ASSIGN_OR_RETURN(const JsonValue args, root.Get("args"));
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> words, args.Items());
  if (words.empty()) return args.Error("empty; expected the program's name first");
  XCCL_ASSIGN_OR_RETURN(const std::string_view path, words[0].String());
  run.program = path.substr(path.rfind('/') + 1);
  run.collective = CollectiveOf(run.program);
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> lines, root.GetItems("env"));
  for (const JsonValue& line : lines) {
    XCCL_ASSIGN_OR_RETURN(const std::string_view entry, line.String());
    if (const size_t equals = entry.find('='); equals != std::string_view::npos)
      run.variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> devices, root.GetItems("devices"));
  std::set<std::string, std::less<>> hosts;
  for (const JsonValue& device : devices) {
    XCCL_ASSIGN_OR_RETURN(const std::string_view host, device.GetString("hostname"));
    hosts.emplace(host);
  }
  run.ranks = std::ssize(devices);
  run.hosts = std::ssize(hosts);
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> results, root.GetItems("results"));
  for (const JsonValue& result : results) XCCL_RETURN_IF_ERROR(AddResult(result, run));
  return run;
}

std::string_view FirstLine(std::string_view text) {
  text = Trim(WithoutByteOrderMark(text));
  return text.substr(0, text.find('\n'));
}

}  // namespace

bool IsNcclTests(std::string_view text) {
  if (FirstLine(text).starts_with('{'))
    return text.find("\"results\"") != text.npos && text.find("\"devices\"") != text.npos;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at)) {
    at = text.find_first_not_of("\n\r\t ", at);
    if (at == text.npos) return false;
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with('#') && ColumnsOf(WordsOf(line.substr(1)))) return true;
    at += line.size();
  }
  return false;
}

StatusOr<NcclTestsRun> ReadNcclTests(std::string_view text, const std::string& file) {
  text = WithoutByteOrderMark(text);
  return FirstLine(text).starts_with('{') ? ReadJson(text, file) : ReadTable(text, file);
}

}  // namespace xccl
