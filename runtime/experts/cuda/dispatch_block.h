// One block of a dispatch. Rows join the message that is being filled for each branch's ring; a message is
// sent when it is full, and what is being filled when nothing more comes. A message that came keeps its slot
// until its rows have been passed on. Blocks of a deeper role never wait for those above, so senders' waits
// for slots end (rule D6 of dispatch/verify.h, by depth). Then the blocks count together, in the order of
// (home, token): no count comes from the host.
#pragma once

#include "runtime/experts/cuda/block.h"

namespace xccl::device {

class DispatchBlock : public ExpertBlock {
 public:
  XCCL_DEVICE DispatchBlock(const ExpertArgs& args, int32_t block)
      : ExpertBlock(args, block), role_(block / rank_.workers) {
    HostTouch(handle_.epoch, sizeof(uint32_t));
    epoch_ = *handle_.epoch + (args_.same_choices != 0 ? 0 : 1);
  }

  XCCL_DEVICE void Run() {
    if (!(role_ == 0 ? SendOwn() : TakeAll())) return;
    if (!EndRings() || !Barrier()) return;
    CountChunks();
    if (!Barrier()) return;
    AddChunks();
    if (!Barrier()) return;
    if (!Fits(FirstOf(rank_.local_experts), 0, args_.most_entries, kEntries)) return;
    if (block_ == 0) TellHost();
    ListEntries();
    TellPlaces();
    if (block_ == 0 && ThreadIndex() == 0) *handle_.epoch = epoch_;
  }

 private:
  // --- Rows.

  XCCL_DEVICE bool SendOwn() {
    if (args_.tokens != nullptr) HostTouch(args_.tokens, sizeof(int32_t));
    const int32_t tokens = args_.tokens != nullptr ? *args_.tokens : args_.own_tokens;
    if (!Fits(tokens, 0, rank_.max_tokens, kTokens)) return false;
    for (int32_t group = worker_; group * rank_.lanes < tokens; group += rank_.workers)
      for (int32_t lane = 0; lane < rank_.lanes && group * rank_.lanes + lane < tokens; ++lane) {
        const int32_t token = group * rank_.lanes + lane;
        if (args_.same_choices != 0)
          LoadHeader(handle_.headers + (rank_.rank * rank_.max_tokens + token) * rank_.header_bytes);
        else if (!MakeHeader(token))
          return false;
        if (!PassRow(args_.rows + token * args_.row_bytes, args_.scales + token * args_.scale_bytes))
          return false;
      }
    return true;
  }

  // Whether a number of the caller's is in first .. last. All threads call it with the same. The call gives
  // up where it is not: nothing of the host could refuse it before.
  XCCL_DEVICE bool Fits(int64_t value, int32_t first, int32_t last, int32_t token) const {
    if (value >= first && value <= last) return true;
    if (ThreadIndex() == 0)
      Report(Who(), Wait::kNone, token, static_cast<uint64_t>(last), static_cast<uint64_t>(value));
    return false;
  }

  template <class T>
  XCCL_DEVICE int64_t ChoiceAt(int64_t at) const {
    const T* const choice = static_cast<const T*>(args_.experts) + at;
    HostTouch(choice, sizeof(T));
    return *choice;
  }

  XCCL_DEVICE bool MakeHeader(int32_t token) {
    const int32_t top_k = rank_.top_k;
    const int64_t begin = static_cast<int64_t>(token) * top_k;
    if (ThreadIndex() == 0) {
      reinterpret_cast<int32_t*>(s_.header)[0] = rank_.rank;
      reinterpret_cast<int32_t*>(s_.header)[1] = token;
    }
    for (int32_t k = ThreadIndex(); k < top_k; k += Threads()) {
      const int64_t expert =
          args_.wide_experts != 0 ? ChoiceAt<int64_t>(begin + k) : ChoiceAt<int32_t>(begin + k);
      s_.chosen[k] = expert;
      reinterpret_cast<float*>(s_.header + 8)[k] = args_.weights != nullptr ? args_.weights[begin + k] : 1.0F;
      reinterpret_cast<int16_t*>(s_.header + 8 + 4 * top_k)[k] = static_cast<int16_t>(expert);
    }
    // The bytes up to the next multiple of 16 travel, too.
    for (int32_t at = 8 + 6 * top_k + ThreadIndex() * 2; at < rank_.header_bytes; at += Threads() * 2)
      *reinterpret_cast<int16_t*>(s_.header + at) = 0;
    Sync();
    for (int32_t k = 0; k < top_k; ++k)
      if (!Fits(s_.chosen[k], -1, rank_.ranks * rank_.local_experts - 1, token)) return false;
    return !SyncOr(!EachOnce(token));
  }

