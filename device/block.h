// One threadblock of a kernel, instruction by instruction: the interface that generated code and the
// interpreter kernel call. An instruction is
//   Begin; Await...; if (Ready()) Move, once per run; Finish
// In Await one thread each waits for dependencies, for a message and for a free slot. Ready is a barrier
// after which all threads may continue. Move touches every element once. Finish makes the results visible:
// after a barrier, one thread each posts the message, returns the slot and counts the instruction as done.
// With protocol simple the block's last warp does nothing but post: it takes no part in Ready's barrier, so
// that the other threads, the movers, go on with the next instruction while its fence lasts.
// docs/kernels.md has the memory orders. A Block that gave up does nothing more until the kernel ends. With
// a group in place of a peer, the calls are OpenGroup, AwaitMessages, AwaitSlots, MoveGroup, FinishGroup and
// CloseGroup.
#pragma once

#include "device/fan_in.h"
#include "device/fifo.h"
#include "device/group.h"
#include "device/instruction.h"
#include "device/ll.h"

namespace xccl::device {

template <class C>
class Block {
 public:
#ifndef __CUDACC__
  // A block's shared memory on the host: HostTeam::shared.
  struct Shared {
    EndInfo ends[C::kEnds];
    RankInfo rank;
  };
#endif

  XCCL_DEVICE Block(const C& config, const LaunchArgs& args, typename C::Numbers numbers, int32_t block_index,
                    int32_t blocks_per_rank)
      : config_(config), args_(args), numbers_(numbers) {
    const int32_t copies = blocks_per_rank * args.instances, here = block_index / copies;
    const int32_t copy = block_index % copies;
    rank_ = args.first_rank + here;
    instance_ = copy / blocks_per_rank;
    block_ = copy % blocks_per_rank;
    const RankArgs& rank = args.ranks[here];
    HostTouch(&rank, sizeof rank);
    if (args.buffers != nullptr) HostTouch(args.buffers + here, sizeof(RankBuffers));
    const RankBuffers& buffers = args.buffers != nullptr ? args.buffers[here] : args.own;
    BlockState* const states = rank.blocks + static_cast<int64_t>(instance_) * blocks_per_rank;
    if (ThreadIndex() == 0)
      Info() = {buffers.input, buffers.output, buffers.scratch, states, {&args, rank_, instance_, 0, -1, 0},
                &buffers};
    HostTouch(states + block_, sizeof(BlockState));
    epoch_ = states[block_].epoch + 1;
    pass_ = instance_ - args.instances;
  }

  XCCL_DEVICE int32_t rank() const { return rank_; }
  XCCL_DEVICE int32_t block() const { return block_; }
  XCCL_DEVICE const LaunchArgs& args() const { return args_; }

  // --- Ends, entering and leaving.

  // `index` counts the block's ends from 0.
  XCCL_DEVICE End Open(int32_t index, int32_t connection, int32_t peer) {
    const RankArgs& rank = args_.ranks[rank_ - args_.first_rank];
    const int32_t place = connection * args_.instances + instance_;
    const Connection& c = rank.connections[place];
    HostTouch(&c, sizeof c);
    if (ThreadIndex() == 0)
      Info(index) = {&c,
                     c.slots,
                     c.head,
                     c.tail,
                     {nullptr, nullptr, nullptr},
                     static_cast<uint32_t>(c.slot_bytes),
                     0,
                     0,
                     peer,
                     place,
                     c.entry_there == nullptr ? rank.fifo : nullptr,
                     nullptr};
    const uint64_t step = *c.steps;
    return {step, static_cast<int32_t>(step % static_cast<uint64_t>(config_.kSlots)), index};
  }
  // Opens a group that this rank is the root of. Enter must follow before anything is received.
  XCCL_DEVICE End OpenGroup(int32_t index, int32_t group) {
    const GroupConnection& g = args_.ranks[rank_ - args_.first_rank]
                                   .groups[static_cast<int64_t>(group) * args_.instances + instance_];
    HostTouch(&g, sizeof g);
    HostTouch(g.members, g.count * static_cast<int64_t>(sizeof(GroupMember)));
    if (ThreadIndex() == 0)
      Info(index) = {nullptr, nullptr, nullptr, nullptr, {nullptr, nullptr, nullptr}, 0, 0, 0,
                     rank_,   0,       nullptr, &g};
    if (NeedsNeutral(g) && *g.holds != NeutralKey(numbers_))
      FillNeutral(numbers_, g.own, config_.kSlots * g.slot_bytes);
    const uint64_t step = *g.steps;
    return {step, static_cast<int32_t>(step % static_cast<uint64_t>(config_.kSlots)), index};
  }

