#include "topologies/fabric/host_list.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace xccl {
namespace {

using Names = std::vector<std::string>;

TEST(HostListTest, ListsAreExpanded) {
  const struct {
    std::string_view text;
    Names names;
  } cases[] = {
      {"n1", {"n1"}},
      {"login", {"login"}},
      {"n[1-4,7]", {"n1", "n2", "n3", "n4", "n7"}},
      {"n[08-11]", {"n08", "n09", "n10", "n11"}},
      {"n[8-11]", {"n8", "n9", "n10", "n11"}},
      {"n[099-101]", {"n099", "n100", "n101"}},
      {"a[1-2]b[3-4]", {"a1b3", "a1b4", "a2b3", "a2b4"}},
      {"a[1-2]-ib", {"a1-ib", "a2-ib"}},
      {"[1-2]", {"1", "2"}},
      {"n[3],n[1-2],m", {"n3", "n1", "n2", "m"}},
      {"n1, n2\tn3 ,,n1,", {"n1", "n2", "n3", "n1"}},
      {"n[ 1 - 2 , 5 ]", {"n1", "n2", "n5"}},
      {"n[999999999999999998-999999999999999999]", {"n999999999999999998", "n999999999999999999"}},
  };
  for (const auto& c : cases) EXPECT_EQ(ExpandHostList(c.text).value(), c.names) << c.text;
}

TEST(HostListTest, WrongListsAreRefused) {
  const struct {
    std::string_view text, message;
  } cases[] = {
      {"", "host list '': no names; expected names such as gpu[001-016]"},
      {" , ", "host list ' , ': no names; expected names such as gpu[001-016]"},
      {"n[1-4", "host list 'n[1-4': column 2: no ']' closes '['; expected one such as [001-016]"},
      {"n1-4]", "host list 'n1-4]': column 5: ']' closes no '['; expected one such as [001-016]"},
      {"n[]", "host list 'n[]': column 3: '' in brackets; expected a number or a range such as 001-016"},
      {"n[1,]", "host list 'n[1,]': column 5: '' in brackets; expected a number or a range such as 001-016"},
      {"n[1-2-3]",
       "host list 'n[1-2-3]': column 3: '1-2-3' in brackets; expected a number or a range such as 001-016"},
      {"n[a-c]",
       "host list 'n[a-c]': column 3: 'a-c' in brackets; expected a number or a range such as 001-016"},
      {"n[1[2]]",
       "host list 'n[1[2]]': column 3: '1[2' in brackets; expected a number or a range such as 001-016"},
      {"n[4-1]",
       "host list 'n[4-1]': column 3: the range 4-1 runs backwards; expected its smaller number first"},
      {"n[1000000000000000000]",
       "host list 'n[1000000000000000000]': column 3: '1000000000000000000' in brackets; expected a number "
       "or "
       "a range such as 001-016"},
      {"n\x01", "host list 'n?': column 1: a name with a control character; expected text"},
      {"n[0-1000000]",
       "host list 'n[0-1000000]': more than 1,000,000 names; expected the hosts of one cluster"},
      {"n[0-999999999999999999]",
       "host list 'n[0-999999999999999999]': more than 1,000,000 names; expected the hosts of one cluster"},
      {"n[0-999][0-999][0-999][0-999][0-999][0-999][0-999]",
       "host list 'n[0-999][0-999][0-999][0-999][0-999][0-999][0-999]': more than 1,000,000 names; expected "
       "the hosts of one cluster"},
      {"n[0-599999],m[0-599999]",
       "host list 'n[0-599999],m[0-599999]': more than 1,000,000 names; expected the hosts of one cluster"},
  };
  for (const auto& c : cases) {
    const auto names = ExpandHostList(c.text);
    ASSERT_FALSE(names.ok()) << c.text;
    EXPECT_EQ(names.status(), InvalidInput(std::string(c.message))) << c.text;
  }
}

TEST(HostListTest, LongNamesKeepTheLimitOfBytes) {
  const auto names = ExpandHostList(std::string(1000, 'n') + "[0-99999]");
  ASSERT_FALSE(names.ok());
  EXPECT_THAT(names.status().message(),
              testing::EndsWith("more than 64 MiB of names; expected the hosts of one cluster"));
}

TEST(HostListTest, NamesAreCompressed) {
  const struct {
    Names names;
    std::string_view text;
  } cases[] = {
      {{}, ""},
      {{"n1"}, "n1"},
      {{"n1", "n2", "n3", "n7"}, "n[1-3,7]"},
      {{"n08", "n09", "n10"}, "n[08-10]"},
      {{"n8", "n9", "n10"}, "n[8-10]"},
      {{"n8", "n09", "n10"}, "n[8,09-10]"},
      {{"n2", "n1"}, "n[2,1]"},
      {{"n1", "m1", "login", "n2"}, "n1,m1,login,n2"},
      {{"r1n1", "r1n2", "r2n1"}, "r1n[1-2],r2n1"},
      {{"n1-ib", "n2-ib"}, "n[1-2]-ib"},
      {{"n1000000000000000000", "n1000000000000000001"}, "n1000000000000000000,n1000000000000000001"},
  };
  for (const auto& c : cases) EXPECT_EQ(CompressHostList(c.names), c.text);
}

TEST(HostListTest, RandomNamesComeBack) {
  Random random(52);
  for (int i = 0; i < 1000; ++i) {
    Names names;
    const uint64_t count = 1 + random.Below(40);
    for (uint64_t n = 0; n < count; ++n)
      names.push_back(fmt::format("{}{:0{}}{}", random.Below(3) == 0 ? "gpu" : "r1n", random.Below(30),
                                  1 + random.Below(2), random.Below(8) == 0 ? "-ib" : ""));
    EXPECT_EQ(ExpandHostList(CompressHostList(names)).value(), names);
  }
}

TEST(HostListTest, RandomTextsAreListsOrRefused) {
  Random random(53);
  constexpr std::string_view kCharacters = "ab01239[[]]--,, ";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (uint64_t n = random.Below(16); n > 0; --n) text += kCharacters[random.Below(kCharacters.size())];
    const auto names = ExpandHostList(text);
    if (names.ok()) {
      EXPECT_EQ(ExpandHostList(CompressHostList(*names)).value(), *names) << text;
    } else {
      EXPECT_EQ(names.status().code(), StatusCode::kInvalidInput);
    }
  }
}

}  // namespace
}  // namespace xccl