  // Whether each expert that this thread looks at is chosen once. As Fits, but threads look at different
  // positions.
  XCCL_DEVICE bool EachOnce(int32_t token) const {
    for (int32_t k = ThreadIndex(); k < rank_.top_k; k += Threads())
      for (int32_t later = k + 1; later < rank_.top_k; ++later) {
        if (s_.chosen[k] < 0 || s_.chosen[later] != s_.chosen[k]) continue;
        Report(Who(), Wait::kNone, token, kOnce, static_cast<uint64_t>(s_.chosen[k]));
        return false;
      }
    return true;
  }

  XCCL_DEVICE const RingEnd& OutRing(int32_t child) const {
    const int32_t lane = Lane();
    const int32_t place =
        rank_.out_at[(int64_t{lane} * rank_.depths + role_) * rank_.ranks + s_.children.of[child]];
    return rank_.out[place * rank_.workers + worker_];
  }

  // Keeps the row of the header if it is needed here, and passes it to its branches.
  XCCL_DEVICE bool PassRow(const char* row, const char* scales) {
    FindWay();
    const int32_t branches = s_.children.count, place = Place();
    bool good = true;
    for (int32_t c = ThreadIndex(); c < branches; c += Threads()) {
      const RingEnd& ring = OutRing(c);
      const int32_t filled = ring.state->filled;
      if (filled == 0) good = AwaitSlot(ring) && good;
      char* const slot = Slot(ring, ring.state->count, rank_.slot_bytes) + sizeof(SlotHead);
      s_.to_header[c] = slot + filled * rank_.header_bytes;
      s_.to_row[c] = slot + rank_.rows_per_message * rank_.header_bytes + filled * rank_.row_bytes;
    }
    if (ThreadIndex() == 0) {
      s_.to_header[branches] = handle_.headers + place * rank_.header_bytes;
      HostTouch(handle_.stamps + place, sizeof(uint32_t));
      handle_.stamps[place] = epoch_;
    }
    if (SyncOr(!good)) return false;
    for (int32_t at = ThreadIndex() * 16; at < rank_.header_bytes; at += Threads() * 16) {
      const Bits<16> unit = *reinterpret_cast<const Bits<16>*>(s_.header + at);
      for (int32_t c = 0; c <= branches; ++c) StoreData<16>(s_.to_header[c] + at, unit);
    }
    Copy(row, args_.row_bytes, branches, 0, args_.received + place * args_.row_bytes);
    Copy(scales, args_.scale_bytes, branches, args_.row_bytes,
         args_.received_scales + place * args_.scale_bytes);
    Sync();
    for (int32_t c = ThreadIndex(); c < branches; c += Threads()) {
      const RingEnd& ring = OutRing(c);
      if (++ring.state->filled == rank_.rows_per_message) Publish(ring, false);
    }
    Sync();
    return true;
  }

  // To to_row of the branches, from `at_row` on, and to `here` where the row is needed. Four loads of a
  // thread are in flight at a time.
  XCCL_DEVICE void Copy(const char* from, int64_t bytes, int32_t branches, int64_t at_row, char* here) {
    const int32_t copies = branches + s_.needed;
    if (copies == 0) return;
    constexpr int kLoads = 4;
    const int64_t stride = int64_t{Threads()} * 16;
    for (int64_t at = int64_t{ThreadIndex()} * 16; at < bytes; at += kLoads * stride) {
      Bits<16> unit[kLoads];
      XCCL_UNROLL
      for (int u = 0; u < kLoads; ++u) {
        const int64_t next = at + u * stride;
        unit[u] = LoadData<16>(from + (next < bytes ? next : at));
      }
      for (int32_t c = 0; c < copies; ++c) {
        char* const to = c < branches ? s_.to_row[c] + at_row : here;
        XCCL_UNROLL
        for (int u = 0; u < kLoads; ++u)
          if (at + u * stride < bytes) StoreData<16>(to + at + u * stride, unit[u]);
      }
    }
  }

