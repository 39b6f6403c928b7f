// A round polls every threadblock and runs each as far as it goes.
//
// The memory traffic of a message is as follows. The receiver reads a direct send once, and it is never
// copied. Other messages are written to and read from a slot, which stays in the cache since a connection has
// few small slots.
#include "runtime/executor.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/drive.h"
#include "runtime/reduce.h"

namespace xccl {
namespace {

constexpr int64_t kBlockBytes = 16 << 10;

class RankExecution {
 public:
  RankExecution(const RankWork& work, const ExecuteOptions& options, const RankBuffers& buffers,
                Endpoint& endpoint)
      : work_(work), options_(options), reduce_(FindReduce(options.type, options.op)), endpoint_(endpoint) {
    // Reads go through these pointers too; nothing writes through the input's.
    base_ = {const_cast<std::byte*>(buffers.input), buffers.output, buffers.scratch};
    for (const ThreadblockWork& block : work.threadblocks) {
      ThreadblockState state;
      for (int32_t connection : block.send) {
        state.send.push_back(endpoint.At(connection));
        state.put.push_back(state.send.back().head->load(std::memory_order_relaxed));
        state.before.push_back(state.put.back());
      }
      for (int32_t connection : block.recv) {
        state.recv.push_back(endpoint.At(connection));
        state.taken.push_back(state.recv.back().tail->load(std::memory_order_relaxed));
      }
      threadblocks_.push_back(std::move(state));
    }
    scales_ = options.op == ReduceOp::kAvg && IsFloating(options.type);
    finishes_ = options.op == ReduceOp::kAvg && !IsFloating(options.type);
  }

  // ---- What Drive asks for

  bool Round() {
    bool moved = false;
    for (size_t l = 0; l < threadblocks_.size(); ++l)
      while (TryStep(l)) moved = true;
    return moved;
  }

  bool MovedAll() const {
    for (size_t l = 0; l < threadblocks_.size(); ++l)
      if (threadblocks_[l].pass < work_.passes && !work_.threadblocks[l].steps.empty()) return false;
    return true;
  }

  // All instructions are done, receivers have read all lent buffers, and nothing waits for this rank.
  bool Done() const {
    if (!MovedAll()) return false;
    for (const ThreadblockState& state : threadblocks_)
      for (size_t c = 0; c < state.send.size(); ++c)
        if (state.send[c].direct != nullptr &&
            state.send[c].tail->load(std::memory_order_acquire) != state.put[c])
          return false;
    return endpoint_.Flushed();
  }

  void LookAround() {
    if (options_.call.IsSet()) endpoint_.CheckCalls(options_.call);
  }

  // The first threadblock that is not done, and what it waits for.
  Status Stuck() const {
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(options_.time_limit).count();
    for (size_t l = 0; l < threadblocks_.size(); ++l) {
      const ThreadblockState& state = threadblocks_[l];
      const ThreadblockWork& block = work_.threadblocks[l];
      if (state.pass == work_.passes || block.steps.empty()) continue;
      const Step& step = block.steps[state.index];
      return LimitReached(fmt::format(
          "rank {}: threadblock {}, instruction {} ({}), pass {} of {}: {}; nothing moved for {} ms",
          work_.rank.value, l, state.index, ToString(step.op), state.pass + 1, work_.passes,
          Awaited(step, block, state), limit));
    }
    return LimitReached(
        fmt::format("rank {}: done, but not all that it sent was received; nothing moved for {} ms",
                    work_.rank.value, limit));
  }

 private:
  struct ThreadblockState {
    int32_t pass = 0;
    int32_t index = 0;
    std::vector<ConnectionEnd> send, recv;  // for a group, one per member
    std::vector<uint64_t> put, taken;       // own counters, of each
    std::vector<uint64_t> before;           // put by earlier calls
  };

  bool TryStep(size_t l) {
    ThreadblockState& state = threadblocks_[l];
    const ThreadblockWork& block = work_.threadblocks[l];
    if (state.pass == work_.passes || block.steps.empty()) return false;
    const Step& step = block.steps[state.index];
    if (FirstUndone(step, state.pass) != nullptr) return false;
    if (Receives(step.op) && (FirstEmpty(state) || !ReceivesOwnCall(state, block))) return false;
    if (Sends(step.op) && FirstFull(state)) return false;
    Perform(step, state);
    if (++state.index == static_cast<int32_t>(block.steps.size())) {
      state.index = 0;
      ++state.pass;
    }
    return true;
  }

