#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/fabric/ib_names.h"
#include "topologies/fabric/ib_rates.h"

namespace xccl {
namespace {

TEST(IbRates, AreDataRates) {
  struct Case {
    IbRate rate;
    int64_t mbit_per_s;
  };
  const Case cases[] = {
      {{4, IbSpeed::kSdr}, 8'000},    {{4, IbSpeed::kDdr}, 16'000},  {{4, IbSpeed::kQdr}, 32'000},
      {{4, IbSpeed::kFdr10}, 40'000}, {{4, IbSpeed::kFdr}, 54'545},  {{4, IbSpeed::kEdr}, 100'000},
      {{4, IbSpeed::kHdr}, 200'000},  {{2, IbSpeed::kHdr}, 100'000}, {{4, IbSpeed::kNdr}, 400'000},
      {{4, IbSpeed::kXdr}, 800'000},  {{1, IbSpeed::kSdr}, 2'000},   {{12, IbSpeed::kQdr}, 96'000},
      {{0, IbSpeed::kNdr}, 0},        {{4, IbSpeed::kUnknown}, 0}};
  for (const Case& c : cases)
    EXPECT_EQ(IbBytesPerS(c.rate) * 8 / 1'000'000, c.mbit_per_s) << ToString(c.rate);
}

TEST(IbRates, AreReadFromNamesAndSignals) {
  EXPECT_EQ(IbSpeedOfName("FDR10"), IbSpeed::kFdr10);
  EXPECT_EQ(IbSpeedOfName("???"), IbSpeed::kUnknown);
  EXPECT_EQ(IbSpeedOfLaneGbps("106.25"), IbSpeed::kNdr);
  EXPECT_EQ(IbSpeedOfLaneGbps("25.78"), IbSpeed::kEdr);  // rounded by hand
  EXPECT_EQ(IbSpeedOfLaneGbps("10.0"), IbSpeed::kQdr);
  EXPECT_EQ(IbSpeedOfLaneGbps("400"), IbSpeed::kUnknown);
  EXPECT_EQ(IbSpeedOfLaneGbps("-1"), IbSpeed::kUnknown);
  EXPECT_EQ(IbLanes("12x"), 12);
  EXPECT_EQ(IbLanes("2X"), 2);
  EXPECT_EQ(IbLanes("3x"), 0);
  EXPECT_EQ(ToString(IbRate{4, IbSpeed::kNdr}), "4xNDR");
}

TEST(IbNames, OfAdaptersHaveHostAndDevice) {
  struct Case {
    std::string_view name;
    IbAdapterName expected;
  };
  const Case cases[] = {
      {"node1 mlx5_0", {"node1", "mlx5_0"}},
      {"node1 HCA-3", {"node1", "HCA-3"}},
      {" node1.example.org mlx5_bond_0 ", {"node1.example.org", "mlx5_bond_0"}},
      {"node1 ibp12s0", {"node1", "ibp12s0"}},  // any name of a device behind one word
      {"rack 7 node 2 HCA-1", {"rack 7 node 2", "HCA-1"}},
      {"rack 7 node 2", {"rack 7 node 2", ""}},  // not the device "2"
      {"node1", {"node1", ""}},
      {"mlx5_0", {"", "mlx5_0"}},
      {"localhost HCA-1", {"", "HCA-1"}},
      {"MT4129 ConnectX7   Mellanox Technologies", {}},
      {"MT23108 InfiniHost", {}},
      {"ConnectX-8 NVIDIA", {}},
      {"", {}},
  };
  for (const Case& c : cases) EXPECT_EQ(ReadIbAdapterName(c.name), c.expected) << c.name;
}

TEST(IbNames, OfSwitchesAreShortWhereTheyStayUnique) {
  const std::vector<std::string> names = {
      "MF0;leaf-1:MQM9700/U1", "MF0;core:CS8500/L01/U1", "MF0;core:CS8500/L02/U1",
      "Quantum Mellanox",      "Quantum Mellanox",       "MF0;a;b: c:MQM8700/U1",
      "MF0;twin:MQM9700/U1",   "MF0;twin:MQM9700/U1",    "spine-1"};
  const std::vector<std::string> expected = {
      "leaf-1", "core/L01/U1",         "core/L02/U1",         "Quantum Mellanox", "Quantum Mellanox",
      "a;b: c", "MF0;twin:MQM9700/U1", "MF0;twin:MQM9700/U1", "spine-1"};
  EXPECT_EQ(ShortIbSwitchNames(names), expected);
}

TEST(IbNames, TellKinds) {
  EXPECT_TRUE(LooksLikeIbSwitch("MF0;leaf-1:MQM9700/U1"));
  EXPECT_TRUE(LooksLikeIbSwitch("Quantum Mellanox Technologies"));
  EXPECT_FALSE(LooksLikeIbSwitch("node1 mlx5_0"));
  EXPECT_TRUE(LooksLikeIbAdapter("node1 hfi1_0"));
  EXPECT_TRUE(LooksLikeIbAdapter("MT4129 ConnectX7   Mellanox Technologies"));
  EXPECT_FALSE(LooksLikeIbAdapter("leaf-1"));
  EXPECT_TRUE(IsIbAggregationNode("Mellanox Technologies Aggregation Node"));
}

}  // namespace
}  // namespace xccl
