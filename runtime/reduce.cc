// One loop over device/numbers.h is instantiated for every type and operator and left to the compiler's
// vectoriser. It has two versions: for any processor, and for AVX2 with F16C. fp8 has so few values that a
// table of all 65,536 results is both exact by construction and fast. half without F16C is converted element
// by element.
#include "runtime/reduce.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>
#include <vector>

#include "device/numbers.h"
#include "runtime/device_values.h"

namespace xccl {
namespace {

using device::Bfloat16;
using device::Half;

template <typename T, ReduceOp kOp>
[[gnu::always_inline]] inline void Loop(std::byte* dst, const std::byte* local, const std::byte* received,
                                        int64_t elements) {
  T* const d = reinterpret_cast<T*>(dst);
  const T* const a = reinterpret_cast<const T*>(local);
  const T* const b = reinterpret_cast<const T*>(received);
  // dst may be an operand, element by element: iterations are independent all the same.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (int64_t i = 0; i < elements; ++i) d[i] = device::Combine<T>(ToDevice(kOp), a[i], b[i]);
}

template <typename T, ReduceOp kOp>
void ReduceAnywhere(std::byte* dst, const std::byte* local, const std::byte* received, int64_t elements) {
  Loop<T, kOp>(dst, local, received, elements);
}

#if defined(__x86_64__)
template <typename T, ReduceOp kOp>
[[gnu::target("avx2,f16c")]] void ReduceAvx2(std::byte* dst, const std::byte* local,
                                             const std::byte* received, int64_t elements) {
  Loop<T, kOp>(dst, local, received, elements);
}

template <ReduceOp kOp>
[[gnu::target("avx2,f16c")]] inline __m256 CombineVector(__m256 a, __m256 b) {
  if constexpr (kOp == ReduceOp::kSum || kOp == ReduceOp::kAvg) return _mm256_add_ps(a, b);
  if constexpr (kOp == ReduceOp::kProd) return _mm256_mul_ps(a, b);
  const __m256 takes_b =
      kOp == ReduceOp::kMin ? _mm256_cmp_ps(b, a, _CMP_LT_OQ) : _mm256_cmp_ps(a, b, _CMP_LT_OQ);
  const __m256 b_is_nan = _mm256_cmp_ps(b, b, _CMP_UNORD_Q), a_is_number = _mm256_cmp_ps(a, a, _CMP_ORD_Q);
  return _mm256_blendv_ps(a, b, _mm256_and_ps(_mm256_or_ps(takes_b, b_is_nan), a_is_number));
}

template <ReduceOp kOp>
[[gnu::target("avx2,f16c")]] void ReduceHalfAvx2(std::byte* dst, const std::byte* local,
                                                 const std::byte* received, int64_t elements) {
  const int64_t whole = elements / 8 * 8;
  for (int64_t i = 0; i < whole; i += 8) {
    const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(local + 2 * i)));
    const __m256 b = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(received + 2 * i)));
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(dst + 2 * i),
        _mm256_cvtps_ph(CombineVector<kOp>(a, b), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  Loop<Half, kOp>(dst + 2 * whole, local + 2 * whole, received + 2 * whole, elements - whole);
}

// Every processor with AVX2 has F16C.
bool HasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

template <typename T, ReduceOp kOp>
ReduceFunction Version() {
#if defined(__x86_64__)
  if (HasAvx2()) {
    if constexpr (std::is_same_v<T, Half>)
      return ReduceHalfAvx2<kOp>;
    else
      return ReduceAvx2<T, kOp>;
  }
#endif
  return ReduceAnywhere<T, kOp>;
}

using Table = std::array<uint8_t, 65536>;  // [local][received]

template <DataType kType, ReduceOp kOp>
const Table& Fp8Table() {
  static const std::unique_ptr<const Table> table = [] {
    auto made = std::make_unique<Table>();
    std::array<uint8_t, 256> local, received;
    for (int b = 0; b < 256; ++b) received[b] = static_cast<uint8_t>(b);
    for (int a = 0; a < 256; ++a) {
      local.fill(static_cast<uint8_t>(a));
      ReduceReference(kType, kOp, made->data() + 256 * a, local.data(), received.data(), 256);
    }
    return std::unique_ptr<const Table>(std::move(made));
  }();
  return *table;
}

template <DataType kType, ReduceOp kOp>
void ReduceFp8(std::byte* dst, const std::byte* local, const std::byte* received, int64_t elements) {
  const Table& table = Fp8Table<kType, kOp>();
  for (int64_t i = 0; i < elements; ++i)
    dst[i] = std::byte{table[std::to_integer<size_t>(local[i]) << 8 | std::to_integer<size_t>(received[i])]};
}

template <ReduceOp kOp>
ReduceFunction FindFor(DataType type) {
  return device::WithType(ToDevice(type), [](auto zero) -> ReduceFunction {
    using T = decltype(zero);
    if constexpr (sizeof(T) == 1 && !device::kIsInteger<T>)
      return ReduceFp8<static_cast<DataType>(device::kTypeOf<T>), kOp>;
    else
      return Version<T, kOp>();
  });
}

}  // namespace

ReduceFunction FindReduce(DataType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:  // contributions come scaled, or the end divides
      return FindFor<ReduceOp::kSum>(type);
    case ReduceOp::kProd:
      return FindFor<ReduceOp::kProd>(type);
    case ReduceOp::kMin:
      return FindFor<ReduceOp::kMin>(type);
    case ReduceOp::kMax:
      return FindFor<ReduceOp::kMax>(type);
  }
  return nullptr;
}

void MultiplyBy(DataType type, const std::byte* scalar, std::byte* dst, const std::byte* src,
                int64_t elements) {
  // Products have two operands that are arrays: one of them is a block of scalars, which stays in the cache.
  constexpr size_t kBlockBytes = 4096;
  alignas(64) std::array<std::byte, kBlockBytes> scalars;
  const int64_t bytes = SizeOf(type);
  const int64_t block = static_cast<int64_t>(kBlockBytes) / bytes;
  for (int64_t i = 0; i < std::min(block, elements); ++i)
    std::copy_n(scalar, bytes, scalars.data() + i * bytes);
  const ReduceFunction multiply = FindReduce(type, ReduceOp::kProd);
  for (int64_t at = 0; at < elements; at += block)
    multiply(dst + at * bytes, scalars.data(), src + at * bytes, std::min(block, elements - at));
}

void ReduceMembers(DataType type, ReduceOp op, std::byte* dst, std::span<const std::byte* const> members,
                   int64_t elements) {
  const bool narrow = IsFloating(type) && SizeOf(type) < 4;
  if (narrow || members.size() < 2) {
    const std::vector<const void*> untyped(members.begin(), members.end());
    ReduceMembersReference(type, op, dst, untyped, elements);
    return;
  }
  const ReduceFunction reduce = FindReduce(type, op);
  reduce(dst, members[0], members[1], elements);
  for (const std::byte* member : members.subspan(2)) reduce(dst, dst, member, elements);
}

}  // namespace xccl
