// The search beside all subsets, for cuts with costs of their own for every element.
#include "base/graph/submodular.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace xccl {
namespace {

struct CutFunction {
  int32_t elements = 0;
  std::vector<std::vector<double>> capacity;  // from, to
  std::vector<double> own;

  double Of(uint32_t set) const {
    double value = 0;
    for (int32_t i = 0; i < elements; ++i) {
      if ((set >> i & 1) == 0) continue;
      value += own[static_cast<size_t>(i)];
      for (int32_t j = 0; j < elements; ++j)
        if ((set >> j & 1) == 0) value += capacity[static_cast<size_t>(i)][static_cast<size_t>(j)];
    }
    return value;
  }
};

CutFunction RandomFunction(Random& random) {
  CutFunction made;
  made.elements = 1 + static_cast<int32_t>(random.Below(9));
  const uint64_t most = 2 + random.Below(8);
  for (int32_t i = 0; i < made.elements; ++i) {
    made.own.push_back(static_cast<double>(random.Below(3 * most)) / 10 - static_cast<double>(most) / 10);
    auto& row = made.capacity.emplace_back();
    for (int32_t j = 0; j < made.elements; ++j)
      row.push_back(random.Below(2) == 0 ? static_cast<double>(random.Below(most)) / 10 : 0);
  }
  return made;
}

TEST(FindNegativeSet, FindsOneWhereThereIsOne) {
  Random random(3);
  int32_t negative = 0, rounds = 0;
  constexpr int32_t kFunctions = 5000;
  for (int32_t f = 0; f < kFunctions; ++f) {
    const CutFunction function = RandomFunction(random);
    NegativeSetSearch search{.elements = function.elements, .values_along = {}, .first_order = {}};
    search.values_along = [&](std::span<const int32_t> order) {
      ++rounds;
      std::vector<double> values;
      uint32_t set = 0;
      for (const int32_t e : order) values.push_back(function.Of(set |= 1u << e));
      return values;
    };
    search.first_order.resize(static_cast<size_t>(function.elements));
    std::iota(search.first_order.begin(), search.first_order.end(), 0);
    double least = 0;
    for (uint32_t set = 0; set < 1u << function.elements; ++set) least = std::min(least, function.Of(set));
    const auto found = FindNegativeSet(search);
    ASSERT_EQ(found.has_value(), least < -1e-9) << f << ": " << least;
    if (!found) continue;
    ++negative;
    uint32_t set = 0;
    for (const int32_t e : *found) set |= 1u << e;
    EXPECT_LT(function.Of(set), -1e-10);
  }
  EXPECT_GT(negative, kFunctions / 4);
  EXPECT_LT(negative, kFunctions);
  EXPECT_LT(rounds, 10 * kFunctions);
}

TEST(FindNegativeSet, StopsWhenAsked) {
  NegativeSetSearch search{.elements = 1, .values_along = {}, .first_order = {0}};
  search.values_along = [](std::span<const int32_t>) { return std::vector<double>{-1}; };
  EXPECT_EQ(FindNegativeSet(search), std::vector<int32_t>{0});
  search.stopped = [] { return true; };
  EXPECT_FALSE(FindNegativeSet(search));
}

}  // namespace
}  // namespace xccl
