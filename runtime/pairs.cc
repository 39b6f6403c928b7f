// A lane is one direction of one pair; all lanes are polled in turn, so none waits for another. Where ranks
// share an address space, a sender lends its buffer and the receiver copies it once. Else a message is cut
// into pieces that fit a slot; every piece carries the message's signature in its head.
#include "runtime/pairs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "runtime/drive.h"
#include "runtime/memory_use.h"
#include "runtime/transport/call_signature.h"

namespace xccl {
namespace {

// The memory in bytes that a host spends on all slots of its pairs: wanted with few ranks, for large
// messages; at most with many ranks, each with small slots.
constexpr int64_t kWantedMemory = 32 << 20, kMostMemory = 1 << 30;
constexpr int64_t kSmallestPiece = 4096, kLargestPiece = 128 << 10;
constexpr int32_t kSlots = 2;

int64_t BytesOf(const PairMessage& message) { return message.count * SizeOf(message.type); }

CallSignature Sign(const PairMessage& message, uint64_t number) {
  return SignatureOf({message.call, message.count, message.type, ReduceOp::kSum, std::nullopt, 0, number});
}

std::string TextOf(const PairMessage& message) { return What(Sign(message, 1)); }

struct Lane {
  Rank peer;
  bool sends = false;
  int32_t connection = 0;
  ConnectionEnd end;
  std::vector<const PairMessage*> messages;
  size_t at = 0;         // messages that are through
  int64_t moved = 0;     // bytes of the one after them
  uint64_t counter = 0;  // this end's own
  uint64_t first = 0;    // number of the first message

  bool Over() const { return at == messages.size(); }
  CallSignature Signature() const { return Sign(*messages[at], first + at); }
};

class PairsExecution {
 public:
  PairsExecution(std::vector<Lane>& lanes, Endpoint& endpoint, std::chrono::nanoseconds limit)
      : lanes_(lanes), endpoint_(endpoint), limit_(limit) {
    for (Lane& lane : lanes_) {
      lane.end = endpoint.At(lane.connection);
      lane.counter = (lane.sends ? lane.end.head : lane.end.tail)->load(std::memory_order_relaxed);
    }
  }

  bool Round() {
    bool moved = false;
    for (Lane& lane : lanes_)
      while (!lane.Over() && IsReady(lane) && (lane.sends ? SendPiece(lane) : ReceivePiece(lane)))
        moved = true;
    return moved;
  }

  bool MovedAll() const {
    return std::ranges::all_of(lanes_, [](const Lane& lane) { return lane.Over(); });
  }

  bool Done() const { return MovedAll() && std::ranges::none_of(lanes_, IsLent) && endpoint_.Flushed(); }

  void LookAround() {
    const auto waits = [&](const Lane& lane) {
      return Waits(lane) || (!IsTaken(lane) && !endpoint_.Flushed());
    };
    for (const Lane& lane : lanes_) {
      if (!waits(lane) || !endpoint_.HasLeft(lane.peer)) continue;
      // Messages that the peer sent or took before it left still count.
      endpoint_.Progress();
      if (waits(lane))
        endpoint_.FailAsSaid(PeerEnded(fmt::format("rank {}: has left; {}", lane.peer.value, Awaited(lane))));
    }
  }

  Status Stuck() const {
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(limit_).count();
    const auto lane = std::ranges::find_if(lanes_, Waits);
    const std::string awaited = lane == lanes_.end()
                                    ? fmt::format("rank {} is about to go on", endpoint_.rank().value)
                                    : Awaited(*lane);
    return LimitReached(fmt::format("{}; nothing moved for {} ms", awaited, limit));
  }

 private:
  static bool IsReady(const Lane& lane) {
    if (!lane.sends) return lane.end.head->load(std::memory_order_acquire) != lane.counter;
    return lane.counter - lane.end.tail->load(std::memory_order_acquire) < lane.end.num_slots;
  }
  static bool IsTaken(const Lane& lane) {
    return !lane.sends || lane.end.tail->load(std::memory_order_acquire) == lane.counter;
  }
  // The receiver may still read this rank's buffer.
  static bool IsLent(const Lane& lane) { return lane.end.direct != nullptr && !IsTaken(lane); }
  static bool Waits(const Lane& lane) { return lane.Over() ? IsLent(lane) : !IsReady(lane); }

  std::string Awaited(const Lane& lane) const {
    // Once all messages are sent, the oldest one whose buffer is still lent is awaited.
    const uint64_t lent = lane.Over() ? lane.counter - lane.end.tail->load(std::memory_order_acquire) : 0;
    const size_t at = lane.at - std::min<size_t>(lane.at, lent);
    return fmt::format("rank {} expected rank {} to {} message {}, {}", endpoint_.rank().value,
                       lane.peer.value, lane.sends ? "receive" : "send", lane.first + at,
                       at < lane.messages.size() ? TextOf(*lane.messages[at]) : "");
  }

