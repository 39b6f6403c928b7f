// Connects a rank with its partners: it connects to its partners of higher rank, and its partners of lower
// rank connect to it.
#pragma once

#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/hello.h"
#include "runtime/bootstrap/lobby.h"
#include "runtime/bootstrap/rendezvous.h"

namespace xccl::bootstrap {

struct Connected {
  Partner partner;
  Connection connection;
};

// The secret key of a group. The keys of all connections between its ranks are made from it.
Digest KeyOfGroup(const Placement& placement, const Welcome& welcome);

// One entry per partner, in their order; returns when all ranks have theirs. Errors: what the rendezvous says
// to all ranks, who has ended above all.
StatusOr<std::vector<Connected>> ConnectPartners(const Placement& placement, Meeting& meeting,
                                                 Clock::time_point until);

}  // namespace xccl::bootstrap
