#include "runtime/c_api/testing/expert_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "ir/numbers.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/testing/fake_gpus.h"
#include "runtime/experts/cuda/on_host.h"

namespace xccl::c_api {
namespace {

void PutElement(std::span<float> to, size_t at, xcclDataType_t type, float value) {
  if (type == xcclFloat32) {
    to[at] = value;
    return;
  }
  const uint16_t narrow = type == xcclFloat16 ? FloatToHalf(value) : FloatToBfloat16(value);
  std::memcpy(reinterpret_cast<char*>(to.data()) + at * sizeof narrow, &narrow, sizeof narrow);
}

}  // namespace

void UseFakeGpus(cuda::FakeDriver& fake, device::HostShape shape) {
  UseFakeDriver(fake);
  TheGpus().expert_images = [&fake, shape](DataType type, int32_t) -> StatusOr<std::string> {
    const std::string image = cuda::FakeDriver::kAnyImage + std::string(ToString(type));
    dispatch::AddExpertKernel(fake, type, shape, image);
    return image;
  };
}

void DrawCall(const Buffers& gpu, const Buffers& cpu, Random& random) {
  for (size_t i = 0; i < kTokens * kTopK; ++i) {
    const auto expert = static_cast<int64_t>(random.Below(9)) - 1;
    const bool twice = i % kTopK == 1 && expert == cpu.choices[i - 1];
    gpu.choices[i] = cpu.choices[i] = twice ? -1 : expert;
    gpu.narrow[i] = cpu.narrow[i] = static_cast<int32_t>(cpu.choices[i]);
    gpu.weights[i] = cpu.weights[i] = static_cast<float>(random.Unit());
  }
  DrawRows(gpu, cpu, random);
}

void DrawRows(const Buffers& gpu, const Buffers& cpu, Random& random) {
  for (size_t i = 0; i < cpu.rows.size(); ++i)
    gpu.rows[i] = cpu.rows[i] = static_cast<char>(random.Below(256));
  for (size_t i = 0; i < cpu.scales.size(); ++i)
    gpu.scales[i] = cpu.scales[i] = static_cast<char>(random.Below(256));
}

void DrawOutputs(const Buffers& gpu, const Buffers& cpu, xcclDataType_t type, bool of_rows, Random& random) {
  const int count = of_rows ? cpu.num_rows[0] : cpu.first_of_expert[kLocal];
  for (int i = 0; i < count; ++i) {
    const int there = of_rows ? cpu.homes[i] * kTokens + cpu.tokens[i] : i;
    for (size_t e = 0; e < kWidth; ++e) {
      const auto value = static_cast<float>(random.Unit() * 4 - 2);
      PutElement(cpu.outputs, i * kWidth + e, type, value);
      PutElement(gpu.outputs, there * kWidth + e, type, value);
    }
  }
}

void ExpectSameRows(const Buffers& gpu, const Buffers& cpu, size_t row_bytes, size_t scale_bytes) {
  const int rows = cpu.num_rows[0];
  ASSERT_EQ(gpu.num_rows[0], rows);
  std::vector<bool> came(kPlaces);
  for (int row = 0; row < rows; ++row) {
    const int place = cpu.homes[row] * kTokens + cpu.tokens[row];
    came[place] = true;
    EXPECT_EQ(gpu.homes[place], cpu.homes[row]);
    EXPECT_EQ(gpu.tokens[place], cpu.tokens[row]);
    EXPECT_EQ(std::memcmp(&gpu.received[place * row_bytes], &cpu.received[row * row_bytes], row_bytes), 0);
    if (scale_bytes > 0) {
      EXPECT_EQ(std::memcmp(&gpu.received_scales[place * scale_bytes],
                            &cpu.received_scales[row * scale_bytes], scale_bytes),
                0);
    }
    for (int k = 0; k < kTopK; ++k) {
      EXPECT_EQ(gpu.experts[place * kTopK + k], cpu.experts[row * kTopK + k]);
      EXPECT_EQ(gpu.told_weights[place * kTopK + k], cpu.told_weights[row * kTopK + k]);
    }
  }
  for (int place = 0; place < kPlaces; ++place) {
    if (came[place]) continue;
    EXPECT_EQ(gpu.homes[place], -1);
    EXPECT_EQ(gpu.tokens[place], -1);
    EXPECT_EQ(gpu.experts[place * kTopK], -1);
    EXPECT_EQ(gpu.told_weights[place * kTopK], 0);
  }
  const auto same = [](auto a, auto b) { EXPECT_TRUE(std::ranges::equal(a, b)); };
  same(gpu.rows_of_rank, cpu.rows_of_rank);
  same(gpu.rows_of_expert, cpu.rows_of_expert);
  same(gpu.first_of_expert, cpu.first_of_expert);
  const int entries = cpu.first_of_expert[kLocal];
  same(gpu.weight_of_entry.first(entries), cpu.weight_of_entry.first(entries));
  for (int entry = 0; entry < entries; ++entry) {
    const int row = cpu.row_of_entry[entry];
    EXPECT_EQ(gpu.row_of_entry[entry], cpu.homes[row] * kTokens + cpu.tokens[row]);
  }
}

void ExpectSameSums(const Buffers& gpu, const Buffers& cpu, size_t tokens, size_t row_bytes) {
  EXPECT_EQ(std::memcmp(gpu.sums.data(), cpu.sums.data(), tokens * row_bytes), 0);
}

}  // namespace xccl::c_api
