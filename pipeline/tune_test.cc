#include "pipeline/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ir/simulate/simulate_program.h"
#include "ir/verify/verify_program.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

// Simulates programs on a known machine.
Measure On(const MachineModel& machine, const Topology& topology) {
  return [&machine, &topology](const LoweredProgram& lowered, int64_t size_bytes) -> StatusOr<Measured> {
    EXPECT_EQ(ToStatus(VerifyProgram(lowered.program, lowered.collective, topology)).message(), "");
    XCCL_ASSIGN_OR_RETURN(const Simulation simulation,
                          SimulateProgram(lowered.program, lowered.collective, topology,
                                          {.size_bytes = size_bytes, .machine = &machine}));
    return Measured{static_cast<double>(simulation.time_ps) / 1e6};
  };
}

TEST(Tune, ServesEverySizeByWhatRanFastest) {
  const Topology topology = LoadTopology("dgx1").value();
  TuneRequest request;
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllgather;
  spec.ranks = AllRanks(8);
  request.collectives = {Collective::Create(spec).value()};
  request.sizes_bytes = {1 << 10, 1 << 16, 1 << 28};
  // Each size is served by a plan made for it, or by an equally good one, as predicted.
  const MachineModel links;
  const Tuned tuned = Tune({&topology, 1}, request, On(links, topology)).value();
  ASSERT_EQ(tuned.rows.size(), 3u);
  for (const TunedRow& row : tuned.rows) EXPECT_DOUBLE_EQ(row.measured_us, row.predicted_us);
  ASSERT_GE(tuned.entries.size(), 2u);
  EXPECT_EQ(tuned.entries.size(), tuned.plans.size());
  EXPECT_EQ(tuned.entries.front().min_bytes, 0);
  EXPECT_EQ(tuned.entries.back().max_bytes, std::nullopt);
  for (size_t e = 1; e < tuned.entries.size(); ++e)
    EXPECT_EQ(tuned.entries[e].min_bytes, *tuned.entries[e - 1].max_bytes + 1);
  EXPECT_EQ(tuned.entries.front().file, "allgather-1KiB.plan.json");
  // On a machine where all plans take the same time the first serves all sizes.
  const Tuned one = Tune({&topology, 1}, request, [](const LoweredProgram&, int64_t) -> StatusOr<Measured> {
                      return Measured{7.0, 0.02, 5};
                    }).value();
  EXPECT_EQ(one.entries.size(), 1u);
  EXPECT_EQ(one.rows[0].spread, 0.02);
  EXPECT_EQ(one.rows[0].samples, 5);
  // A run that fails makes the whole fail.
  const StatusOr<Tuned> none =
      Tune({&topology, 1}, request,
           [](const LoweredProgram&, int64_t) -> StatusOr<Measured> { return LimitReached("rank 1 died"); });
  EXPECT_EQ(none.status().message(), "rank 1 died");
}

// A broadcast or reduce for each of these roots.
std::vector<Collective> Rooted(CollectiveKind kind, int32_t ranks, const std::vector<int32_t>& roots) {
  std::vector<Collective> all;
  for (const int32_t root : roots) {
    CollectiveSpec spec;
    spec.kind = kind;
    spec.ranks = AllRanks(ranks);
    spec.root = Rank(root);
    all.push_back(Collective::Create(spec).value());
  }
  return all;
}

// Times that favour another plan at every call, by up to `share`.
Measure Noisy(const Measure& measure, double share, std::mt19937_64& random) {
  return [=, &random](const LoweredProgram& lowered, int64_t size_bytes) -> StatusOr<Measured> {
    XCCL_ASSIGN_OR_RETURN(Measured measured, measure(lowered, size_bytes));
    measured.us *= std::uniform_real_distribution<>(1 - share, 1 + share)(random);
    return measured;
  };
}

