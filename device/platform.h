// The differences between a GPU and the host: thread indices, barriers, and accesses to memory that other
// threads access at the same time. On the host a block is one or several threads (device/host_team.h). The
// memory orders are PTX's (ISA, memory consistency model): acquire loads, and a fence before a relaxed store
// of a counter. The host's are no stronger, but for ThreadSanitizer, which does not know fences: where a
// fence and relaxed accesses order memory, it is told so by acquire loads and release stores.
#pragma once

#include "device/abi.h"

#ifdef __CUDACC__
// These are macros, since no other spelling of attributes suits both compilers.
#define XCCL_DEVICE __device__ __forceinline__
#define XCCL_DEVICE_CALL __device__ __noinline__ inline
#define XCCL_UNROLL _Pragma("unroll")
#else
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "device/host_team.h"
#define XCCL_DEVICE inline
#define XCCL_DEVICE_CALL inline
#define XCCL_UNROLL
#endif

namespace xccl::device {

// LlLine is two LL words: 8 bytes of data with two flags. Pair is 16 bytes of an LL128 line; the last pair
// of a line is 8 bytes of data and the flag.
struct LlLine {
  uint32_t low, low_flag, high, high_flag;
};
struct Pair {
  uint64_t low, high;
};
inline constexpr int32_t kLinePairs = 8;

// The bits of `kWidth` bytes.
template <int kWidth>
struct Bits {
  uint32_t word[kWidth / 4];
};
template <>
struct Bits<4> {
  uint32_t word;
};
template <>
struct Bits<2> {
  uint16_t word;
};
template <>
struct Bits<1> {
  uint8_t word;
};

#ifdef __CUDACC__

XCCL_DEVICE int32_t ThreadIndex() { return static_cast<int32_t>(threadIdx.x); }
XCCL_DEVICE int32_t Threads() { return static_cast<int32_t>(blockDim.x); }
XCCL_DEVICE int32_t BlockIndex() { return static_cast<int32_t>(blockIdx.x); }
XCCL_DEVICE void Sync() { __syncthreads(); }
XCCL_DEVICE void HostCheck(bool /*holds*/) {}        // on the host: ends the process if not
XCCL_DEVICE void HostTouch(const void*, int64_t) {}  // on the host: an access, for host_guard
XCCL_DEVICE bool SyncOr(bool any) { return __syncthreads_or(any) != 0; }
// The warp: its lanes, a barrier and votes. All lanes must call them.
XCCL_DEVICE constexpr int32_t Lanes() { return 32; }
XCCL_DEVICE void SyncLanes() { __syncwarp(); }
XCCL_DEVICE bool AnyLane(bool any) { return __any_sync(~0u, any) != 0; }
XCCL_DEVICE bool AllLanes(bool all) { return __all_sync(~0u, all) != 0; }
// A barrier for the block's first `threads` threads, a multiple of Lanes(); the others do not call it.
XCCL_DEVICE bool SyncOrFirst(int32_t threads, bool any) {
  uint32_t result;
  asm volatile(
      "{\n.reg .pred mine, all;\nsetp.ne.u32 mine, %1, 0;\nbarrier.red.or.pred all, 1, %2, mine;\n"
      "selp.u32 %0, 1, 0, all;\n}"
      : "=r"(result)
      : "r"(any ? 1u : 0u), "r"(threads)
      : "memory");
  return result != 0;
}
XCCL_DEVICE uint64_t Global(const void* address) { return __cvta_generic_to_global(address); }

XCCL_DEVICE uint64_t LoadAcquireSystem(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(Global(word)) : "memory");
  return value;
}
XCCL_DEVICE uint64_t LoadAcquireDevice(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(Global(word)) : "memory");
  return value;
}
XCCL_DEVICE void FenceSystem() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
// Publishes what came before this thread's last FenceSystem.
XCCL_DEVICE void StoreFenced(uint64_t* word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(Global(word)), "l"(value) : "memory");
}
// Whatever this thread saw, and what its block stored before the last barrier, is visible to readers of the
// word.
XCCL_DEVICE void StoreReleaseSystem(uint64_t* word, uint64_t value) {
  FenceSystem();
  StoreFenced(word, value);
}
XCCL_DEVICE void StoreReleaseDevice(uint64_t* word, uint64_t value) {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(Global(word)), "l"(value) : "memory");
}
// A credit says that a slot has been read. The loads are complete, since their values were used before the
// preceding barrier.
XCCL_DEVICE void StoreCredit(uint64_t* word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(Global(word)), "l"(value) : "memory");
}
XCCL_DEVICE void FenceDevice() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
XCCL_DEVICE uint32_t LoadWatched(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(Global(word)) : "memory");
  return value;
}
XCCL_DEVICE uint64_t LoadWatched(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(Global(word)) : "memory");
  return value;
}
XCCL_DEVICE void StoreWatched(uint64_t* word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(Global(word)), "l"(value) : "memory");
}
XCCL_DEVICE void StoreWatched(uint32_t* word, uint32_t value) {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(Global(word)), "r"(value) : "memory");
}
XCCL_DEVICE uint64_t FetchAddDevice(uint64_t* word, uint64_t value) {
  uint64_t before;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(Global(word)), "l"(value)
               : "memory");
  return before;
}
// Returns true to the first caller only.
XCCL_DEVICE bool Claim(uint32_t* word) { return atomicExch(word, 1u) == 0; }

