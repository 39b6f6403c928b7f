// Ranks of programs that start their processes themselves meet by an id of 128 bytes, as NCCL's: one process
// makes it, hands it to all by its own means, and serves the rendezvous in a thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/ids.h"
#include "base/status.h"
#include "runtime/bootstrap/options.h"
#include "runtime/bootstrap/placement.h"

namespace xccl {

// The addresses and the port of the rendezvous, and a secret token of 128 random bits.
using UniqueId = std::array<std::byte, 128>;

// The thread ends when all ranks have met, when they have not within options.time_limit from this call, or
// when the last user of the id in this process has ended. Errors: kSystem.
// `met_at`: this host's address in a group whose ranks will meet again; the id then has addresses of its
// family alone, which all of them have, where this host has some. "": any.
StatusOr<UniqueId> MakeUniqueId(const BootstrapOptions& options, const std::string& met_at = "");

// One of an id's users in this process. When the last of them is gone, and the ranks have not met, the id's
// thread ends within a fraction of a second, with its port and descriptors; ranks that wait for the others
// are told. Null where this process does not serve the id. Safe from any thread.
std::shared_ptr<void> UseUniqueId(const UniqueId& id);

// Joins with Bootstrap::Join. Errors: kUsage where MakeUniqueId did not make the id, or for a bad rank.
StatusOr<Placement> FromUniqueId(const UniqueId& id, Rank rank, int32_t ranks);

}  // namespace xccl
