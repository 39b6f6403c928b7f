// Messages with known bytes over every connection of a wiring, for tests of transports.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/wiring.h"

namespace xccl {

// Every rank sends to every other, over this many channels.
Wiring AllPairs(int32_t ranks, int32_t channels, int64_t slot_bytes);
// Every rank sends to the next and to the one before.
Wiring RingOf(int32_t ranks, int32_t channels, int64_t slot_bytes);
// Rank 0 sends to all, and all to rank 0.
Wiring StarOf(int32_t ranks, int32_t channels, int64_t slot_bytes);

// The bytes of message m, of sizes from nothing to a whole slot.
int64_t BytesOf(uint64_t message, int64_t slot_bytes);

struct Carried {
  int64_t messages = 0;  // received
  int64_t wrong = 0;     // bytes
  int64_t slept = 0;     // times that the rank waited for its files
};
// This rank's part of `messages` messages over each connection that the transport has: it puts, takes and
// checks them, and sleeps where nothing can go on. Errors: the transport's; kLimit when nothing arrives for
// `limit`.
StatusOr<Carried> Carry(const Wiring& wiring, const std::vector<int32_t>& hosts, Transport& transport,
                        Rank rank, uint64_t messages, std::chrono::milliseconds limit);

}  // namespace xccl
