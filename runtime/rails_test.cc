#include "runtime/rails.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

constexpr const char* kTwoRails = R"(<topology name="t">
  <cluster hosts="2">
    <gpu count="2"/>
    <nic count="2"/>
    <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="25GB/s"/>
    <link from="gpu:0" to="gpu:1" bandwidth="300GB/s"/>
    <fabric type="rails" bandwidth="25GB/s" latency="1us" spines="1"/>
  </cluster>
</topology>)";

LinkId LinkFrom(const Topology& topology, const std::string& from, const std::string& to) {
  for (int32_t l = 0; l < topology.num_links(); ++l)
    if (topology.LinkName(LinkId(l)) == from + "->" + to) return LinkId(l);
  ADD_FAILURE() << "no link from " << from << " to " << to;
  return LinkId(0);
}

Connection Through(const Topology& topology, Rank src, Rank dst, int32_t channel,
                   std::initializer_list<const char*> nodes) {
  Connection made{src, dst, channel, {}};
  for (const char* const* at = nodes.begin(); at + 1 < nodes.end(); ++at)
    made.path.push_back(LinkFrom(topology, at[0], at[1]));
  return made;
}

TEST(Rails, AreTheNicsOnThePath) {
  const StatusOr<Topology> read = ReadNativeXml(kTwoRails, "t.xml");
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Topology& t = *read;
  Program program;
  program.connections = {
      Through(t, Rank(0), Rank(1), 0, {"h0/0", "h0/1"}),
      Through(t, Rank(0), Rank(2), 0, {"h0/0", "h0/nic0", "rail0", "h1/nic0", "h1/0"}),
      Through(t, Rank(1), Rank(3), 0, {"h0/1", "h0/nic1", "rail1", "h1/nic1", "h1/1"}),
      Through(t, Rank(1), Rank(2), 0, {"h0/1", "h0/nic1", "rail1", "spine0", "rail0", "h1/nic0", "h1/0"}),
  };
  const std::vector<Rails> rails = RailsOf(program, t);
  EXPECT_EQ(rails, (std::vector<Rails>{{0, 0}, {0, 0}, {1, 1}, {1, 0}}));
  // A wiring is sorted, and may have other programs' connections.
  Wiring wiring;
  wiring.ranks = 4;
  wiring.connections = {{Rank(0), Rank(1), 0},
                        {Rank(0), Rank(2), 0},
                        {Rank(1), Rank(2), 0},
                        {Rank(1), Rank(3), 0},
                        {Rank(3), Rank(0), 1}};
  SetRails(program, rails, wiring);
  EXPECT_EQ(wiring.rails, (std::vector<Rails>{{0, 0}, {0, 0}, {1, 0}, {1, 1}, {0, 0}}));
}

}  // namespace
}  // namespace xccl
