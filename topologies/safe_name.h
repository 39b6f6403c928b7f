// Valid names of nodes and hosts, made of other people's names.
#pragma once

#include <map>
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

// Names that differ. Cost: that of a look-up for each, also where all ask for one name.
class UniqueNames {
 public:
  // NAME, else the first of NAME-2, NAME-3, ... that is not taken yet.
  std::string Take(const std::string& name) {
    const auto [known, added] = last_.emplace(name, 1);
    std::string unique = name;
    for (bool free = added; !free; free = last_.emplace(unique, 1).second)
      unique = name + "-" + std::to_string(++known->second);
    return unique;
  }

 private:
  std::map<std::string, int> last_;  // by name that is taken: the last number that was tried
};

}  // namespace xccl
