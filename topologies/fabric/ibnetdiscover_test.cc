#include "topologies/fabric/ibnetdiscover.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace xccl {
namespace {

Fabric Read(std::string_view text) {
  EXPECT_TRUE(IsIbnetdiscover(text));
  StatusOr<Fabric> fabric = ReadIbnetdiscover(text, "net.txt");
  EXPECT_TRUE(fabric.ok()) << fabric.status().message();
  return fabric.ok() ? *fabric : Fabric();
}

std::string Refusal(std::string_view text) {
  const StatusOr<Fabric> fabric = ReadIbnetdiscover(text, "net.txt");
  return fabric.ok() ? "" : fabric.status().message();
}

constexpr std::string_view kFull = R"(#
# Topology file: generated on Mon Jan  1 00:00:00 2024
#
# Initiated from node 0000000000000b10 port 0000000000000b11

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xa00
switchguid=0xa00(a00)
Switch	65 "S-0000000000000a00"		# "MF0;leaf-1:MQM9700/U1" enhanced port 0 lid 7 lmc 0
[1]	"H-0000000000000b10"[1](b11) 		# "node1 mlx5_0" lid 21 4xNDR
[2]	"H-0000000000000b20"[1](b21) 		# "MT4129 ConnectX7   Mellanox Technologies" lid 22 4xNDR
[33]	"S-0000000000000c00"[1]		# "MF0;spine: a;b:MQM9700/U1" lid 9 4xNDR
[34]	"S-0000000000000c00"[2]		# "MF0;spine: a;b:MQM9700/U1" lid 9 4xNDR
[65]	"H-0000000000000a08"[1](a08) 		# "Mellanox Technologies Aggregation Node" lid 30 4xNDR

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xc00
switchguid=0xc00(c00)
Switch	65 "S-0000000000000c00"		# "MF0;spine: a;b:MQM9700/U1" enhanced port 0 lid 9 lmc 0
[1]	"S-0000000000000a00"[33]		# "MF0;leaf-1:MQM9700/U1" lid 7 4xNDR
[2]	"S-0000000000000a00"[34]		# "MF0;leaf-1:MQM9700/U1" lid 7 4xNDR

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xa00
caguid=0xa08
Ca	1 "H-0000000000000a08"		# "Mellanox Technologies Aggregation Node"
[1](a08) 	"S-0000000000000a00"[65]		# lid 30 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 7 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xb10
caguid=0xb10
Ca	1 "H-0000000000000b10"		# "node1 mlx5_0"
[1](b11) 	"S-0000000000000a00"[1]		# lid 21 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 7 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xb10
caguid=0xb20
Ca	1 "H-0000000000000b20"		# "MT4129 ConnectX7   Mellanox Technologies"
[1](b21) 	"S-0000000000000a00"[2]		# lid 22 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 7 4xNDR
)";

constexpr int64_t kNdr = 50'000'000'000;

TEST(Ibnetdiscover, ReadsRecords) {
  Fabric expected;
  expected.format = "ibnetdiscover";
  expected.switches = {{"leaf-1", 0xa00}, {"spine: a;b", 0xc00}};
  // The second card has no name of its own, but shares the first one's system.
  expected.adapters = {{"node1", "mlx5_0", 0xb11, 0xb10}, {"node1", "", 0xb21, 0xb10}};
  expected.cables = {{{true, 0, 1}, {false, 0, 1}, kNdr, 0, 11},
                     {{true, 0, 2}, {false, 1, 1}, kNdr, 0, 12},
                     {{true, 0, 33}, {true, 1, 1}, kNdr, 0, 13},
                     {{true, 0, 34}, {true, 1, 2}, kNdr, 0, 14}};
  expected.warnings = {"net.txt: left out 1 aggregation node, the ports of switches that reduce (SHARP)"};
  EXPECT_EQ(Read(kFull), expected);
}

