// Compares the arithmetic of kernels, compiled for the host, with ir/numbers.h: every fp8 pair, every
// 16-bit value with some others, random bits of the wider types.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/random.h"
#include "device/numbers.h"
#include "ir/numbers.h"

namespace xccl {
namespace {

// True if the bits are equal or both are NaN. The processor may choose which NaN.
template <class T>
bool Same(T a, T b) {
  if (std::memcmp(&a, &b, sizeof(T)) == 0) return true;
  if constexpr (device::kIsInteger<T>) {
    return false;
  } else {
    const auto x = device::Widen(a), y = device::Widen(b);
    return x != x && y != y;
  }
}

template <class T>
void Compare(const std::vector<T>& a, const std::vector<T>& b) {
  const DataType type = static_cast<DataType>(device::kTypeOf<T>);
  const int64_t count = static_cast<int64_t>(a.size());
  std::vector<T> expected(a.size());
  for (ReduceOp op : AllReduceOps()) {
    ReduceReference(type, op, expected.data(), a.data(), b.data(), count);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(Same(device::Combine(static_cast<device::Operator>(op), a[i], b[i]), expected[i]))
          << ToString(type) << " " << ToString(op) << " " << i;
  }
  for (int32_t n : {1, 2, 3, 7, 8, 200, 1 << 30}) {
    ScaleReference(type, ReduceOp::kAvg, n, expected.data(), a.data(), count);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(Same(device::Scaled(a[i], n), expected[i])) << ToString(type) << " ÷ " << n << " " << i;
    expected = a;
    FinishReference(type, ReduceOp::kAvg, n, expected.data(), count);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(Same(device::Finished(a[i], n), expected[i]))
          << ToString(type) << " finish " << n << " " << i;
  }
}

template <class T>
class DeviceNumbers : public testing::Test {};
using Types = testing::Types<int8_t, uint8_t, int32_t, uint32_t, int64_t, uint64_t, device::Half, float,
                             double, device::Bfloat16, device::E4m3, device::E5m2>;
TYPED_TEST_SUITE(DeviceNumbers, Types);

TYPED_TEST(DeviceNumbers, AreTheReferences) {
  Random random(3);
  std::vector<TypeParam> a(1 << 16), b(1 << 16);
  for (size_t i = 0; i < a.size(); ++i) {
    uint64_t x = random.Next(), y = random.Next();
    // All pairs of bytes; all 16-bit values.
    if (sizeof(TypeParam) == 1) x = i & 255, y = i >> 8;
    if (sizeof(TypeParam) == 2) x = i;
    std::memcpy(&a[i], &x, sizeof(TypeParam));
    std::memcpy(&b[i], &y, sizeof(TypeParam));
  }
  Compare(a, b);
}

}  // namespace
}  // namespace xccl
