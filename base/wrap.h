// Breaks a text into lines at its white space.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace xccl {

// Lines of at most `most` bytes, each of as many words as fit; a longer word has a line of its own. Words of
// a line are one blank apart. None for a text without words.
std::vector<std::string> WrapWords(std::string_view text, size_t most);

}  // namespace xccl