constexpr std::string_view kPorts =
    "CA    21  1 0x0000000000000b11 4x NDR - SW     7  1 0x0000000000000a00 ( 'node1 mlx5_0' - 'leaf-1' )\n"
    "SW     7 33 0x0000000000000a00 4x NDR - SW     9  1 0x0000000000000c00 ( 'leaf-1' - 'spine' )\n"
    "SW     7  2 0x0000000000000a00 4x ???                                    'leaf-1'\n"
    "SW     7  1 0x0000000000000a00 4x NDR - CA    21  1 0x0000000000000b11 ( 'leaf-1' - 'node1 mlx5_0' )\n"
    "SW     9  1 0x0000000000000c00 4x NDR - SW     7 33 0x0000000000000a00 ( 'spine' - 'leaf-1' )\n"
    "SW     9  2 0x0000000000000c00 4x SDR                                    spine\n";

TEST(Ibnetdiscover, ReadsTheListOfPorts) {
  Fabric expected;
  expected.format = "ibnetdiscover";
  expected.switches = {{"leaf-1", 0xa00}, {"spine", 0xc00}};
  expected.adapters = {{"node1", "mlx5_0", 0xb11, 0}};
  expected.cables = {{{false, 0, 1}, {true, 0, 1}, kNdr, 0, 1}, {{true, 0, 33}, {true, 1, 1}, kNdr, 0, 2}};
  expected.down_ports = 2;
  EXPECT_EQ(Read(kPorts), expected);
}

// -f adds the raw fields of the rate, -g chassis and the numbers printed on a director; records need no blank
// line between them, GUIDs may have 0x, and a switch of a chassis may come twice.
TEST(Ibnetdiscover, ReadsTheAdditionsOfFlags) {
  const Fabric fabric = Read(R"(
Chassis 1 (guid 0x2c9000)
Hostname: director

# Spine Nodes
vendid=0x2c9
devid=0xd2f2
sysimgguid=0xc00		# Chassis 1 (director) slot 2
switchguid=0xc00(c00)	# IS5600 spine 2
Switch	36 "S-0000000000000c00"		# "spine" base port 0 lid 9 lmc 0
[1][ext 12]	"H-0000000000000b10"[1][ext 3](b11) 		# "node1 mlx5_0" lid 21 4xNDR s=4 w=2 v=4
vendid=0x2c9
devid=0xd2f2
sysimgguid=0xc00
switchguid=0xc00(c00)
Switch	36 "S-0000000000000c00"		# "spine" base port 0 lid 9 lmc 0
[1][ext 12]	"H-0000000000000b10"[1][ext 3](b11) 		# "node1 mlx5_0" lid 21 4xNDR s=4 w=2 v=4

Non-Chassis Nodes

caguid=0xb10
Ca	1 "H-0000000000000b10"		# "node1 mlx5_0" (scp)
[1](0xb11) 	"S-0x0000000000000c00"[1][ext 12]		# lid 21 lmc 0 "spine" lid 9 4xNDR s=4 w=2 v=4
)");
  ASSERT_EQ(fabric.cables.size(), 1u);
  EXPECT_EQ(fabric.cables[0], (FabricCable{{true, 0, 1}, {false, 0, 1}, kNdr, 0, 11}));
  EXPECT_EQ(fabric.adapters.at(0), (FabricAdapter{"node1", "mlx5_0", 0xb11, 0}));
  EXPECT_EQ(fabric.warnings, std::vector<std::string>{});
}

// The simulator's own files name devices freely and have no rates.
TEST(Ibnetdiscover, ReadsFilesOfIbsim) {
  const Fabric fabric = Read(R"(
Switch 8 "leaf"
[1] "node 1"[2]
[2] "spine"[1]

Hca 2 "node 1"
[2] "leaf"[1]

switchguid=0x1
Switch 8 "spine"
[1] "leaf"[2]
)");
  ASSERT_EQ(fabric.switches.size(), 2u);
  EXPECT_EQ(fabric.switches[0], (FabricSwitch{"leaf", 0}));
  ASSERT_EQ(fabric.cables.size(), 2u);
  EXPECT_EQ(fabric.cables[0], (FabricCable{{true, 0, 1}, {false, 0, 2}, 0, 0, 3}));
}

