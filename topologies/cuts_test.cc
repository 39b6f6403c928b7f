#include "topologies/cuts.h"

#include <gtest/gtest.h>

#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

Topology Read(std::string_view text) {
  StatusOr<Topology> topology = ReadNativeXml(text, "box.xml");
  EXPECT_TRUE(topology.ok()) << topology.status().message();
  return *std::move(topology);
}

TEST(Cuts, BetweenHalves) {
  struct Case {
    const char* name;
    const char* family;
    int64_t gb_per_s;
  };
  const std::vector<Case> cases = {
      {"two cuts of a ring", R"(<ring ranks="8" bandwidth="50GB/s"/>)", 100},
      {"both sides of each row of a torus", R"(<torus dims="4x6" bandwidth="50GB/s"/>)", 600},
      {"a dimension of two has one cable", R"(<torus dims="2x6" bandwidth="50GB/s"/>)", 300},
      {"one side of each row of a mesh", R"(<mesh dims="4x6" bandwidth="50GB/s"/>)", 300},
      {"a switch passes what its ports do", R"(<nvswitch gpus="8" bandwidth="450GB/s"/>)", 1800},
      {"all pairs", R"(<full-mesh ranks="6" bandwidth="10GB/s"/>)", 90},
      {"three hosts are cut between hosts",
       R"(<cluster hosts="3"><full-mesh ranks="2" bandwidth="90GB/s"/><nic id="n"/>
          <link from="gpu:*" to="n" bandwidth="10GB/s"/><fabric bandwidth="30GB/s"/></cluster>)",
       20},
      {"odd: the smaller half counts", R"(<nvswitch gpus="5" bandwidth="10GB/s"/>)", 20},
  };
  for (const Case& c : cases)
    EXPECT_EQ(CutBetweenHalves(Read(std::string("<topology name=\"t\">") + c.family + "</topology>")),
              c.gb_per_s * 1'000'000'000)
        << c.name;
}

TEST(Cuts, DirectionsDiffer) {
  const Topology t = Read(R"(<topology name="t"><host name="h"><gpu count="3"/>
    <link from="0" to="1" bandwidth="3GB/s" latency="0ns" duplex="false"/>
    <link from="1" to="2" bandwidth="2GB/s" latency="0ns" duplex="false"/>
    <link from="0" to="2" bandwidth="4GB/s" latency="0ns" duplex="false"/></host></topology>)");
  const std::vector<Rank> first = {Rank(0)}, last = {Rank(2)}, rest = {Rank(1), Rank(2)};
  EXPECT_EQ(MinCut(t, first, last), 6'000'000'000);
  EXPECT_EQ(MinCut(t, first, rest), 7'000'000'000);
  EXPECT_EQ(MinCut(t, last, first), 0);
}

}  // namespace
}  // namespace xccl
