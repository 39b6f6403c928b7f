#include "ir/verify/member_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/random.h"

namespace xccl {
namespace {

// A set beside its members in the order of a std::set, which is obviously right.
struct Both {
  MemberSet set;
  std::set<int32_t> members;

  void Add(int32_t member) {
    if (members.insert(member).second) set.Add(member);
  }
  std::vector<int32_t> List() const { return {members.begin(), members.end()}; }
};

// Runs of members, or single members far apart, such that sets of both forms meet.
Both RandomSet(int32_t members, Random& random) {
  Both made{MemberSet(members), {}};
  const bool runs = random.Below(2) == 0;
  for (uint64_t i = random.Below(2 * static_cast<uint64_t>(members) / 3 + 1); i-- > 0;) {
    int32_t at = static_cast<int32_t>(random.Below(static_cast<uint64_t>(members)));
    if (!runs) at -= at % 2;
    for (int32_t n = runs ? static_cast<int32_t>(random.Below(9)) : 1; n-- > 0 && at < members; ++at)
      made.Add(at);
  }
  return made;
}

TEST(MemberSet, IsASet) {
  Random random(1);
  for (int32_t round = 0; round < 600; ++round) {
    const int32_t members = 1 + static_cast<int32_t>(random.Below(300));
    Both a = RandomSet(members, random), b = RandomSet(members, random);
    EXPECT_EQ(a.set.Members(), a.List());
    EXPECT_EQ(a.set.size(), std::ssize(a.members));
    EXPECT_EQ(a.set == b.set, a.members == b.members);
    std::vector<int32_t> both;
    std::ranges::set_intersection(a.members, b.members, std::back_inserter(both));
    EXPECT_EQ(a.set.Common(b.set).has_value(), !both.empty());
    if (!both.empty()) {
      EXPECT_EQ(a.set.Common(b.set), both.front());
      continue;
    }
    a.set.Unite(b.set);
    a.members.insert(b.members.begin(), b.members.end());
    EXPECT_EQ(a.set.Members(), a.List());
    EXPECT_EQ(a.set.size(), std::ssize(a.members));
  }
}

// Every other member is a bitset, and the others make one run of it. Both forms compare equal, and a cleared
// set can be filled again.
TEST(MemberSet, FormsMeet) {
  constexpr int32_t kMembers = 256;
  MemberSet even(kMembers), odd(kMembers), all(kMembers);
  for (int32_t m = 0; m < kMembers; ++m) {
    (m % 2 == 0 ? even : odd).Add(m);
    all.Add(m);
  }
  EXPECT_FALSE(even.Common(odd));
  EXPECT_FALSE(even == odd);
  even.Unite(odd);
  EXPECT_TRUE(even == all);
  even.Clear();
  EXPECT_EQ(even.size(), 0);
  even.Add(7);
  EXPECT_EQ(even.Members(), std::vector<int32_t>({7}));
  EXPECT_EQ(all.Common(even), 7);
}

// A bitset and runs that are equal: the union of single members fills the gaps one by one.
TEST(MemberSet, EqualInDifferentForms) {
  constexpr int32_t kMembers = 640;
  MemberSet bits(kMembers), runs(kMembers);
  for (int32_t m = 0; m < 320; m += 2) bits.Add(m);
  for (int32_t m = 1; m < 320; m += 2) {
    MemberSet one(kMembers);
    one.Add(m);
    bits.Unite(one);
  }
  for (int32_t m = 0; m < 320; ++m) runs.Add(m);
  EXPECT_TRUE(bits == runs);
  EXPECT_TRUE(runs == bits);
  runs.Add(400);
  EXPECT_FALSE(bits == runs);
}

}  // namespace
}  // namespace xccl
