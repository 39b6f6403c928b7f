#include "base/wrap.h"

#include <sstream>

namespace xccl {

std::vector<std::string> WrapWords(std::string_view text, size_t most) {
  std::istringstream words{std::string(text)};
  std::vector<std::string> lines;
  for (std::string word; words >> word;) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > most)
      lines.push_back(word);
    else
      lines.back() += ' ' + word;
  }
  return lines;
}

}  // namespace xccl
