#include "base/graph/lp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace xccl {
namespace {

using Terms = std::vector<std::pair<int32_t, double>>;

constexpr int32_t kIterations = 1000;

constexpr double kCosts[] = {2, 3};

// 2x + 3y is largest where x + y <= 4 and x + 3y <= 6: x = 3, y = 1.
void AddTwoLimits(LinearProgram& program) {
  program.AddRow(Terms{{0, 1}, {1, 1}}, -LinearProgram::kInfinity, 4);
  program.AddRow(Terms{{0, 1}, {1, 3}}, -LinearProgram::kInfinity, 6);
}

TEST(LinearProgram, BothFormsFindTheOptimum) {
  for (const LinearProgramForm form : {LinearProgramForm::kPlain, LinearProgramForm::kTurned}) {
    LinearProgram program(kCosts, form);
    AddTwoLimits(program);
    ASSERT_TRUE(program.Solve(kIterations));
    EXPECT_NEAR(program.Objective(), 9, 1e-9);
    EXPECT_NEAR(program.Values()[0], 3, 1e-9);
    EXPECT_NEAR(program.Values()[1], 1, 1e-9);
    EXPECT_NEAR(std::abs(program.RowPrices()[0]), 1.5, 1e-9);
    EXPECT_NEAR(std::abs(program.RowPrices()[1]), 0.5, 1e-9);
  }
}

TEST(LinearProgram, RowsWithoutAPriceMayGo) {
  LinearProgram program(kCosts, LinearProgramForm::kTurned);
  AddTwoLimits(program);
  program.AddRow(Terms{{0, 1}}, -LinearProgram::kInfinity, 5);           // 2 more than the optimum
  program.AddRow(Terms{{0, 1}, {1, 2}}, -LinearProgram::kInfinity, 12);  // 7 more
  ASSERT_TRUE(program.Solve(kIterations));
  const std::vector<double> slacks(program.RowSlacks().begin(), program.RowSlacks().end());
  ASSERT_EQ(slacks.size(), 4u);
  EXPECT_NEAR(slacks[0], 0, 1e-9);
  EXPECT_NEAR(slacks[1], 0, 1e-9);
  EXPECT_NEAR(slacks[2], 2, 1e-9);
  EXPECT_NEAR(slacks[3], 7, 1e-9);

  program.DropRows(std::vector<int32_t>{2});
  ASSERT_EQ(program.RowPrices().size(), 3u);
  EXPECT_NEAR(std::abs(program.RowPrices()[0]), 1.5, 1e-9);
  EXPECT_NEAR(std::abs(program.RowPrices()[1]), 0.5, 1e-9);
  EXPECT_NEAR(program.RowPrices()[2], 0, 1e-9);
  EXPECT_NEAR(program.Values()[0], 3, 1e-9);
  program.AddRow(Terms{{1, 1}}, -LinearProgram::kInfinity, 0.5);  // cuts the optimum off: x = 3.5
  ASSERT_TRUE(program.Solve(kIterations));
  EXPECT_NEAR(program.Objective(), 8.5, 1e-9);
  ASSERT_EQ(program.RowPrices().size(), 4u);  // the last one but one has moved up
  EXPECT_NEAR(program.RowSlacks()[2], 7.5, 1e-9);
  EXPECT_NEAR(std::abs(program.RowPrices()[3]), 1, 1e-9);
}

}  // namespace
}  // namespace xccl
