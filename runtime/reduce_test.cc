#include "runtime/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"

namespace xccl {
namespace {

uint64_t BitsAt(const std::vector<std::byte>& data, int64_t i, int64_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, data.data() + i * size, static_cast<size_t>(size));
  return bits;
}

// The operands' order in the machine instruction decides which NaN a sum of two NaNs is; here all NaNs are
// one.
bool IsNan(DataType type, uint64_t bits) {
  switch (type) {
    case DataType::kHalf:
      return std::isnan(HalfToFloat(static_cast<uint16_t>(bits)));
    case DataType::kBfloat16:
      return std::isnan(Bfloat16ToFloat(static_cast<uint16_t>(bits)));
    case DataType::kFloat: {
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return std::isnan(value);
    }
    case DataType::kDouble: {
      double value;
      std::memcpy(&value, &bits, sizeof value);
      return std::isnan(value);
    }
    default:
      return false;
  }
}

void ExpectSame(DataType type, ReduceOp op, const std::vector<std::byte>& local,
                const std::vector<std::byte>& received) {
  const int64_t size = SizeOf(type), elements = static_cast<int64_t>(local.size()) / size;
  std::vector<std::byte> expected(local.size()), found(local.size());
  ReduceReference(type, op, expected.data(), local.data(), received.data(), elements);
  // In place over either operand, and at an address that vectors do not like.
  for (int mode = 0; mode < 3; ++mode) {
    const std::byte* a = local.data();
    const std::byte* b = received.data();
    if (mode == 1) a = static_cast<const std::byte*>(std::memcpy(found.data(), a, found.size()));
    if (mode == 2) b = static_cast<const std::byte*>(std::memcpy(found.data(), b, found.size()));
    FindReduce(type, op)(found.data(), a, b, elements);
    int64_t differ = 0;
    for (int64_t i = 0; i < elements; ++i) {
      const uint64_t want = BitsAt(expected, i, size), got = BitsAt(found, i, size);
      if (want == got || (IsNan(type, want) && IsNan(type, got))) continue;
      if (differ++ == 0)
        ADD_FAILURE() << ToString(type) << " " << ToString(op) << " mode " << mode << ": " << std::hex
                      << BitsAt(local, i, size) << ", " << BitsAt(received, i, size) << " give " << got
                      << "; expected " << want;
    }
  }
}

TEST(Reduce, EveryPairOfByteTypes) {
  std::vector<std::byte> local(65536), received(65536);
  for (int i = 0; i < 65536; ++i) {
    local[i] = std::byte(i >> 8);
    received[i] = std::byte(i & 255);
  }
  for (DataType type : AllDataTypes())
    for (ReduceOp op : AllReduceOps())
      if (SizeOf(type) == 1) ExpectSame(type, op, local, received);
}

TEST(Reduce, RandomBitsAndSmallNumbersOfEveryType) {
  Random random(1);
  for (DataType type : AllDataTypes()) {
    for (ReduceOp op : AllReduceOps()) {
      for (int64_t elements : {1, 7, 8, 9, 63, 4099}) {
        std::vector<std::byte> local(static_cast<size_t>(elements * SizeOf(type))), received(local.size());
        for (std::byte& byte : local) byte = std::byte(random.Below(256));
        for (std::byte& byte : received) byte = std::byte(random.Below(256));
        ExpectSame(type, op, local, received);
        // Equal magnitudes, zeros of both signs, neighbours: what random bits of wide types never hit.
        for (int64_t i = 0; i < elements; ++i) {
          std::memcpy(received.data() + i * SizeOf(type), local.data() + i * SizeOf(type),
                      static_cast<size_t>(SizeOf(type)));
          received[static_cast<size_t>((i + 1) * SizeOf(type) - 1)] ^= std::byte(random.Below(2) << 7);
          received[static_cast<size_t>(i * SizeOf(type))] ^= std::byte(random.Below(2));
        }
        ExpectSame(type, op, local, received);
      }
    }
  }
}

TEST(Reduce, EveryHalfAgainstItsNeighbours) {
  for (ReduceOp op : AllReduceOps()) {
    for (DataType type : {DataType::kHalf, DataType::kBfloat16}) {
      std::vector<std::byte> local(2 * 65536), received(2 * 65536);
      Random random(2);
      for (uint32_t i = 0; i < 65536; ++i) {
        const uint16_t a = static_cast<uint16_t>(i), b = static_cast<uint16_t>(random.Next());
        std::memcpy(local.data() + 2 * i, &a, 2);
        std::memcpy(received.data() + 2 * i, &b, 2);
      }
      ExpectSame(type, op, local, received);
    }
  }
}

}  // namespace
}  // namespace xccl
