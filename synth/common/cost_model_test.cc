#include "synth/common/cost_model.h"

#include <gtest/gtest.h>

#include <utility>

#include "synth/common/test_machines.h"

namespace xccl {
namespace {

TEST(CostModel, AMessageIsUsefulFromTheBytesThatItsLinkCarriesInItsTime) {
  const struct {
    int64_t bandwidth_bytes_per_s, bytes;
  } cases[] = {{1, 1}, {1'000'000'000, 600}, {25'000'000'000, 15'000}, {450'000'000'000, 270'000}};
  for (const auto& c : cases) EXPECT_EQ(LeastUsefulBytes(c.bandwidth_bytes_per_s), c.bytes);
}

TEST(CostModel, AMachineHasTheLeastOfItsLinks) {
  TopologySpec spec = testing::MakeCluster(2, 2).spec();
  for (Link& link : spec.links) link.bandwidth_bytes_per_s = 400'000'000'000;
  spec.links[1].bandwidth_bytes_per_s = 10'000'000'000;
  EXPECT_EQ(LeastUsefulBytes(Topology::Create(std::move(spec)).value()), 6'000);
}

}  // namespace
}  // namespace xccl