  // Introduce writes for the peer where this rank's buffers are, Announce tells it so; Meet waits for the
  // same from the peer. They are called, in this order for all ends, only if the program has direct messages
  // on the connection, and do nothing if the launch allows none or the peer is of another host.
  XCCL_DEVICE void Introduce(const End& end) {
    if (!config_.kSimple || args_.direct == 0 || ThreadIndex() != 0) return;
    EndInfo& info = Info(end.index);
    if (info.fifo != nullptr) return;
    const RankInfo& own = Info();
    const uint64_t input = Lend(info, BitCast<uint64_t>(own.input), own.buffers->input_window);
    const uint64_t output = Lend(info, BitCast<uint64_t>(own.output), own.buffers->output_window);
    const uint64_t scratch = Lend(info, BitCast<uint64_t>(own.scratch), own.buffers->scratch_window);
    info.lent = (input != 0 ? 1u : 0u) | (output != 0 ? 2u : 0u) | (scratch != 0 ? 4u : 0u);
    PeerEntry* const entry = info.connection->entry_there;
    StoreWatched(&entry->input, input);
    StoreWatched(&entry->output, output);
    StoreWatched(&entry->scratch, scratch);
    StoreWatched(&entry->in_place, static_cast<uint64_t>(own.buffers->in_place));
    entries_fenced_ = false;
  }
  XCCL_DEVICE void Announce(const End& end) {
    if (!config_.kSimple || args_.direct == 0 || ThreadIndex() != 0) return;
    const EndInfo& info = Info(end.index);
    if (info.fifo != nullptr) return;
    if (!entries_fenced_) FenceSystem();  // one for all ends, since each would wait for the peers' memory
    entries_fenced_ = true;
    StoreFenced(&info.connection->entry_there->epoch, epoch_);
  }
  XCCL_DEVICE void Meet(const End& end) {
    if (!config_.kSimple || args_.direct == 0 || ThreadIndex() != 0 || !good_) return;
    EndInfo& info = Info(end.index);
    if (info.fifo != nullptr) return;
    const PeerEntry* const entry = info.connection->entry_here;
    good_ = AwaitCounter<true>(&entry->epoch, epoch_, Who(), Wait::kEntry, info.peer);
    info.buffer[0] = BitCast<char*>(LoadWatched(&entry->input));
    info.buffer[1] = BitCast<char*>(LoadWatched(&entry->output));
    info.buffer[2] = BitCast<char*>(LoadWatched(&entry->scratch));
    info.peer_in_place = static_cast<int32_t>(LoadWatched(&entry->in_place));
  }
  // After Open, Introduce and Meet.
  XCCL_DEVICE void Enter() { failed_ = SyncOr(!good_); }

  // Starts the next pass of this copy. `instructions`: this block's number of instructions per pass.
  XCCL_DEVICE bool NextPass(int32_t instructions) {
    pass_ += args_.instances;
    done_ =
        (epoch_ << 32) + static_cast<uint64_t>(pass_ / args_.instances) * static_cast<uint64_t>(instructions);
    return !failed_ && pass_ < args_.passes;
  }

  // Waits until the peer has finished with this rank's buffers and with their addresses; the kernel must
  // not end earlier.
  XCCL_DEVICE void Drain(const End& end) {
    if (!config_.kSimple || args_.direct == 0 || ThreadIndex() != 0 || failed_) return;
    Info().waiter.instruction = -1;
    const EndInfo& info = Info(end.index);
    if (info.fifo != nullptr) return;
    failed_ = !AwaitCounter<true>(info.tail, end.step, Who(), Wait::kDrain, info.peer);
  }
  XCCL_DEVICE void Leave() {
    Sync();  // other threads may still read the progress stored last
    if (ThreadIndex() == 0) Info().states[block_].epoch = epoch_;
  }
  // Requires: Leave was called.
  XCCL_DEVICE void Close(const End& end) {
    if (ThreadIndex() == 0) *Info(end.index).connection->steps = end.step;
  }
  XCCL_DEVICE void CloseGroup(const End& end) {
    if (ThreadIndex() != 0) return;
    const GroupConnection& g = *Info(end.index).group;
    *g.steps = end.step;
    if (NeedsNeutral(g)) *g.holds = NeutralKey(numbers_);
  }

  // --- Addresses.