  // The receiver takes what earlier calls sent in any case, but may not have said so.
  bool IsFull(const ThreadblockState& state, size_t c) const {
    const ConnectionEnd& end = state.send[c];
    const uint64_t tail = end.tail->load(std::memory_order_acquire);
    return state.put[c] - tail >= end.num_slots ||
           state.put[c] - std::max(tail, state.before[c]) >= WindowOf(end);
  }
  uint64_t WindowOf(const ConnectionEnd& end) const { return work_.passes > 1 ? end.window : end.num_slots; }

  // The first connection without a message. Acquire: data that the peer wrote before it moved its counter is
  // visible after this load.
  static std::optional<size_t> FirstEmpty(const ThreadblockState& state) {
    for (size_t c = 0; c < state.recv.size(); ++c)
      if (state.recv[c].head->load(std::memory_order_acquire) == state.taken[c]) return c;
    return std::nullopt;
  }
  std::optional<size_t> FirstFull(const ThreadblockState& state) const {
    for (size_t c = 0; c < state.send.size(); ++c)
      if (IsFull(state, c)) return c;
    return std::nullopt;
  }

  // The first dependency that is not done; null: all are.
  const Dependency* FirstUndone(const Step& step, int32_t pass) const {
    for (const Dependency& d : std::span(work_.dependencies).subspan(step.dep_first, step.dep_count)) {
      const ThreadblockState& other = threadblocks_[d.threadblock];
      if (other.pass < pass || (other.pass == pass && other.index <= d.index)) return &d;
    }
    return nullptr;
  }

  void Perform(const Step& step, ThreadblockState& state) {
    const std::span<const ByteRange> ranges =
        std::span(work_.ranges).subspan(step.range_first, step.range_count);
    const bool lends = Lends(step, state);
    const ThreadblockWork& block = work_.threadblocks[&state - threadblocks_.data()];
    Pieces pieces;
    int64_t slot_at = kMessageHead;
    for (size_t c = 0; c < ranges.size(); ++c) {
      const Slice slice = SliceOf(ranges[c].elements, work_.element_bytes, work_.passes, state.pass);
      pieces.elements = slice.end - slice.begin;
      if (pieces.elements == 0) continue;
      const int64_t offset = slice.begin * work_.element_bytes;
      pieces.src = base_[static_cast<size_t>(step.src)] + ranges[c].src_begin + offset;
      pieces.dst = base_[static_cast<size_t>(step.dst)] + ranges[c].dst_begin + offset;
      FindMessages(step, state, static_cast<int64_t>(c), offset, slot_at, lends);
      Move(step, pieces, Receives(step.op) && ReadsSource(step.op) ? block.fan_in_own : std::nullopt);
      slot_at += PaddedBytes(pieces.elements, work_.element_bytes);
    }
    if (Receives(step.op)) {
      for (size_t c = 0; c < state.recv.size(); ++c) {
        ++state.taken[c];
        endpoint_.Take(block.recv[c], work_.passes == 1);
      }
    }
    if (Sends(step.op)) {
      for (size_t c = 0; c < state.send.size(); ++c) {
        if (DirectSource* const direct = state.send[c].direct; direct != nullptr) {
          DirectSource& source = direct[state.put[c] % state.send[c].num_slots];
          source = lends ? LentBy(step, ranges) : DirectSource{};
          source.call = options_.call;
        } else {
          std::memcpy(SlotOf(state.send[c], state.put[c]), &options_.call, sizeof options_.call);
        }
        ++state.put[c];
        endpoint_.Put(block.send[c], lends ? 0 : slot_at);
      }
    }
  }

