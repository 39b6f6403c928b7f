// Moves data with flags among them. The sender writes data and flag together, and the receiver polls the
// data themselves: no counter, fence or barrier is needed between the two.
//   LL     16-byte lines of two 8-byte words {4 bytes of data, flag}; only 8-byte stores must be atomic.
//   LL128  128-byte lines: 120 bytes of data, then the flag. Eight neighbouring lanes store one line in one
//          instruction, and its 128 bytes must become visible in order (NVLink and one GPU's memory ensure
//          it).
// Every slice starts at a new line.
#pragma once

#include "device/move.h"
#include "device/spin.h"

namespace xccl::device {

inline constexpr int kLlData = 8, kLlLine = 16;
inline constexpr int kLl128Data = 120, kLl128Line = 128;

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

#ifdef __CUDACC__

// All lanes of a warp must call it. Waits until every lane with `flagged` sees its flag, or until waiting
// is given up.
XCCL_DEVICE_CALL Pair AwaitLl128(const char* at, bool flagged, uint64_t flag, int32_t peer,
                                 const Waiter* who) {
  Pair pair = LoadPair(at);
  Patience patience;
  while (__any_sync(~0u, flagged && pair.high != flag)) {
    if (!__all_sync(~0u, patience.Poll(who, Wait::kMessage, peer, flag, pair.high))) break;
    pair = LoadPair(at);
  }
  return pair;
}

// Lanes 0..6 of a line carry 16 bytes each; lane 7 carries 8 bytes and the flag. A warp moves four lines at
// a time, kUnroll times.
template <bool kLocal, bool kReceive, bool kStore, bool kSend, ElementNumbers N>
XCCL_DEVICE_CALL bool MoveLl128(N numbers, LlArgs args, const Waiter* who) {
  constexpr int kUnroll = 4;
  const int lane = ThreadIndex() & 7;
  const bool flagged = lane == 7;
  const int32_t lines = (args.bytes + kLl128Data - 1) / kLl128Data, stride = Threads() / 8;
  // The first line is the same for all lanes of a warp, so that they vote together.
  const int32_t warp_line = ThreadIndex() / 32 * 4, own = (ThreadIndex() & 31) / 8;
  for (int32_t first = warp_line; first < lines; first += kUnroll * stride) {
    Pair in[kUnroll];
    uint64_t low[kUnroll], high[kUnroll];
    XCCL_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      const int32_t line = first + own + u * stride, at = line * kLl128Data + lane * 16,
                    left = args.bytes - at;
      if constexpr (kReceive)
        if (line < lines) in[u] = LoadPair(args.in + line * kLl128Line + lane * 16);
      if constexpr (kLocal) {
        low[u] = left > 0 && line < lines ? LoadUpTo8<N>(args.source + at, left) : 0;
        high[u] = left > 8 && line < lines && !flagged ? LoadUpTo8<N>(args.source + at + 8, left - 8) : 0;
      }
    }
    XCCL_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      const int32_t line = first + own + u * stride, at = line * kLl128Data + lane * 16;
      const int32_t left = line < lines ? args.bytes - at : 0;
      if (first + u * stride >= lines) break;
      if constexpr (kReceive) {
        const bool flags = flagged && line < lines;
        const char* const at_line = args.in + (line < lines ? line : 0) * kLl128Line + lane * 16;
        if (__any_sync(~0u, flags && in[u].high != args.in_flag))
          in[u] = AwaitLl128(at_line, flags, args.in_flag, args.peer, who);
        if (__any_sync(~0u, flags && in[u].high != args.in_flag)) return false;
        // The flag may have been seen after the data of the same load were read, so the data are loaded
        // again.
        in[u] = LoadPair(at_line);
      }
      Pair out;
      out.low =
          Combine8<kLocal, kReceive>(numbers, args.marks, kLocal ? low[u] : 0, kReceive ? in[u].low : 0);
      out.high =
          Combine8<kLocal, kReceive>(numbers, args.marks, kLocal ? high[u] : 0, kReceive ? in[u].high : 0);
      if constexpr (kStore) {
        if (left > 0) StoreUpTo8<N>(args.destination + at, out.low, left);
        if (left > 8 && !flagged) StoreUpTo8<N>(args.destination + at + 8, out.high, left - 8);
      }
      if constexpr (kSend) {
        if (flagged) out.high = args.out_flag;
        __syncwarp();
        if (line < lines) StorePair(args.out + line * kLl128Line + lane * 16, out);
      }
    }
  }
  return true;
}

#else

template <bool kLocal, bool kReceive, bool kStore, bool kSend, ElementNumbers N>
bool MoveLl128(N numbers, LlArgs args, const Waiter* who) {
  const int32_t lines = (args.bytes + kLl128Data - 1) / kLl128Data;
  for (int32_t line = 0; line < lines; ++line) {
    const uint64_t* const in =
        reinterpret_cast<const uint64_t*>(args.in + (kReceive ? line * kLl128Line : 0));
    uint64_t* const out = reinterpret_cast<uint64_t*>(args.out + (kSend ? line * kLl128Line : 0));
    if constexpr (kSend) HostTouch(out, kLl128Line);
    if constexpr (kReceive) {
      Patience patience;
      for (uint64_t seen; (seen = LoadAcquireSystem(in + 15)) != args.in_flag;)
        if (!patience.Poll(who, Wait::kMessage, args.peer, args.in_flag, seen)) return false;
    }
    for (int word = 0; word < 15; ++word) {
      const int32_t at = line * kLl128Data + word * 8, left = args.bytes - at;
      const uint64_t local = kLocal && left > 0 ? LoadUpTo8<N>(args.source + at, left) : 0;
      const uint64_t received = kReceive ? __atomic_load_n(in + word, __ATOMIC_RELAXED) : 0;
      const uint64_t value = Combine8<kLocal, kReceive>(numbers, args.marks, local, received);
      if (kStore && left > 0) StoreUpTo8<N>(args.destination + at, value, left);
      if constexpr (kSend) __atomic_store_n(out + word, value, __ATOMIC_RELAXED);
    }
    if constexpr (kSend) __atomic_store_n(out + 15, args.out_flag, __ATOMIC_RELEASE);
  }
  return true;
}

#endif

}  // namespace xccl::device