TEST(Tune, NoiseGivesAlikeRootsNoOtherEngine) {
  const Topology topology = LoadTopology("full-mesh:4").value();
  TuneRequest request;
  request.collectives = Rooted(CollectiveKind::kBroadcast, 4, {0, 1, 2, 3});
  request.sizes_bytes = {1 << 10, 1 << 16, 1 << 22};
  request.pipeline.request.limits.work_units = 1000;  // several plans suffice, which need not be good
  const MachineModel links;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Tuned tuned = Tune({&topology, 1}, request, Noisy(On(links, topology), 0.8, random)).value();
    ASSERT_EQ(tuned.rows.size(), 12u);
    std::set<std::string> files;
    for (size_t i = 0; i < tuned.rows.size(); ++i) {
      const size_t size = i % 3;
      EXPECT_EQ(tuned.rows[i].root, Rank(static_cast<int32_t>(i / 3)));
      EXPECT_EQ(tuned.rows[i].size_bytes, request.sizes_bytes[size]);
      EXPECT_EQ(tuned.rows[i].engine, tuned.rows[size].engine) << i;
    }
    for (const PlanBookEntry& entry : tuned.entries) EXPECT_TRUE(files.insert(entry.file).second);
  }
}

// The least sum decides, though the first root alone would have another plan.
TEST(Tune, SumsOverAlikeRootsDecide) {
  const Topology topology = LoadTopology("full-mesh:4").value();
  TuneRequest request;
  request.collectives = Rooted(CollectiveKind::kBroadcast, 4, {0, 1});
  request.sizes_bytes = {1 << 10, 1 << 22};
  // Plans of several messages are fast for root 1 and a little slow for root 0.
  const Measure measure = [](const LoweredProgram& lowered, int64_t) -> StatusOr<Measured> {
    const bool many = lowered.collective.num_chunks() > 1;
    const bool first = lowered.collective.spec().root == Rank(0);
    return Measured{many ? (first ? 11.0 : 1.0) : 10.0};
  };
  const Tuned tuned = Tune({&topology, 1}, request, measure).value();
  ASSERT_EQ(tuned.plans.size(), 2u);  // one for all sizes of each root
  for (const Plan& plan : tuned.plans) EXPECT_GT(plan.collective.num_chunks(), 1);
}

// Alike roots are measured side by side, size by size; unlike roots one after the other.
TEST(Tune, UnlikeRootsAreTunedAlone) {
  const Topology mesh = LoadTopology("full-mesh:4").value();
  TopologySpec spec = mesh.spec();
  spec.links[0].bandwidth_bytes_per_s /= 8;
  const Topology odd = Topology::Create(spec).value();
  TuneRequest request;
  request.collectives = Rooted(CollectiveKind::kReduce, 4, {0, 2});
  request.sizes_bytes = {1 << 10, 1 << 16};
  request.pipeline.request.limits.work_units = 1000;
  for (const bool alike : {true, false}) {
    std::vector<Rank> measured;
    const Measure measure = [&](const LoweredProgram& lowered, int64_t) -> StatusOr<Measured> {
      measured.push_back(*lowered.collective.spec().root);
      return Measured{1.0};
    };
    std::vector<size_t> done;
    request.on_collective = [&](size_t now, size_t) { done.push_back(now); };
    ASSERT_TRUE(Tune({alike ? &mesh : &odd, 1}, request, measure).ok());
    EXPECT_EQ(std::ranges::is_sorted(measured), !alike);
    EXPECT_EQ(done, (std::vector<size_t>{1, 2}));
  }
}

TEST(Tune, WithoutAModelEveryPlanIsMeasured) {
  const Topology topology = LoadTopology("full-mesh:4").value();
  TuneRequest request;
  request.collectives = Rooted(CollectiveKind::kBroadcast, 4, {0});
  request.sizes_bytes = {1 << 10, 1 << 28};
  int32_t calls = 0;
  const Measure counts = [&](const LoweredProgram&, int64_t) -> StatusOr<Measured> {
    ++calls;
    return Measured{1.0};
  };
  ASSERT_TRUE(Tune({&topology, 1}, request, counts).ok());
  EXPECT_EQ(calls, 4);
}

}  // namespace
}  // namespace xccl