  // By one thread, behind a barrier after the stores of the message.
  XCCL_DEVICE void Publish(const RingEnd& ring, bool last) {
    SlotHead head;
    head.rows = ring.state->filled;
    head.last = last ? 1 : 0;
    StoreData<16>(Slot(ring, ring.state->count, rank_.slot_bytes), BitCast<Bits<16>>(head));
    ring.state->filled = 0;
    StoreReleaseSystem(ring.head, ++ring.state->count);
  }

  // Sends what is being filled.
  XCCL_DEVICE void Flush() {
    if (role_ == rank_.depths) return;
    for (int32_t o = rank_.out_begin[role_] + ThreadIndex(); o < rank_.out_begin[role_ + 1]; o += Threads()) {
      const RingEnd& ring = rank_.out[o * rank_.workers + worker_];
      if (ring.state->filled > 0) Publish(ring, false);
    }
    Sync();
  }

  // Ends every ring that this block sends over, and forgets that those it takes from have ended.
  XCCL_DEVICE bool EndRings() {
    bool good = true;
    if (role_ < rank_.depths)
      for (int32_t o = rank_.out_begin[role_] + ThreadIndex(); o < rank_.out_begin[role_ + 1] && good;
           o += Threads()) {
        const RingEnd& ring = rank_.out[o * rank_.workers + worker_];
        good = ring.state->filled > 0 || AwaitSlot(ring);
        if (good) Publish(ring, true);
      }
    if (role_ > 0)
      for (int32_t i = rank_.in_begin[role_ - 1] + ThreadIndex(); i < rank_.in_begin[role_]; i += Threads())
        rank_.in[i * rank_.workers + worker_].state->ended = 0;
    return !SyncOr(!good);
  }

  XCCL_DEVICE bool TakeAll() {
    const int32_t begin = rank_.in_begin[role_ - 1], end = rank_.in_begin[role_];
    int32_t open = end - begin;
    Patience patience;
    bool waiting = false;
    while (open > 0) {
      bool moved = false;
      for (int32_t base = begin; base < end; base += Threads()) {
        const int32_t mine = base + ThreadIndex();
        bool ready = false;
        if (mine < end) {
          const RingEnd& ring = rank_.in[mine * rank_.workers + worker_];
          ready = ring.state->ended == 0 && LoadAcquireSystem(ring.head) != ring.state->count;
        }
        s_.ready[ThreadIndex()] = ready ? 1 : 0;
        if (!SyncOr(ready)) continue;
        moved = true;
        for (int32_t t = 0; t < Threads(); ++t)
          if (s_.ready[t] != 0 && !TakeMessage(rank_.in[(base + t) * rank_.workers + worker_], open))
            return false;
        Sync();
      }
      if (moved) {
        patience = {};
        waiting = false;
        continue;
      }
      if (!waiting) Flush();
      waiting = true;
      bool good = true;
      if (ThreadIndex() == 0)
        good = patience.Poll(Who(), Wait::kMessage, rank_.in[begin * rank_.workers + worker_].peer, 0, 0);
      if (SyncOr(!good)) return false;
    }
    return true;
  }

  XCCL_DEVICE bool TakeMessage(const RingEnd& ring, int32_t& open) {
    const char* const slot = Slot(ring, ring.state->count, rank_.slot_bytes);
    const SlotHead head = BitCast<SlotHead>(LoadData<16>(slot));
    const char* const headers = slot + sizeof(SlotHead);
    const char* const rows = headers + rank_.rows_per_message * rank_.header_bytes;
    for (int32_t r = 0; r < head.rows; ++r) {
      LoadHeader(headers + r * rank_.header_bytes);
      const char* const row = rows + r * rank_.row_bytes;
      if (!PassRow(row, row + args_.row_bytes)) return false;
    }
    Sync();
    if (ThreadIndex() == 0) {
      ring.state->ended = head.last;
      StoreCredit(ring.tail, ++ring.state->count);
    }
    open -= head.last;
    Sync();
    return true;
  }