  XCCL_DEVICE int64_t Elements(int32_t part) const {
    return config_.kTables ? args_.part_elements[part] : args_.elements;
  }
  XCCL_DEVICE const char* Input(int32_t position) const {
    return Info().input + PartBegin(Info().buffers->input_begin, position);
  }
  XCCL_DEVICE char* Output(int32_t position) const {
    return Info().output + PartBegin(Info().buffers->output_begin, position);
  }
  // Scratch run `run`; `before`: the shares of the runs before it (ir/kernel/kernel_sizes.h), `skip`: of the
  // part before it.
  XCCL_DEVICE char* Scratch(int32_t run, int64_t before, int64_t skip) const {
    return Info().scratch + ScratchBegin(run, before, skip);
  }
  // The same in the peer's memory; null if it cannot be reached or the launch does not allow it.
  XCCL_DEVICE char* PeerInput(Direct mode, const End& end, int32_t position) const {
    return Reaches(mode, end, Buffer::kInput) ? Info(end.index).buffer[0] + PartBegin(nullptr, position)
                                              : nullptr;
  }
  XCCL_DEVICE char* PeerOutput(Direct mode, const End& end, int32_t position) const {
    return Reaches(mode, end, Buffer::kOutput) ? Info(end.index).buffer[1] + PartBegin(nullptr, position)
                                               : nullptr;
  }
  XCCL_DEVICE char* PeerScratch(Direct mode, const End& end, int32_t run, int64_t before,
                                int64_t skip) const {
    return Reaches(mode, end, Buffer::kScratch) ? Info(end.index).buffer[2] + ScratchBegin(run, before, skip)
                                                : nullptr;
  }
  // Reaches: true if this rank may access that buffer of the peer for a message of this mode. Lends: true
  // if the peer may access this rank's. Both ends decide by the accesses of the rank whose buffer it is: by
  // whether that rank is in place.
  XCCL_DEVICE bool Reaches(Direct mode, const End& end, Buffer buffer) const {
    return Allowed(mode, Info(end.index).peer_in_place) &&
           Info(end.index).buffer[static_cast<int32_t>(buffer)] != nullptr;
  }
  XCCL_DEVICE bool Lends(Direct mode, const End& end, Buffer buffer) const {
    return Allowed(mode, Info().buffers->in_place) &&
           (Info(end.index).lent >> static_cast<int32_t>(buffer) & 1) != 0;
  }

  // --- Instructions.

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
  // The same where one of the ends is a group's.
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
    if (signals && IsThread(2)) StoreReleaseDevice(&Info().states[block_].progress, done_);
  }

 private:
  XCCL_DEVICE const Waiter* Who() const { return &Info().waiter; }
  // The number of threads that wait and move; those after them post.
  XCCL_DEVICE int32_t Movers() const {
    return config_.kSimple && Threads() > Lanes() ? Threads() - Lanes() : Threads();
  }
  XCCL_DEVICE bool Posts() const { return ThreadIndex() >= Movers(); }
  XCCL_DEVICE int32_t FirstPoster() const { return Movers() % Threads(); }
  XCCL_DEVICE bool IsThread(int32_t role) const { return ThreadIndex() == role * Lanes() % Movers(); }
  // The waits of one instruction are distributed to one thread each, in different warps.
  XCCL_DEVICE bool Mine() { return IsThread(waits_++); }
  XCCL_DEVICE bool Allowed(Direct mode, int32_t in_place) const {
    if (!config_.kSimple || args_.direct == 0) return false;
    return mode == Direct::kPut || mode == Direct::kGet || in_place == 0;
  }
  XCCL_DEVICE void Advance(End& end) const {
    ++end.step;
    end.slot = end.slot + 1 == config_.kSlots ? 0 : end.slot + 1;
  }
  XCCL_DEVICE char* SlotOf(const End& end) const {
    const EndInfo& info = Info(end.index);
    return info.slots + static_cast<int64_t>(end.slot) * info.slot_bytes;
  }
#ifdef __CUDACC__
  XCCL_DEVICE static EndInfo& Info(int32_t end) {
    __shared__ EndInfo ends[C::kEnds];
    return ends[end];
  }
  XCCL_DEVICE static RankInfo& Info() {
    __shared__ RankInfo rank;
    return rank;
  }
#else
  static EndInfo& Info(int32_t end) { return static_cast<Shared*>(host_place.team->shared)->ends[end]; }
  static RankInfo& Info() { return static_cast<Shared*>(host_place.team->shared)->rank; }
#endif

