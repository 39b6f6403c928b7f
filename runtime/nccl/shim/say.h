// Messages of the shim to the user: lines "xccl: …" on stderr.
#pragma once

#include <string>
#include <string_view>

#include "runtime/nccl/shim/coverage.h"

namespace xccl::nccl_shim {

struct Member;

void Say(std::string_view line);
// Says why a call goes to NCCL: each size and type of a collective once a
// communicator.
void SayFallback(Member& member, const NcclCall& call, const char* why);

}  // namespace xccl::nccl_shim
