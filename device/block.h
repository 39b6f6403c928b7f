// One threadblock of a kernel, instruction by instruction: the interface that generated code and the
// interpreter kernel call. An instruction is
//   Begin; Await...; if (Ready()) Move, once per run; Finish
// In Await one thread each waits for dependencies, for a message and for a free slot. Ready is a barrier
// after which all threads may continue. Move touches every element once. Finish makes the results visible:
// after a barrier, one thread each posts the message, returns the slot and counts the instruction as done.
// With protocol simple the block's last warp does nothing but post: it takes no part in Ready's barrier, so
// that the other threads, the movers, go on with the next instruction while its fence lasts.
// docs/kernels.md has the memory orders. A Block that gave up does nothing more until the kernel ends. With
// a group in place of a peer, the calls are OpenGroup, Agree, AwaitMessages, AwaitSlots, MoveGroup,
// FinishGroup and CloseGroup.
#pragma once

#include "device/block_ends.h"
#include "device/fan_in.h"
#include "device/fifo.h"
#include "device/group.h"
#include "device/instruction.h"
#include "device/ll.h"

namespace xccl::device {

template <class C>
class Block : public BlockEnds<C> {
 public:
  using Base = BlockEnds<C>;
  using Base::Base;
  using Base::Elements;

  XCCL_DEVICE void Begin(int32_t threadblock, int32_t instruction) {
    if (ThreadIndex() == 0) {
      Waiter& waiter = Info().waiter;
      waiter.threadblock = threadblock;
      waiter.instruction = instruction;
      waiter.pass = pass_;
    }
    good_ = !failed_;
    received_at_ = sent_at_ = 0;
    waits_ = 0;
    if (args_.jitter != 0) Jitter();
  }
  // Waits for instruction `index` of another block of this rank, which has `instructions`, in this pass.
  XCCL_DEVICE void AwaitBlock(int32_t block, int32_t instructions, int32_t index) {
    if (!Mine() || !good_) return;
    const uint64_t goal =
        (epoch_ << 32) +
        static_cast<uint64_t>(pass_ / args_.instances) * static_cast<uint64_t>(instructions) +
        static_cast<uint64_t>(index) + 1;
    good_ = AwaitCounter<false>(&Info().states[block].progress, goal, Who(), Wait::kDependency, block);
  }
  XCCL_DEVICE void AwaitMessage(const End& from) {
    if (!config_.kSimple || !Mine() || !good_) return;
    good_ = AwaitCounter<true>(Info(from.index).head, from.step + 1, Who(), Wait::kMessage,
                               Info(from.index).peer);
  }
  // A direct message needs no slot.
  XCCL_DEVICE void AwaitSlot(const End& to, bool direct) {
    if (direct || !Mine() || !good_) return;
    const EndInfo& info = Info(to.index);
    good_ = AwaitCounter<true>(info.tail, to.step + 1 - static_cast<uint64_t>(config_.kSlots), Who(),
                               Wait::kCredit, info.peer);
  }
  // Waits for the next message of every member, or for a free slot at every member, with one thread for each.
  XCCL_DEVICE void AwaitMessages(const End& from) {
    if (config_.kSimple) AwaitMembers(from, false, from.step + 1);
  }
  XCCL_DEVICE void AwaitSlots(const End& to) {
    AwaitMembers(to, true, to.step + 1 - static_cast<uint64_t>(config_.kSlots));
  }
  XCCL_DEVICE bool Ready() {
    // A rank that learns of this block's earlier results through an LL message must also see them.
    if (!config_.kSimple && config_.kMessagesOrder) FenceDevice();
    if (Posts()) return false;
    failed_ = SyncOrFirst(Movers(), !good_ || failed_);
    return !failed_;
  }

