#include "base/diagnostics.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

TEST(Diagnostics, Offsets) {
  const std::string_view text = "ab\ncd\n\ne";
  const struct {
    size_t offset;
    std::string expected;
  } cases[] = {
      {0, "f:1:1"}, {2, "f:1:3"}, {3, "f:2:1"}, {6, "f:3:1"}, {7, "f:4:1"}, {8, "f:4:2"}, {99, "f:4:2"},
  };
  for (const auto& c : cases) EXPECT_EQ(ToString(LocationOfOffset("f", text, c.offset)), c.expected);
}

TEST(Diagnostics, Messages) {
  EXPECT_EQ(InvalidAt(Location{"a.xml", 14, 5}, "no node 9"), InvalidInput("a.xml:14:5: no node 9"));
}

TEST(Status, Annotate) {
  EXPECT_EQ(Annotate(OkStatus(), "here"), OkStatus());
  EXPECT_EQ(Annotate(Infeasible("no way"), "here"), Infeasible("here: no way"));
}

TEST(Status, ExitCodes) {
  EXPECT_EQ(ExitCode(StatusCode::kOk), 0);
  EXPECT_EQ(ExitCode(StatusCode::kInvalidInput), 1);
  EXPECT_EQ(ExitCode(StatusCode::kUsage), 2);
  EXPECT_EQ(ExitCode(StatusCode::kInfeasible), 3);
  EXPECT_EQ(ExitCode(StatusCode::kBug), 4);
  EXPECT_EQ(ExitCode(StatusCode::kLimit), 5);
}

StatusOr<int> Half(int value) {
  if (value % 2 != 0) return InvalidInput("odd");
  return value / 2;
}
StatusOr<int> Quarter(int value) {
  XCCL_ASSIGN_OR_RETURN(const int half, Half(value));
  XCCL_RETURN_IF_ERROR(Half(half).status());
  return half / 2;
}

TEST(Status, Macros) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(7).status(), InvalidInput("odd"));
  EXPECT_EQ(Quarter(6).status(), InvalidInput("odd"));
  EXPECT_EQ(StatusOr<int>(OkStatus()).status().code(), StatusCode::kBug);
}

TEST(StatusDeathTest, Checks) {
  EXPECT_DEATH(XCCL_CHECK(1 > 2), "diagnostics_test.cc:.*: check failed: 1 > 2");
}

}  // namespace
}  // namespace xccl