  // The place in an instruction's messages of the part of its chunk c that begins at `offset` of the chunk
  // and at `slot_at` of a slot.
  void FindMessages(const Step& step, const ThreadblockState& state, int64_t c, int64_t offset,
                    int64_t slot_at, bool lends) {
    received_.clear();
    sent_.clear();
    if (Receives(step.op)) {
      for (size_t i = 0; i < state.recv.size(); ++i) {
        const ConnectionEnd& end = state.recv[i];
        const uint64_t slot = state.taken[i] % end.num_slots;
        const DirectSource lent = end.direct != nullptr ? end.direct[slot] : DirectSource{};
        received_.push_back(lent.base != nullptr ? lent.base + lent.offsets[c * lent.stride] + offset
                                                 : SlotOf(end, state.taken[i]) + slot_at);
      }
    }
    if (Sends(step.op) && !lends)
      for (size_t i = 0; i < state.send.size(); ++i)
        sent_.push_back(SlotOf(state.send[i], state.put[i]) + slot_at);
  }

  std::byte* SlotOf(const ConnectionEnd& end, uint64_t message) const {
    return end.slots + message % end.num_slots * static_cast<uint64_t>(endpoint_.slot_bytes());
  }

  // The messages that a step would receive are of this rank's call. Requires: they are there. Nothing of a
  // message is read before.
  bool ReceivesOwnCall(const ThreadblockState& state, const ThreadblockWork& block) {
    for (size_t c = 0; c < state.recv.size(); ++c) {
      const ConnectionEnd& end = state.recv[c];
      CallSignature theirs;
      if (end.direct != nullptr) {
        theirs = end.direct[state.taken[c] % end.num_slots].call;
      } else {
        std::memcpy(&theirs, SlotOf(end, state.taken[c]), sizeof theirs);
      }
      if (theirs == options_.call) continue;
      endpoint_.Fail(InvalidInput(Disagreement(block.recv_peers[c], theirs, work_.rank, options_.call)));
      return false;
    }
    return true;
  }

  // A scaled source differs from what lies in memory, so it goes through the slot.
  bool Lends(const Step& step, const ThreadblockState& state) const {
    return step.direct && !state.send.empty() && state.send[0].direct != nullptr &&
           !(step.op == Opcode::kSend && step.first && scales_);
  }

  DirectSource LentBy(const Step& step, std::span<const ByteRange> ranges) const {
    static const int64_t kNone = 0;
    const bool source = step.op == Opcode::kSend;
    const std::byte* base = base_[static_cast<size_t>(source ? step.src : step.dst)];
    if (ranges.empty()) return {base, &kNone, 0};
    return {base, source ? &ranges[0].src_begin : &ranges[0].dst_begin, sizeof(ByteRange) / sizeof(int64_t)};
  }

  // Addresses of one run of elements in every buffer and message that an instruction touches.
  struct Pieces {
    std::byte* src = nullptr;
    std::byte* dst = nullptr;
    const std::byte* received = nullptr;
    std::byte* sent = nullptr;  // null: lent, or nothing is sent
    int64_t elements = 0;
  };

  // Instructions that do several things to an element do them block by block, while it is in the first cache.
  // A group's messages are reduced first, in a fan-in with the source after the first `own` of them: the
  // result takes the place of the received value. Messages to a group are written for one member and copied
  // for the other members.
  void Move(Step step, Pieces pieces, std::optional<int32_t> own) {
    const int64_t block = kBlockBytes / work_.element_bytes;
    const Step whole = step;
    if (own) step.op = Sends(step.op) && WritesDestination(step.op) ? Opcode::kRecvCopySend : Opcode::kRecv;
    for (int64_t left = pieces.elements; left > 0; left -= block) {
      pieces.elements = std::min(left, block);
      pieces.received = received_.empty() ? nullptr : received_[0];
      pieces.sent = sent_.empty() ? nullptr : sent_[0];
      if (received_.size() > 1) {
        operands_.assign(received_.begin(), received_.end());
        if (own) operands_.insert(operands_.begin() + *own, Source(whole, pieces));
        ReduceMembers(options_.type, options_.op, gathered_.data(), operands_, pieces.elements);
        pieces.received = gathered_.data();
      }
      std::byte* const dst = pieces.dst;
      if (!WritesDestination(whole.op)) pieces.dst = pieces.sent;
      MoveBlock(step, pieces);
      pieces.dst = dst;
      for (size_t i = 1; i < sent_.size(); ++i)
        Copy(sent_[i], sent_[0], pieces.elements * work_.element_bytes);
      const int64_t bytes = block * work_.element_bytes;
      pieces.src += bytes;
      pieces.dst += bytes;
      for (const std::byte*& from : received_) from += bytes;
      for (std::byte*& to : sent_) to += bytes;
    }
  }

