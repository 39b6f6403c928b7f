#include "ir/numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace xccl {
namespace {

// A table of a small format's finite magnitudes; the nearest one is found by search.
struct Format {
  const char* name;
  int32_t codes;   // finite magnitudes are codes 0..codes-1
  uint32_t sign;   // the sign bit
  bool saturates;  // else a value that rounds beyond the last becomes infinity, code `codes`
  float (*widen)(uint32_t);
  uint32_t (*narrow)(float);
};
const Format kFormats[] = {
    {"half", 0x7c00, 0x8000, false, [](uint32_t b) { return HalfToFloat(static_cast<uint16_t>(b)); },
     [](float f) { return uint32_t{FloatToHalf(f)}; }},
    {"bfloat16", 0x7f80, 0x8000, false, [](uint32_t b) { return Bfloat16ToFloat(static_cast<uint16_t>(b)); },
     [](float f) { return uint32_t{FloatToBfloat16(f)}; }},
    {"f8e4m3", 0x7f, 0x80, true, [](uint32_t b) { return E4m3ToFloat(static_cast<uint8_t>(b)); },
     [](float f) { return uint32_t{FloatToE4m3(f)}; }},
    {"f8e5m2", 0x7c, 0x80, true, [](uint32_t b) { return E5m2ToFloat(static_cast<uint8_t>(b)); },
     [](float f) { return uint32_t{FloatToE5m2(f)}; }},
};

TEST(Numbers, EveryCodeSurvivesFloat) {
  for (const Format& format : kFormats) {
    for (int32_t code = 0; code < format.codes; ++code) {
      const uint32_t bits = static_cast<uint32_t>(code);
      ASSERT_EQ(format.narrow(format.widen(bits)), bits) << format.name;
      ASSERT_EQ(format.narrow(format.widen(bits | format.sign)), bits | format.sign) << format.name;
      ASSERT_TRUE(code == 0 || format.widen(bits - 1) < format.widen(bits)) << format.name;
    }
  }
}

TEST(Numbers, HalfwayGoesToTheEvenNeighbourAndTheRestToTheNearest) {
  for (const Format& format : kFormats) {
    for (int32_t code = 0; code + 1 < format.codes; ++code) {
      const uint32_t low = static_cast<uint32_t>(code), high = low + 1;
      const double a = format.widen(low), b = format.widen(high);
      const float middle = static_cast<float>(a + (b - a) / 2);
      if (static_cast<double>(middle) != a + (b - a) / 2) continue;  // beyond float's own precision
      const uint32_t even = low % 2 == 0 ? low : high;
      ASSERT_EQ(format.narrow(middle), even) << format.name << " " << low;
      ASSERT_EQ(format.narrow(-middle), even | format.sign) << format.name << " " << low;
      ASSERT_EQ(format.narrow(std::nextafter(middle, 0.0f)), low) << format.name << " " << low;
      ASSERT_EQ(format.narrow(std::nextafter(middle, std::numeric_limits<float>::infinity())), high)
          << format.name << " " << low;
    }
  }
}

TEST(Numbers, KnownCodes) {
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(HalfToFloat(0x7bff), 65504.0f);
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(Bfloat16ToFloat(0x3f80), 1.0f);
  EXPECT_EQ(E4m3ToFloat(0x38), 1.0f);
  EXPECT_EQ(E4m3ToFloat(0x7e), 448.0f);
  EXPECT_EQ(E4m3ToFloat(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(E5m2ToFloat(0x3c), 1.0f);
  EXPECT_EQ(E5m2ToFloat(0x7b), 57344.0f);
  EXPECT_EQ(E5m2ToFloat(0x01), std::ldexp(1.0f, -16));
}

TEST(Numbers, TooLargeSaturatesIn8BitsAndIsInfiniteIn16) {
  const float huge = 1e38f, infinite = std::numeric_limits<float>::infinity();
  for (float value : {huge, infinite}) {
    EXPECT_EQ(FloatToE4m3(value), 0x7e);
    EXPECT_EQ(FloatToE4m3(-value), 0xfe);
    EXPECT_EQ(FloatToE5m2(value), 0x7b);
    EXPECT_EQ(FloatToE5m2(-value), 0xfb);
    EXPECT_EQ(FloatToHalf(value), 0x7c00);
  }
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToBfloat16(infinite), 0x7f80);
  EXPECT_EQ(FloatToBfloat16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(Numbers, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(nan))));
  EXPECT_TRUE(std::isnan(Bfloat16ToFloat(FloatToBfloat16(nan))));
  EXPECT_TRUE(std::isnan(E4m3ToFloat(FloatToE4m3(nan))));
  EXPECT_TRUE(std::isnan(E5m2ToFloat(FloatToE5m2(nan))));
  EXPECT_TRUE(std::isnan(Bfloat16ToFloat(FloatToBfloat16(std::bit_cast<float>(0x7f800001u)))));
}

template <typename T>
T Reduce(DataType type, ReduceOp op, T a, T b) {
  T result{};
  ReduceReference(type, op, &result, &a, &b, 1);
  return result;
}

TEST(Numbers, OperatorsOnIntegersWrap) {
  EXPECT_EQ(Reduce<int8_t>(DataType::kInt8, ReduceOp::kSum, 127, 1), -128);
  EXPECT_EQ(Reduce<uint8_t>(DataType::kUint8, ReduceOp::kProd, 16, 17), 16);
  EXPECT_EQ(Reduce<int32_t>(DataType::kInt32, ReduceOp::kProd, 65536, 65536), 0);
  EXPECT_EQ(Reduce<int64_t>(DataType::kInt64, ReduceOp::kSum, std::numeric_limits<int64_t>::max(), 1),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Reduce<uint32_t>(DataType::kUint32, ReduceOp::kMax, 0x80000000u, 1), 0x80000000u);
  EXPECT_EQ(Reduce<int32_t>(DataType::kInt32, ReduceOp::kMin, -1, 1), -1);
}

TEST(Numbers, NanWinsInMinAndMax) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    EXPECT_TRUE(std::isnan(Reduce<float>(DataType::kFloat, op, nan, 1)));
    EXPECT_TRUE(std::isnan(Reduce<float>(DataType::kFloat, op, 1, nan)));
    EXPECT_TRUE(std::isnan(Reduce<double>(DataType::kDouble, op, 1, std::nan(""))));
  }
}