  // Moves one run. `from` and `to` are the ends; an unused one may be any. `lends_put`: the peer has stored
  // what is received at `dst`. `lends_get`: the peer reads what is sent at `dst`, or else at `src`.
  template <Op kOp, class Run>
  XCCL_DEVICE void Move(uint32_t marks, const End& from, const End& to, const Run& run, const Places& at,
                        bool lends_put, bool lends_get) {
    const int64_t elements = Elements(run.part);
    const int32_t slices = args_.passes == 1 ? 1 : run.count;
    for (int32_t s = 0; s < slices; ++s) {
      int64_t offset, bytes;
      FindSlice(run, elements, s, offset, bytes);
      if (bytes == 0) continue;
      constexpr bool kMessage = Sends(kOp) || Receives(kOp);
      if constexpr (C::Has(Protocol::kSimple) || !kMessage)
        if (config_.kSimple || !kMessage)
          MoveSlice<kOp>(marks, from, to, at, offset, bytes, lends_put, lends_get);
      if constexpr (C::Has(Protocol::kLl) || C::Has(Protocol::kLl128))
        if (!config_.kSimple && kMessage) MoveFlagged<kOp>(marks, from, to, at, offset, bytes);
    }
  }
  // Moves one run, as Move does, where one of the ends is a group's.
  template <class Run>
  XCCL_DEVICE void MoveGroup(Op op, uint32_t marks, const End& from, const End& to, const Run& run,
                             const Places& at) {
    const int64_t elements = Elements(run.part);
    const int32_t slices = args_.passes == 1 ? 1 : run.count;
    for (int32_t s = 0; s < slices; ++s) {
      int64_t offset, bytes;
      FindSlice(run, elements, s, offset, bytes);
      if (bytes == 0) continue;
      if constexpr (C::Has(Protocol::kSimple))
        if (config_.kSimple) MoveGroupSlice(op, marks, from, to, at, offset, bytes);
      if constexpr (C::Has(Protocol::kLl) || C::Has(Protocol::kLl128))
        if (!config_.kSimple) FanInFlagged(op, marks, from, to, at, offset, bytes);
    }
  }

  // Makes the instruction's results visible. kSignals: another block waits for it.
  template <Op kOp, bool kSignals>
  XCCL_DEVICE void Finish(End& from, End& to) {
    if (config_.kProtocol == Protocol::kLl && Sends(kOp)) RefreshSlot(to);
    // A send with flags posts nothing, and the barrier in the next instruction's Ready keeps the block
    // together.
    if (config_.kSimple || kOp != Op::kSend || kSignals) failed_ = SyncOr(failed_);
    ++done_;
    if (failed_) return;
    if constexpr (Sends(kOp)) {
      if (config_.kSimple) TellPut(to);
      Advance(to);
    }
    if constexpr (Receives(kOp)) {
      if (IsThread(1)) TellTaken(from);
      Advance(from);
    }
    if constexpr (kSignals)
      if (IsThread(2)) StoreReleaseDevice(&Info().states[block_].progress, done_);
  }
  XCCL_DEVICE void FinishGroup(Op op, bool signals, End& from, End& to) {
    if (config_.kProtocol == Protocol::kLl && Sends(op)) RefreshSlot(to);
    failed_ = SyncOr(failed_);
    ++done_;
    if (failed_) return;
    if (Sends(op)) {
      if (config_.kSimple) Post(to);
      Advance(to);
    }
    if (Receives(op)) {
      Return(from);
      Advance(from);
    }
    if (signals && IsThread(2)) {
      // The switch's stores to this rank's own buffers come before the accesses of the blocks that wait for
      // this instruction.
      if (kHasSwitch && Info(to.index).group != nullptr) FenceAlias();
      StoreReleaseDevice(&Info().states[block_].progress, done_);
    }
  }

 private:
  using Base::args_, Base::block_, Base::config_, Base::done_, Base::epoch_, Base::failed_, Base::good_;
  using Base::Info, Base::numbers_, Base::pass_, Base::rank_, Base::Unit, Base::Who;

