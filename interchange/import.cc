#include "interchange/import.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "interchange/msccl/read.h"
#include "interchange/mscclpp/read.h"

namespace xccl {
namespace {

// The beginning of a text's first line, for messages that quote the text.
std::string_view FirstWords(std::string_view text) {
  return Trim(text.substr(0, std::min<size_t>(text.find_first_of("\r\n"), 20)));
}

}  // namespace

StatusOr<Imported> ReadForeign(std::string_view text, const ImportOptions& options) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '<') return ReadMscclXml(text, options);
  if (begin != std::string_view::npos && text[begin] == '{') return ReadMscclppJson(text, options);
  std::vector<std::string> formats = {"MSCCL XML", "an MSCCL++ plan", "ForestColl's trees", "TACOS' lists"};
  if (!options.beside.empty()) formats.push_back(options.beside);
  const std::string seen = begin == std::string_view::npos
                               ? "empty"
                               : fmt::format("begins with '{}'", Shortened(FirstWords(text.substr(begin))));
  return InvalidInput(fmt::format("{}: {}; expected {}", options.file, seen, Either(formats)));
}

}  // namespace xccl
