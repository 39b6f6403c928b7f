// Transport between hosts over libibverbs: InfiniBand and RoCE.
#pragma once

#include <memory>

#include "base/status.h"
#include "runtime/transport/network.h"
#include "runtime/transport/transport.h"

namespace xccl::verbs {

// True where the library and an active port are found; else why not.
Status Available();
// OK where the devices of this rank's connections can be given these slots, which may be a GPU's.
Status Reaches(const NetworkMemory& memory, const NetworkOptions& options);
// This rank's end of its connections with other hosts. All ranks of the group call it, also those without
// such connections. The memory outlives the transport. Errors: kSystem naming library, device or peer.
StatusOr<std::unique_ptr<Transport>> Connect(const NetworkMemory& memory, const NetworkOptions& options);

}  // namespace xccl::verbs