  static void Copy(std::byte* dst, const std::byte* src, int64_t bytes) {
    if (dst != src && bytes > 0) std::memcpy(dst, src, static_cast<size_t>(bytes));
  }

  void MoveBlock(const Step& step, const Pieces& p) {
    const int64_t bytes = p.elements * work_.element_bytes;
    switch (step.op) {
      case Opcode::kSend:
        if (p.sent != nullptr) Copy(p.sent, Source(step, p), bytes);
        return;
      case Opcode::kRecv:
      case Opcode::kRecvCopySend:
        Copy(p.dst, p.received, bytes);
        Finish(step, p.dst, p);
        if (p.sent != nullptr) Copy(p.sent, p.dst, bytes);
        return;
      case Opcode::kRecvReduceSend:
        reduce_(p.sent, Source(step, p), p.received, p.elements);
        Finish(step, p.sent, p);
        return;
      case Opcode::kRecvReduceCopy:
      case Opcode::kRecvReduceCopySend:
        reduce_(p.dst, Source(step, p), p.received, p.elements);
        Finish(step, p.dst, p);
        if (p.sent != nullptr) Copy(p.sent, p.dst, bytes);
        return;
      case Opcode::kCopy:
        Copy(p.dst, Source(step, p), bytes);
        Finish(step, p.dst, p);
        return;
      case Opcode::kReduce:
        reduce_(p.dst, p.dst, Source(step, p), p.elements);
        Finish(step, p.dst, p);
        return;
      case Opcode::kNop:
        return;
    }
  }

  // The source, scaled where avg wants it. Valid until the next call.
  const std::byte* Source(const Step& step, const Pieces& p) {
    if (!step.first || !scales_) return p.src;
    ScaleReference(options_.type, options_.op, work_.members, block_.data(), p.src, p.elements);
    return block_.data();
  }

  void Finish(const Step& step, std::byte* data, const Pieces& p) const {
    if (step.final && finishes_) FinishReference(options_.type, options_.op, work_.members, data, p.elements);
  }

  std::string Awaited(const Step& step, const ThreadblockWork& block, const ThreadblockState& state) const {
    if (const Dependency* d = FirstUndone(step, state.pass)) {
      const ThreadblockState& other = threadblocks_[d->threadblock];
      return fmt::format(
          "expected instruction {} of threadblock {} to be done, saw it at instruction {} of pass {}",
          d->index, d->threadblock, other.index, other.pass + 1);
    }
    if (Receives(step.op))
      if (const std::optional<size_t> c = FirstEmpty(state))
        return fmt::format("expected message {} of rank {} on channel {}, saw {}", state.taken[*c] + 1,
                           block.recv_peers[*c].value, block.channel, state.taken[*c]);
    if (!Sends(step.op)) return "it is about to go on";
    const size_t c = FirstFull(state).value_or(0);
    const uint64_t tail = state.send[c].tail->load(std::memory_order_acquire);
    return fmt::format("expected rank {} to take message {} on channel {}, saw {} taken",
                       block.send_peers[c].value, tail + 1, block.channel, tail);
  }

  const RankWork& work_;
  const ExecuteOptions& options_;
  const ReduceFunction reduce_;
  Endpoint& endpoint_;
  std::array<std::byte*, 3> base_;
  std::vector<ThreadblockState> threadblocks_;
  bool scales_ = false, finishes_ = false;
  std::vector<const std::byte*> received_;  // by message, its data of the current chunk
  std::vector<const std::byte*> operands_;  // operands of one reduction
  std::vector<std::byte*> sent_;            // and where each message is to hold it; none where it is lent
  alignas(64) std::array<std::byte, kBlockBytes> block_;     // a scaled source
  alignas(64) std::array<std::byte, kBlockBytes> gathered_;  // the values that a group received
};

}  // namespace

Status ExecuteRank(const RankWork& work, const ExecuteOptions& options, const RankBuffers& buffers,
                   Endpoint& endpoint) {
  return Drive(endpoint, options.time_limit, [&] { return RankExecution(work, options, buffers, endpoint); });
}

}  // namespace xccl
