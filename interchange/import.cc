#include "interchange/import.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/file_kinds.h"
#include "base/strings.h"
#include "interchange/msccl/read.h"
#include "interchange/mscclpp/read.h"

namespace xccl {
namespace {

// The beginning of a text's first line, for messages that quote the text.
std::string_view FirstWords(std::string_view text) {
  return Trim(text.substr(0, std::min<size_t>(text.find_first_of("\r\n"), 20)));
}

std::string Expected(const ImportOptions& options) {
  std::vector<std::string> formats = {"MSCCL XML", "an MSCCL++ plan", "ForestColl's trees", "TACOS' lists"};
  if (!options.beside.empty()) formats.push_back(options.beside);
  return Either(formats);
}

}  // namespace

StatusOr<Imported> ReadForeign(std::string_view text, const ImportOptions& options) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  const FileKind kind = KindOfText(text);
  const bool foreign = kind == FileKind::kOther || kind == FileKind::kCsv || kind == FileKind::kMscclXml ||
                       kind == FileKind::kMscclppPlan;
  if (!foreign) {
    const bool is_plan = kind == FileKind::kPlan;
    return InvalidInput(fmt::format("{}: this is {}; expected {}", options.file,
                                    is_plan ? "a plan of xccl-synth" : ToString(kind), Expected(options)));
  }
  if (begin != std::string_view::npos && text[begin] == '<') return ReadMscclXml(text, options);
  if (begin != std::string_view::npos && text[begin] == '{') return ReadMscclppJson(text, options);
  const std::string seen = begin == std::string_view::npos
                               ? "empty"
                               : fmt::format("begins with '{}'", Shortened(FirstWords(text.substr(begin))));
  return InvalidInput(fmt::format("{}: {}; expected {}", options.file, seen, Expected(options)));
}

}  // namespace xccl
