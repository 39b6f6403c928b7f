// The part that all transports between hosts share: the memory of a rank that its peers write, and how a
// transport is given it. A rank has a cell (head and tail) for each of its connections with ranks of other
// hosts, and slots: the sender's hold messages until they are written into the receiver's. Peers write a
// receiver's slots and heads, and a sender's tails, and nothing else. All ranks compute all offsets from the
// same wiring, so ranks exchange one base address and key each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "runtime/host/host_memory.h"
#include "runtime/transport/shared_region.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/wiring.h"

namespace xccl {

// A connection of this rank with a rank of another host.
struct RemoteConnection {
  int32_t connection = 0;  // index in the wiring
  Rank peer;
  bool sends = false;               // this rank is the sender
  int32_t rail = 0, peer_rail = 0;  // network device of either end, as the plan numbers them
  int64_t slots_at = 0;             // bytes in this rank's slots
  int64_t peer_slots_at = 0;        // and in the peer's
  int32_t cell = 0, peer_cell = 0;  // index among the cells of this rank, and of the peer
  bool operator==(const RemoteConnection&) const = default;
};

struct NetworkLayout {
  Rank rank;
  int64_t slot_bytes = 0;
  int32_t num_slots = 1;                      // for every connection between hosts
  int32_t window = 1;                         // as ConnectionEnd's
  int32_t needed_slots = 1;                   // as many as programs ask for; memory may not allow them
  std::vector<RemoteConnection> connections;  // ascending by index; cell i belongs to connections[i]
  int64_t SlotsBytes() const { return static_cast<int64_t>(connections.size()) * num_slots * slot_bytes; }
  int64_t CellsBytes() const { return static_cast<int64_t>(connections.size() * sizeof(ConnectionCell)); }
};

// hosts: by rank. Linear in the connections.
NetworkLayout NetworkLayoutOf(const Wiring& wiring, const std::vector<int32_t>& hosts, int32_t num_slots,
                              Rank rank);

// True if a connection's counters are possible: no message is taken before it is put, and none is put without
// a slot for it.
inline bool CountersFit(uint64_t head, uint64_t tail, int32_t num_slots) {
  return tail <= head && head - tail <= static_cast<uint64_t>(num_slots);
}
// The error for a signal of the other end with impossible counters: kSystem "signal of rank 1 over net on
// eth0: message 9; expected messages 4 to 7, each once" at the receiver, "...: 9 messages taken; expected 0
// to 4" at the sender.
Status WrongSignal(const std::string& peer, const std::string& rail, bool sends, uint64_t head, uint64_t tail,
                   int32_t num_slots);

// A rank's slots and cells. The slots may be memory of a GPU; the cells are always of the host.
struct NetworkMemory {
  NetworkLayout layout;
  std::byte* slots = nullptr;
  ConnectionCell* cells = nullptr;
  int dmabuf = -1;  // slots of a GPU: the file that exports them; -1: memory of the host
};

struct NetworkOptions {
  std::vector<std::string> devices;  // by rail, as the library names them; empty: found
  std::string provider;              // libfabric's provider; empty: the best that is found
  std::string address;               // this rank's own IP address, by which the others know it
  std::chrono::nanoseconds time_limit = std::chrono::seconds(30);  // for connecting; for a write
  // Every rank gives a blob and gets all ranks' blobs, by rank. All ranks call it equally often.
  std::function<StatusOr<std::vector<std::string>>(std::string_view mine)> all_gather;
};

}  // namespace xccl
