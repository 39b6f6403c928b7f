// XML and HTML are told by the first tag that is no comment, declaration or DOCTYPE. JSON is walked with its
// depth until a key of the outermost object decides; a text that is cut off is told by what it has.
#include "base/file_kinds.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/strings.h"

namespace xccl {
namespace {

constexpr size_t kMostRead = 64 << 10;

using Kinds = std::pair<std::string_view, FileKind>;

// How the first line begins that is not empty and, but for the first of these, no comment.
constexpr std::string_view kFabricLines[] = {
    "# Topology file", "vendid=",    "switchguid=", "caguid=", "Switch: 0x", "CA: ",
    "SwitchName=",     "BlockName=", "- topology:"};

constexpr Kinds kRoots[] = {
    {"topology", FileKind::kTopology}, {"system", FileKind::kTopology}, {"graphml", FileKind::kTopology},
    {"algo", FileKind::kMscclXml},     {"html", FileKind::kPage},       {"svg", FileKind::kPicture},
};

// Keys that only one kind has at the outermost level.
constexpr Kinds kKeys[] = {
    {"expert_plan", FileKind::kExpertPlan},  // ahead of its "topology"
    {"schedule", FileKind::kPlan},
    {"made_by", FileKind::kPlan},
    {"topology", FileKind::kPlan},
    {"plans", FileKind::kBookIndex},
    {"launch_ps", FileKind::kMachineModel},
    {"groups", FileKind::kGroups},
    {"pre", FileKind::kCollective},
    {"post", FileKind::kCollective},
    {"gpus", FileKind::kMscclppPlan},
    {"traceEvents", FileKind::kTrace},
    {"synthesis_s", FileKind::kResults},
    {"violations", FileKind::kResults},
    {"bound_kind", FileKind::kResults},
    {"lldp", FileKind::kFabric},
    // Topologies of TE-CCL, TACCL, SCCL, and networkx.
    {"TopologyParams", FileKind::kTopology},
    {"gpus_per_node", FileKind::kTopology},
    {"msccl_type", FileKind::kTopology},
    {"multigraph", FileKind::kTopology},
    {"call_log", FileKind::kCallLog},
};

FileKind Find(std::string_view name, std::span<const Kinds> kinds) {
  const auto found = std::ranges::find(kinds, name, &Kinds::first);
  return found == kinds.end() ? FileKind::kOther : found->second;
}

// The kind of a text that begins with '<'.
FileKind KindOfMarkup(std::string_view text) {
  while (true) {
    const size_t open = text.find('<');
    if (open == std::string_view::npos || open + 1 >= text.size()) return FileKind::kOther;
    text.remove_prefix(open + 1);
    if (text.starts_with("!--")) {
      const size_t end = text.find("-->");
      if (end == std::string_view::npos) return FileKind::kOther;
      text.remove_prefix(end + 3);
    } else if (text[0] != '!' && text[0] != '?') {
      const size_t end = text.find_first_of(" \t\r\n/>");
      std::string name(text.substr(0, end));
      name.erase(0, name.find(':') + 1);  // a namespace's prefix; npos + 1 is 0
      return Find(name, kRoots);
    }
  }
}

// The kind of a text that begins with '{'.
FileKind KindOfObject(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const size_t begin = ++i;
    while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
    if (i >= text.size()) return FileKind::kOther;
    const size_t next = text.find_first_not_of(" \t\r\n", i + 1);
    if (depth != 1 || next == std::string_view::npos || text[next] != ':') continue;
    const FileKind kind = Find(text.substr(begin, i - begin), kKeys);
    if (kind != FileKind::kOther) return kind;
  }
  return FileKind::kOther;
}

// Whether it begins as Graphviz text does: "digraph NAME {".
bool IsGraphviz(std::string_view text) {
  const size_t brace = text.substr(0, 200).find('{');
  if (brace == std::string_view::npos) return false;
  std::vector<std::string_view> words = WordsOf(text.substr(0, brace));
  if (!words.empty() && words[0] == "strict") words.erase(words.begin());
  return !words.empty() && (words[0] == "graph" || words[0] == "digraph");
}

// Whether the first line has commas, and each of its fields is a number.
bool IsNumbersWithCommas(std::string_view text) {
  const std::vector<std::string> fields = Split(Trim(text.substr(0, text.find('\n'))), ',');
  return fields.size() > 1 && std::ranges::all_of(fields, [](const std::string& field) {
           return !Trim(field).empty() &&
                  Trim(field).find_first_not_of("0123456789.+-eE") == std::string::npos;
         });
}

bool IsFabric(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    if (std::ranges::any_of(kFabricLines, [&](std::string_view begin) { return line.starts_with(begin); }))
      return true;
    if (!line.empty() && line[0] != '#' && line != "---") return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

// Returns the hint that says how to make a file of the expected kind from the given one, or "".
std::string Hint(FileKind seen, FileKind expected, std::string_view file) {
  const bool makes_plans = seen == FileKind::kMscclXml || seen == FileKind::kMscclppPlan;
  if (expected == FileKind::kPlan && (seen == FileKind::kTopology || seen == FileKind::kFabric))
    return fmt::format("; hint: xccl-synth plan {} -c allreduce -o FILE makes one", file);
  if (expected == FileKind::kPlan && makes_plans)
    return fmt::format("; hint: xccl-synth import {} -o FILE makes one", file);
  if (expected == FileKind::kPlan && seen == FileKind::kExpertPlan)
    return fmt::format("; hint: xccl-synth run {} and xccl-synth verify {} take it", file, file);
  if (expected == FileKind::kExpertPlan && seen == FileKind::kTopology)
    return fmt::format(
        "; hint: xccl-synth plan {} -c dispatch --experts 256 --top-k 8 --tokens 4096 -o FILE "
        "makes one",
        file);
  if (seen == FileKind::kCallLog)
    return fmt::format("; hint: xccl-synth book TOPOLOGY --from-log {} -o BOOK plans what it has", file);
  return "";
}

}  // namespace

std::string_view ToString(FileKind kind) {
  switch (kind) {
    case FileKind::kOther:
      return "";
    case FileKind::kTopology:
      return "a topology";
    case FileKind::kFabric:
      return "a fabric";
    case FileKind::kPlan:
      return "a plan";
    case FileKind::kExpertPlan:
      return "a plan of expert dispatch";
    case FileKind::kBookIndex:
      return "the index of a plan book";
    case FileKind::kMachineModel:
      return "a machine model";
    case FileKind::kCollective:
      return "a collective";
    case FileKind::kGroups:
      return "a list of groups";
    case FileKind::kMscclXml:
      return "MSCCL XML";
    case FileKind::kMscclppPlan:
      return "an MSCCL++ plan";
    case FileKind::kPage:
      return "a page";
    case FileKind::kPicture:
      return "a picture";
    case FileKind::kTrace:
      return "a trace";
    case FileKind::kResults:
      return "a result of --json";
    case FileKind::kCsv:
      return "CSV";
    case FileKind::kCallLog:
      return "a log of calls";
  }
  return "";
}

FileKind KindOfText(std::string_view text) {
  text = text.substr(0, kMostRead);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return FileKind::kOther;
  text.remove_prefix(begin);
  if (text[0] == '<') return KindOfMarkup(text);
  if (text[0] == '{') return KindOfObject(text);
  if (IsFabric(text)) return FileKind::kFabric;
  if (IsGraphviz(text)) return FileKind::kTopology;
  return IsNumbersWithCommas(text) ? FileKind::kCsv : FileKind::kOther;
}

Status CheckKind(std::string_view text, std::string_view file, FileKind expected) {
  const FileKind seen = KindOfText(text);
  if (seen == FileKind::kOther || seen == expected) return OkStatus();
  return InvalidInput(fmt::format("{}: this is {}; expected {}{}", file, ToString(seen), ToString(expected),
                                  Hint(seen, expected, file)));
}

Status CheckNoBook(const std::string& path, FileKind expected) {
  if (!IsDirectory(path) || !PathExists(path + "/index.json")) return OkStatus();
  return InvalidInput(
      fmt::format("{}: this is a plan book; expected {}{}", path, ToString(expected),
                  expected == FileKind::kPlan ? "; hint: its files that end in .plan.json are plans" : ""));
}

StatusOr<std::string> ReadFileOfKind(const std::string& path, FileKind expected) {
  XCCL_RETURN_IF_ERROR(CheckNoBook(path, expected));
  XCCL_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  XCCL_RETURN_IF_ERROR(CheckKind(text, path, expected));
  return text;
}

}  // namespace xccl
