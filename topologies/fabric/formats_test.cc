#include "topologies/fabric/formats.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xccl {
namespace {

// What one host's file tells: its adapter at a port of leaf1.
Fabric OneHost(const std::string& host, int32_t port) {
  Fabric fabric;
  fabric.format = "a format";
  fabric.switches = {{"leaf1", 7}};
  fabric.adapters = {{host, "eth0", 0, 0}};
  fabric.cables = {{{false, 0, 0}, {true, 0, port}, 25, 0, 3}};
  return fabric;
}

TEST(MergeFabrics, SwitchesAndCablesOfSeveralFilesAreOne) {
  Fabric second = OneHost("b", 2);
  second.cables.push_back({{true, 0, 1}, {false, 1, 0}, 25, 0, 9});  // the other end's view
  second.adapters.push_back({"a", "eth0", 0, 0});
  second.cables[0].full_bandwidth_bytes_per_s = 50;
  const std::vector<FabricOfFile> files = {{"a.json", OneHost("a", 1)}, {"b.json", second}};
  Fabric expected = OneHost("a", 1);
  expected.adapters.push_back({"b", "eth0", 0, 0});
  expected.cables = {{{false, 0, 0}, {true, 0, 1}, 25, 0, 0}, {{false, 1, 0}, {true, 0, 2}, 25, 0, 0}};
  expected.warnings = {"b.json:3: damage: b eth0 to leaf1 port 2 runs at 25B/s of 50B/s"};
  EXPECT_EQ(MergeFabrics(files).value(), expected);
}

TEST(MergeFabrics, AnotherFormatAddsDomainsAlone) {
  Fabric blocks;
  blocks.format = "Slurm topology";
  blocks.switches = {{"all", 0}};
  blocks.domains = {{"rack1", {"a", "b"}}};
  const Fabric wiring = OneHost("a", 1);
  Fabric expected = OneHost("a", 1);
  expected.cables[0].line = 0;
  expected.domains = blocks.domains;
  EXPECT_EQ(MergeFabrics(std::vector<FabricOfFile>{{"a.json", wiring}, {"blocks.conf", blocks}}).value(),
            expected);
  blocks.domains.clear();
  EXPECT_EQ(
      MergeFabrics(std::vector<FabricOfFile>{{"a.json", wiring}, {"tree.conf", blocks}}).status().message(),
      "tree.conf: Slurm topology without domains of NVLink; expected a format, as a.json is");
}

TEST(FabricFormats, AreToldByTheirContents) {
  EXPECT_EQ(FabricFormatOf("vendid=0x2c9\nswitchguid=0xa00(a00)\nSwitch\t2 \"S-0000000000000a00\"\t# \"a\"\n")
                ->name,
            "ibnetdiscover");
  EXPECT_EQ(FabricFormatOf("<topology/>"), nullptr);
}

}  // namespace
}  // namespace xccl