  // The number of threads that wait and move; those after them post.
  XCCL_DEVICE int32_t Movers() const {
    return config_.kSimple && Threads() > Lanes() ? Threads() - Lanes() : Threads();
  }
  XCCL_DEVICE bool Posts() const { return ThreadIndex() >= Movers(); }
  XCCL_DEVICE int32_t FirstPoster() const { return Movers() % Threads(); }
  XCCL_DEVICE bool IsThread(int32_t role) const { return ThreadIndex() == role * Lanes() % Movers(); }
  // The waits of one instruction are distributed to one thread each, in different warps.
  XCCL_DEVICE bool Mine() { return IsThread(waits_++); }
  XCCL_DEVICE void Advance(End& end) const {
    ++end.step;
    end.slot = end.slot + 1 == config_.kSlots ? 0 : end.slot + 1;
  }
  XCCL_DEVICE char* SlotOf(const End& end) const {
    const EndInfo& info = Info(end.index);
    return info.slots + static_cast<int64_t>(end.slot) * info.slot_bytes;
  }
  // May the switch move this slice between buffers? It has no units below 4 bytes. Root and members decide
  // alike, since they registered all buffers at one place.
  XCCL_DEVICE bool Whole(const char* at, int64_t bytes) const {
    return numbers_.bytes() >= 4 || ((BitCast<uint64_t>(at) | static_cast<uint64_t>(bytes)) & 3) == 0;
  }
  XCCL_DEVICE bool BypassesSwitch(const End& end, const char* at, int64_t bytes) const {
    return (Info(end.index).lent & kBySwitch) != 0 && !Whole(at, bytes);
  }
  XCCL_DEVICE void Jitter() {
    uint64_t x =
        args_.jitter ^ (static_cast<uint64_t>(rank_) << 40) ^ (static_cast<uint64_t>(block_) << 20) ^ done_;
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    if ((x & 3) == 0) Sleep(static_cast<uint32_t>(x >> 40) & 8191);
  }

  XCCL_DEVICE void AwaitMembers(const End& end, bool sends, uint64_t goal) {
    const GroupConnection& g = *Info(end.index).group;
    if (Posts()) return;
    for (int32_t m = ThreadIndex(); m < g.count && good_; m += Movers()) {
      const GroupMember& member = g.members[m];
      good_ = AwaitCounter<true>(sends ? member.tail : member.head, goal, Who(),
                                 sends ? Wait::kCredit : Wait::kMessage, member.rank);
      // Members' accesses at their own addresses come before this block's accesses at the switch's.
      if (kHasSwitch && g.multicast != nullptr) FenceAlias();
    }
  }
  // Tells a receiver of the current message, and a sender that its message was taken: the peer itself, or the
  // proxy where the peer is of another host. A mover tells the proxy, since it knows the message's size.
  XCCL_DEVICE void TellPut(const End& to) const {
    const EndInfo& info = Info(to.index);
    if (info.fifo == nullptr) {
      if (ThreadIndex() == FirstPoster()) StoreReleaseSystem(info.head, to.step + 1);
    } else if (ThreadIndex() == 0) {
      Push(info.fifo, Encode({info.place, false, sent_at_}));
    }
  }
  XCCL_DEVICE void TellTaken(const End& from) const {
    const EndInfo& info = Info(from.index);
    if (!config_.kSimple || info.fifo == nullptr)
      StoreCredit(info.tail, from.step + 1);
    else
      Push(info.fifo, Encode({info.place, true, 0}));
  }
  // Requires a barrier before. Post tells all receivers of the message; Return gives the slots back to all
  // senders.
  XCCL_DEVICE void Post(const End& to) {
    const EndInfo& info = Info(to.index);
    if (info.group == nullptr) {
      TellPut(to);
      return;
    }
    if (ThreadIndex() < FirstPoster()) return;
    for (int32_t m = ThreadIndex() - FirstPoster(); m < info.count; m += Threads() - FirstPoster()) {
      if (kHasSwitch && info.group->multicast != nullptr) FenceAlias();
      StoreReleaseSystem(info.members[m].head, to.step + 1);
    }
  }
  XCCL_DEVICE void Return(const End& from) {
    const EndInfo& info = Info(from.index);
    if (info.group == nullptr) {
      if (IsThread(1)) TellTaken(from);
      return;
    }
    if (Posts()) return;
    for (int32_t m = ThreadIndex(); m < info.count; m += Movers()) {
      const GroupMember& member = info.members[m];
      // A switch's group, and one with members of other hosts, have protocol simple.
      if (kHasSwitch && config_.kSimple && info.group->multicast != nullptr) FenceAlias();
      if (config_.kSimple && member.place >= 0)
        Push(args_.ranks[rank_ - args_.first_rank].fifo, Encode({member.place, true, 0}));
      else
        StoreCredit(member.tail, from.step + 1);
    }
  }

