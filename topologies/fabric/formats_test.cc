#include "topologies/fabric/formats.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace xccl {
namespace {

// A switch's record of ibnetdiscover, with one host at a port.
std::string Record(std::string_view host, int port, std::string_view rate = "4xNDR") {
  const std::string p = std::to_string(port);
  return "vendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0xa00\nswitchguid=0xa00(a00)\n"
         "Switch\t64 \"S-0000000000000a00\"\t\t# \"leaf1\" base port 0 lid 7 lmc 0\n[" +
         p + "]\t\"H-00000000000000b" + p + "\"[1](b" + p + ")\t\t# \"" + std::string(host) +
         " mlx5_0\" lid 2" + p + " " + std::string(rate) + "\n";
}

TEST(ReadFabric, SwitchesAndCablesOfSeveralFilesAreOne) {
  const std::vector<FabricFile> files = {
      {"a.txt", Record("a", 1)}, {"b.txt", Record("b", 2)}, {"again.txt", Record("a", 1)}};
  const Fabric fabric = ReadFabric(files).value();
  EXPECT_EQ(fabric.switches, (std::vector<FabricSwitch>{{"leaf1", 0xa00}}));
  ASSERT_EQ(fabric.adapters.size(), 2u);
  EXPECT_EQ(fabric.adapters[1].host, "b");
  ASSERT_EQ(fabric.cables.size(), 2u);
  EXPECT_EQ(fabric.cables[1].a, (FabricEnd{true, 0, 2}));
  EXPECT_EQ(fabric.cables[1].b, (FabricEnd{false, 1, 1}));
  EXPECT_EQ(fabric.cables[1].line, 0);  // no line of one file
}

TEST(ReadFabric, AnotherFormatAddsItsDomainsAlone) {
  const FabricFile wiring{"a.txt", Record("a", 1)};
  Fabric expected = ReadFabric({{wiring}}).value();
  expected.domains = {{"rack1", {"a", "b"}}};
  const FabricFile blocks{"blocks.conf", "BlockName=rack1 Nodes=a,b\nBlockSizes=2\n"};
  EXPECT_EQ(ReadFabric({{wiring, blocks}}).value(), expected);
  EXPECT_EQ(ReadFabric({{blocks, wiring}}).value(), expected);
  EXPECT_EQ(
      ReadFabric({{wiring, FabricFile{"tree.conf", "SwitchName=s Nodes=a,b\n"}}}).status().message(),
      "tree.conf: Slurm's topology.conf or topology.yaml, without NVLink domains; expected ibnetdiscover, as "
      "a.txt is");
}

TEST(ReadFabric, FormatsAreToldByTheirContents) {
  struct Case {
    std::string_view text, format;
  };
  const Case cases[] = {
      {"Switch: 0x0000000000000a00 leaf-1:\n"
       "           7    1[  ] ==( 4X         106.25 Gbps Active/  LinkUp)==>      21    1[  ] \"node1 "
       "mlx5_0\" ( )\n",
       "iblinkinfo"},
      {"SwitchName=leaf1 Nodes=gpu[001-016]\n", "Slurm"},
      {"- topology: net\n  tree:\n    switches:\n      - {switch: leaf1, nodes: \"gpu[1-2]\"}\n", "Slurm"},
      {R"({"lldp":{"interface":{"eth0":{"chassis":{"leaf-1":{"id":{"type":"mac","value":"02:00:00:00:00:01"}}},)"
       R"("port":{"id":{"type":"ifname","value":"Ethernet8"}}}}}})",
       "LLDP"},
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(IsFabric(c.text)) << c.text;
    const StatusOr<Fabric> fabric = ReadFabric({{FabricFile{"f", std::string(c.text)}}});
    EXPECT_EQ(fabric.ok() ? fabric->format : fabric.status().message(), c.format);
  }
  EXPECT_FALSE(IsFabric("<topology/>"));
  EXPECT_EQ(ReadFabric({{FabricFile{"a.txt", "hello"}}}).status().message(),
            "a.txt: no file of a fabric; expected what ibnetdiscover, iblinkinfo, lldpcli -f json or Slurm's "
            "topology.conf or topology.yaml wrote");
}

}  // namespace
}  // namespace xccl
