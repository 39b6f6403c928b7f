// The second step of reading an NCCL dump. PCI classes, neighbours and flags supply what the tree leaves
// out. Chained PCIe switches that are one chip, or only virtual, are merged. Each guess becomes a warning.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/nccl/nccl_tree.h"

namespace xccl {

// Guarantees that there is at least one GPU; that every GPU has an architecture and every item below a CPU
// a bandwidth; that no item is a kDevice; and that every remaining bridge and CPU has something below it.
// Errors: kInvalidInput with the flag that would help; kUsage for a flag that makes no sense.
Status SettleNcclTree(NcclSystem& system, std::string_view text, std::string_view file,
                      const LoadOptions& options);

}  // namespace xccl