  // Finds slice `s` of this pass: offset from the start of the part, and size, in bytes.
  template <class Run>
  XCCL_DEVICE void FindSlice(const Run& run, int64_t elements, int32_t s, int64_t& offset,
                             int64_t& bytes) const {
    const int32_t width = args_.passes == 1 ? run.count * run.weight : run.weight;
    const int32_t before = run.before + s * run.weight;
    int64_t begin = run.Share(elements, before), end = run.Share(elements, before + width);
    if (args_.passes != 1) {
      const int64_t step = SliceElements(end - begin, args_.passes, Unit()), chunk_end = end;
      begin += step * pass_;
      if (begin > chunk_end) begin = chunk_end;
      if (begin + step < end) end = begin + step;
    }
    offset = begin * numbers_.bytes();
    bytes = (end - begin) * numbers_.bytes();
  }

  // Where the slice begins in the slot: data keep their address modulo 16, so both sides can use 16-byte
  // accesses.
  XCCL_DEVICE static uint32_t Place(uint32_t& at, int64_t offset, int64_t bytes) {
    const uint32_t begin = ((at + 15) & ~15u) + (static_cast<uint32_t>(offset) & 15);
    at = begin + static_cast<uint32_t>(bytes);
    return begin;
  }

  // The message ends at `at` of its slot.
  XCCL_DEVICE void CheckFits(const End& end, uint32_t at) const {
    const EndInfo& info = Info(end.index);
    HostCheck(at <= (info.group != nullptr ? info.group->slot_bytes : int64_t{info.slot_bytes}));
  }

  template <Op kOp>
  XCCL_DEVICE void MoveSlice(uint32_t marks, const End& from, const End& to, const Places& at, int64_t offset,
                             int64_t bytes, bool lends_put, bool lends_get) {
    uint32_t does = 0;
    const char* source[2] = {nullptr, nullptr};
    char* local = Writes(kOp) ? at.dst + offset : nullptr;
    char* sent = nullptr;
    if constexpr (Receives(kOp))
      if (lends_put && BypassesSwitch(from, local, bytes)) lends_put = false;
    if constexpr (Sends(kOp)) {
      if (lends_get && BypassesSwitch(to, (Writes(kOp) ? at.dst : at.src) + offset, bytes)) lends_get = false;
      const uint32_t place = Place(sent_at_, offset, bytes);
      if (!lends_get) sent = at.put != nullptr ? at.put + offset : SlotOf(to) + place;
      if (!lends_get && at.put == nullptr) CheckFits(to, sent_at_);
    }
    if constexpr (Receives(kOp)) {
      const uint32_t place = Place(received_at_, offset, bytes);
      const char* const received = at.get != nullptr ? at.get + offset
                                   : lends_put       ? local
                                                     : SlotOf(from) + place;
      source[Reads(kOp) ? 1 : 0] = received;
      if (at.get != nullptr && (marks & kReceivedFirst) != 0) does |= Reads(kOp) ? kScaleSecond : kScaleFirst;
    }
    if constexpr (kOp == Op::kReduce) {
      source[0] = local;
      source[1] = at.src + offset;
      if ((marks & kFirst) != 0) does |= kScaleSecond;
    } else if constexpr (Reads(kOp)) {
      source[0] = at.src + offset;
      if ((marks & kFirst) != 0) does |= kScaleFirst;
    }
    if ((marks & kFinal) != 0) does |= kFinish;
    // Elements that a peer has put into this rank's buffer are not copied, unless they must still be scaled
    // or finished.
    const bool changes = (numbers_.scales() && (does & (kScaleFirst | kScaleSecond)) != 0) ||
                         (numbers_.finishes() && (does & kFinish) != 0);
    if constexpr (kOp == Op::kRecv || kOp == Op::kRecvCopySend)
      if (lends_put && !changes) local = nullptr;
    // In place, copying a rank's own share onto itself is skipped, since other ranks may be reading it.
    if constexpr (kOp == Op::kCopy)
      if (source[0] == local && !changes) return;
    constexpr int kSources = kOp == Op::kReduce || (Reads(kOp) && Receives(kOp)) ? 2 : 1;
    if (local != nullptr && sent != nullptr) {
      MoveRange<kSources, 2>(numbers_, source[0], source[1], local, sent, bytes, does, Movers());
    } else if (local != nullptr || sent != nullptr) {
      MoveRange<kSources, 1>(numbers_, source[0], source[1], local != nullptr ? local : sent, nullptr, bytes,
                             does, Movers());
    }
  }

