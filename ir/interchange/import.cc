#include "ir/interchange/import.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "ir/interchange/msccl_read.h"
#include "ir/interchange/mscclpp_read.h"

namespace xccl {

StatusOr<Imported> ReadForeign(std::string_view text, const ImportOptions& options) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '<') return ReadMscclXml(text, options);
  if (begin != std::string_view::npos && text[begin] == '{') return ReadMscclppJson(text, options);
  return InvalidInput(begin == std::string_view::npos
                          ? fmt::format("{}: empty; expected MSCCL XML or an MSCCL++ plan", options.file)
                          : fmt::format("{}: begins with '{}'; expected MSCCL XML or an MSCCL++ plan",
                                        options.file, Shortened(text.substr(begin, 20))));
}

}  // namespace xccl
