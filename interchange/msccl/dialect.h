// Finds XML that this program reads, but that the executors of MSCCL XML would refuse or read otherwise,
// because their parsers know less than XML. docs/msccl.md lists the rules. Private to the reader.
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