  // Requires: at.put and at.get are addresses at which a switch serves the group's buffers, or null, as
  // ir/kernel/kernel_form.h allows.
  XCCL_DEVICE void MoveGroupSlice(Op op, uint32_t marks, const End& from, const End& to, const Places& at,
                                  int64_t offset, int64_t bytes) {
    const uint32_t received_place = Receives(op) ? Place(received_at_, offset, bytes) : 0;
    const uint32_t sent_place = Sends(op) ? Place(sent_at_, offset, bytes) : 0;
    if (Sends(op)) CheckFits(to, sent_at_);
    const uint32_t does = ((marks & kFirst) != 0 ? kScaleFirst : 0) | ((marks & kFinal) != 0 ? kFinish : 0);
    const GroupConnection* const from_group = Receives(op) ? Info(from.index).group : nullptr;
    const GroupConnection* const to_group = Sends(op) ? Info(to.index).group : nullptr;
    const char* const received =
        Receives(op) && from_group == nullptr ? SlotOf(from) + received_place : nullptr;
    char* const sent = Sends(op) && to_group == nullptr ? SlotOf(to) + sent_place : nullptr;
    const char* const switched = at.get != nullptr ? at.get : at.put;
    if (switched != nullptr && Whole(switched + offset, bytes)) {
      SwitchMove move;
      move.from = at.get != nullptr ? at.get + offset : received != nullptr ? received : at.src + offset;
      if (at.put != nullptr) move.to = at.put + offset;
      move.also = Writes(op) ? at.dst + offset : sent;
      move.bytes = bytes;
      move.marks = does | (at.get != nullptr ? kPulled : 0);
      move.threads = Movers();
      MoveSwitchRange(numbers_, move);
      return;
    }
    GroupMove move;
    move.bytes = bytes;
    move.threads = Movers();
    if (Reads(op)) move.local = at.src + offset;
    if (Writes(op)) move.stored = at.dst + offset;
    move.received = received;
    move.from = from_group;
    if (from_group != nullptr) move.from_at = from.slot * from_group->slot_bytes + received_place;
    move.sent = sent;
    move.to = to_group;
    if (to_group != nullptr) move.to_at = to.slot * to_group->slot_bytes + sent_place;
    move.marks = does;
    MoveGroupRange(numbers_, move);
  }

  template <Op kOp>
  XCCL_DEVICE void MoveFlagged(uint32_t marks, const End& from, const End& to, const Places& at,
                               int64_t offset, int64_t bytes) {
    const bool ll = config_.kProtocol == Protocol::kLl;
    if (failed_) return;
    const uint32_t received_at = received_at_;
    LlArgs args = Flagged(kOp, marks, from, to, at, offset, bytes);
    if constexpr (Receives(kOp)) {
      args.in = SlotOf(from) + received_at;
      args.peer = Info(from.index).peer;
    }
    if constexpr (C::Has(Protocol::kLl))
      if (ll) failed_ = !MoveLl<Reads(kOp), Receives(kOp), Writes(kOp), Sends(kOp)>(numbers_, args, Who());
    if constexpr (C::Has(Protocol::kLl128))
      if (!ll)
        failed_ = !MoveLl128<Reads(kOp), Receives(kOp), Writes(kOp), Sends(kOp)>(numbers_, args, Who());
  }

