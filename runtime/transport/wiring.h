// The connections that programs use, and how large their slots are. All ranks compute the same wiring from
// the same programs, so a connection has the same index everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/program.h"

namespace xccl {

struct ConnectionKey {
  Rank src;
  Rank dst;
  int32_t channel = 0;
  auto operator<=>(const ConnectionKey&) const = default;
};

// The network devices that the ends of a connection use, as their hosts number them.
struct Rails {
  int32_t src = 0, dst = 0;
  bool operator==(const Rails&) const = default;
};

struct Wiring {
  int32_t ranks = 0;
  std::vector<ConnectionKey> connections;  // sorted, distinct
  int32_t slots = 1;                       // equal for every connection: the most that any program asks for
  int64_t slot_bytes = 0;                  // multiple of 64; every message is cut to fit behind its head
  std::vector<Rails> rails = {};           // by connection; empty: the first device everywhere
  bool operator==(const Wiring&) const = default;

  std::optional<int32_t> Find(const ConnectionKey& key) const;  // logarithmic
  int64_t SlotMemory() const;                                   // bytes of all slots of all connections
};

struct WiringOptions {
  int64_t slot_bytes =
      128 << 10;  // wanted, without heads: two slots a connection should stay in a core's cache
  int64_t memory_limit = 1LL << 30;  // for all slots of all ranks; slots shrink to fit
};

// Serves all the programs, which must have the same number of ranks. Slots hold at least 16 bytes of every
// chunk of the widest instruction. Errors: kInvalidInput when not even the smallest slots fit the limit, with
// what is needed.
StatusOr<Wiring> WiringOf(std::span<const Program* const> programs, const WiringOptions& options = {});

}  // namespace xccl