  // --- Counts.

  // All blocks of the rank wait for each other.
  XCCL_DEVICE bool Barrier() {
    Sync();
    const uint64_t goal = LoadWatched(rank_.arrived + block_) + 1;
    Sync();
    if (ThreadIndex() == 0) StoreReleaseDevice(rank_.arrived + block_, goal);
    bool good = true;
    for (int32_t b = ThreadIndex(); b < args_.blocks && good; b += Threads())
      good = AwaitCounter<false>(rank_.arrived + b, goal, Who(), Wait::kDependency, b);
    return !SyncOr(!good);
  }

  XCCL_DEVICE int32_t Columns() const { return rank_.local_experts + 1; }
  XCCL_DEVICE int32_t Warp() const { return block_ * (Threads() / Lanes()) + ThreadIndex() / Lanes(); }
  XCCL_DEVICE int32_t Warps() const { return args_.blocks * (Threads() / Lanes()); }
  XCCL_DEVICE int32_t LaneIndex() const { return ThreadIndex() % Lanes(); }
  XCCL_DEVICE int32_t Places() const { return rank_.ranks * rank_.max_tokens; }

  // The position of the column's expert in the place's token, or of any expert that is here; -1: none, or the
  // dispatch did not see the place.
  XCCL_DEVICE int32_t PositionAt(int32_t place, int32_t column) const {
    if (BitCast<uint32_t>(LoadData<4>(reinterpret_cast<const char*>(handle_.stamps + place))) != epoch_)
      return -1;
    const char* const header = handle_.headers + place * rank_.header_bytes;
    HostTouch(header, rank_.header_bytes);
    for (int32_t k = 0; k < rank_.top_k; ++k) {
      const int32_t expert = ExpertIn(header, k);
      if (column == rank_.local_experts ? IsHere(expert)
                                        : expert == rank_.rank * rank_.local_experts + column)
        return k;
    }
    return -1;
  }

  // A warp's count of the places first .. first + places - 1 that the column is at.
  XCCL_DEVICE int32_t CountPlaces(int32_t first, int32_t places, int32_t column) {
    int32_t count = 0;
    for (int32_t p = LaneIndex(); p < places && first + p < Places(); p += Lanes())
      count += PositionAt(first + p, column) >= 0 ? 1 : 0;
    return SumLanes(count).all;
  }

  XCCL_DEVICE void CountChunks() {
    const int32_t units = rank_.chunks * Columns();
    for (int32_t u = Warp(); u < units + rank_.ranks; u += Warps()) {
      const bool home = u >= units;
      const int32_t count =
          home ? CountPlaces((u - units) * rank_.max_tokens, rank_.max_tokens, rank_.local_experts)
               : CountPlaces(u / Columns() * kPlacesOfChunk, kPlacesOfChunk, u % Columns());
      if (LaneIndex() == 0) (home ? handle_.rows_of_home[u - units] : handle_.counts[u]) = count;
    }
  }

  // Turns a column's counts into the sums before each chunk.
  XCCL_DEVICE void AddChunks() {
    for (int32_t column = Warp(); column < Columns(); column += Warps()) {
      int32_t sum = 0;
      for (int32_t base = 0; base < rank_.chunks; base += Lanes()) {
        const int32_t chunk = base + LaneIndex();
        int32_t* const count = handle_.counts + chunk * Columns() + column;
        const LaneSums sums = SumLanes(chunk < rank_.chunks ? *count : 0);
        if (chunk < rank_.chunks) *count = sum + sums.before;
        sum += sums.all;
      }
      if (LaneIndex() == 0)
        (column == rank_.local_experts ? *handle_.rows : handle_.rows_of_expert[column]) = sum;
    }
  }

