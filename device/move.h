// Moves elements from memory to memory: one or two sources, combined, into one or two destinations. Each
// element is touched once. If all addresses agree modulo 16, units are 16 bytes; else they are the largest
// power of two on which the addresses agree. Elements before the first and after the last whole unit go one
// by one. Every thread has several loads in flight.
#pragma once

#include "device/numbers.h"

namespace xccl::device {

struct MoveArgs {
  const char* source[2];  // the second is used only with two sources
  char* destination[2];
  int64_t bytes = 0;  // whole elements
  uint32_t marks = 0;
  int32_t threads = 1;  // the first threads of the block, which share the work
};

// Moves kUnits units of kWidth bytes, `stride` apart: all loads, then all stores. kSome: only the units
// before `end`; in place of the others the first is loaded again, since ptxas makes conditional loads spill
// (128 registers in place of 96 in the golden allreduce on sm_90).
template <int kSources, int kDestinations, int kWidth, int kUnits, bool kSome, class N>
XCCL_DEVICE void MoveBatch(const N& numbers, const MoveArgs& args, int64_t at, int64_t stride, int64_t end) {
  Bits<kWidth> a[kUnits], b[kUnits];
  XCCL_UNROLL
  for (int u = 0; u < kUnits; ++u) {
    const int64_t from = kSome && at + u * stride >= end ? at : at + u * stride;
    a[u] = LoadData<kWidth>(args.source[0] + from);
    if constexpr (kSources == 2) b[u] = LoadData<kWidth>(args.source[1] + from);
  }
  XCCL_UNROLL
  for (int u = 0; u < kUnits; ++u) {
    if (kSome && at + u * stride >= end) continue;
    const Bits<kWidth> value =
        CombineBits<kSources, kWidth>(numbers, args.marks, a[u], kSources == 2 ? b[u] : a[u]);
    StoreData<kWidth>(args.destination[0] + at + u * stride, value);
    if constexpr (kDestinations == 2) StoreData<kWidth>(args.destination[1] + at + u * stride, value);
  }
}

// Moves `units` units of kWidth bytes, from offset `begin` on. Requires: addresses at `begin` are multiples
// of kWidth.
template <int kSources, int kDestinations, int kWidth, class N>
XCCL_DEVICE void MoveUnits(const N& numbers, const MoveArgs& args, int64_t begin, int64_t units) {
  constexpr int kUnroll = kWidth == 16 ? (kSources == 1 ? 8 : 4) : (kWidth == 8 ? 4 : 1);
  const int64_t stride = static_cast<int64_t>(args.threads) * kWidth;
  const int64_t end = begin + units * kWidth;
  int64_t at = begin + static_cast<int64_t>(ThreadIndex()) * kWidth;
  for (; at + (kUnroll - 1) * stride < end; at += kUnroll * stride)
    MoveBatch<kSources, kDestinations, kWidth, kUnroll, false>(numbers, args, at, stride, end);
  // The rest in smaller batches: a round trip for each, and no more loads than needed but for a few.
  if constexpr (kUnroll > 1) {
    constexpr int kRest = kUnroll / 2;
    for (; at < end; at += kRest * stride)
      MoveBatch<kSources, kDestinations, kWidth, kRest, true>(numbers, args, at, stride, end);
  }
}

template <int kSources, int kDestinations, int kWidth, class N>
XCCL_DEVICE void MoveAligned(const N& numbers, const MoveArgs& args, uint64_t address) {
  constexpr int kElement = static_cast<int>(sizeof(typename N::Element));
  if constexpr (kWidth >= kElement) {
    const int64_t head = static_cast<int64_t>(-address & (kWidth - 1));
    const int64_t first = head < args.bytes ? head : args.bytes;
    const int64_t units = (args.bytes - first) / kWidth;
    if constexpr (kWidth > kElement)
      if (first > 0) MoveUnits<kSources, kDestinations, kElement>(numbers, args, 0, first / kElement);
    MoveUnits<kSources, kDestinations, kWidth>(numbers, args, first, units);
    const int64_t last = first + units * kWidth;
    if constexpr (kWidth > kElement)
      if (last < args.bytes)
        MoveUnits<kSources, kDestinations, kElement>(numbers, args, last, (args.bytes - last) / kElement);
  }
}

// Not inlined, so that a kernel's code stays small, which helps when the instruction cache is cold.
// Requires: addresses are multiples of the element size; a source is a destination or does not overlap it.
template <int kSources, int kDestinations, ElementNumbers N>
XCCL_DEVICE_CALL void MoveRange(N numbers, const char* source0, const char* source1, char* destination0,
                                char* destination1, int64_t bytes, uint32_t marks, int32_t threads) {
  const MoveArgs args = {{source0, source1}, {destination0, destination1}, bytes, marks, threads};
  const uint64_t address = BitCast<uint64_t>(destination0);
  uint64_t differ = address ^ BitCast<uint64_t>(source0);
  if constexpr (kSources == 2) differ |= address ^ BitCast<uint64_t>(source1);
  if constexpr (kDestinations == 2) differ |= address ^ BitCast<uint64_t>(destination1);
  if ((differ & 15) == 0) {
    MoveAligned<kSources, kDestinations, 16>(numbers, args, address);
  } else if ((differ & 7) == 0) {
    MoveAligned<kSources, kDestinations, 8>(numbers, args, address);
  } else if ((differ & 3) == 0) {
    MoveAligned<kSources, kDestinations, 4>(numbers, args, address);
  } else if ((differ & 1) == 0) {
    MoveAligned<kSources, kDestinations, 2>(numbers, args, address);
  } else {
    MoveAligned<kSources, kDestinations, 1>(numbers, args, address);
  }
}

// Loads or stores one unit of 8 bytes, of which only `bytes` exist. A whole aligned unit takes one access.
template <class N>
XCCL_DEVICE uint64_t LoadUpTo8(const char* at, int32_t bytes) {
  constexpr int kElement = static_cast<int>(sizeof(typename N::Element));
  if (bytes >= 8 && (BitCast<uint64_t>(at) & 7) == 0) return BitCast<uint64_t>(LoadData<8>(at));
  uint64_t value = 0;
  XCCL_UNROLL
  for (int i = 0; i < 8; i += kElement) {
    if (i >= bytes) break;
    if constexpr (kElement == 8) {
      value = BitCast<uint64_t>(LoadData<8>(at));
    } else {
      value |= static_cast<uint64_t>(LoadData<kElement>(at + i).word) << (8 * i);
    }
  }
  return value;
}
template <class N>
XCCL_DEVICE void StoreUpTo8(char* at, uint64_t value, int32_t bytes) {
  constexpr int kElement = static_cast<int>(sizeof(typename N::Element));
  if (bytes >= 8 && (BitCast<uint64_t>(at) & 7) == 0) {
    StoreData<8>(at, BitCast<Bits<8>>(value));
    return;
  }
  XCCL_UNROLL
  for (int i = 0; i < 8; i += kElement) {
    if (i >= bytes) break;
    Bits<kElement> bits;
    if constexpr (kElement == 8) {
      bits = BitCast<Bits<8>>(value);
    } else {
      bits.word = static_cast<decltype(bits.word)>(value >> (8 * i));
    }
    StoreData<kElement>(at + i, bits);
  }
}
// Combines 8 bytes for an instruction with flags in its data.
template <bool kLocal, bool kReceive, class N>
XCCL_DEVICE uint64_t Combine8(const N& numbers, uint32_t marks, uint64_t local, uint64_t received) {
  constexpr int kSources = kLocal && kReceive ? 2 : 1;
  const uint64_t a = kLocal ? local : received;
  return BitCast<uint64_t>(
      CombineBits<kSources, 8>(numbers, marks, BitCast<Bits<8>>(a), BitCast<Bits<8>>(received)));
}

}  // namespace xccl::device
