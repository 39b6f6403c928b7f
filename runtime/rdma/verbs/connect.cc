// Every rank opens its devices, makes a queue pair for each peer and pair of rails, and tells all ranks the
// devices' addresses and keys and the queue pairs' numbers. Each then connects its queue pairs. A second
// round tells all that everyone has, since a device answers no request before. A rank that fails takes part
// in the rounds with its reason, so that all ranks fail together.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstring>
#include <map>
#include <utility>

#include "base/random.h"
#include "runtime/host/parcel.h"
#include "runtime/rdma/verbs/transport.h"
#include "runtime/rdma/verbs/verbs_transport.h"

namespace xccl::verbs {
namespace {

constexpr uint32_t kMostRequests = 1024;    // under way on a queue pair; the rest waits at this rank
constexpr uint32_t kFewestRequests = 8;     // a quarter of them holds one put
constexpr uint32_t kNumberBits = 0xffffff;  // for numbers of queue pairs and of packets

// Names a queue pair of a rank.
struct PairKey {
  Rank peer;
  int32_t rail = 0, peer_rail = 0;
  auto operator<=>(const PairKey&) const = default;
};

struct DeviceCard {
  std::string name;
  bool ethernet = false;
  uint32_t mtu = 0, lid = 0;
  std::vector<GidBytes> gids;
  uint32_t slots_key = 0, cells_key = 0;
};

// The addresses, keys and queue pairs that a rank sends to all ranks.
struct Card {
  std::string failure;  // if any, there is nothing else
  std::string host;
  uint64_t slots = 0, cells = 0;
  uint32_t first_packet = 0;
  std::vector<DeviceCard> devices;  // rail r is device r % size
  std::map<PairKey, uint32_t> pairs;
};

std::string Encode(const Card& card) {
  Parcel parcel;
  AppendText(parcel, card.failure);
  AppendText(parcel, card.host);
  for (const uint64_t number : {card.slots, card.cells, uint64_t{card.first_packet}, card.devices.size()})
    AppendNumber(parcel, number);
  for (const DeviceCard& device : card.devices) {
    AppendText(parcel, device.name);
    for (const uint32_t number : {uint32_t{device.ethernet}, device.mtu, device.lid, device.slots_key,
                                  device.cells_key, static_cast<uint32_t>(device.gids.size())})
      AppendNumber(parcel, number);
    for (const GidBytes& gid : device.gids)
      AppendText(parcel, std::string(reinterpret_cast<const char*>(gid.data()), gid.size()));
  }
  AppendNumber(parcel, card.pairs.size());
  for (const auto& [key, number] : card.pairs) {
    AppendNumber(parcel, static_cast<uint64_t>(key.peer.value) << 32 | number);
    AppendNumber(parcel, static_cast<uint64_t>(key.rail) << 32 | static_cast<uint32_t>(key.peer_rail));
  }
  return parcel.bytes;
}

std::string FailureIn(const std::string& blob) { return ParcelReader({.bytes = blob, .files = {}}).Text(); }

DeviceCard DecodeDevice(ParcelReader& reader) {
  DeviceCard device;
  device.name = reader.Text();
  device.ethernet = reader.Number() != 0;
  device.mtu = static_cast<uint32_t>(reader.Number());
  device.lid = static_cast<uint32_t>(reader.Number());
  device.slots_key = static_cast<uint32_t>(reader.Number());
  device.cells_key = static_cast<uint32_t>(reader.Number());
  for (uint64_t left = reader.Number(); left > 0 && !reader.broken(); --left) {
    const std::string text = reader.Text();
    GidBytes gid = {};
    std::memcpy(gid.data(), text.data(), std::min(text.size(), gid.size()));
    device.gids.push_back(gid);
  }
  return device;
}

// From the blob of `rank`.
StatusOr<Card> Decode(const std::string& blob, Rank rank) {
  ParcelReader reader({.bytes = blob, .files = {}});
  Card card;
  card.failure = reader.Text();
  card.host = reader.Text();
  card.slots = reader.Number();
  card.cells = reader.Number();
  card.first_packet = static_cast<uint32_t>(reader.Number());
  for (uint64_t left = reader.Number(); left > 0 && !reader.broken(); --left)
    card.devices.push_back(DecodeDevice(reader));
  for (uint64_t left = reader.Number(); left > 0 && !reader.broken(); --left) {
    const uint64_t number = reader.Number(), rails = reader.Number();
    card.pairs[{Rank(static_cast<int64_t>(number >> 32)), static_cast<int32_t>(rails >> 32),
                static_cast<int32_t>(rails & 0xffffffff)}] = static_cast<uint32_t>(number);
  }
  if (reader.broken() || !reader.AtEnd())
    return InvalidInput(
        fmt::format("rank {}: what it tells is not of the verbs transport; expected the same "
                    "transport on all ranks",
                    rank.value));
  return card;
}

std::string HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

// Every rank gives its own failure, or nothing; all return one if there is any, their own first.
Status AgreeOn(const Status& own, const std::vector<std::string>& failures) {
  if (!own.ok()) return own;
  for (size_t r = 0; r < failures.size(); ++r)
    if (!failures[r].empty()) return PeerEnded(fmt::format("rank {}: {}", r, failures[r]));
  return OkStatus();
}

// Connections of each queue pair, in order of its key.
std::map<PairKey, uint32_t> PairsOf(const NetworkLayout& layout) {
  std::map<PairKey, uint32_t> pairs;
  for (const RemoteConnection& one : layout.connections) ++pairs[{one.peer, one.rail, one.peer_rail}];
  return pairs;
}

// Errors: kSystem where a counter of the peer could find no receive.
Status SizePair(const Rail& rail, Rank peer, uint32_t connections, uint32_t slots, QueuePair& pair) {
  const auto most = static_cast<uint32_t>(std::min(rail.limits.max_qp_wr, rail.limits.max_cqe / 2));
  pair.receives = std::max(2 * connections * slots, kFewestRequests);
  if (pair.receives > most)
    return SystemError(
        fmt::format("{}: {} receives in a queue pair; expected at least {} for the {} connections "
                    "of {} slots with rank {}",
                    rail.name, most, pair.receives, connections, slots, peer.value));
  // A message takes two requests, and a counter that comes back one; both ends' ride on the pair.
  pair.depth = std::clamp(3 * connections * slots, kFewestRequests, std::min(kMostRequests, most));
  return OkStatus();
}

Status MakePair(const Library& library, ibv_cq* queue, Rail& rail, QueuePair& pair) {
  ibv_qp_init_attr wanted = {};
  wanted.send_cq = wanted.recv_cq = queue;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {.max_send_wr = pair.depth,
                .max_recv_wr = pair.receives,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = sizeof(uint64_t)};
  pair.pair = Owned<ibv_qp>(library.CreateQp(rail.domain.get(), &wanted), {library.DestroyQp});
  if (pair.pair == nullptr)
    return Failed(
        fmt::format("{}: queue pair of {} requests and {} receives", rail.name, pair.depth, pair.receives),
        errno);
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = rail.port;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int code = library.ModifyQp(pair.pair.get(), &attributes,
                                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  return code == 0 ? OkStatus() : Failed(rail.name + ": preparing a queue pair", code);
}

// The devices that this rank's connections go over.
StatusOr<std::vector<Rail>> OpenRailsOf(const Library& library, const NetworkLayout& layout,
                                        const NetworkOptions& options) {
  int32_t used = 0;
  for (const RemoteConnection& one : layout.connections) used = std::max(used, one.rail + 1);
  return used == 0 ? std::vector<Rail>() : OpenRails(library, options, used);
}

// Devices, registered memory, queue pairs that know no peer yet.
StatusOr<std::unique_ptr<VerbsTransport>> Prepare(const Library& library, const NetworkMemory& memory,
                                                  const NetworkOptions& options) {
  const NetworkLayout& layout = memory.layout;
  const std::map<PairKey, uint32_t> keys = PairsOf(layout);
  XCCL_ASSIGN_OR_RETURN(std::vector<Rail> rails, OpenRailsOf(library, layout, options));
  for (Rail& rail : rails) {
    if (static_cast<uint64_t>(layout.slot_bytes) > rail.attributes.max_msg_sz)
      return SystemError(fmt::format("{}: messages of {} bytes; expected slots of no more, but they have {}",
                                     rail.name, rail.attributes.max_msg_sz, layout.slot_bytes));
    XCCL_RETURN_IF_ERROR(RegisterSlots(library, memory, rail));
    XCCL_RETURN_IF_ERROR(RegisterCells(library, memory, rail));
  }
  std::vector<uint32_t> entries(rails.size(), 0), room = entries;  // entries still needed, and free
  auto transport = std::make_unique<VerbsTransport>(library, memory, std::move(rails),
                                                    AnswerLimit(TimeoutExponent(options.time_limit)));
  for (const auto& [key, count] : keys) {
    QueuePair pair;
    pair.rail = static_cast<size_t>(key.rail) % entries.size();
    XCCL_RETURN_IF_ERROR(SizePair(transport->rails()[pair.rail], key.peer, count,
                                  static_cast<uint32_t>(layout.num_slots), pair));
    entries[pair.rail] += pair.depth + pair.receives;
    transport->pairs().push_back(std::move(pair));
  }
  for (QueuePair& pair : transport->pairs()) {
    Rail& rail = transport->rails()[pair.rail];
    const uint32_t need = pair.depth + pair.receives;
    if (room[pair.rail] < need) {
      const auto most = static_cast<uint32_t>(rail.limits.max_cqe);
      room[pair.rail] = std::min(most, entries[pair.rail]);
      XCCL_ASSIGN_OR_RETURN([[maybe_unused]] ibv_cq * queue, AddQueue(library, room[pair.rail], rail));
    }
    room[pair.rail] -= need;
    entries[pair.rail] -= need;
    XCCL_RETURN_IF_ERROR(MakePair(library, rail.queues.back().get(), rail, pair));
  }
  for (const RemoteConnection& one : layout.connections) {
    const auto at = keys.find({one.peer, one.rail, one.peer_rail});
    transport->AddConnection(one, static_cast<size_t>(std::distance(keys.begin(), at)));
  }
  XCCL_RETURN_IF_ERROR(transport->Start());
  return transport;
}

Card CardOf(VerbsTransport& transport, const NetworkMemory& memory) {
  Card card;
  card.host = HostName();
  card.slots = reinterpret_cast<uint64_t>(memory.slots);
  card.cells = reinterpret_cast<uint64_t>(memory.cells);
  card.first_packet = SystemRandom() & kNumberBits;  // packets of an earlier run match none of this
  for (const Rail& rail : transport.rails()) {
    DeviceCard device{.name = rail.name,
                      .ethernet = rail.ethernet(),
                      .mtu = static_cast<uint32_t>(rail.attributes.active_mtu),
                      .lid = rail.attributes.lid,
                      .gids = {},
                      .slots_key = rail.slots->rkey,
                      .cells_key = rail.cells->rkey};
    for (const Gid& gid : rail.gids) device.gids.push_back(gid.bytes);
    card.devices.push_back(std::move(device));
  }
  size_t index = 0;
  for (const auto& [key, count] : PairsOf(memory.layout))
    card.pairs[key] = transport.pairs()[index++].pair->qp_num;
  return card;
}

// The way to the peer's device.
StatusOr<ibv_ah_attr> RouteTo(const Rail& rail, const DeviceCard& peer, const std::string& peer_name) {
  if (rail.ethernet() != peer.ethernet)
    return SystemError(fmt::format("{} is {} and {} of {} is {}; expected two of a kind", rail.name,
                                   rail.ethernet() ? "Ethernet" : "InfiniBand", peer.name, peer_name,
                                   peer.ethernet ? "Ethernet" : "InfiniBand"));
  ibv_ah_attr route = {};
  route.port_num = rail.port;
  if (!rail.ethernet()) {
    route.dlid = static_cast<uint16_t>(peer.lid);
    return route;
  }
  std::vector<GidBytes> mine;
  for (const Gid& gid : rail.gids) mine.push_back(gid.bytes);
  if (peer.gids.empty()) return SystemError(fmt::format("{} of {} has no address", peer.name, peer_name));
  const GidPair chosen = ClosestGids(mine, peer.gids);
  route.is_global = 1;
  route.grh.sgid_index = rail.gids[chosen.mine].index;
  route.grh.hop_limit = 64;
  std::memcpy(route.grh.dgid.raw, peer.gids[chosen.theirs].data(), sizeof route.grh.dgid.raw);
  return route;
}

Status ConnectPair(const Library& library, const Rail& rail, const DeviceCard& peer, const Card& peer_card,
                   uint32_t peer_number, const Card& own, int timeout, QueuePair& pair) {
  const std::string where = fmt::format("{}: connecting with {} of {}", rail.name, peer.name, pair.peer_name);
  ibv_qp_attr to = {};
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu = static_cast<ibv_mtu>(std::min(static_cast<uint32_t>(rail.attributes.active_mtu), peer.mtu));
  to.dest_qp_num = peer_number;
  to.rq_psn = peer_card.first_packet;
  to.max_dest_rd_atomic = 1;
  to.min_rnr_timer = 12;  // 0.64 ms
  XCCL_ASSIGN_OR_RETURN(to.ah_attr, RouteTo(rail, peer, pair.peer_name));
  int code = library.ModifyQp(pair.pair.get(), &to,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (code != 0) return Failed(where, code);
  to = {};
  to.qp_state = IBV_QPS_RTS;
  to.timeout = static_cast<uint8_t>(timeout);
  to.retry_cnt = kRetries;
  to.rnr_retry = 7;  // for ever: a peer that is late is not lost
  to.sq_psn = own.first_packet;
  to.max_rd_atomic = 1;
  code = library.ModifyQp(pair.pair.get(), &to,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  return code == 0 ? OkStatus() : Failed(where, code);
}

// Where rails go round since there are fewer devices: a cable may lead elsewhere.
std::string RoundNote(const PairKey& key, size_t own_devices, const Card& peer, const QueuePair& pair) {
  const auto note = [](const std::string& who, size_t devices, int32_t rail) {
    return static_cast<size_t>(rail) < devices
               ? std::string()
               : fmt::format("; {} active devices for rail {}: {}", who, rail, devices);
  };
  return note("this rank's", own_devices, key.rail) +
         note(pair.peer_name + "'s", peer.devices.size(), key.peer_rail);
}

Status ConnectPairs(const Library& library, const NetworkMemory& memory, const NetworkOptions& options,
                    const Card& own, const std::vector<Card>& cards, VerbsTransport& transport) {
  const int timeout = TimeoutExponent(options.time_limit);
  size_t index = 0;
  for (const auto& [key, count] : PairsOf(memory.layout)) {
    QueuePair& pair = transport.pairs()[index++];
    const Card& peer = cards[key.peer.index()];
    pair.peer_name = fmt::format("rank {} ({})", key.peer.value, peer.host);
    const auto number = peer.pairs.find({memory.layout.rank, key.peer_rail, key.rail});
    if (number == peer.pairs.end() || peer.devices.empty())
      return InvalidInput(
          fmt::format("{} has no connection with rank {} from rail {} to rail {}; expected "
                      "the same plans on all ranks",
                      pair.peer_name, memory.layout.rank.value, key.peer_rail, key.rail));
    const DeviceCard& device = peer.devices[static_cast<size_t>(key.peer_rail) % peer.devices.size()];
    pair.peer_slots = peer.slots;
    pair.peer_cells = peer.cells;
    pair.peer_slots_key = device.slots_key;
    pair.peer_cells_key = device.cells_key;
    const Status connected =
        ConnectPair(library, transport.rails()[pair.rail], device, peer, number->second, own, timeout, pair);
    if (!connected.ok())
      return SystemError(connected.message() + RoundNote(key, transport.rails().size(), peer, pair));
  }
  return OkStatus();
}

// By rank, the cards of this rank's peers. A failure that any card tells is this rank's too.
StatusOr<std::vector<Card>> PeersOf(const std::vector<std::string>& blobs, const NetworkLayout& layout,
                                    const Status& own) {
  std::vector<std::string> failures;
  for (const std::string& blob : blobs) failures.push_back(FailureIn(blob));
  XCCL_RETURN_IF_ERROR(AgreeOn(own, failures));
  std::vector<Card> cards(blobs.size());
  for (const auto& [key, count] : PairsOf(layout)) {
    if (!cards[key.peer.index()].devices.empty()) continue;
    XCCL_ASSIGN_OR_RETURN(cards[key.peer.index()], Decode(blobs[key.peer.index()], key.peer));
  }
  return cards;
}

}  // namespace

int TimeoutExponent(std::chrono::nanoseconds time_limit) {
  const double waits = static_cast<double>(time_limit.count()) / 8 / (kRetries + 1) / 4096;
  return static_cast<int>(std::clamp(std::floor(std::log2(std::max(1.0, waits))), 12.0, 20.0));
}

std::chrono::nanoseconds AnswerLimit(int exponent) {
  return std::chrono::nanoseconds((int64_t{4096} << exponent) * (kRetries + 1));
}

Status ReachesOver(const Library& library, const NetworkMemory& memory, const NetworkOptions& options) {
  XCCL_ASSIGN_OR_RETURN(std::vector<Rail> rails, OpenRailsOf(library, memory.layout, options));
  for (Rail& rail : rails) XCCL_RETURN_IF_ERROR(RegisterSlots(library, memory, rail));
  return OkStatus();
}

StatusOr<std::unique_ptr<Transport>> ConnectOver(const StatusOr<const Library*>& library,
                                                 const NetworkMemory& memory, const NetworkOptions& options) {
  StatusOr<std::unique_ptr<VerbsTransport>> transport =
      library.ok() ? Prepare(**library, memory, options) : library.status();
  Card own;
  if (transport.ok()) own = CardOf(**transport, memory);
  own.failure = transport.status().message();
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> blobs, options.all_gather(Encode(own)));
  XCCL_ASSIGN_OR_RETURN(const std::vector<Card> cards, PeersOf(blobs, memory.layout, transport.status()));
  const Status connected = ConnectPairs(**library, memory, options, own, cards, **transport);
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> failures, options.all_gather(connected.message()));
  XCCL_RETURN_IF_ERROR(AgreeOn(connected, failures));
  return std::unique_ptr<Transport>(*std::move(transport));
}

}  // namespace xccl::verbs