std::string Switch(std::string_view id, std::string_view name) {
  return "\nvendid=0x1\nSwitch\t36 \"S-" + std::string(id) + "\"\t\t# \"" + std::string(name) +
         "\" base port 0 lid 1 lmc 0\n";
}

// Contradictions of the file are said, with file and line.
TEST(Ibnetdiscover, WarnsOfContradictions) {
  struct Case {
    std::string text;
    size_t cables;
    std::vector<std::string> warnings;
  };
  const std::string a = Switch("a", "a");
  const std::string b = Switch("b", "b");
  const std::string c = Switch("c", "c");
  const Case cases[] = {
      {a + "[1] \"S-b\"[1] # \"b\" lid 1 4xNDR\n",
       1,
       {"net.txt:4: port 1 of 'a' is joined to port 1 of 'b', which has no line of its own"}},
      {a + "[1] \"S-b\"[1] # \"b\" lid 1 4xNDR\n" + b + "[1] \"S-a\"[1] # \"a\" lid 1 1xNDR\n",
       1,
       {"net.txt:8: port 1 of 'b' runs at 1xNDR, and its peer at 4xNDR by line 4; the slower one counts"}},
      {a + "[1] \"S-b\"[1] # \"b\" lid 1 4xNDR\n" + b + "[1] \"S-c\"[2] # \"c\" lid 1 4xNDR\n" + c +
           "[2] \"S-b\"[1] # \"b\" lid 1 4xNDR\n",
       1,
       {"net.txt:4: port 1 of 'a' is joined to port 1 of 'b', which line 8 joins to port 2 of 'c'; left "
        "out"}},
      {a + "[1] \"H-d\"[1] # \"n1\" lid 1 4xNDR\n" + b + "[1] \"H-d\"[1] # \"n1\" lid 1 4xNDR\n",
       1,
       {"net.txt:8: port 1 of 'b' is joined to port 1 of 'n1', which line 4 joins to port 1 of 'a'; left "
        "out"}},
      {a + "[1] \"H-d\"[1] # \"n1\" lid 1 4xNDR\n[1] \"H-e\"[1] # \"n2\" lid 1 4xNDR\n",
       1,
       {"net.txt:5: port 1 of 'a' differs from its line 4; the first one counts"}},
      {a + "[1] \"H-d\"[1] # \"n1\" lid 1 4xNDR\n[2] \"S-a\"[3] # \"a\" lid 1 4xNDR\n",
       1,
       {"net.txt:5: port 2 of 'a' is joined to the same device's port 3; left out"}},
      {a + "[1] \"H-d\"[1] # \"n1 HCA-1\" lid 1 4xNDR\n[2] \"H-e\"[1] # \"n1 HCA-1\" lid 1 4xNDR\n",
       2,
       {"net.txt:5: 'n1 HCA-1' is the name of a second adapter, after line 4; the hosts of that name are not "
        "known",
        "net.txt: the names of 2 adapters do not tell their hosts"}},
      {a + "[1] \"H-d\"[1] # \"n1\" lid 1 4xNDR\n[2] \"R-e\"[1] # \"r\" lid 1 4xNDR\n",
       1,
       {"net.txt: left out 1 router"}},
      {"ibwarn: [42] attached\n" + a + "[1] \"H-d\"[1] # \"n1\" lid 1 4xNDR\n",
       1,
       {"net.txt:1: 'ibwarn: [42] attached' is no line of ibnetdiscover; left out"}},
      {a + "[1] \"S-b\"[1] # \"b\" lid 1 4xNDR\n[2] \"S-b\"[2] # \"b\" lid 1 4xQDR\n" + b +
           "[1] \"S-a\"[1] # \"a\" lid 1 4xNDR\n[2] \"S-a\"[2] # \"a\" lid 1 4xQDR\n",
       2,
       {"net.txt:5: a cable of 4GB/s where cables alike have 50GB/s: taken as degraded"}},
  };
  for (const Case& c : cases) {
    const Fabric fabric = Read(c.text);
    EXPECT_EQ(fabric.cables.size(), c.cables) << c.text;
    EXPECT_EQ(fabric.warnings, c.warnings) << c.text;
  }
}