  XCCL_DEVICE static uint64_t Lend(const EndInfo& info, uint64_t address, int32_t window) {
    if (window < 0 || address == 0) return 0;
    const uint64_t delta = info.connection->window_delta[window];
    return delta == kUnmapped ? 0 : address + delta;
  }
  XCCL_DEVICE int64_t PartBegin(const int64_t* begins, int32_t position) const {
    return (config_.kTables ? begins[position] : position * args_.elements) * numbers_.bytes();
  }
  XCCL_DEVICE int64_t ScratchBegin(int32_t run, int64_t before, int64_t skip) const {
    if (config_.kTables) return (Info().buffers->scratch_begin[run] - skip) * numbers_.bytes();
    const int64_t unit = Unit();
    return ((before + run * (unit + 2) + unit - 1) / unit * unit - skip) * numbers_.bytes();
  }
  XCCL_DEVICE int64_t Unit() const { return numbers_.bytes() < 16 ? 16 / numbers_.bytes() : 1; }
  XCCL_DEVICE void Jitter() {
    uint64_t x =
        args_.jitter ^ (static_cast<uint64_t>(rank_) << 40) ^ (static_cast<uint64_t>(block_) << 20) ^ done_;
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    if ((x & 3) == 0) Sleep(static_cast<uint32_t>(x >> 40) & 8191);
  }

  // True at the root of a reduce group whose switch will also read the root's own slots.
  XCCL_DEVICE bool NeedsNeutral(const GroupConnection& g) const {
    return kHasSwitch && g.multicast != nullptr && g.own != nullptr && SwitchReduces(numbers_);
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
    if (info.fifo == nullptr)
      StoreCredit(info.tail, from.step + 1);
    else
      Push(info.fifo, Encode({info.place, true, 0}));
  }
  // Requires a barrier before. Post tells all receivers of the message; Return gives the slots back to all
  // senders.
  XCCL_DEVICE void Post(const End& to) {
    const GroupConnection* const g = Info(to.index).group;
    if (g == nullptr) {
      TellPut(to);
      return;
    }
    if (ThreadIndex() < FirstPoster()) return;
    for (int32_t m = ThreadIndex() - FirstPoster(); m < g->count; m += Threads() - FirstPoster()) {
      if (kHasSwitch && g->multicast != nullptr) FenceAlias();
      StoreReleaseSystem(g->members[m].head, to.step + 1);
    }
  }
  XCCL_DEVICE void Return(const End& from) {
    const GroupConnection* const g = Info(from.index).group;
    if (g == nullptr) {
      if (IsThread(1)) TellTaken(from);
      return;
    }
    if (Posts()) return;
    for (int32_t m = ThreadIndex(); m < g->count; m += Movers()) {
      if (kHasSwitch && g->multicast != nullptr) FenceAlias();
      if (g->members[m].place >= 0)
        Push(args_.ranks[rank_ - args_.first_rank].fifo, Encode({g->members[m].place, true, 0}));
      else
        StoreCredit(g->members[m].tail, from.step + 1);
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
    if constexpr (Sends(kOp)) {
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
    // What a peer has put is already in place, unless it must still be changed.
    const bool changes = (numbers_.scales() && (does & (kScaleFirst | kScaleSecond)) != 0) ||
                         (numbers_.finishes() && (does & kFinish) != 0);
    if constexpr (kOp == Op::kRecv || kOp == Op::kRecvCopySend)
      if (lends_put && !changes) local = nullptr;
    // In place, copying a rank's own share onto itself is skipped, since others may be reading it.
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

  XCCL_DEVICE void MoveGroupSlice(Op op, uint32_t marks, const End& from, const End& to, const Places& at,
                                  int64_t offset, int64_t bytes) {
    GroupMove move;
    move.bytes = bytes;
    move.threads = Movers();
    if (Reads(op)) move.local = at.src + offset;
    if (Writes(op)) move.stored = at.dst + offset;
    if (Sends(op)) {
      const uint32_t place = Place(sent_at_, offset, bytes);
      CheckFits(to, sent_at_);
      move.to = Info(to.index).group;
      if (move.to != nullptr) {
        move.to_at = to.slot * move.to->slot_bytes + place;
      } else {
        move.sent = SlotOf(to) + place;
      }
    }
    if (Receives(op)) {
      const uint32_t place = Place(received_at_, offset, bytes);
      move.from = Info(from.index).group;
      if (move.from != nullptr) {
        move.from_at = from.slot * move.from->slot_bytes + place;
      } else {
        move.received = SlotOf(from) + place;
      }
    }
    if ((marks & kFirst) != 0) move.marks |= kScaleFirst;
    if ((marks & kFinal) != 0) move.marks |= kFinish;
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

  // What a slice with flags moves but for where it is received, and its place in the slots.
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

  [[no_unique_address]] const C config_;
  const LaunchArgs& args_;
  typename C::Numbers numbers_;
  uint64_t epoch_, done_ = 0;
  uint32_t received_at_ = 0, sent_at_ = 0;  // bytes of the current message so far
  int32_t rank_, instance_, block_, pass_;
  int32_t waits_ = 0;
  bool good_ = true, failed_ = false, entries_fenced_ = false;
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
