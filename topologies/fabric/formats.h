// The formats of files that describe fabrics, in one table. A file's contents tell its format.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "topologies/fabric/fabric.h"

namespace xccl {

struct FabricFormat {
  std::string_view name;  // as in Fabric::format
  bool (*is)(std::string_view text);
  StatusOr<Fabric> (*read)(std::string_view text, std::string_view file);
};
std::span<const FabricFormat> FabricFormats();

std::vector<std::string> FabricFormatNames();

// The format of the text; null: it describes no fabric.
const FabricFormat* FabricFormatOf(std::string_view text);

// A fabric and the file that it was read from.
using FabricOfFile = std::pair<std::string, Fabric>;

// One fabric of several files: switches of one guid, or of one name without guids, are one, and so are
// adapters of one guid, or of one host and device. A cable that two files have between the same ports is one.
// The files are of the first one's format; of a file in another format only its domains count.
// Warnings name damage with its file and line, which the merged cables no longer have. Errors: kInvalidInput.
StatusOr<Fabric> MergeFabrics(std::span<const FabricOfFile> fabrics);

}  // namespace xccl
