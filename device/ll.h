// Moves data with flags among them. The sender writes data and flag together, and the receiver polls the
// data themselves: no counter, fence or barrier is needed between the two.
//   LL     16-byte lines of two 8-byte words {4 bytes of data, flag}; only 8-byte stores must be atomic.
//   LL128  128-byte lines: 120 bytes of data, then the flag. Neighbouring lanes, eight on a GPU, store a line
//          in one instruction. Its 128 bytes must become visible in order, as NVLink and one GPU's memory
//          ensure.
// Every slice starts at a new line.
#pragma once

#include "device/move.h"
#include "device/spin.h"

namespace xccl::device {

// One slice. `in` and `out` are the lines received and sent. Functions return false if a wait was given up.
struct LlArgs {
  const char* source = nullptr;
  char* destination = nullptr;
  const char* in = nullptr;
  char* out = nullptr;
  int32_t bytes = 0, peer = 0;
  uint64_t in_flag = 0, out_flag = 0;  // LL uses the low 32 bits
  uint32_t marks = 0;
};

XCCL_DEVICE bool Has(const LlLine& line, uint32_t flag) {
  return line.low_flag == flag && line.high_flag == flag;
}
// Waits until the line has the flag, or until waiting is given up.
XCCL_DEVICE_CALL LlLine AwaitLl(const char* at, uint32_t flag, int32_t peer, const Waiter* who) {
  LlLine line = LoadLl(at);
  for (Patience patience; !Has(line, flag) && patience.Poll(who, Wait::kMessage, peer, flag, line.low_flag);)
    line = LoadLl(at);
  return line;
}

template <bool kLocal, bool kReceive, bool kStore, bool kSend, ElementNumbers N>
XCCL_DEVICE_CALL bool MoveLl(N numbers, LlArgs args, const Waiter* who) {
  constexpr int kUnroll = 4;
  const uint32_t in_flag = static_cast<uint32_t>(args.in_flag),
                 out_flag = static_cast<uint32_t>(args.out_flag);
  const int32_t units = (args.bytes + kLlData - 1) / kLlData, stride = Threads();
  for (int32_t first = ThreadIndex(); first < units; first += kUnroll * stride) {
    LlLine lines[kUnroll];
    uint64_t local[kUnroll];
    XCCL_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      const int32_t i = first + u * stride;
      if (i >= units) break;
      if constexpr (kReceive) lines[u] = LoadLl(args.in + i * kLlLine);
      if constexpr (kLocal) local[u] = LoadUpTo8<N>(args.source + i * kLlData, args.bytes - i * kLlData);
    }
    XCCL_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      const int32_t i = first + u * stride, left = args.bytes - i * kLlData;
      if (i >= units) break;
      uint64_t received = 0;
      if constexpr (kReceive) {
        if (!Has(lines[u], in_flag)) lines[u] = AwaitLl(args.in + i * kLlLine, in_flag, args.peer, who);
        if (!Has(lines[u], in_flag)) return false;
        received = static_cast<uint64_t>(lines[u].high) << 32 | lines[u].low;
      }
      const uint64_t value = Combine8<kLocal, kReceive>(numbers, args.marks, kLocal ? local[u] : 0, received);
      if constexpr (kSend)
        StoreLl(args.out + i * kLlLine,
                {static_cast<uint32_t>(value), out_flag, static_cast<uint32_t>(value >> 32), out_flag});
      if constexpr (kStore) StoreUpTo8<N>(args.destination + i * kLlData, value, left);
    }
  }
  return true;
}

// Writes this flag to every line of a slot from `at` on, with any data: see device/abi.h on flags that wrap.
XCCL_DEVICE_CALL void RefreshLl(char* at, char* end, uint32_t flag) {
  for (char* line = at + static_cast<int64_t>(ThreadIndex()) * kLlLine; line < end;
       line += static_cast<int64_t>(Threads()) * kLlLine)
    StoreLl(line, {0, flag, 0, flag});
}

// One pair of a line of LL128: 16 bytes of data, or, in the last pair, 8 bytes and the flag.
struct LinePair {
  int32_t line, pair;
  bool exists;  // the slice has the line

  XCCL_DEVICE bool last() const { return pair == kLinePairs - 1; }
  XCCL_DEVICE bool flagged() const { return last() && exists; }
  XCCL_DEVICE int32_t data_at() const { return line * kLl128Data + pair * 16; }
  XCCL_DEVICE int32_t wire_at() const { return line * kLl128Line + pair * 16; }
  // Loads are unconditional, which saves registers: where there is no line, they read the first.
  XCCL_DEVICE int32_t loaded_at() const { return exists ? wire_at() : 0; }
  // The bytes of the slice from this pair on.
  XCCL_DEVICE int32_t Left(int32_t bytes) const { return exists ? bytes - data_at() : 0; }
};
// A thread's share of the lines of a slice. A warp's lanes hold neighbouring lines, every lane `pairs` pairs
// of one of them.
struct LineLane {
  int32_t lines;                             // lines of the slice
  int32_t pairs = kLinePairs / LineLanes();  // 1 on a GPU
  int32_t lane = ThreadIndex() & (LineLanes() - 1), own = ThreadIndex() % Lanes() / LineLanes();
  int32_t stride = Threads() / LineLanes();  // the lines that the block holds at a time

