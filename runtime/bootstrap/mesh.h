// Connects a rank with its partners: it calls those of higher rank, and those of lower rank call it.
#pragma once

#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/hello.h"
#include "runtime/bootstrap/lobby.h"

namespace xccl::bootstrap {

struct Connected {
  Partner partner;
  Lobby::Connection connection;
};

// One entry per partner, in their order. Errors name the partner; the partners that were reached are told.
StatusOr<std::vector<Connected>> ConnectPartners(int32_t rank, const Welcome& welcome, Lobby& lobby,
                                                 Clock::time_point until);

}  // namespace xccl::bootstrap
