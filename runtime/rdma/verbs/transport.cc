// Room is counted, so that no queue overflows. A queue pair's requests are under way until a later request of
// it, of which every few ask for it, completes. A peer can write as many counters unseen as the pair's
// connections have slots, and one more for each put and take that this rank makes. There are receives for
// twice the slots, and this rank reads its completions at the latest when it has made as many puts and takes
// as there are slots. Completion queues hold the requests and receives of all their queue pairs.
#include "runtime/rdma/verbs/transport.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "runtime/rdma/verbs/verbs_transport.h"

namespace xccl::verbs {
namespace {

constexpr int kBatch = 32;

// The request that a completion belongs to, in the 64 bits of user data that come with it.
struct Request {
  enum Kind : uint8_t { kMessage, kCounter, kReceive };
  Kind kind = kMessage;
  size_t pair = 0;
  uint32_t number = 0;

  uint64_t Encode() const {
    return static_cast<uint64_t>(kind) << 56 | static_cast<uint64_t>(pair) << 32 | number;
  }
  static Request Decode(uint64_t bits) {
    return {.kind = static_cast<Kind>(bits >> 56),
            .pair = static_cast<size_t>((bits >> 32) & 0xffffff),
            .number = static_cast<uint32_t>(bits)};
  }
};

static_assert(sizeof(std::atomic<uint64_t>) == 8 && std::atomic<uint64_t>::is_always_lock_free,
              "devices write counters as plain 8 bytes");

const char* TextOf(Request::Kind kind) {
  switch (kind) {
    case Request::kMessage:
      return "write to";
    case Request::kCounter:
      return "signal to";
    case Request::kReceive:
      return "receive from";
  }
  return "request to";
}

}  // namespace

VerbsTransport::VerbsTransport(const Library& library, const NetworkMemory& memory, std::vector<Rail> rails,
                               std::chrono::nanoseconds answer_limit)
    : library_(library), memory_(memory), answer_limit_(answer_limit), rails_(std::move(rails)) {
  int32_t most = -1;
  for (const RemoteConnection& one : memory.layout.connections) most = std::max(most, one.connection);
  place_.assign(static_cast<size_t>(most + 1), -1);
}

void VerbsTransport::AddConnection(const RemoteConnection& at, size_t pair) {
  place_[static_cast<size_t>(at.connection)] = static_cast<int32_t>(places_.size());
  places_.push_back({at, pair});
}

Status VerbsTransport::Start() {
  for (const Rail& rail : rails_)
    if (rail.channel != nullptr) files_.push_back(rail.channel->fd);
  uint32_t most = 0;
  uses_allowed_ = std::numeric_limits<uint32_t>::max();
  for (const QueuePair& pair : pairs_) {
    most = std::max(most, pair.receives);
    uses_allowed_ = std::min(uses_allowed_, pair.receives / 2);
  }
  receives_.assign(most, ibv_recv_wr{});
  for (size_t i = 1; i < receives_.size(); ++i) receives_[i - 1].next = &receives_[i];
  for (QueuePair& pair : pairs_) XCCL_RETURN_IF_ERROR(PostReceives(pair, pair.receives));
  return OkStatus();
}

Status VerbsTransport::PostReceives(QueuePair& pair, uint32_t count) {
  if (count == 0) return OkStatus();
  const Request request{.kind = Request::kReceive, .pair = static_cast<size_t>(&pair - pairs_.data())};
  const std::span<ibv_recv_wr> chain = std::span(receives_).last(count);
  for (ibv_recv_wr& one : chain) one.wr_id = request.Encode();
  ibv_recv_wr* refused = nullptr;
  const int code = ibv_post_recv(pair.pair.get(), chain.data(), &refused);
  if (code == 0) return OkStatus();
  return Failed(fmt::format("posting receives for {} over {}", pair.peer_name, rails_[pair.rail].name), code);
}

ConnectionEnd VerbsTransport::At(int32_t connection) {
  const RemoteConnection& at = places_[static_cast<size_t>(PlaceOf(connection))].at;
  const ConnectionCell& cell = memory_.cells[at.cell];
  return {.slots = memory_.slots + at.slots_at,
          .num_slots = static_cast<uint64_t>(memory_.layout.num_slots),
          .window = static_cast<uint64_t>(memory_.layout.window),
          .direct = nullptr,
          .head = &cell.head,
          .tail = &cell.tail};
}

void VerbsTransport::Put(int32_t connection, int64_t bytes) {
  const int32_t place = PlaceOf(connection);
  std::atomic<uint64_t>& head = memory_.cells[places_[static_cast<size_t>(place)].at.cell].head;
  const uint64_t counter = head.load(std::memory_order_relaxed) + 1;
  head.store(counter, std::memory_order_relaxed);
  Begin({.place = place, .take = false, .counter = counter, .bytes = bytes});
}

void VerbsTransport::Take(int32_t connection, bool /*together*/) {
  const int32_t place = PlaceOf(connection);
  std::atomic<uint64_t>& tail = memory_.cells[places_[static_cast<size_t>(place)].at.cell].tail;
  const uint64_t counter = tail.load(std::memory_order_relaxed) + 1;
  tail.store(counter, std::memory_order_relaxed);
  Begin({.place = place, .take = true, .counter = counter});
}

void VerbsTransport::Begin(const Write& write) {
  if (!failure_.ok()) return;
  QueuePair& pair = pairs_[places_[static_cast<size_t>(write.place)].pair];
  if (uses_ == uses_allowed_) Drain();
  ++uses_;
  if (pair.waiting.empty() && HasRoom(pair)) {
    Post(pair, write);
  } else {
    pair.waiting.push_back(write);
    ++waiting_;
  }
}

bool VerbsTransport::HasRoom(const QueuePair& pair) const {
  return pair.depth - (pair.posted - pair.completed) >= 2;
}

void VerbsTransport::Post(QueuePair& pair, const Write& write) {
  const RemoteConnection& at = places_[static_cast<size_t>(write.place)].at;
  const size_t index = places_[static_cast<size_t>(write.place)].pair;
  const auto slot =
      static_cast<int64_t>((write.counter - 1) % static_cast<uint64_t>(memory_.layout.num_slots));
  const int64_t offset = slot * memory_.layout.slot_bytes;
  std::array<ibv_sge, 2> parts = {};
  std::array<ibv_send_wr, 2> requests = {};
  const bool has_message = write.bytes > 0;
  if (has_message) {
    parts[0] = {.addr = reinterpret_cast<uint64_t>(memory_.slots + at.slots_at + offset),
                .length = static_cast<uint32_t>(write.bytes),
                .lkey = rails_[pair.rail].slots->lkey};
    requests[0].wr_id = Request{Request::kMessage, index, pair.posted++}.Encode();
    requests[0].next = &requests[1];
    requests[0].sg_list = parts.data();
    requests[0].num_sge = 1;
    requests[0].opcode = IBV_WR_RDMA_WRITE;
    requests[0].wr.rdma.remote_addr = pair.peer_slots + static_cast<uint64_t>(at.peer_slots_at + offset);
    requests[0].wr.rdma.rkey = pair.peer_slots_key;
  }
  const size_t counter_at = write.take ? offsetof(ConnectionCell, tail) : offsetof(ConnectionCell, head);
  parts[1] = {.addr = reinterpret_cast<uint64_t>(&write.counter), .length = sizeof write.counter, .lkey = 0};
  requests[1].wr_id = Request{Request::kCounter, index, pair.posted++}.Encode();
  requests[1].sg_list = &parts[1];
  requests[1].num_sge = 1;
  requests[1].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  requests[1].send_flags = IBV_SEND_INLINE | IBV_SEND_SOLICITED;
  if (pair.posted - pair.signalled >= pair.depth / 4) {
    requests[1].send_flags |= IBV_SEND_SIGNALED;
    pair.signalled = pair.posted;
  }
  requests[1].imm_data = htonl(static_cast<uint32_t>(at.peer_cell));
  requests[1].wr.rdma.remote_addr =
      pair.peer_cells + static_cast<uint64_t>(at.peer_cell) * sizeof(ConnectionCell) + counter_at;
  requests[1].wr.rdma.rkey = pair.peer_cells_key;
  ibv_send_wr* refused = nullptr;
  const int code = ibv_post_send(pair.pair.get(), has_message ? requests.data() : &requests[1], &refused);
  if (code != 0)
    Fail(Failed(
        fmt::format("{} {} over {}: posting", TextOf(has_message ? Request::kMessage : Request::kCounter),
                    pair.peer_name, rails_[pair.rail].name),
        code));
}

void VerbsTransport::Fail(const Status& status) {
  if (failure_.ok()) failure_ = status;
}

Status VerbsTransport::CheckSignal(const ibv_wc& completion, size_t pair) const {
  const QueuePair& from = pairs_[pair];
  const std::string& rail = rails_[from.rail].name;
  const uint32_t cell = ntohl(completion.imm_data);
  if (completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM || cell >= places_.size() || places_[cell].pair != pair)
    return SystemError(fmt::format(
        "signal of {} over {}: of no connection with it; expected one of the plans'", from.peer_name, rail));
  const ConnectionCell& counters = memory_.cells[cell];
  const uint64_t head = counters.head.load(std::memory_order_acquire);
  const uint64_t tail = counters.tail.load(std::memory_order_acquire);
  if (CountersFit(head, tail, memory_.layout.num_slots)) return OkStatus();
  return WrongSignal(from.peer_name, rail, places_[cell].at.sends, head, tail, memory_.layout.num_slots);
}

void VerbsTransport::Complete(const ibv_wc& completion) {
  const Request request = Request::Decode(completion.wr_id);
  QueuePair& pair = pairs_[request.pair];
  if (completion.status != IBV_WC_SUCCESS) {
    std::string text = fmt::format("{} {} over {} failed: {}", TextOf(request.kind), pair.peer_name,
                                   rails_[pair.rail].name, library_.StatusText(completion.status));
    if (completion.status == IBV_WC_RETRY_EXC_ERR)
      text += fmt::format("; expected an answer within {} ms",
                          std::chrono::duration_cast<std::chrono::milliseconds>(answer_limit_).count());
    // A peer that has ended, or a cut link, looks the same from here; who ended says more.
    const bool silent = completion.status == IBV_WC_RETRY_EXC_ERR || completion.status == IBV_WC_WR_FLUSH_ERR;
    Fail(silent ? PeerEnded(text) : SystemError(text));
  } else if (request.kind == Request::kReceive) {
    ++pair.arrived;
    moved_ = true;
    if (const Status checked = CheckSignal(completion, request.pair); !checked.ok()) Fail(checked);
  } else {
    pair.completed = request.number + 1;
  }
  touched_.push_back(request.pair);
}

void VerbsTransport::Drain() {
  std::array<ibv_wc, kBatch> completions;
  uses_ = 0;
  for (Rail& rail : rails_)
    for (const Owned<ibv_cq>& queue : rail.queues) {
      int count = kBatch;
      while (count == kBatch) {
        count = ibv_poll_cq(queue.get(), kBatch, completions.data());
        if (count < 0) Fail(SystemError(fmt::format("{}: reading completions failed", rail.name)));
        for (int i = 0; i < count; ++i) Complete(completions[static_cast<size_t>(i)]);
      }
    }
  for (const size_t index : touched_) {
    QueuePair& pair = pairs_[index];
    if (!failure_.ok()) break;
    if (const Status posted = PostReceives(pair, std::exchange(pair.arrived, 0)); !posted.ok()) Fail(posted);
    for (; !pair.waiting.empty() && HasRoom(pair) && failure_.ok(); --waiting_) {
      Post(pair, pair.waiting.front());
      pair.waiting.pop_front();
    }
  }
  touched_.clear();
}

StatusOr<bool> VerbsTransport::Progress() {
  if (std::exchange(armed_, false)) {
    for (Rail& rail : rails_) {
      ibv_cq* queue = nullptr;
      void* user = nullptr;
      while (rail.channel != nullptr && library_.GetCqEvent(rail.channel.get(), &queue, &user) == 0)
        library_.AckCqEvents(queue, 1);
    }
  }
  Drain();
  if (!failure_.ok()) return failure_;
  return std::exchange(moved_, false);
}

bool VerbsTransport::PrepareToSleep() {
  armed_ = true;
  // Counters of peers ask for an event; this rank's own requests wake it only where something waits for room.
  const int peers_alone = waiting_ == 0 ? 1 : 0;
  for (Rail& rail : rails_)
    for (const Owned<ibv_cq>& queue : rail.queues)
      if (const int code = ibv_req_notify_cq(queue.get(), peers_alone); code != 0)
        Fail(Failed(rail.name + ": arming completions", code));
  // Requests that completed before the queues were armed raise no event, so their completions are read here.
  Drain();
  return failure_.ok() && !moved_;
}

Status Available() {
  XCCL_ASSIGN_OR_RETURN(const Library* library, LoadLibrary());
  return OpenRails(*library, {}, 1).status();
}

Status Reaches(const NetworkMemory& memory, const NetworkOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const Library* library, LoadLibrary());
  return ReachesOver(*library, memory, options);
}

StatusOr<std::unique_ptr<Transport>> Connect(const NetworkMemory& memory, const NetworkOptions& options) {
  // A rank without connections meets the others all the same, and needs no library.
  static const Library kNone;
  return ConnectOver(memory.layout.connections.empty() ? &kNone : LoadLibrary(), memory, options);
}

}  // namespace xccl::verbs
