// The second step of reading an NCCL dump: what the tree leaves out is filled in from PCI classes, neighbours
// and flags, and PCIe switches that are one chip, or none, are merged. What had to be guessed is a warning.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/nccl/nccl_tree.h"

namespace xccl {

// Afterwards: at least one GPU is there; every GPU has an architecture, every item below a CPU a bandwidth;
// no item is a kDevice; every bridge and CPU that is not removed has something below it. Errors:
// kInvalidInput with the flag that would help; kUsage for a flag that makes no sense.
Status SettleNcclTree(NcclSystem& system, std::string_view text, std::string_view file,
                      const LoadOptions& options);

}  // namespace xccl