XCCL_DEVICE LlLine LoadLl(const char* line) {
  LlLine v;
  asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.low), "=r"(v.low_flag), "=r"(v.high), "=r"(v.high_flag)
               : "l"(Global(line))
               : "memory");
  return v;
}
XCCL_DEVICE void StoreLl(char* line, const LlLine& v) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(Global(line)), "r"(v.low),
               "r"(v.low_flag), "r"(v.high), "r"(v.high_flag)
               : "memory");
}
XCCL_DEVICE Pair LoadPair(const char* at) {
  Pair v;
  asm volatile("ld.volatile.global.v2.u64 {%0,%1}, [%2];"
               : "=l"(v.low), "=l"(v.high)
               : "l"(Global(at))
               : "memory");
  return v;
}
// All lanes of a warp must call it, so that each line is stored in one instruction. `exists`: this lane has a
// pair of a line; `flagged`: and its high word is the flag.
XCCL_DEVICE void StoreLinePair(char* at, const Pair& v, bool /*flagged*/, bool exists) {
  __syncwarp();
  if (!exists) return;
  asm volatile("st.volatile.global.v2.u64 [%0], {%1,%2};" ::"l"(Global(at)), "l"(v.low), "l"(v.high)
               : "memory");
}
// The pairs of a line that one lane holds, at most, and the lanes that hold a line.
inline constexpr int32_t kMostPairs = 1;
XCCL_DEVICE constexpr int32_t LineLanes() { return kLinePairs; }

// Accesses to data, not to flags. Loads are volatile, so that no multiprocessor's cache keeps what a peer
// rewrites.
template <int kWidth>
XCCL_DEVICE Bits<kWidth> LoadData(const char* at) {
  Bits<kWidth> v;
  if constexpr (kWidth == 16) {
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
                 : "l"(Global(at)));
  } else if constexpr (kWidth == 8) {
    asm volatile("ld.volatile.global.v2.u32 {%0,%1}, [%2];"
                 : "=r"(v.word[0]), "=r"(v.word[1])
                 : "l"(Global(at)));
  } else if constexpr (kWidth == 4) {
    asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(v.word) : "l"(Global(at)));
  } else if constexpr (kWidth == 2) {
    asm volatile("ld.volatile.global.u16 %0, [%1];" : "=h"(v.word) : "l"(Global(at)));
  } else {
    uint32_t byte;
    asm volatile("ld.volatile.global.u8 %0, [%1];" : "=r"(byte) : "l"(Global(at)));
    v.word = static_cast<uint8_t>(byte);
  }
  return v;
}
template <int kWidth>
XCCL_DEVICE void StoreData(char* at, const Bits<kWidth>& v) {
  if constexpr (kWidth == 16) {
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(Global(at)), "r"(v.word[0]), "r"(v.word[1]),
                 "r"(v.word[2]), "r"(v.word[3])
                 : "memory");
  } else if constexpr (kWidth == 8) {
    asm volatile("st.global.v2.u32 [%0], {%1,%2};" ::"l"(Global(at)), "r"(v.word[0]), "r"(v.word[1])
                 : "memory");
  } else if constexpr (kWidth == 4) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(Global(at)), "r"(v.word) : "memory");
  } else if constexpr (kWidth == 2) {
    asm volatile("st.global.u16 [%0], %1;" ::"l"(Global(at)), "h"(v.word) : "memory");
  } else {
    asm volatile("st.global.u8 [%0], %1;" ::"l"(Global(at)), "r"(static_cast<uint32_t>(v.word)) : "memory");
  }
}

