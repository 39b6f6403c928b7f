#include "base/diagnostics.h"

#include <algorithm>

namespace xccl {

Location LocationOfOffset(std::string_view file, std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const size_t last_break = before.rfind('\n');
  const size_t column = last_break == std::string_view::npos ? before.size() : before.size() - last_break - 1;
  return Location{std::string(file), 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
                  1 + static_cast<int>(column)};
}

std::string ToString(const Location& location) {
  return location.file + ":" + std::to_string(location.line) + ":" + std::to_string(location.column);
}

Status InvalidAt(const Location& location, std::string_view message) {
  return InvalidInput(ToString(location) + ": " + std::string(message));
}

}  // namespace xccl
