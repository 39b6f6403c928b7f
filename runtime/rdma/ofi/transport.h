// Transport between hosts over libfabric: TCP, EFA and what else it has.
//
// Strangers who reach an endpoint neither write into slots nor make counters move, since they know no key and
// no mark (rail.h, signal.h). One who sends from the address of a peer, as a user of the peer's host may, can
// still pass for that peer: libfabric's TCP believes the port that a client names, and sends it what was the
// peer's.
#pragma once

#include <memory>

#include "base/status.h"
#include "runtime/transport/network.h"
#include "runtime/transport/transport.h"

namespace xccl::ofi {

// True where the library and a provider are found; else why not.
Status Available();
// This rank's end of its connections with other hosts. All ranks of the group call it, also those without
// such connections. The memory outlives the transport. Errors: kSystem naming library, device or peer.
StatusOr<std::unique_ptr<Transport>> Connect(const NetworkMemory& memory, const NetworkOptions& options);

}  // namespace xccl::ofi
