#include "topologies/fabric/iblinkinfo.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace xccl {
namespace {

Fabric Read(std::string_view text) {
  EXPECT_TRUE(IsIblinkinfo(text));
  StatusOr<Fabric> fabric = ReadIblinkinfo(text, "links.txt");
  EXPECT_TRUE(fabric.ok()) << fabric.status().message();
  return fabric.ok() ? *fabric : Fabric();
}

std::string Refusal(std::string_view text) {
  const StatusOr<Fabric> fabric = ReadIblinkinfo(text, "links.txt");
  return fabric.ok() ? "" : fabric.status().message();
}

constexpr int64_t kNdr = 50'000'000'000;

TEST(Iblinkinfo, ReadsPortsBelowHeads) {
  const std::string_view text = R"(CA: node1 mlx5_0:
      0x0000000000000b11     21    1[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>       7    1[  ] "MF0;leaf-1:MQM9700/U1" ( )
      0x0000000000000b12      0    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
Switch: 0x0000000000000a00 MF0;leaf-1:MQM9700/U1:
           7    1[ 1] ==( 4X        106.25 Gbps Active/  LinkUp)==>      21    1[  ] "node1 mlx5_0" ( )
           7    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
           7   33[  ] ==( 1X        106.25 Gbps Active/  LinkUp)==>       9    1[33] "spine" (Could be 4X )
           7   34[  ] ==( 4X      25.78125 Gbps Active/  LinkUp) (HOQ:18 VL_Stall:7)==>       9    2[  ] "spine" ( Could be 106.25 Gbps)
           7   35[  ] ==( 4X        106.25 Gbps Initialize/  LinkUp)==>    "Port not available"
Switch: 0x0000000000000c00 spine:
           9    1[  ] ==( 1X        106.25 Gbps Active/  LinkUp)==>       7   33[  ] "MF0;leaf-1:MQM9700/U1" (Could be 4X )
           9    2[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       7   34[  ] "MF0;leaf-1:MQM9700/U1" ( Could be 106.25 Gbps)
)";
  Fabric expected;
  expected.format = "iblinkinfo";
  expected.switches = {{"leaf-1", 0xa00}, {"spine", 0xc00}};
  expected.adapters = {{"node1", "mlx5_0", 0xb11, 0}};
  expected.cables = {{{false, 0, 1}, {true, 0, 1}, kNdr, 0, 2},
                     {{true, 0, 33}, {true, 1, 1}, kNdr / 4, kNdr, 7},
                     {{true, 0, 34}, {true, 1, 2}, kNdr / 4, kNdr, 8}};
  expected.down_ports = 3;
  EXPECT_EQ(Read(text), expected);
}

TEST(Iblinkinfo, ReadsLinesOfBothEnds) {
  const std::string_view text = R"(
0x0000000000000a00 "         MF0;leaf-1:MQM9700/U1"      7    1[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>  0x0000000000000b11     21    1[  ] "node1 mlx5_0" ( )
0x0000000000000a00 "         MF0;leaf-1:MQM9700/U1"      7    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
0x0000000000000b11 "                  node1 mlx5_0"     21    1[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>  0x0000000000000a00      7    1[  ] "MF0;leaf-1:MQM9700/U1" ( )
)";
  Fabric expected;
  expected.format = "iblinkinfo";
  expected.switches = {{"leaf-1", 0xa00}};
  expected.adapters = {{"node1", "mlx5_0", 0xb11, 0}};
  expected.cables = {{{true, 0, 1}, {false, 0, 1}, kNdr, 0, 2}};
  expected.down_ports = 1;
  EXPECT_EQ(Read(text), expected);
}

// Only switches are listed, as with --switches-only: what has no line of its own is an adapter or a spine.
TEST(Iblinkinfo, TellsKindsOfDevicesWithoutLines) {
  const Fabric fabric = Read(R"(Switch: 0x0000000000000a00 leaf-1:
           7    1[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>      21    1[  ] "node1 mlx5_0" ( )
           7    2[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>      22    1[  ] "gateway" ( )
           7   33[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>       9    1[  ] "spine" ( )
           7   34[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>       9    2[  ] "spine" ( )
)");
  ASSERT_EQ(fabric.switches.size(), 2u);
  EXPECT_EQ(fabric.switches[1].name, "spine");
  ASSERT_EQ(fabric.adapters.size(), 2u);
  EXPECT_EQ(fabric.adapters[1].host, "gateway");
  EXPECT_EQ(fabric.cables.size(), 4u);
  ASSERT_EQ(fabric.warnings.size(), 1u);
  EXPECT_EQ(fabric.warnings[0],
            "links.txt:4: port 33 of 'leaf-1' is joined to port 1 of 'spine', which has no line of its own; "
            "likewise in line 5");
}

TEST(Iblinkinfo, WarnsOfStatesAndRates) {
  const Fabric fabric = Read(R"(Switch: 0x0000000000000a00 leaf-1:
           7    1[  ] ==( 4X         400 Gbps Armed/  LinkUp)==>      21    1[  ] "node1 mlx5_0" ( )
)");
  EXPECT_EQ(fabric.cables.at(0).bandwidth_bytes_per_s, 0);
  ASSERT_EQ(fabric.warnings.size(), 2u);
  EXPECT_EQ(fabric.warnings[0], "links.txt:2: a port is in state Armed instead of Active; its cable counts");
  EXPECT_EQ(fabric.warnings[1],
            "links.txt:2: '4X         400 Gbps Armed/  LinkUp)' states no known rate of InfiniBand");
}

TEST(Iblinkinfo, RefusesWhatItCannotRead) {
  struct Case {
    std::string_view text, expected;
  };
  const Case cases[] = {
      {"7 1[  ] ==( 4X 106.25 Gbps Active/  LinkUp)==> 9 1[  ] \"spine\" ( )\n",
       "links.txt:1:1: a port without its device; expected a line such as 'Switch: 0x0002c90300000001 "
       "leaf-1:' before "
       "it"},
      {"Switch: 0xa leaf:\nx 1[  ] ==( 4X 106.25 Gbps Active/  LinkUp)==> 9 1[  ] \"spine\" ( )\n",
       "links.txt:2:1: expected a LID and a port before '==(', such as 7 1[  ]"},
      {"Switch: 0xa leaf:\n7 1[  ] ==( 4X 106.25 Gbps)==> 9 1[  ] \"spine\" ( )\n",
       "links.txt:2:1: expected a state such as Active/ between '==(' and '==>'"},
      {"Switch: 0xa leaf:\n7 1[  ] ==( 4X 106.25 Gbps Active/  LinkUp)==> spine\n",
       "links.txt:2:1: expected the far end's LID, port and name behind '==>'"},
      {"0xa \"leaf\" 7 1[  ] ==( 4X 106.25 Gbps Active/  LinkUp)==> 9 1[  ] \"spine\" ( )\n",
       "links.txt:1:1: expected the GUIDs of both ends, as --line prints them"},
      {"Switch: 0xa leaf:\n7 1[  ] ==( Down/ Polling)==> [  ] \"\" ( )\n8 2[  ] ==( Down/ Polling)==> [  ] "
       "\"\" ( )\n",
       "links.txt:3:1: LID 8 of a switch whose port above has LID 7; expected one LID"},
      {"Switch: 0xa leaf:\n7 1[  ] ==( Down/ Polling)==> [  ] \"\" ( )\n"
       "Switch: 0xb spine:\n7 1[  ] ==( Down/ Polling)==> [  ] \"\" ( )\n",
       "links.txt:4:1: LID 7 is that of 'leaf' and of 'spine'; expected one subnet; hint: iblinkinfo --line"},
      {"Switch: 0xa leaf:\n7 1[  ] ==( Down/ Polling)==> [  ] \"\" ( )\n",
       "links.txt: iblinkinfo lists no cable; expected ports that name the ports at their other ends"},
  };
  for (const Case& c : cases) EXPECT_EQ(Refusal(c.text), c.expected);
}

TEST(Iblinkinfo, IsToldByItsPorts) {
  EXPECT_FALSE(IsIblinkinfo(""));
  EXPECT_FALSE(IsIblinkinfo("if (a ==(b)==> c) d/e"));
  EXPECT_FALSE(IsIblinkinfo("Switch: 0x0000000000000a00 leaf-1:\n"));
}

}  // namespace
}  // namespace xccl