// Accesses through a switch that multicasts and reduces: SwitchStore and SwitchLoad are the only accesses to
// a multicast address. FenceAlias separates them from accesses to the same memory at its own address; the
// threads that wait for or post the counters in between call it.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool kHasSwitch = true;
template <int kWidth>
XCCL_DEVICE void SwitchStore(char* at, const Bits<kWidth>& v) {
  if constexpr (kWidth == 16) {
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(Global(at)),
                 "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]), "r"(v.word[3])
                 : "memory");
  } else if constexpr (kWidth == 8) {
    asm volatile("multimem.st.relaxed.sys.global.b64 [%0], %1;" ::"l"(Global(at)),
                 "l"(static_cast<uint64_t>(v.word[1]) << 32 | v.word[0])
                 : "memory");
  } else {
    static_assert(kWidth == 4);
    asm volatile("multimem.st.relaxed.sys.global.b32 [%0], %1;" ::"l"(Global(at)), "r"(v.word) : "memory");
  }
}
#else
inline constexpr bool kHasSwitch = false;
template <int kWidth>
XCCL_DEVICE void SwitchStore(char*, const Bits<kWidth>&) {}
#endif
XCCL_DEVICE void FenceAlias() { asm volatile("fence.proxy.alias;" ::: "memory"); }

XCCL_DEVICE int64_t Nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return static_cast<int64_t>(now);
}
XCCL_DEVICE void Pause() { __nanosleep(20); }
XCCL_DEVICE void Sleep(uint32_t nanoseconds) { __nanosleep(nanoseconds); }

#else  // the host

inline int32_t ThreadIndex() { return host_place.index; }
inline int32_t Threads() { return host_place.team != nullptr ? host_place.team->threads : 1; }
inline bool SyncOr(bool any) { return host_place.team != nullptr ? host_place.team->block.Arrive(any) : any; }
inline void Sync() { SyncOr(false); }
inline bool SyncOrFirst(int32_t threads, bool any) {
  return threads == Threads() ? SyncOr(any) : host_place.team->movers.Arrive(any);
}
inline int32_t Lanes() { return host_place.team != nullptr ? host_place.team->lanes : 1; }
inline bool AnyLane(bool any) {
  if (host_place.team == nullptr) return any;
  return host_place.team->warps[static_cast<size_t>(host_place.index / Lanes())].Arrive(any);
}
inline bool AllLanes(bool all) { return !AnyLane(!all); }
inline void SyncLanes() { AnyLane(false); }
inline void HostCheck(bool holds) {
  if (!holds) std::abort();
}

// A test's rule for the memory that this thread's kernel may access, on a device of the test's. A refused
// access does not take place: HostKilled ends the thread's block, as an illegal address ends a kernel.
struct HostGuard {
  bool (*allows)(int32_t device, const void* at, int64_t bytes) = nullptr;  // null: everything is allowed
  int32_t device = 0;
};
inline constinit thread_local HostGuard host_guard = {};
inline void HostTouch(const void* at, int64_t bytes) {
  if (host_guard.allows != nullptr && !host_guard.allows(host_guard.device, at, bytes)) throw HostKilled();
}
template <class T>
inline T* Touched(T* word) {
  HostTouch(word, sizeof(T));
  return word;
}

// The orders of accesses that a fence orders, on the GPU and on the host.
#if defined(__SANITIZE_THREAD__)
inline constexpr int kFencedLoad = __ATOMIC_ACQUIRE, kFencedStore = __ATOMIC_RELEASE;
inline void HostFence() {}
#else
inline constexpr int kFencedLoad = __ATOMIC_RELAXED, kFencedStore = __ATOMIC_RELAXED;
inline void HostFence() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
#endif

inline uint64_t LoadAcquireSystem(const uint64_t* word) {
  return __atomic_load_n(Touched(word), __ATOMIC_ACQUIRE);
}
inline uint64_t LoadAcquireDevice(const uint64_t* word) {
  return __atomic_load_n(Touched(word), __ATOMIC_ACQUIRE);
}
inline void StoreFenced(uint64_t* word, uint64_t v) { __atomic_store_n(Touched(word), v, kFencedStore); }
inline void StoreReleaseSystem(uint64_t* word, uint64_t v) {
  HostFence();
  StoreFenced(word, v);
}
inline void StoreReleaseDevice(uint64_t* word, uint64_t v) { StoreReleaseSystem(word, v); }
inline void StoreCredit(uint64_t* word, uint64_t v) { __atomic_store_n(Touched(word), v, kFencedStore); }
inline void FenceDevice() { HostFence(); }
inline void FenceSystem() { HostFence(); }
inline uint32_t LoadWatched(const uint32_t* word) { return __atomic_load_n(Touched(word), __ATOMIC_RELAXED); }
inline uint64_t LoadWatched(const uint64_t* word) { return __atomic_load_n(Touched(word), __ATOMIC_RELAXED); }
inline void StoreWatched(uint64_t* word, uint64_t v) { __atomic_store_n(Touched(word), v, __ATOMIC_RELAXED); }
inline void StoreWatched(uint32_t* word, uint32_t v) {
  HostFence();
  __atomic_store_n(Touched(word), v, kFencedStore);
}
inline uint64_t FetchAddDevice(uint64_t* word, uint64_t value) {
  return __atomic_fetch_add(Touched(word), value, __ATOMIC_RELAXED);
}
inline bool Claim(uint32_t* word) { return __atomic_exchange_n(Touched(word), 1u, __ATOMIC_RELAXED) == 0; }