  // A warp's sum of the experts' rows before a column.
  XCCL_DEVICE int32_t FirstOf(int32_t column) {
    int32_t sum = 0;
    for (int32_t e = LaneIndex(); e < column; e += Lanes()) sum += handle_.rows_of_expert[e];
    return SumLanes(sum).all;
  }

  // The host may read the counts while the kernel still lists entries.
  XCCL_DEVICE void TellHost() {
    if (handle_.host_counts == nullptr) return;
    const int32_t local = rank_.local_experts;
    for (int32_t e = ThreadIndex(); e <= local; e += Threads()) {
      const int32_t count = e == 0 ? *handle_.rows : handle_.rows_of_expert[e - 1];
      StoreData<4>(reinterpret_cast<char*>(handle_.host_counts + e), BitCast<Bits<4>>(count));
    }
    Sync();
    if (ThreadIndex() == 0) StoreWatched(handle_.host_counts + local + 1, epoch_);
  }

  XCCL_DEVICE void ListEntries() {
    const int32_t local = rank_.local_experts, units = rank_.chunks * Columns();
    for (int32_t u = Warp(); u < units; u += Warps()) {
      const int32_t chunk = u / Columns(), column = u % Columns();
      const int32_t first = FirstOf(column == local ? 0 : column);
      if (chunk == 0 && LaneIndex() == 0) {
        if (column < local) handle_.first_of_expert[column] = first;
        if (column == local - 1) handle_.first_of_expert[local] = first + handle_.rows_of_expert[column];
      }
      int32_t next = first + handle_.counts[u];
      for (int32_t base = 0; base < kPlacesOfChunk; base += Lanes()) {
        const int32_t place = chunk * kPlacesOfChunk + base + LaneIndex();
        const int32_t position = place < Places() ? PositionAt(place, column) : -1;
        const LaneSums sums = SumLanes(position >= 0 ? 1 : 0);
        if (position >= 0) List(next + sums.before, place, position, column);
        next += sums.all;
      }
    }
  }
  XCCL_DEVICE void List(int32_t at, int32_t place, int32_t position, int32_t column) {
    if (column == rank_.local_experts) {
      HostTouch(handle_.places + at, sizeof(int32_t));
      handle_.places[at] = place;
      return;
    }
    const char* const header = handle_.headers + place * rank_.header_bytes;
    HostTouch(handle_.row_of_entry + at, sizeof(int32_t));
    handle_.row_of_entry[at] = place;
    HostTouch(handle_.weight_of_entry + at, sizeof(float));
    handle_.weight_of_entry[at] = WeightIn(header, position);
    handle_.entry_of[place * int64_t{rank_.top_k} + position] = at;
  }

  XCCL_DEVICE void TellPlaces() {
    const PlaceTables& told = args_.told;
    const int32_t top_k = rank_.top_k;
    if (told.homes == nullptr && told.tokens == nullptr && told.experts == nullptr && told.weights == nullptr)
      return;
    for (int32_t p = block_ * Threads() + ThreadIndex(); p < Places(); p += args_.blocks * Threads()) {
      const bool came = PositionAt(p, rank_.local_experts) >= 0;
      Tell(told.homes, p, came ? p / rank_.max_tokens : -1);
      Tell(told.tokens, p, came ? p % rank_.max_tokens : -1);
      const char* const header = handle_.headers + p * rank_.header_bytes;
      for (int32_t k = 0; k < top_k; ++k) {
        const bool here = came && IsHere(ExpertIn(header, k));
        const int64_t at = int64_t{p} * top_k + k;
        Tell(told.experts, at, here ? ExpertIn(header, k) % rank_.local_experts : -1);
        Tell(told.weights, at, here ? WeightIn(header, k) : 0.0F);
      }
    }
  }
  template <class T>
  XCCL_DEVICE static void Tell(T* to, int64_t at, T value) {
    if (to == nullptr) return;
    HostTouch(to + at, sizeof(T));
    to[at] = value;
  }
  XCCL_DEVICE static float WeightIn(const char* header, int32_t position) {
    return reinterpret_cast<const float*>(header + 8)[position];
  }

  const int32_t role_;
  uint32_t epoch_;
};

}  // namespace xccl::device
