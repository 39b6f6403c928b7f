// Tells the formats apart, and reads the JSON of nccl-tests.
#include "interchange/traces/nccl_tests.h"

#include <fmt/core.h>

#include <iterator>
#include <set>
#include <utility>

#include "base/json/json_value.h"
#include "base/strings.h"
#include "base/units.h"
#include "interchange/traces/nccl_tests_log.h"
#include "interchange/traces/nccl_tests_words.h"
#include "interchange/traces/rccl_tests.h"

namespace xccl {
namespace {

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
  run.place = file;
  run.lists_variables = true;
  run.program_place = file + ": args";
  run.ranks_place = file + ": devices";
  XCCL_ASSIGN_OR_RETURN(const JsonValue args, root.Get("args"));
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> words, args.Items());
  if (words.empty()) return args.Error("empty; expected the program's name first");
  XCCL_ASSIGN_OR_RETURN(const std::string_view path, words[0].String());
  run.program = path.substr(path.rfind('/') + 1);
  run.collective = CollectiveOfProgram(run.program);
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

bool BeginsWith(std::string_view text, char begin) { return Trim(text).starts_with(begin); }

}  // namespace

bool IsNcclTests(std::string_view text) {
  text = WithoutByteOrderMark(text);
  if (BeginsWith(text, '{'))
    return text.find("\"results\"") != text.npos && text.find("\"devices\"") != text.npos;
  return !BeginsWith(text, '<') && (IsRcclTests(text) || HasNcclTestsTable(text));
}

StatusOr<std::vector<NcclTestsRun>> ReadNcclTests(std::string_view text, const std::string& file) {
  text = WithoutByteOrderMark(text);
  if (IsRcclTests(text)) return ReadRcclTests(text, file);
  if (!BeginsWith(text, '{')) return ReadNcclTestsLog(text, file);
  XCCL_ASSIGN_OR_RETURN(NcclTestsRun run, ReadJson(text, file));
  std::vector<NcclTestsRun> runs;
  runs.push_back(std::move(run));
  return runs;
}

}  // namespace xccl