  std::byte* Slot(const Lane& lane) const {
    return lane.end.slots + lane.counter % lane.end.num_slots * static_cast<uint64_t>(endpoint_.slot_bytes());
  }
  int64_t PieceOf(const Lane& lane) const {
    return std::min(BytesOf(*lane.messages[lane.at]) - lane.moved, endpoint_.slot_bytes() - kMessageHead);
  }

  bool SendPiece(Lane& lane) {
    static const int64_t kNoOffset = 0;
    const PairMessage& message = *lane.messages[lane.at];
    const CallSignature signature = lane.Signature();
    if (lane.end.direct != nullptr) {
      lane.end.direct[lane.counter % lane.end.num_slots] = {message.data, &kNoOffset, 0, signature};
      Pass(lane, BytesOf(message));
      endpoint_.Put(lane.connection, 0);
      return true;
    }
    const int64_t piece = PieceOf(lane);
    std::byte* const slot = Slot(lane);
    std::memcpy(slot, &signature, sizeof signature);
    if (piece > 0) std::memcpy(slot + kMessageHead, message.data + lane.moved, static_cast<size_t>(piece));
    Pass(lane, piece);
    endpoint_.Put(lane.connection, kMessageHead + piece);
    return true;
  }

  bool ReceivePiece(Lane& lane) {
    const PairMessage& message = *lane.messages[lane.at];
    const DirectSource* const lent =
        lane.end.direct == nullptr ? nullptr : &lane.end.direct[lane.counter % lane.end.num_slots];
    const std::byte* const slot = lent == nullptr ? Slot(lane) : nullptr;
    CallSignature theirs;
    if (lent != nullptr) {
      theirs = lent->call;
    } else {
      std::memcpy(&theirs, slot, sizeof theirs);
    }
    if (theirs != lane.Signature()) {
      endpoint_.Fail(InvalidInput(fmt::format("rank {}: message {} to rank {} is {}; rank {} expected {}",
                                              lane.peer.value, lane.first + lane.at, endpoint_.rank().value,
                                              What(theirs), endpoint_.rank().value, TextOf(message))));
      return false;
    }
    const int64_t piece = lent == nullptr ? PieceOf(lane) : BytesOf(message);
    const std::byte* const from = lent == nullptr ? slot + kMessageHead : lent->base;
    // The lent buffer may overlap the receiving one, where ranks of one process share buffers.
    if (piece > 0) std::memmove(message.data + lane.moved, from, static_cast<size_t>(piece));
    Pass(lane, piece);
    endpoint_.Take(lane.connection, /*together=*/false);
    return true;
  }

  static void Pass(Lane& lane, int64_t bytes) {
    ++lane.counter;
    lane.moved += bytes;
    if (lane.moved < BytesOf(*lane.messages[lane.at])) return;
    lane.moved = 0;
    ++lane.at;
  }

