#include "pipeline/nccl/model.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/known_machines.h"
#include "runtime/nccl/tuner/table.h"
#include "topologies/load/load.h"
#include "topologies/xml/native_xml.h"

namespace xccl::nccl {
namespace {

using Kind = nccl_tuner::Collective;

Graphs Of(const char* topology) {
  const Topology machine = LoadTopology(topology).value();
  return FindGraphs(machine, MachineOfArch(machine.gpu_arch()).value_or(AmpereModel())).value();
}

std::string ChoiceOf(const Graphs& graphs, Kind collective, int64_t bytes) {
  const Estimate choice = Choice(graphs, collective, bytes);
  return std::string(ToString(choice.algorithm)) + " " + std::string(ToString(choice.protocol));
}

// As NCCL's log says of these machines: 12 channels of 20 and of 30 GB/s; 6 of 20 on V100s of a DGX-1.
TEST(NcclGraphs, AreThoseOfKnownMachines) {
  const Graphs a100 = Of("dgx-a100");
  EXPECT_EQ(a100.generation, Generation::kAmpere);
  EXPECT_TRUE(a100.nvlink);
  EXPECT_EQ(a100.ring.count, 12);
  EXPECT_EQ(a100.ring.intra_gb_per_s, 20);
  EXPECT_EQ(a100.nvls.count, 0);
  const Graphs h100 = Of("dgx-h100");
  EXPECT_EQ(h100.ring.count, 12);
  EXPECT_EQ(h100.ring.intra_gb_per_s, 30);
  EXPECT_EQ(h100.nvls.count, 16);
  EXPECT_EQ(h100.nvls.intra_gb_per_s, 20);
  const Graphs dgx1 = Of("dgx1");
  EXPECT_EQ(dgx1.generation, Generation::kVolta);
  EXPECT_EQ(dgx1.ring.count, 6);
  EXPECT_EQ(dgx1.ring.intra_gb_per_s, 20);
}

// NVLS wins where bandwidth counts on H100, rings on A100; small messages take LL.
TEST(NcclModel, ChoosesAsNcclDoes) {
  const Graphs a100 = Of("dgx-a100"), h100 = Of("dgx-h100");
  EXPECT_EQ(ChoiceOf(a100, Kind::kAllreduce, 1 << 10), "ring ll");
  EXPECT_EQ(ChoiceOf(a100, Kind::kAllreduce, 1 << 30), "ring simple");
  EXPECT_EQ(ChoiceOf(h100, Kind::kAllreduce, 1 << 30), "nvls simple");
  EXPECT_EQ(ChoiceOf(h100, Kind::kBroadcast, 1 << 10), "ring ll");
  for (const Estimate& timed : Estimates(a100, Kind::kAllgather, 1 << 20))
    EXPECT_EQ(ToString(timed.algorithm), "ring");
}

// The busbw of NCCL's rings on 8 A100s is 230 to 236 GB/s (nccl-tests); NVLS on 8 H100s reaches 480.
TEST(NcclModel, LargeMessagesReachTheBandwidthThatIsMeasured) {
  constexpr int64_t kBytes = int64_t{8} << 30;
  const double a100 = Choice(Of("dgx-a100"), Kind::kAllreduce, kBytes).us;
  EXPECT_NEAR(kBytes / a100 / 1e3 * 14 / 8, 235, 10);
  const double h100 = Choice(Of("dgx-h100"), Kind::kAllreduce, kBytes).us;
  EXPECT_NEAR(kBytes / h100 / 1e3 * 14 / 8, 480, 50);
}

TEST(NcclModel, HasSeveralHosts) {
  LoadOptions options;
  options.hosts = 4;
  const Topology machine = LoadTopology("dgx-h100", options).value();
  const Graphs graphs = FindGraphs(machine, HopperModel()).value();
  EXPECT_EQ(graphs.nodes, 4);
  EXPECT_EQ(graphs.ring.count, 8);
  EXPECT_EQ(graphs.ring.inter_gb_per_s, 45);
  EXPECT_EQ(ChoiceOf(graphs, Kind::kAllreduce, 1 << 10), "tree ll");
  EXPECT_EQ(ChoiceOf(graphs, Kind::kAllreduce, int64_t{1} << 30), "ring simple");
}

// The first host alone decided, so that NCCL was faster than the lower bound if that host had the faster NIC.
TEST(NcclGraphs, AreTheLeastOfAllHosts) {
  constexpr std::string_view kHost = R"(
    <cluster hosts="1" name="{0}">
      <full-mesh ranks="4" bandwidth="100GB/s" latency="700ns"/>
      <nic id="nic"/>
      <link from="gpu:*" to="nic" bandwidth="24GB/s" latency="500ns"/>
      <fabric id="f{0}" bandwidth="{1}" latency="1us"/>
    </cluster>)";
  std::vector<Channels> rings;
  for (const auto& [first, second] : {std::pair("100Gbit/s", "200Gbit/s"), {"200Gbit/s", "100Gbit/s"}}) {
    const std::string text = fmt::format(
        R"(<topology name="two" arch="sm80">{}{}<link from="fa" to="fb" bandwidth="400Gbit/s" latency="1us"/></topology>)",
        fmt::format(kHost, "a", first), fmt::format(kHost, "b", second));
    const StatusOr<Topology> two = ReadNativeXml(text, "two.xml");
    ASSERT_TRUE(two.ok()) << two.status().message();
    rings.push_back(FindGraphs(*two, AmpereModel()).value().ring);
  }
  EXPECT_EQ(rings[0].count, rings[1].count);
  EXPECT_EQ(rings[0].inter_gb_per_s, rings[1].inter_gb_per_s);
  EXPECT_LE(rings[0].count * rings[0].inter_gb_per_s, 12.5);
}

// A ring takes no link inside a host of one GPU. The NIC of 50 GB/s carries one channel of 45 or 40 GB/s,
// which NCCL makes two.
TEST(NcclGraphs, HaveHostsOfOneGpu) {
  const Topology machine = ReadNativeXml(R"(
      <topology name="four" arch="sm90">
        <cluster hosts="4">
          <full-mesh ranks="1" bandwidth="100GB/s" latency="700ns"/>
          <nic id="nic"/>
          <link from="gpu:*" to="nic" bandwidth="55GB/s" latency="500ns"/>
          <fabric id="f" bandwidth="400Gbit/s" latency="1us"/>
        </cluster>
      </topology>)",
                                         "four.xml")
                               .value();
  const StatusOr<Graphs> graphs = FindGraphs(machine, HopperModel());
  ASSERT_TRUE(graphs.ok()) << graphs.status().message();
  EXPECT_EQ(graphs->nodes, 4);
  EXPECT_EQ(graphs->ranks, 4);
  EXPECT_GT(graphs->ring.count, 0);
  EXPECT_LE(graphs->ring.count * graphs->ring.inter_gb_per_s, 50);
  EXPECT_EQ(ChoiceOf(*graphs, Kind::kAllreduce, int64_t{1} << 30), "ring simple");
}

std::string Refused(const char* topology) {
  return FindGraphs(LoadTopology(topology).value(), AmpereModel()).status().message();
}

TEST(NcclGraphs, SayWhatNcclCannotRun) {
  EXPECT_EQ(Refused("mi300x"), "mi300x: its GPUs are gfx942; expected sm70 or later, as NCCL's model has");
  EXPECT_EQ(Refused("ring:4"),
            "ring:4: its GPUs are not known; NCCL's model needs their architecture; hint: --gpu-arch=sm90");
  const Topology one =
      ReadNativeXml(R"(<topology name="one" arch="sm90"><gpu id="g"/></topology>)", "one.xml").value();
  EXPECT_EQ(FindGraphs(one, HopperModel()).status().message(),
            "one: one GPU; expected several, since NCCL's model is of rings and trees");
}

}  // namespace
}  // namespace xccl::nccl