TEST(Numbers, SumsOfSmallTypesRoundOnce) {
  const uint16_t one = FloatToHalf(1), tiny = FloatToHalf(0x1p-11f);
  EXPECT_EQ(Reduce<uint16_t>(DataType::kHalf, ReduceOp::kSum, one, tiny), one);  // halfway, to even
  EXPECT_EQ(Reduce<uint8_t>(DataType::kFp8E4m3, ReduceOp::kSum, 0x7e, 0x7e), 0x7e);
}

TEST(Numbers, AverageScalesFloatsFirstAndDividesIntegersLast) {
  float scaled = 3;
  ScaleReference(DataType::kFloat, ReduceOp::kAvg, 4, &scaled, &scaled, 1);
  FinishReference(DataType::kFloat, ReduceOp::kAvg, 4, &scaled, 1);
  EXPECT_EQ(scaled, 0.75f);
  int8_t sum = -7;
  ScaleReference(DataType::kInt8, ReduceOp::kAvg, 2, &sum, &sum, 1);
  EXPECT_EQ(sum, -7);
  FinishReference(DataType::kInt8, ReduceOp::kAvg, 2, &sum, 1);
  EXPECT_EQ(sum, -3);  // toward zero
  FinishReference(DataType::kInt8, ReduceOp::kAvg, 200, &sum, 1);
  EXPECT_EQ(sum, 0);
  uint64_t large = std::numeric_limits<uint64_t>::max();
  FinishReference(DataType::kUint64, ReduceOp::kAvg, 2, &large, 1);
  EXPECT_EQ(large, std::numeric_limits<uint64_t>::max() / 2);
  float untouched = 3;
  ScaleReference(DataType::kFloat, ReduceOp::kSum, 4, &untouched, &untouched, 1);
  EXPECT_EQ(untouched, 3);
}

TEST(Numbers, NamesReadBack) {
  for (DataType type : AllDataTypes()) EXPECT_EQ(ParseDataType(ToString(type)).value(), type);
  for (ReduceOp op : AllReduceOps()) EXPECT_EQ(ParseReduceOp(ToString(op)).value(), op);
  EXPECT_EQ(ParseDataType("flaot").status().message(), "no data type 'flaot'; did you mean 'float'?");
  EXPECT_EQ(ParseReduceOp("sun").status().message(), "no reduction 'sun'; did you mean 'sum'?");
}

}  // namespace
}  // namespace xccl
