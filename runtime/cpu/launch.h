// Starts ranks on this host, as threads or as child processes, and waits for all of them.
#pragma once

#include <chrono>
#include <functional>
#include <span>

#include "base/ids.h"
#include "base/status.h"
#include "runtime/endpoint.h"
#include "runtime/transport/shared_region.h"

namespace xccl {

// The work of one rank. Its failure fails the operation on all ranks.
using RankBody = std::function<Status(Endpoint&)>;

// Runs body once for every rank given. The region says how: kThreads one thread each, kChildren one forked
// process each (its memory is the caller's as of the fork; results must go through shared memory). Returns
// the first failure. A child that is killed, or exits by itself, ends the others with kLimit "rank 2: its
// process 4711 was ended by signal 9 (Killed)"; a failure with kLimit while a child is stopped begins with
// "rank 2: its process 4711 is stopped; ". Children that do not end within a second after a failure, or
// `time_limit` where that is less, are killed, and all die with the caller. Requires: for kChildren, that the
// caller has no other threads.
Status RunRanks(const SharedRegion& region, std::span<const Rank> ranks, std::chrono::nanoseconds time_limit,
                const RankBody& body);

}  // namespace xccl
