#include "pipeline/launch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace xccl {
namespace {

// Variables that the user did not set used to be blamed.
TEST(JoinLaunched, BlamesTheFlagsThatWereGiven) {
  LaunchOptions options;
  options.token = "a secret";
  options.group.time_limit = std::chrono::seconds(1);
  options.ranks = 2;
  options.rank = 2;
  EXPECT_EQ(JoinLaunched(options).status().message().rfind("--rank: ", 0), 0u)
      << JoinLaunched(options).status().message();
  options.rank = 0;
  options.ranks = 0;
  EXPECT_EQ(JoinLaunched(options).status().message().rfind("--ranks: ", 0), 0u)
      << JoinLaunched(options).status().message();
  options.ranks = 2;
  options.address = "0.0.0.0:4000";
  EXPECT_EQ(
      JoinLaunched(options).status().message(),
      "--address=0.0.0.0:4000: stands for every address; expected the one at which the other ranks reach "
      "rank 0's host");
}

}  // namespace
}  // namespace xccl
