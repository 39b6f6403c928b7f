#include "cli/describe/describe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

Topology Read(std::string_view text) {
  StatusOr<Topology> topology = ReadNativeXml(text, "box.xml");
  EXPECT_TRUE(topology.ok()) << topology.status().message();
  return *std::move(topology);
}

// Has every part of a text at least once: PCIe, NVSwitch, direct links of unequal width, CPUs, NICs, a GPU
// whose id is not its rank.
constexpr std::string_view kServer = R"(<topology name="server" arch="sm80" source="a test">
  <host name="h0">
    <gpu id="0"/><gpu id="1"/><gpu id="7"/><gpu id="8"/>
    <switch id="pci-0a"/><switch id="fast" multicast="true" reduce="true"/>
    <nic id="mlx5_0"/><nic id="mlx5_1"/><cpu id="numa0"/><cpu id="numa1"/>
    <link from="0" to="1" bandwidth="25GB/s" latency="700ns"/>
    <link from="0" to="1" bandwidth="25GB/s" latency="700ns"/>
    <link from="7,8" to="fast" bandwidth="450GB/s" latency="500ns"/>
    <link from="0,1" to="pci-0a" bandwidth="24GB/s" latency="500ns"/>
    <link from="mlx5_0,mlx5_1" to="pci-0a" bandwidth="200Gbit/s" latency="0ns"/>
    <link from="pci-0a" to="numa0" bandwidth="24GB/s" latency="500ns"/>
    <link from="7,8" to="numa1" bandwidth="12GB/s" latency="500ns" overhead="1us"/>
    <link from="numa0" to="numa1" bandwidth="16GB/s" latency="500ns"/>
  </host>
</topology>)";

TEST(DescribeText, OneServer) {
  EXPECT_EQ(DescribeText(Read(kServer)), R"(server: 4 ranks on 1 host
source    a test
gpu       sm80: programs are timed by the machine model ampere
nodes     4 gpus, 2 switches, 2 nics, 2 cpus
per gpu   2 of 4: 50GB/s to gpus (2 links), 24GB/s to PCIe
          2 of 4: 450GB/s to fast, 12GB/s to cpus
hops      at most 1 transfer from rank to rank
halves    16GB/s from ranks 0..1 to ranks 2..3
links          4 links  gpu-gpu            25GB/s  700ns
               4 links  gpu-switch        450GB/s  500ns
               4 links  gpu-switch         24GB/s  500ns
               4 links  gpu-cpu            12GB/s  500ns + 1us a message
               4 links  switch-nic         25GB/s  0ns
               2 links  switch-cpu         24GB/s  500ns
               2 links  cpu-cpu            16GB/s  500ns

host h0: 4 gpus, 2 switches, 2 nics, 2 cpus
           0    1    7    8
  gpu 0    X   50  SYS  SYS
  gpu 1   50    X  SYS  SYS
  gpu 7  SYS  SYS    X   SW
  gpu 8  SYS  SYS   SW    X
    n    GB/s over direct links
    SW   through fast, 450GB/s
    SYS  through several CPUs, 12GB/s
  ranks   0 is gpu 0, 1 is gpu 1, 2 is gpu 7, 3 is gpu 8
  switch  fast: gpus 7 8 at 450GB/s; multicasts and reduces
          pci-0a: gpus 0 1 at 24GB/s; nics mlx5_0 mlx5_1 at 25GB/s; cpu numa0 at 24GB/s
  nic     mlx5_0 mlx5_1: 25GB/s, near gpus 0 1
  cpu     numa0: switch pci-0a at 24GB/s; cpu numa1 at 16GB/s
          numa1: gpus 7 8 at 12GB/s; cpu numa0 at 16GB/s
)");
}

TEST(DescribeText, AlikeHostsOnceAndTheFabric) {
  EXPECT_EQ(DescribeText(Read(R"(<topology name="pod">
  <cluster hosts="3">
    <gpu count="2"/><nic id="nic" count="2"/>
    <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s" latency="0ns"/>
    <fabric type="rails" bandwidth="400Gbit/s" latency="1us" spines="2" uplink-latency="300ns"/>
  </cluster>
</topology>)")),
            R"(pod: 6 ranks on 3 hosts
gpu       not stated, so times are of ideal links; hint: arch="sm90" in the file, or --gpu-arch=sm90
nodes     6 gpus, 4 switches, 6 nics
per gpu   50GB/s to nics
hops      at most 1 transfer from rank to rank
halves    100GB/s between hosts h0 and h1, h2
links         12 links  gpu-nic            50GB/s  0ns
               8 links  switch-switch      50GB/s  300ns
              12 links  switch-nic         50GB/s  1us

3 hosts alike, h0 to h2: 2 gpus, 2 nics each
           0    1
  gpu 0    X  NET
  gpu 1  NET    X
    NET  through NICs, 50GB/s
  nic     nic0: 50GB/s, near gpu 0
          nic1: 50GB/s, near gpu 1

fabric
  levels  2 leaves, 2 spines
  switch  rail0 to rail1 (2 alike): 3 nics at 50GB/s; 2 switches at 50GB/s
          spine0 to spine1 (2 alike): 2 switches at 50GB/s
)");
}

TEST(DescribeText, TheHintNamesAModelOfTheGpusMaker) {
  for (const auto& [arch, model] : {std::pair("sm70", "ampere"), {"gfx950", "mi300x"}})
    EXPECT_NE(
        DescribeText(Read(fmt::format(R"(<topology name="one" arch="{}"><gpu id="0"/></topology>)", arch)))
            .find(fmt::format("{}: no machine model, so times are of ideal links; hint: --machine={}\n", arch,
                              model)),
        std::string::npos);
}

TEST(DescribeText, GridsHaveNoMatrixAndAnOddOneOutIsNamed) {
  EXPECT_EQ(
      DescribeText(Read(
          R"(<topology name="torus:5x4"><torus dims="5x4" bandwidth="50GB/s" latency="500ns"/></topology>)")),
      R"(torus:5x4: 20 ranks on 1 host
gpu       not stated, so times are of ideal links; hint: arch="sm90" in the file, or --gpu-arch=sm90
nodes     20 gpus
per gpu   200GB/s to gpus (4 links)
hops      at most 4 transfers from rank to rank
halves    500GB/s from ranks 0..9 to ranks 10..19
links         80 links  gpu-gpu            50GB/s  500ns
)");
  EXPECT_EQ(
      DescribeText(Read(
          R"(<topology name="chain" arch="sm70"><host name="a"><gpu id="0"/></host><host name="b"><gpu id="0"/></host>
  <link from="a/0" to="b/0" bandwidth="1GB/s" latency="1us" duplex="false"/></topology>)")),
      R"(chain: 2 ranks on 2 hosts
gpu       sm70: no machine model, so times are of ideal links; hint: --machine=ampere
nodes     2 gpus
per gpu   1 of 2: 1GB/s to gpus; no links
          1 of 2: no links; 1GB/s from gpus
reach     rank 1 does not reach rank 0
links          1 link   gpu-gpu             1GB/s  1us

host a: 1 gpu (rank 0)

host b: 1 gpu (rank 1)
)");
}

}  // namespace
}  // namespace xccl
