#include "runtime/memory_use.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/random.h"

namespace xccl {
namespace {

constexpr bool kReads = false, kWrites = true;
std::array<std::byte, 1000> memory;

MemoryUse Use(int64_t begin, int64_t bytes, bool writes, size_t by) {
  return {memory.data() + begin, bytes, writes, by};
}

using Found = std::optional<std::pair<size_t, size_t>>;

TEST(FindConflict, KnowsWhoSharesBytes) {
  const struct {
    std::string name;
    std::vector<MemoryUse> uses;
    Found expected;
  } cases[] = {
      {"nothing", {}, {}},
      {"neighbours", {Use(0, 10, kWrites, 0), Use(10, 10, kWrites, 1)}, {}},
      {"one byte", {Use(9, 10, kWrites, 0), Use(0, 10, kWrites, 1)}, Found({0, 1})},
      {"readers", {Use(0, 10, kReads, 0), Use(0, 10, kReads, 1)}, {}},
      {"a reader first", {Use(0, 10, kReads, 0), Use(5, 10, kWrites, 1)}, Found({0, 1})},
      {"a writer first", {Use(0, 10, kWrites, 0), Use(5, 10, kReads, 1)}, Found({0, 1})},
      {"one owner", {Use(0, 10, kWrites, 4), Use(5, 10, kWrites, 4)}, {}},
      {"no bytes", {Use(0, 10, kWrites, 0), Use(5, 0, kWrites, 1)}, {}},
      {"a long one behind short ones",
       {Use(0, 100, kWrites, 0), Use(0, 1, kReads, 0), Use(20, 5, kReads, 0), Use(50, 1, kReads, 1)},
       Found({0, 3})},
      {"an owner's longer one hides another's",
       {Use(0, 50, kWrites, 1), Use(0, 60, kReads, 1), Use(40, 100, kReads, 0)},
       Found({0, 2})},
  };
  for (const auto& c : cases) EXPECT_EQ(FindConflict(c.uses), c.expected) << c.name;
}

bool Conflict(const MemoryUse& a, const MemoryUse& b) {
  return a.bytes > 0 && b.bytes > 0 && a.by != b.by && (a.writes || b.writes) &&
         a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

TEST(FindConflict, FindsOneWhereThereIsOne) {
  Random random(1);
  int with = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<MemoryUse> uses;
    const uint64_t longest = 1 + random.Below(150);
    for (uint64_t n = random.Below(10); n > 0; --n)
      uses.push_back(Use(static_cast<int64_t>(random.Below(800)), static_cast<int64_t>(random.Below(longest)),
                         random.Below(3) == 0, random.Below(4)));
    bool any = false;
    for (size_t i = 0; i < uses.size(); ++i)
      for (size_t j = 0; j < i; ++j) any |= Conflict(uses[i], uses[j]);
    const Found found = FindConflict(uses);
    ASSERT_EQ(found.has_value(), any);
    if (found) {
      EXPECT_LT(found->first, found->second);
      EXPECT_TRUE(Conflict(uses[found->first], uses[found->second]));
    }
    with += any;
  }
  EXPECT_GT(with, 2'000);
  EXPECT_LT(with, 18'000);
}

}  // namespace
}  // namespace xccl
