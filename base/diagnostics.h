// Places in a user's file, for messages of the form file:line:column: text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace xccl {

struct Location {
  std::string file;
  int line = 1;    // from 1
  int column = 1;  // from 1, in bytes

  bool operator==(const Location&) const = default;
};

// The location of byte `offset` in `text`. Cost: linear in offset.
Location LocationOfOffset(std::string_view file, std::string_view text, size_t offset);
// "dgx.xml:14:5"
std::string ToString(const Location& location);
// InvalidInput with "file:line:column: message".
Status InvalidAt(const Location& location, std::string_view message);

}  // namespace xccl