  XCCL_DEVICE explicit LineLane(int32_t bytes) : lines((bytes + kLl128Data - 1) / kLl128Data) {}
  // The first line is the same for all lanes of a warp, so that they vote together.
  XCCL_DEVICE static int32_t First() { return ThreadIndex() / Lanes() * (Lanes() / LineLanes()); }
  // Pair `p` in a line of the warp's lines from `first` on.
  XCCL_DEVICE LinePair At(int32_t first, int p) const {
    return {first + own, lane + p * LineLanes(), first + own < lines};
  }
};
template <class N>
XCCL_DEVICE Pair LoadUpTo16(const char* at, const LinePair& of, int32_t bytes) {
  const int32_t left = of.Left(bytes);
  return {left > 0 ? LoadUpTo8<N>(at + of.data_at(), left) : 0,
          left > 8 && !of.last() ? LoadUpTo8<N>(at + of.data_at() + 8, left - 8) : 0};
}
template <class N>
XCCL_DEVICE void StoreUpTo16(char* at, const Pair& pair, const LinePair& of, int32_t bytes) {
  const int32_t left = of.Left(bytes);
  if (left > 0) StoreUpTo8<N>(at + of.data_at(), pair.low, left);
  if (left > 8 && !of.last()) StoreUpTo8<N>(at + of.data_at() + 8, pair.high, left - 8);
}

// All lanes of a warp must call it. Waits until every lane with `flagged` sees its flag. Returns false if
// waiting was given up.
XCCL_DEVICE_CALL bool AwaitLl128(const char* at, bool flagged, uint64_t flag, int32_t peer,
                                 const Waiter* who) {
  uint64_t seen = LoadPair(at).high;
  for (Patience patience; AnyLane(flagged && seen != flag); seen = LoadPair(at).high)
    if (!AllLanes(patience.Poll(who, Wait::kMessage, peer, flag, seen))) return false;
  return true;
}

template <bool kLocal, bool kReceive, bool kStore, bool kSend, ElementNumbers N>
XCCL_DEVICE_CALL bool MoveLl128(N numbers, LlArgs args, const Waiter* who) {
  constexpr int kUnroll = 4, kMost = kUnroll * kMostPairs;
  const LineLane own(args.bytes);
  for (int32_t first = LineLane::First(); first < own.lines; first += kUnroll * own.stride) {
    const auto pair_of = [&](int k) { return own.At(first + k / own.pairs * own.stride, k % own.pairs); };
    Pair in[kMost], local[kMost];
    XCCL_UNROLL
    for (int k = 0; k < kMost; ++k) {
      if (k >= kUnroll * own.pairs) break;
      const LinePair pair = pair_of(k);
      if constexpr (kReceive) in[k] = LoadPair(args.in + pair.loaded_at());
      if constexpr (kLocal) local[k] = LoadUpTo16<N>(args.source, pair, args.bytes);
    }
    if constexpr (kReceive) {
      bool waits = false;
      XCCL_UNROLL
      for (int k = 0; k < kMost; ++k) {
        if (k >= kUnroll * own.pairs) break;
        waits = waits || (pair_of(k).flagged() && in[k].high != args.in_flag);
      }
      if (AnyLane(waits)) {
        for (int k = 0; k < kUnroll * own.pairs; ++k) {
          const LinePair pair = pair_of(k);
          if (!AwaitLl128(args.in + pair.loaded_at(), pair.flagged(), args.in_flag, args.peer, who))
            return false;
        }
      }
      // Flags may have been seen after the data of the same loads were read, so the data are loaded again.
      XCCL_UNROLL
      for (int k = 0; k < kMost; ++k) {
        if (k >= kUnroll * own.pairs) break;
        const LinePair pair = pair_of(k);
        in[k] = LoadPair(args.in + pair.loaded_at());
      }
    }
    XCCL_UNROLL
    for (int k = 0; k < kMost; ++k) {
      if (k >= kUnroll * own.pairs) break;
      const LinePair pair = pair_of(k);
      Pair out;
      out.low = Combine8<kLocal, kReceive>(numbers, args.marks, kLocal ? local[k].low : 0,
                                           kReceive ? in[k].low : 0);
      out.high = Combine8<kLocal, kReceive>(numbers, args.marks, kLocal ? local[k].high : 0,
                                            kReceive ? in[k].high : 0);
      if constexpr (kStore) StoreUpTo16<N>(args.destination, out, pair, args.bytes);
      if constexpr (kSend) {
        if (pair.last()) out.high = args.out_flag;
        StoreLinePair(args.out + pair.wire_at(), out, pair.last(), pair.exists);
      }
    }
  }
  return true;
}

}  // namespace xccl::device
