// The formats of files that describe fabrics, in one table. A file's contents tell its format.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topologies/fabric/fabric.h"

namespace xccl {

struct FabricFile {
  std::string path;  // shown in messages
  std::string text;
};

// "ibnetdiscover", "iblinkinfo", ...
std::vector<std::string> FabricFormatNames();

bool IsFabric(std::string_view text);

// One fabric of one file or several. In several, switches of one guid, or of one name without guids, are one,
// and so are adapters of one guid, or of one host and device. A cable that two files have between the same
// ports is one. Of several formats, the fabric is that of the format which tells most of cables; of files in
// another format only the domains count.
// Warnings name damage with its file and line, which cables of several files do not have. Errors:
// kInvalidInput; those of the readers. Requires: at least one file.
StatusOr<Fabric> ReadFabric(std::span<const FabricFile> files);

}  // namespace xccl