  XCCL_DEVICE void FanInFlagged(Op op, uint32_t marks, const End& from, const End& to, const Places& at,
                                int64_t offset, int64_t bytes) {
    if (failed_) return;
    FanInArgs args;
    args.from = Info(from.index).group;
    args.from_at = from.slot * args.from->slot_bytes + received_at_;
    args.ll = Flagged(op, marks, from, to, at, offset, bytes);
    if constexpr (C::Has(Protocol::kLl))
      if (config_.kProtocol == Protocol::kLl) failed_ = !FanInLl(numbers_, args, Who());
    if constexpr (C::Has(Protocol::kLl128))
      if (config_.kProtocol == Protocol::kLl128) failed_ = !FanInLl128(numbers_, args, Who());
  }

  // The arguments that move a slice with flags (LL, LL128), without `in` and `peer`. Counts the slice's bytes
  // in the messages received and sent.
  XCCL_DEVICE LlArgs Flagged(Op op, uint32_t marks, const End& from, const End& to, const Places& at,
                             int64_t offset, int64_t bytes) {
    LlArgs args;
    args.bytes = static_cast<int32_t>(bytes);
    const uint32_t wire = static_cast<uint32_t>(
        config_.kProtocol == Protocol::kLl ? (args.bytes + kLlData - 1) / kLlData * kLlLine
                                           : (args.bytes + kLl128Data - 1) / kLl128Data * kLl128Line);
    if (Reads(op)) args.source = at.src + offset;
    if (Writes(op)) args.destination = at.dst + offset;
    if (Receives(op)) {
      args.in_flag = from.step + 1;
      received_at_ += wire;
    }
    if (Sends(op)) {
      args.out = SlotOf(to) + sent_at_;
      args.out_flag = to.step + 1;
      sent_at_ += wire;
      CheckFits(to, sent_at_);
    }
    if ((marks & kFirst) != 0) args.marks |= kScaleFirst;
    if ((marks & kFinal) != 0) args.marks |= kFinish;
    return args;
  }

  // Once in every 2^31 messages, the rest of the slot gets the message's flag, too.
  XCCL_DEVICE void RefreshSlot(const End& to) {
    if ((to.step & 0x7fffffff) < static_cast<uint64_t>(config_.kSlots) && !failed_)
      RefreshLl(SlotOf(to) + sent_at_, SlotOf(to) + Info(to.index).slot_bytes,
                static_cast<uint32_t>(to.step + 1));
  }

  uint32_t received_at_ = 0, sent_at_ = 0;  // bytes of the current message so far
  int32_t waits_ = 0;
};

// The functions that generated code calls.
template <Op kOp, class C, class Run>
XCCL_DEVICE void Move(Block<C>& b, uint32_t marks, const End& from, const End& to, const Run& run,
                      const Places& at, bool lends_put, bool lends_get) {
  b.template Move<kOp>(marks, from, to, run, at, lends_put, lends_get);
}
template <Op kOp, bool kSignals, class C>
XCCL_DEVICE void Finish(Block<C>& b, End& from, End& to) {
  b.template Finish<kOp, kSignals>(from, to);
}
template <Op kOp, class C, class Run>
XCCL_DEVICE void MoveGroup(Block<C>& b, uint32_t marks, const End& from, const End& to, const Run& run,
                           const Places& at) {
  b.MoveGroup(kOp, marks, from, to, run, at);
}
template <Op kOp, bool kSignals, class C>
XCCL_DEVICE void FinishGroup(Block<C>& b, End& from, End& to) {
  b.FinishGroup(kOp, kSignals, from, to);
}
// The elements of a part before chunks of this weight, if all parts have equal sizes.
template <uint32_t kTotal, class C>
XCCL_DEVICE int64_t Share(const Block<C>& b, int32_t weight) {
  return ShareOf<kTotal>(b.Elements(0), weight);
}

}  // namespace xccl::device
