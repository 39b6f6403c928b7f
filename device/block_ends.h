// The ends of one threadblock of a kernel, and where its rank's and its peers' buffers are: what a block does
// when a launch begins and when it ends. A Block (device/block.h) has the instructions in between.
#pragma once

#include "device/group.h"
#include "device/instruction.h"

namespace xccl::device {

template <class C>
class BlockEnds {
 public:
#ifndef __CUDACC__
  // A block's shared memory on the host: HostTeam::shared.
  struct Shared {
    EndInfo ends[C::kEnds];
    RankInfo rank;
  };
#endif

  XCCL_DEVICE BlockEnds(const C& config, const LaunchArgs& args, typename C::Numbers numbers,
                        int32_t block_index, int32_t blocks_per_rank)
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
                     nullptr,
                     c.steps,
                     nullptr,
                     0};
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
      Info(index) = {nullptr, nullptr, nullptr, nullptr,   {nullptr, nullptr, nullptr},
                     0,       0,       0,       rank_,     0,
                     nullptr, &g,      g.steps, g.members, g.count};
    if (NeedsNeutral(g) && *g.holds != NeutralBits(numbers_))
      FillNeutral(NeutralBits(numbers_), g.own, config_.kSlots * g.slot_bytes);
    const uint64_t step = *g.steps;
    return {step, static_cast<int32_t>(step % static_cast<uint64_t>(config_.kSlots)), index};
  }

  // Introduce writes for the peer where this rank's buffers are, Announce tells it so; Meet waits for the
  // same from the peer. They are called, in this order for all ends, only if the program has direct messages
  // on the connection, and do nothing if the launch allows none or the peer is of another host. `direct`:
  // kDirectPeers, or kDirectSwitch on ends whose peer is the root of a switch's group. A member there both
  // introduces itself and meets the root, which has agreed by then.
  XCCL_DEVICE void Introduce(const End& end, int32_t direct = kDirectPeers) {
    if (!Meets(direct) || ThreadIndex() != 0) return;
    EndInfo& info = Info(end.index);
    if (info.fifo != nullptr) return;
    const RankInfo& own = Info();
    const uint64_t* const delta = info.connection->window_delta;
    const uint64_t input = Lend(delta, own.input, own.buffers->input_window);
    const uint64_t output = Lend(delta, own.output, own.buffers->output_window);
    const uint64_t scratch = Lend(delta, own.scratch, own.buffers->scratch_window);
    info.lent = (input != 0 ? 1u : 0u) | (output != 0 ? 2u : 0u) | (scratch != 0 ? 4u : 0u);
    PeerEntry* const entry = info.connection->entry_there;
    StoreWatched(&entry->input, input);
    StoreWatched(&entry->output, output);
    StoreWatched(&entry->scratch, scratch);
    StoreWatched(&entry->in_place, static_cast<uint64_t>(own.buffers->in_place));
    entries_fenced_ = false;
  }
  XCCL_DEVICE void Announce(const End& end, int32_t direct = kDirectPeers) {
    if (!Meets(direct) || ThreadIndex() != 0) return;
    const EndInfo& info = Info(end.index);
    if (info.fifo != nullptr) return;
    if (!entries_fenced_) FenceSystem();  // one for all ends, since each would wait for the peers' memory
    entries_fenced_ = true;
    StoreFenced(&info.connection->entry_there->epoch, epoch_);
  }
  // The root of switches' groups learns from all their members whether they registered what the switch would
  // reach, inputs of reduce groups and outputs of multicast groups, each at the same place, and tells them.
  // The switch works so at all of these ends of the block, or at none. After all Announces, before any Meet.
  template <class... Ends>
  XCCL_DEVICE void Agree(const Ends&... ends) {
    if (!Meets(kDirectSwitch)) return;
    Sync();  // thread 0 wrote what follows
    bool agrees = true;
    uint64_t low = 0, high = 0;  // the last two bits of the members' places (AskMembers)
    (AskMembers(*Info(ends.index).group, agrees, low, high), ...);
    // Slices that do not end at multiples of 4 bytes must be the same ones in all buffers.
    agrees = !SyncOr(!agrees || (low & high) != 0);
    (TellMembers(Info(ends.index), agrees), ...);
  }
  XCCL_DEVICE void Meet(const End& end, int32_t direct = kDirectPeers) {
    if (!Meets(direct) || ThreadIndex() != 0 || !good_) return;
    EndInfo& info = Info(end.index);
    if (info.fifo != nullptr) return;
    const PeerEntry* const entry = info.connection->entry_here;
    good_ = AwaitCounter<true>(&entry->epoch, epoch_, Who(), Wait::kEntry, info.peer);
    if (direct == kDirectSwitch) {
      info.lent = static_cast<uint32_t>(LoadWatched(&entry->agreed));
      return;
    }
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
    if (ThreadIndex() == 0) *Info(end.index).steps = end.step;
  }
  XCCL_DEVICE void CloseGroup(const End& end) {
    if (ThreadIndex() != 0) return;
    const EndInfo& info = Info(end.index);
    *info.steps = end.step;
    if (config_.kSimple && NeedsNeutral(*info.group)) *info.group->holds = NeutralBits(numbers_);
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
  // The addresses of a part, or of a scratch run, in the peer's buffer; null if this rank cannot reach the
  // buffer or the launch does not allow it.
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

 protected:
  XCCL_DEVICE const Waiter* Who() const { return &Info().waiter; }
  XCCL_DEVICE bool Meets(int32_t direct) const { return config_.kSimple && (args_.direct & direct) != 0; }
  XCCL_DEVICE bool Allowed(Direct mode, int32_t in_place) const {
    if (!Meets(BySwitch(mode) ? kDirectSwitch : kDirectPeers)) return false;
    return BySwitch(mode) || mode == Direct::kPut || mode == Direct::kGet || in_place == 0;
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

  // The number of the place of what the switch would reach, or 0: the input for a reduce group's root, else
  // the output. `window`: that buffer's.
  XCCL_DEVICE uint64_t PlaceFor(const GroupConnection& g, int32_t& window) const {
    const RankInfo& own = Info();
    window = g.own != nullptr ? own.buffers->input_window : own.buffers->output_window;
    if (g.switch_delta == nullptr || (g.own != nullptr && !SwitchReducesBuffers(numbers_))) return 0;
    return Lend(g.switch_delta, g.own != nullptr ? own.input : own.output, window);
  }
  // Waits for a group's members, one thread each. Clears `agrees` where this rank has no such place or a
  // member has another. Adds the bits in which the last two bits of the place are 0 to `low`, in which they
  // are 1 to `high`.
  XCCL_DEVICE void AskMembers(const GroupConnection& g, bool& agrees, uint64_t& low, uint64_t& high) {
    int32_t window = 0;
    const uint64_t place = PlaceFor(g, window);
    agrees = agrees && place != 0;
    low |= ~place & 3;
    high |= place & 3;
    for (int32_t m = ThreadIndex(); m < g.count && good_; m += Threads()) {
      const PeerEntry* const entry = g.members[m].entry_here;
      good_ = AwaitCounter<true>(&entry->epoch, epoch_, Who(), Wait::kEntry, g.members[m].rank);
      agrees = agrees && LoadWatched(g.own != nullptr ? &entry->input : &entry->output) == place;
    }
  }
  XCCL_DEVICE void TellMembers(EndInfo& info, bool agrees) {
    const GroupConnection& g = *info.group;
    const int32_t buffer = g.own != nullptr ? 0 : 1;
    if (agrees && ThreadIndex() == 0) {
      int32_t window = 0;
      const uint64_t place = PlaceFor(g, window);
      info.buffer[buffer] = BitCast<char*>(place + g.switch_delta[kWindows + window]);
    }
    for (int32_t m = ThreadIndex(); m < g.count && good_; m += Threads()) {
      PeerEntry* const entry = g.members[m].entry_there;
      StoreWatched(&entry->agreed, kBySwitch | (agrees ? uint64_t{1} << buffer : 0));
      StoreReleaseSystem(&entry->epoch, epoch_);
    }
  }
  // A buffer's address as others know it, or 0.
  XCCL_DEVICE static uint64_t Lend(const uint64_t* deltas, const char* buffer, int32_t window) {
    if (window < 0 || buffer == nullptr) return 0;
    const uint64_t delta = deltas[window];
    return delta == kUnmapped ? 0 : BitCast<uint64_t>(buffer) + delta;
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
  // True at the root of a reduce group whose switch will also read the root's own slots.
  XCCL_DEVICE bool NeedsNeutral(const GroupConnection& g) const {
    return kHasSwitch && g.multicast != nullptr && g.own != nullptr && SwitchReduces(numbers_);
  }
  [[no_unique_address]] const C config_;
  const LaunchArgs& args_;
  typename C::Numbers numbers_;
  uint64_t epoch_, done_ = 0;
  int32_t rank_, instance_, block_, pass_;
  bool good_ = true, failed_ = false, entries_fenced_ = false;
};

}  // namespace xccl::device
