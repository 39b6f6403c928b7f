#include "topologies/nccl/nccl_numbers.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace xccl {
namespace {

TEST(NcclNumbers, IntegersAreThoseOfStrtol) {
  struct Case {
    const char* text;
    int64_t value;
    bool plain;
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const Case& c : {Case{"16", 16, true},
                        Case{" 16", 16, true},
                        Case{"\t16\n", 16, true},
                        Case{"+16", 16, true},
                        Case{"-1", -1, true},
                        Case{"0x10", 16, true},
                        Case{"0X1f", 31, true},
                        Case{"-0x10", -16, true},
                        Case{"0", 0, true},
                        Case{"020", 16, false},
                        Case{"09", 0, false},
                        Case{"0x", 0, false},
                        Case{"0xg", 0, false},
                        Case{"16x", 16, false},
                        Case{"1e4", 1, false},
                        Case{"10000.0", 10000, false},
                        Case{"", 0, false},
                        Case{"  ", 0, false},
                        Case{"x16", 0, false},
                        Case{"--4", 0, false},
                        Case{"+-4", 0, false},
                        Case{"- 4", 0, false},
                        Case{"9223372036854775808", kMost, true},
                        Case{"99999999999999999999999", kMost, true}}) {
    const LeadingNumber<int64_t> number = ReadLeadingInteger(c.text);
    EXPECT_EQ(number.value, c.value) << c.text;
    EXPECT_EQ(number.plain, c.plain) << c.text;
    EXPECT_EQ(number.value, std::strtol(c.text, nullptr, 0)) << c.text;
  }
}

// std::strtod would read "2.75" as 2 where numbers have commas.
TEST(NcclNumbers, FloatsHaveADotInEveryLocale) {
  struct Case {
    const char* text;
    double value;
    bool plain;
  };
  const auto check = [] {
    for (const Case& c : {Case{"2.75", 2.75, true}, Case{" +2.75 ", 2.75, true}, Case{"-0.5", -0.5, true},
                          Case{"1e3", 1000, true}, Case{"0x1p-1", 0.5, true}, Case{".5", 0.5, true},
                          Case{"2.5us", 2.5, false}, Case{"2,75", 2, false}, Case{"", 0, false},
                          Case{"none", 0, false}, Case{"--1", 0, false}}) {
      const LeadingNumber<double> number = ReadLeadingFloat(c.text);
      EXPECT_EQ(number.value, c.value) << c.text;
      EXPECT_EQ(number.plain, c.plain) << c.text;
    }
  };
  check();
  for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"})
    if (std::setlocale(LC_ALL, locale) != nullptr) check();
  std::setlocale(LC_ALL, "C");
}

}  // namespace
}  // namespace xccl
