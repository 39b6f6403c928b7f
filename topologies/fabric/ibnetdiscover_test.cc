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

TEST(Ibnetdiscover, RefusesWhatItCannotRead) {
  EXPECT_EQ(Refusal("Switch\t2 \"S-zz\"\t# \"a\"\n"),
            "net.txt:1:10: device 'S-zz'; expected a GUID in hexadecimal behind its first letter");
  EXPECT_EQ(Refusal("caguid=0x1\nCa\t1 \"H-0000000000000001\"\t\t# \"node1\"\n"),
            "net.txt: ibnetdiscover lists no cable; expected ports that name the ports at their other ends");
}

}  // namespace
}  // namespace xccl
