// The exchange through which the processes of a communicator connect: bytes and open files, all to all.
// Processes of one host meet at a Unix socket in the abstract name space, which leaves nothing in the file
// system. Party 0 listens, collects what every party sends, and hands all of it to all.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/host/parcel.h"

namespace xccl {

struct Exchange {
  int32_t party = 0, parties = 1;
  // The parcels of all parties, by party, one's own included. All parties call it equally often. Errors:
  // kLimit when a party does not come within the time limit, kPeerEnded when one is gone.
  std::function<StatusOr<std::vector<Parcel>>(Parcel mine)> all;
  // Checks without waiting: kPeerEnded "party 2: its process ended" when that is known. A party whose
  // Exchange was destroyed before has left in good order.
  std::function<Status()> check;
};

Exchange AloneExchange();

// Waits until all parties have come. `name`: letters, digits, dots and dashes, the same for all, and of no
// other run of this host. Errors: kLimit "xccl-1: 2 of 3 processes came within 30 s". `over`, where there is
// one, is asked often while this call or the exchange waits; once it is true they end with kPeerEnded.
StatusOr<Exchange> SocketExchange(const std::string& name, int32_t party, int32_t parties,
                                  std::chrono::nanoseconds time_limit, std::function<bool()> over = {});

}  // namespace xccl
