// Valid names of nodes and hosts, made of other people's names.
#pragma once

#include <string>
#include <string_view>

namespace xccl {

// The text with '_' for what is not printable ASCII, for the characters that references use, and for the
// second of two dots. Passes CheckNodeName, unless it is empty.
inline std::string SafeName(std::string_view text) {
  std::string name;
  for (char c : text) {
    const bool plain =
        c > ' ' && c < '\x7f' && std::string_view("/:*,<>&\"'").find(c) == std::string_view::npos;
    name += plain && !(c == '.' && name.ends_with('.')) ? c : '_';
  }
  return name;
}

}  // namespace xccl