TEST(Ibnetdiscover, ListsManyLinesOnce) {
  std::string text = Switch("a", "a");
  for (int port = 1; port <= 9; ++port)
    text += "[" + std::to_string(port) + "] \"S-b\"[" + std::to_string(port) + "] # \"b\" lid 1 4xNDR\n";
  const std::vector<std::string> expected = {
      "net.txt:4: port 1 of 'a' is joined to port 1 of 'b', which has no line of its own; likewise in lines "
      "5, 6, "
      "7, 8, 9 and 3 more"};
  EXPECT_EQ(Read(text).warnings, expected);
}

TEST(Ibnetdiscover, RefusesWhatItCannotRead) {
  struct Case {
    std::string_view text, expected;
  };
  const Case cases[] = {
      {"Switch\t2 \"S-zz\"\t# \"a\"\n",
       "net.txt:1:10: device 'S-zz'; expected a GUID in hexadecimal behind its first letter"},
      {"Switch\t2 a\n", "net.txt:1:10: expected a device in quotes, such as \"S-0002c90300000001\""},
      {"Switch\tx \"S-1\"\n", "net.txt:1:8: expected the number of the device's ports"},
      {"Ca\t2 \"S-1\"\n", "net.txt:1:11: the letter of the device's GUID is not that of its kind"},
      {"[1] \"S-1\"[1]\n",
       "net.txt:1:1: a port outside of a record; expected a line of 'Switch' or 'Ca' before it"},
      {"Ca\t2 \"H-1\"\n[x] \"S-1\"[1]\n", "net.txt:2:2: expected a port, such as [1]"},
      {"Ca\t2 \"H-1\"\n[1] \"S-1\"\n",
       "net.txt:2:10: expected the port at the cable's other end, such as [1]"},
      {"SW  7 x 0xa00 4x NDR\n", "net.txt:1:7: expected a port, such as 'SW 12 1 0x0002c90300000001 4x EDR'"},
      {"SW  7 1 0xa00 4x NDR - CA 8\n",
       "net.txt:1:28: expected the port at the cable's other end and the names of both"},
      {"SW  7 1 0xa00 4x NDR - CA 8 1 0xb00 ( 'leaf )\n",
       "net.txt:1:40: expected two names, such as ( 'node1 HCA-1' - 'leaf-1' )"},
      {"caguid=0x1\nCa\t1 \"H-0000000000000001\"\t\t# \"node1\"\n",
       "net.txt: ibnetdiscover lists no cable; expected ports that name the ports at their other ends"},
  };
  for (const Case& c : cases) EXPECT_EQ(Refusal(c.text), c.expected);
}

TEST(Ibnetdiscover, IsToldByItsLines) {
  EXPECT_TRUE(IsIbnetdiscover("  switchguid=0x1(1)\n"));
  EXPECT_FALSE(IsIbnetdiscover(""));
  EXPECT_FALSE(IsIbnetdiscover("# Topology file: generated on Mon\n"));
  EXPECT_FALSE(IsIbnetdiscover("SwitchName=s1 Nodes=n[1-2]\nSwitch 8\nCA 1 2 three\n"));
  EXPECT_FALSE(IsIbnetdiscover(std::string(70'000, '\n') + "switchguid=0x1(1)\n"));
}

}  // namespace
}  // namespace xccl
