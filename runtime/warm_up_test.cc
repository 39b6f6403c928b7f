#include "runtime/warm_up.h"

#include <gtest/gtest.h>

#include <vector>

namespace xccl {
namespace {

// Returns the lengths of the rounds when operations take these seconds in them; the last time is repeated.
std::vector<int32_t> RoundsOf(WarmUp warm_up, const std::vector<double>& seconds) {
  std::vector<int32_t> rounds;
  while (const int32_t next = warm_up.Next()) {
    warm_up.Add(seconds[std::min(rounds.size(), seconds.size() - 1)]);
    rounds.push_back(next);
  }
  return rounds;
}

TEST(WarmUp, EndsWhenTimesSettle) {
  const struct {
    const char* name;
    std::optional<int32_t> given;
    std::vector<double> seconds;
    std::vector<int32_t> rounds;
  } cases[] = {
      {"a given number is one round", 5, {9e-3, 1e-3}, {5}},
      {"none was asked for", 0, {1e-3}, {}},
      {"steady from the first operation on", {}, {1e-3}, {1, 2}},
      {"a slow first operation", {}, {4e-3, 1e-3}, {1, 2, 4}},
      {"a slow start", {}, {8e-3, 4e-3, 2e-3, 1.9e-3}, {1, 2, 4, 8}},
      {"a round that other work disturbs ends it", {}, {4e-3, 5e-3, 1e-3}, {1, 2}},
      {"times that fall on and on",
       {},
       {64e-4, 32e-4, 16e-4, 8e-4, 4e-4, 2e-4, 1e-4, 5e-5},
       {1, 2, 4, 8, 16, 32, 64}},
      {"long operations", {}, {1.5}, {1}},
      {"long operations that become faster", {}, {0.5, 0.3, 0.1}, {1, 2}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(RoundsOf(WarmUp(c.given), c.seconds), c.rounds);
  }
}

}  // namespace
}  // namespace xccl
