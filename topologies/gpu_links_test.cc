#include "topologies/gpu_links.h"

#include <gtest/gtest.h>

#include "topologies/load/load.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

// Whether the best path between two ranks is one of GPUs' links.
bool Joined(const std::string& machine, int32_t from, int32_t to) {
  const Topology topology = LoadTopology(machine).value();
  const NeighbourTable row = GpuNeighboursOf(topology, Rank(from));
  const Neighbour* const found = row.Find(0, Rank(to));
  if (found == nullptr) ADD_FAILURE() << machine << ": no path " << from << " -> " << to;
  return found != nullptr && GpuLinks(topology).Have(found->path);
}

TEST(GpuLinks, AreThoseThatNoCpuAndNoNicCanReach) {
  EXPECT_TRUE(Joined("full-mesh:4", 0, 3));
  EXPECT_TRUE(Joined("nvswitch:8", 0, 7));
  EXPECT_TRUE(Joined("dgx-h100", 0, 7));
  EXPECT_TRUE(Joined("gb200-nvl72", 0, 71));
  // Their GPUs also have PCIe.
  EXPECT_TRUE(Joined("p4d", 0, 1));
  EXPECT_TRUE(Joined("dgx1-full", 0, 1));
  // 0 and 5 have no NVLink to each other, and meet over CPUs.
  EXPECT_FALSE(Joined("dgx1-full", 0, 5));
  // Between hosts.
  EXPECT_TRUE(Joined("rail-2", 0, 7));
  EXPECT_FALSE(Joined("rail-2", 0, 8));
}

// GPUs 0 and 1 share a PCIe switch, 0 and 2 do not.
TEST(GpuLinks, LeaveOutPcieSwitches) {
  const Topology topology = LoadTopology("p4d").value();
  const GpuLinks links(topology);
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const LinkId link(l);
    const bool pcie = topology.LinkName(link).find("pcie") != std::string::npos;
    EXPECT_EQ(links.Have(std::span(&link, 1)), !pcie) << topology.LinkName(link);
  }
}

}  // namespace
}  // namespace xccl
