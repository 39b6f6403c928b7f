// What the executors of MSCCL XML would refuse, or read otherwise, though this program reads it: their
// parsers know less than XML. The rules are those of docs/msccl.md. Private to the reader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interchange/msccl/file.h"

namespace xccl::msccl {

// "NAME:LINE: what is there; what the executors do with it", once for each kind, at its first place. `file`
// is what was read from `text`. Cost: linear in both.
std::vector<std::string> DialectWarnings(std::string_view text, const File& file, std::string_view name);

}  // namespace xccl::msccl