  std::vector<Lane>& lanes_;
  Endpoint& endpoint_;
  const std::chrono::nanoseconds limit_;
};

// The memory that receives write, in the order of its addresses. Requires: CheckReceives.
std::vector<MemoryUse> WrittenBy(std::span<const PairMessage> messages) {
  std::vector<MemoryUse> written;
  for (const PairMessage& message : messages)
    if (!message.sends && message.count > 0) written.push_back({message.data, BytesOf(message), true, 0});
  std::ranges::sort(written, std::less<>(), &MemoryUse::begin);
  return written;
}

// Some of the ranges, which lie apart and in their order, has a byte of the message's.
bool Meets(const std::vector<MemoryUse>& ranges, const PairMessage& message) {
  const auto after =
      std::ranges::lower_bound(ranges, message.data + BytesOf(message), std::less<>(), &MemoryUse::begin);
  return after != ranges.begin() &&
         std::less<>()(message.data, std::prev(after)->begin + std::prev(after)->bytes);
}

// The messages of a rank to itself, in their order.
void SplitOwn(std::span<const PairMessage> messages, Rank rank, std::vector<const PairMessage*>& sends,
              std::vector<const PairMessage*>& receives) {
  for (const PairMessage& message : messages)
    if (message.peer == rank) (message.sends ? sends : receives).push_back(&message);
}

}  // namespace

StatusOr<Wiring> WiringOfPairs(int32_t ranks) {
  Wiring wiring;
  wiring.ranks = ranks;
  wiring.slots = kSlots;
  for (int32_t src = 0; src < ranks; ++src)
    for (int32_t dst = 0; dst < ranks; ++dst)
      if (src != dst) wiring.connections.push_back({Rank(src), Rank(dst), 0});
  const int64_t slots = std::max<int64_t>(1, std::ssize(wiring.connections) * kSlots);
  constexpr int64_t kLine = 64;
  wiring.slot_bytes =
      kMessageHead + std::clamp(kWantedMemory / slots / kLine * kLine, kSmallestPiece, kLargestPiece);
  if (wiring.SlotMemory() <= kMostMemory) return wiring;
  return InvalidInput(fmt::format("{} ranks: the slots of all pairs need {} bytes; the limit is {} bytes",
                                  ranks, wiring.SlotMemory(), kMostMemory));
}

Status CheckReceives(std::span<const PairMessage> messages) {
  std::vector<MemoryUse> written;
  for (size_t i = 0; i < messages.size(); ++i)
    if (!messages[i].sends) written.push_back({messages[i].data, BytesOf(messages[i]), true, i});
  const std::optional<std::pair<size_t, size_t>> shared = FindConflict(written);
  if (!shared) return OkStatus();
  const auto text = [&](size_t use) {
    const PairMessage& message = messages[written[use].by];
    return fmt::format("{} from rank {}", TextOf(message), message.peer.value);
  };
  return UsageError(fmt::format("{} and {} are received into memory that overlaps; expected ranges apart",
                                text(shared->first), text(shared->second)));
}

std::unique_ptr<std::byte[]> HoldSends(std::span<PairMessage> messages) {
  const std::vector<MemoryUse> written = WrittenBy(messages);
  std::vector<PairMessage*> sends;
  for (PairMessage& message : messages)
    if (message.sends && message.count > 0 && Meets(written, message)) sends.push_back(&message);
  std::ranges::sort(sends, std::less<>(), [](const PairMessage* send) { return send->data; });
  // Ranges that hold all of them, in their order; `at`: where the copy of a range begins.
  struct Range {
    const std::byte* begin;
    const std::byte* end;
    size_t at;
  };
  std::vector<Range> ranges;
  size_t bytes = 0;
  for (const PairMessage* send : sends) {
    const std::byte* const end = send->data + BytesOf(*send);
    if (ranges.empty() || std::less<>()(ranges.back().end, send->data))
      ranges.push_back({send->data, send->data, bytes});
    if (!std::less<>()(ranges.back().end, end)) continue;
    bytes += static_cast<size_t>(end - ranges.back().end);
    ranges.back().end = end;
  }
  auto copy = std::make_unique_for_overwrite<std::byte[]>(bytes);
  for (const Range& range : ranges)
    std::memcpy(copy.get() + range.at, range.begin, static_cast<size_t>(range.end - range.begin));
  auto range = ranges.begin();
  for (PairMessage* const send : sends) {
    while (std::less<>()(range->end, send->data + BytesOf(*send))) ++range;
    send->data = copy.get() + range->at + (send->data - range->begin);
  }
  return copy;
}

Status CheckOwn(std::span<const PairMessage> messages, Rank rank) {
  std::vector<const PairMessage*> sends, receives;
  SplitOwn(messages, rank, sends, receives);
  for (size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
    const std::string sent = i < sends.size() ? TextOf(*sends[i]) : "missing";
    const std::string received = i < receives.size() ? TextOf(*receives[i]) : "nothing";
    if (sent != received)
      return InvalidInput(fmt::format("rank {}: message {} to itself is {}; it expected {}", rank.value,
                                      i + 1, sent, received));
  }
  return OkStatus();
}

void CopyOwn(std::span<const PairMessage> messages, Rank rank) {
  std::vector<const PairMessage*> sends, receives;
  SplitOwn(messages, rank, sends, receives);
  for (size_t i = 0; i < sends.size(); ++i)
    if (sends[i]->count > 0)
      std::memmove(receives[i]->data, sends[i]->data, static_cast<size_t>(BytesOf(*sends[i])));
}

Pairs::Pairs(std::unique_ptr<Endpoint> endpoint) : endpoint_(std::move(endpoint)) {}

Status Pairs::Run(std::vector<PairMessage> messages, std::chrono::nanoseconds time_limit) {
  const Rank rank = endpoint_->rank();
  const std::unique_ptr<std::byte[]> held = HoldSends(messages);  // others may read it until Drive returns
  CopyOwn(messages, rank);
  const Wiring& wiring = endpoint_->wiring();
  moved_.resize(wiring.connections.size());
  std::map<int32_t, size_t> lane_of;  // by connection
  std::vector<Lane> lanes;
  for (const PairMessage& message : messages) {
    if (message.peer == rank) continue;
    const int32_t connection =
        message.sends ? *wiring.Find({rank, message.peer, 0}) : *wiring.Find({message.peer, rank, 0});
    const auto [lane, made] = lane_of.emplace(connection, lanes.size());
    if (made)
      lanes.push_back({.peer = message.peer,
                       .sends = message.sends,
                       .connection = connection,
                       .end = {},
                       .messages = {},
                       .first = moved_[static_cast<size_t>(connection)] + 1});
    lanes[lane->second].messages.push_back(&message);
  }
  Status status =
      Drive(*endpoint_, time_limit, [&] { return PairsExecution(lanes, *endpoint_, time_limit); });
  for (const Lane& lane : lanes) moved_[static_cast<size_t>(lane.connection)] += lane.messages.size();
  return status;
}

}  // namespace xccl
