#include "ir/interchange/import.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "base/strings.h"
#include "ir/interchange/msccl_read.h"
#include "ir/interchange/mscclpp_read.h"

namespace xccl {

StatusOr<Imported> ReadForeign(std::string_view text, const ImportOptions& options) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '<') return ReadMscclXml(text, options);
  if (begin != std::string_view::npos && text[begin] == '{') return ReadMscclppJson(text, options);
  std::vector<std::string> formats = {"MSCCL XML", "an MSCCL++ plan", "ForestColl's trees", "TACOS' lists"};
  if (!options.beside.empty()) formats.push_back(options.beside);
  const std::string seen = begin == std::string_view::npos
                               ? "empty"
                               : fmt::format("begins with '{}'", Shortened(text.substr(begin, 20)));
  return InvalidInput(fmt::format("{}: {}; expected {}", options.file, seen, Either(formats)));
}

}  // namespace xccl