// A word of a line has its own flag, so LL needs no order among words.
inline LlLine LoadLl(const char* line) {
  HostTouch(line, sizeof(LlLine));
  const uint64_t* const words = reinterpret_cast<const uint64_t*>(line);
  const uint64_t low = __atomic_load_n(words, kFencedLoad), high = __atomic_load_n(words + 1, kFencedLoad);
  return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
          static_cast<uint32_t>(high >> 32)};
}
inline void StoreLl(char* line, const LlLine& v) {
  HostTouch(line, sizeof(LlLine));
  uint64_t* const words = reinterpret_cast<uint64_t*>(line);
  __atomic_store_n(words, static_cast<uint64_t>(v.low_flag) << 32 | v.low, kFencedStore);
  __atomic_store_n(words + 1, static_cast<uint64_t>(v.high_flag) << 32 | v.high, kFencedStore);
}
// A line's flag is the last of it to be visible, which is what LL128 assumes of a GPU's memory.
inline Pair LoadPair(const char* at) {
  HostTouch(at, sizeof(Pair));
  const uint64_t* const words = reinterpret_cast<const uint64_t*>(at);
  const uint64_t high = __atomic_load_n(words + 1, __ATOMIC_ACQUIRE);
  return {__atomic_load_n(words, __ATOMIC_RELAXED), high};
}
inline void StoreLinePair(char* at, const Pair& v, bool flagged, bool exists) {
  uint64_t* const words = reinterpret_cast<uint64_t*>(at);
  if (exists) HostTouch(at, sizeof(Pair));
  if (exists) __atomic_store_n(words, v.low, __ATOMIC_RELAXED);
  if (exists && !flagged) __atomic_store_n(words + 1, v.high, __ATOMIC_RELAXED);
  SyncLanes();
  if (exists && flagged) __atomic_store_n(words + 1, v.high, __ATOMIC_RELEASE);
}
// The lanes that hold a line of LL128: eight with one pair each, or fewer with several pairs each.
inline constexpr int32_t kMostPairs = kLinePairs;
inline int32_t LineLanes() { return Lanes() < kLinePairs ? Lanes() : kLinePairs; }

template <int kWidth>
inline Bits<kWidth> CopyOf(const char* at) {
  Bits<kWidth> bits;
  std::memcpy(&bits, at, kWidth);
  return bits;
}
template <int kWidth>
inline Bits<kWidth> LoadData(const char* at) {
  HostTouch(at, kWidth);
  return CopyOf<kWidth>(at);
}
template <int kWidth>
inline void StoreData(char* at, const Bits<kWidth>& bits) {
  HostTouch(at, kWidth);
  std::memcpy(at, &bits, kWidth);
}

// A test's switch: it fills in the addresses of all copies that a multicast address stands for, in order,
// and returns their number. Null: there is no switch. It must be set while no kernel runs.
inline constexpr int32_t kMostHostCopies = 64;
using HostSwitch = int32_t (*)(const char* multicast, char** copies);
inline HostSwitch host_switch = nullptr;

inline constexpr bool kHasSwitch = true;
template <int kWidth>
inline void SwitchStore(char* at, const Bits<kWidth>& bits) {
  HostTouch(at, kWidth);
  char* copies[kMostHostCopies];
  const int32_t count = host_switch(at, copies);
  for (int32_t i = 0; i < count; ++i) std::memcpy(copies[i], &bits, kWidth);
}
inline void FenceAlias() {}

inline int64_t Nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
inline void Pause() { std::this_thread::yield(); }
inline void Sleep(uint32_t nanoseconds) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
}

#endif

// Reinterprets the bits of a value as a type of the same size.
template <class To, class From>
XCCL_DEVICE To BitCast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

}  // namespace xccl::device
