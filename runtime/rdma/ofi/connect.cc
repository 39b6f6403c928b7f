// Every rank opens its devices, registers the slots of its connections, and tells all ranks, for each device,
// its address and where the slots lie in the addresses of its keys, and for each connection, in the order of
// the layout, the key of its slots and the mark of its signals. Connections then know where to write. A rank
// with 2,000 connections tells 32 kB.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "runtime/host/parcel.h"
#include "runtime/rdma/ofi/ofi_transport.h"
#include "runtime/rdma/ofi/signal.h"
#include "runtime/rdma/ofi/transport.h"

namespace xccl::ofi {
namespace {

struct RailCard {
  std::string address;
  uint64_t base = 0;  // address of all slots; 0: addresses are offsets in the memory of a key
};
struct ConnectionCard {
  uint64_t key = 0, mark = 0;
};
// The addresses and keys that a rank sends to all ranks.
struct Card {
  std::vector<RailCard> rails;
  std::vector<ConnectionCard> connections;  // by the rank's cell
};

std::string Encode(const Card& card) {
  Parcel parcel;
  AppendNumber(parcel, card.rails.size());
  for (const RailCard& rail : card.rails) {
    AppendText(parcel, rail.address);
    AppendNumber(parcel, rail.base);
  }
  AppendNumber(parcel, card.connections.size());
  for (const ConnectionCard& one : card.connections) {
    AppendNumber(parcel, one.key);
    AppendNumber(parcel, one.mark);
  }
  return parcel.bytes;
}

StatusOr<Card> Decode(const std::string& blob, Rank rank) {
  ParcelReader reader({.bytes = blob, .files = {}});
  Card card;
  for (uint64_t left = reader.Number(); left > 0 && !reader.broken(); --left) {
    std::string address = reader.Text();
    card.rails.push_back({.address = std::move(address), .base = reader.Number()});
  }
  for (uint64_t left = reader.Number(); left > 0 && !reader.broken(); --left) {
    const uint64_t key = reader.Number();
    card.connections.push_back({.key = key, .mark = reader.Number()});
  }
  if (!reader.broken() && reader.AtEnd()) return card;
  return InvalidInput(
      fmt::format("rank {}: what it tells is not of the libfabric transport; expected the same transport on "
                  "all ranks",
                  rank.value));
}

Card CardOf(OfiTransport& transport, const NetworkMemory& memory) {
  Card card;
  for (const Rail& rail : transport.rails())
    card.rails.push_back(
        {.address = rail.address, .base = rail.virtual_base ? reinterpret_cast<uint64_t>(memory.slots) : 0});
  for (const OfiConnection& one : transport.connections())
    card.connections.push_back({.key = fi_mr_key(one.memory), .mark = one.mark});
  return card;
}

size_t DepthOf(const NetworkLayout& layout) {
  // Each connection's own operations, and the peer's that arrive.
  return layout.connections.size() * static_cast<size_t>(layout.num_slots) * 2 + 64;
}

// Devices, registered slots, marks; no peer is known yet.
StatusOr<std::unique_ptr<OfiTransport>> Prepare(const Library& library, const NetworkMemory& memory,
                                                const NetworkOptions& options) {
  const NetworkLayout& layout = memory.layout;
  int32_t rails = 0;
  for (const RemoteConnection& one : layout.connections) rails = std::max(rails, one.rail + 1);
  auto transport = std::make_unique<OfiTransport>(library, memory);
  if (rails == 0) return transport;
  XCCL_ASSIGN_OR_RETURN(const std::vector<Info> devices, FindDevices(library, options, rails));
  for (const Info& device : devices) {
    XCCL_ASSIGN_OR_RETURN(Rail rail, OpenRail(library, *device, DepthOf(layout)));
    transport->AddRail(std::move(rail));
  }
  const auto cells = static_cast<int32_t>(layout.connections.size());
  const auto bytes = static_cast<size_t>(layout.num_slots * layout.slot_bytes);
  for (const RemoteConnection& one : layout.connections) {
    OfiConnection made;
    made.at = one;
    made.rail = &transport->rails()[static_cast<size_t>(one.rail)];
    XCCL_ASSIGN_OR_RETURN(made.memory, Register(library, {memory.slots + one.slots_at, bytes}, *made.rail));
    made.mark = MarkOf(one.cell, cells, made.rail->data_bytes, SystemRandom());
    transport->AddConnection(std::move(made));
  }
  return transport;
}

// Checks what the peer's card says of the connection and its rail. Errors: kInvalidInput where ranks do not
// agree.
Status CheckCard(const Card& card, const OfiConnection& of) {
  const RemoteConnection& at = of.at;
  if (static_cast<size_t>(at.peer_rail) >= card.rails.size() ||
      static_cast<size_t>(at.peer_cell) >= card.connections.size())
    return InvalidInput(
        fmt::format("rank {}: {} network devices and {} connections; expected more than {} and {}: ranks do "
                    "not agree on plans",
                    at.peer.value, card.rails.size(), card.connections.size(), at.peer_rail, at.peer_cell));
  const size_t bytes = card.rails[static_cast<size_t>(at.peer_rail)].address.size();
  const uint64_t mark = card.connections[static_cast<size_t>(at.peer_cell)].mark;
  if (bytes == of.rail->address.size() && mark == LowBytes(mark, of.rail->data_bytes)) return OkStatus();
  return InvalidInput(
      fmt::format("rank {}: an address or a mark that {} does not take; expected one provider on all ranks; "
                  "hint: --provider",
                  at.peer.value, of.rail->name));
}

}  // namespace

Status Available() { return LoadLibrary().status(); }

StatusOr<std::unique_ptr<Transport>> Connect(const NetworkMemory& memory, const NetworkOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const Library* library, LoadLibrary());
  XCCL_ASSIGN_OR_RETURN(std::unique_ptr<OfiTransport> transport, Prepare(*library, memory, options));
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                        options.all_gather(Encode(CardOf(*transport, memory))));
  std::map<Rank, Card> cards;
  std::map<std::tuple<int32_t, Rank, int32_t>, fi_addr_t> known;
  for (OfiConnection& of : transport->connections()) {
    const RemoteConnection& at = of.at;
    const auto [card, unread] = cards.try_emplace(at.peer);
    if (unread) {
      XCCL_ASSIGN_OR_RETURN(card->second, Decode(all[at.peer.index()], at.peer));
    }
    XCCL_RETURN_IF_ERROR(CheckCard(card->second, of));
    const RailCard& to = card->second.rails[static_cast<size_t>(at.peer_rail)];
    const ConnectionCard& slots = card->second.connections[static_cast<size_t>(at.peer_cell)];
    const auto [address, is_new] = known.try_emplace({at.rail, at.peer, at.peer_rail}, FI_ADDR_UNSPEC);
    if (is_new &&
        fi_av_insert(of.rail->addresses.get(), to.address.data(), 1, &address->second, 0, nullptr) != 1)
      return SystemError(fmt::format("{}: the address of rank {} is refused", of.rail->name, at.peer.value));
    of.peer = address->second;
    of.peer_key = slots.key;
    of.peer_base = to.base == 0 ? 0 : to.base + static_cast<uint64_t>(at.peer_slots_at);
    of.peer_mark = slots.mark;
  }
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace xccl::ofi
