// Lines of KEY=VALUE pairs, as Slurm's own parser reads them: a comment is cut first, then a line that ends
// in a backslash continues on the next one. The first key says what the line describes.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "topologies/fabric/slurm_file.h"

namespace xccl {
namespace {

constexpr std::string_view kBlanks = " \t\r";

struct Pair {
  std::string lower;  // the key in lower case
  std::string_view value;
};

// The kinds of line by their first key, and the keys that may follow: those of topology.conf, and those that
// scontrol prints beside them.
struct LineKind {
  std::string_view head;
  std::vector<std::string_view> others;
};
const std::vector<LineKind>& LineKinds() {
  static const auto* const kKinds = new std::vector<LineKind>{
      {"switchname", {"nodes", "switches", "linkspeed", "level"}},
      {"blockname", {"nodes", "blockindex", "blocksize"}},
      {"blocksizes", {}},
      {"aggregatedblock", {"nodes", "blockindex", "blocksize"}},
      {"ringname", {"nodes"}},
  };
  return *kKinds;
}

// The part of a line before its comment.
std::string_view WithoutComment(std::string_view line) {
  for (size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1))
    if (at == 0 || line[at - 1] != '\\') return line.substr(0, at);
  return line;
}

class ConfReader {
 public:
  ConfReader(std::string_view text, std::string_view file) : text_(text), lists_(file) {}

  StatusOr<SlurmFile> Read() {
    int32_t number = 0, begin = 0;
    std::string joined;  // a line with those that continue it
    for (size_t at = 0; at < text_.size();) {
      const size_t end = std::min(text_.find('\n', at), text_.size());
      const std::string_view line = WithoutComment(text_.substr(at, end - at));
      at = end + 1;
      ++number;
      if (joined.empty()) begin = number;
      joined += line;
      const size_t last = joined.find_last_not_of(kBlanks);
      const bool continues = last != std::string::npos && joined[last] == '\\' && at < text_.size();
      if (continues) {
        joined[last] = ' ';
        continue;
      }
      XCCL_RETURN_IF_ERROR(ReadLine(joined, begin));
      joined.clear();
    }
    return std::move(result_);
  }

 private:
  Status ReadLine(std::string_view line, int32_t number) {
    if (ValidUtf8Length(line) != line.size())
      return lists_.Error(number, "bytes that are not UTF-8; expected text");
    XCCL_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, PairsOf(line, number));
    if (pairs.empty()) return OkStatus();
    XCCL_RETURN_IF_ERROR(CheckKeys(pairs, number));
    const auto value = [&](std::string_view key) -> std::string_view {
      const auto found = std::ranges::find(pairs, key, &Pair::lower);
      // scontrol prints (null) for what is not set.
      return found == pairs.end() || found->value == "(null)" ? std::string_view() : found->value;
    };
    const std::string& head = pairs[0].lower;
    if (head == "switchname") {
      SlurmSwitch made{std::string(value("switchname")), {}, {}, number};
      XCCL_RETURN_IF_ERROR(lists_.CheckName(made.name, "SwitchName", number));
      XCCL_RETURN_IF_ERROR(Expand(value("switches"), "Switches", number, made.children));
      // scontrol prints with a switch all hosts below it.
      const bool below = !made.children.empty() && !value("level").empty();
      if (!below) XCCL_RETURN_IF_ERROR(Expand(value("nodes"), "Nodes", number, made.hosts));
      result_.switches.push_back(std::move(made));
    } else if (head == "blockname") {
      SlurmBlock made{std::string(value("blockname")), {}, number};
      XCCL_RETURN_IF_ERROR(lists_.CheckName(made.name, "BlockName", number));
      XCCL_RETURN_IF_ERROR(Expand(value("nodes"), "Nodes", number, made.hosts));
      result_.blocks.push_back(std::move(made));
    } else if (head == "ringname") {
      return lists_.Error(number, "a ring of Slurm; expected a tree or blocks");
    }
    return OkStatus();
  }

  Status Expand(std::string_view list, std::string_view what, int32_t number,
                std::vector<std::string>& names) {
    if (list.empty()) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(names, lists_.Expand(list, what, number));
    return OkStatus();
  }

  Status CheckKeys(const std::vector<Pair>& pairs, int32_t number) const {
    const auto kind = std::ranges::find(LineKinds(), pairs[0].lower, &LineKind::head);
    if (kind == LineKinds().end()) {
      std::vector<std::string_view> heads;
      for (const LineKind& known : LineKinds()) heads.push_back(known.head);
      return lists_.Error(number,
                          fmt::format("a line of '{}'; expected SwitchName=, BlockName= or BlockSizes={}",
                                      Cleaned(pairs[0].lower, 80), DidYouMean(pairs[0].lower, heads)));
    }
    for (size_t i = 1; i < pairs.size(); ++i) {
      const std::string& key = pairs[i].lower;
      if (std::ranges::find(kind->others, key) == kind->others.end())
        return lists_.Error(
            number, fmt::format("no key '{}' of {}; expected one of {}{}", Cleaned(key, 80), kind->head,
                                fmt::join(kind->others, ", "), DidYouMean(key, kind->others)));
      for (size_t j = 1; j < i; ++j)
        if (pairs[j].lower == key)
          return lists_.Error(number, fmt::format("'{}' a second time; expected it once", key));
    }
    return OkStatus();
  }

  StatusOr<std::vector<Pair>> PairsOf(std::string_view line, int32_t number) const {
    std::vector<Pair> pairs;
    const auto skip = [&](size_t at) { return std::min(line.find_first_not_of(kBlanks, at), line.size()); };
    for (size_t at = skip(0); at < line.size(); at = skip(at)) {
      const size_t end = std::min(line.find_first_of(" \t\r=", at), line.size());
      const std::string_view key = line.substr(at, end - at);
      const size_t equals = skip(end);
      if (key.empty() || equals == line.size() || line[equals] != '=')
        return lists_.Error(number, fmt::format("'{}'; expected KEY=VALUE, and no blanks within a list",
                                                Cleaned(key.empty() ? line.substr(at) : key, 80)));
      const size_t begin = skip(equals + 1);
      const bool quoted = begin < line.size() && line[begin] == '"';
      const size_t from = quoted ? begin + 1 : begin;
      const size_t to =
          quoted ? line.find('"', from) : std::min(line.find_first_of(kBlanks, from), line.size());
      if (to == std::string_view::npos)
        return lists_.Error(number,
                            fmt::format("no '\"' ends the value of '{}'; expected one", Cleaned(key, 80)));
      pairs.push_back({Lower(key), line.substr(from, to - from)});
      at = quoted ? to + 1 : to;
    }
    return pairs;
  }

  std::string_view text_;
  SlurmLists lists_;
  SlurmFile result_;
};

}  // namespace

bool IsSlurmConf(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = Trim(WithoutComment(text.substr(at, end - at)));
    at = end + 1;
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string key = Lower(Trim(line.substr(0, equals)));
    return std::ranges::find(LineKinds(), key, &LineKind::head) != LineKinds().end();
  }
  return false;
}

StatusOr<SlurmFile> ReadSlurmConf(std::string_view text, std::string_view file) {
  return ConfReader(text, file).Read();
}

}  // namespace xccl
