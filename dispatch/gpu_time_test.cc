#include "dispatch/gpu_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/units.h"
#include "dispatch/machines_for_tests.h"
#include "dispatch/predict.h"
#include "ir/known_machines.h"

namespace xccl::dispatch {
namespace {

class GpuTime : public testing::Test {
 protected:
  GpuTime() : model_(HopperModel()) {
    const Topology topology = Read(TestMachines()[0]);
    PlanRequest request = RequestOf(topology, 512, 4);
    request.sizes.row_bytes = 4096;
    const StatusOr<Groundwork> ground = Prepare(topology, request);
    EXPECT_TRUE(ground.ok());
    StatusOr<ExpertPlan> made = DeepEpPlan(*ground);
    EXPECT_TRUE(made.ok());
    plan_.emplace(OnMachine(*std::move(made), model_));
    Random random(1);
    const Needs needs = NeedsOf(DrawRouting({}, plan_->sizes, random), plan_->sizes);
    rows_ = RowsOfHops(*plan_, HopIndex(*plan_), needs, Call::kDispatch);
  }

  int64_t Time(std::optional<int32_t> blocks) const {
    return GpuTimePs(*plan_, Call::kDispatch, rows_, model_, blocks);
  }

  MachineModel model_;
  std::optional<ExpertPlan> plan_;
  std::vector<int64_t> rows_;
};

TEST_F(GpuTime, LinksAreAsFastAsTheyGetAndNicsTakeTime) {
  int64_t nvlink = 0, nic = 0, nic_latency = 0;
  for (const Link& link : plan_->topology.spec().links) {
    const auto kind = [&](NodeId node) { return plan_->topology.node(node).kind; };
    if (kind(link.from) == NodeKind::kGpu && kind(link.to) == NodeKind::kSwitch)
      nvlink = link.bandwidth_bytes_per_s;
    if (kind(link.from) != NodeKind::kGpu || kind(link.to) != NodeKind::kNic) continue;
    nic = link.bandwidth_bytes_per_s;
    nic_latency = link.latency_ps;
  }
  EXPECT_EQ(nvlink, model_.nvlink_bytes_per_s);  // of 450 GB/s
  EXPECT_EQ(nic, 48'500'000'000);                // of 50 GB/s
  EXPECT_EQ(nic_latency, model_.nic_hop_ps / 2);
}

TEST_F(GpuTime, AddsLaunchAndMessagesToTheLinks) {
  const ProtocolCost& cost = model_.CostOf(Protocol::kSimple);
  const int64_t links = Predictor(*plan_, Call::kDispatch).TimePs(rows_);
  EXPECT_EQ(Time({}), model_.launch_ps + links + 2 * (2 * cost.message_ps + cost.hop_ps));  // two stages
  plan_->aim = Aim::kLatency;
  EXPECT_GT(Time({}), model_.launch_ps + links + 2 * (2 * cost.message_ps + cost.hop_ps));
}

TEST_F(GpuTime, FewThreadblocksBoundIt) {
  EXPECT_EQ(Time(1000), Time({}));
  EXPECT_GT(Time(1), Time({}));
  EXPECT_GT(Time(1), Time(2));
}

TEST_F(GpuTime, NothingToMoveTakesALaunch) {
  std::ranges::fill(rows_, 0);
  EXPECT_EQ(Time(8), model_.launch_ps);
}

}  // namespace
}  // namespace xccl::dispatch
