// Connects a rank with its partners: it calls those of higher rank, and those of lower rank call it.
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

// What the keys of connections between the ranks of a group are made from.
Digest KeyOfGroup(const Placement& placement, const Welcome& welcome);

// One entry per partner, in their order; returns when all ranks have theirs. Errors: what the rendezvous says
// to all ranks, who has ended above all.
StatusOr<std::vector<Connected>> ConnectPartners(const Placement& placement, Meeting& meeting,
                                                 Clock::time_point until);

}  // namespace xccl::bootstrap
