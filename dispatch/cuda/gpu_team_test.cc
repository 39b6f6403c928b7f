// The kernels on the host, under a driver in host memory, beside the CPU ranks: the same rows, counts, lists
// and sums, bit for bit.
#include "dispatch/cuda/gpu_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "dispatch/cuda/images.h"
#include "dispatch/cuda/on_host.h"
#include "dispatch/machines_for_tests.h"
#include "dispatch/make_plan.h"
#include "dispatch/run.h"
#include "dispatch/verify.h"

namespace xccl::dispatch {
namespace {

constexpr std::chrono::seconds kPatience(60);

StatusOr<std::string> FakeImage(DataType, int32_t) { return std::string("fake"); }

// Ranks on two devices, whose kernels reach what they were given access to and nothing else.
struct Machine {
  explicit Machine(DataType type, device::HostShape shape = {}, int32_t devices = 2)
      : fake({.devices = devices}), type(type) {
    AddExpertKernel(fake, type, shape);
    for (int32_t device = 0; device < devices; ++device)
      gpus.push_back(*cuda::Gpu::Open(fake.table(), device));
  }
  StatusOr<std::unique_ptr<GpuTeam>> Team(const ExpertPlan& plan, GpuTeamOptions options = {}) const {
    options.experts.types = {type};
    if (options.experts.time_limit.count() == 0) options.experts.time_limit = kPatience;
    std::vector<std::shared_ptr<const cuda::Gpu>> of_rank;
    for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank) of_rank.push_back(gpus[rank % gpus.size()]);
    return GpuTeam::Create(plan, FakeImage, std::move(of_rank), options);
  }

  cuda::FakeDriver fake;
  DataType type;
  std::vector<std::shared_ptr<const cuda::Gpu>> gpus;
};

ExpertPlan PlanFor(const TestMachine& machine, Aim aim, int32_t top_k, int32_t tokens) {
  const Topology topology = Read(machine);
  PlanRequest request = RequestOf(topology, tokens, std::min(top_k, 2 * topology.num_ranks()));
  request.aim = aim;
  StatusOr<ExpertPlan> plan = MakeExpertPlan(topology, request);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return *std::move(plan);
}

// Tokens of any number on each rank, some positions and some ranks empty, weights whose products round.
Routing Drawn(const Sizes& sizes, Random& random) {
  RoutingSource source;
  if (random.Below(2) == 0)
    source = {.kind = RoutingSource::Kind::kZipf, .exponent = random.Unit() * 2, .file = {}, .of_file = {}};
  const Routing whole = DrawRouting(source, sizes, random);
  const uint64_t none = random.Below(8) == 0 ? 1 : 5;  // one in so many positions has no expert
  Routing routing{.top_k = sizes.top_k};
  for (int32_t rank = 0; rank < sizes.ranks; ++rank) {
    const auto tokens = static_cast<int32_t>(random.Below(3) == 0 ? 0 : random.Below(sizes.max_tokens + 1));
    for (int32_t token = 0; token < tokens; ++token)
      for (int32_t k = 0; k < sizes.top_k; ++k) {
        const int32_t expert = whole.ExpertsOf(whole.first_token[rank] + token)[k];
        routing.experts.push_back(random.Below(none) == 0 ? -1 : expert);
        routing.weights.push_back(static_cast<float>(random.Unit()));
      }
    routing.first_token.push_back(routing.first_token.back() + tokens);
  }
  return routing;
}

std::vector<Rows> DrawnRows(const Routing& routing, int64_t row_bytes, Random& random) {
  std::vector<Rows> rows(routing.ranks());
  for (int32_t rank = 0; rank < routing.ranks(); ++rank)
    for (int64_t i = 0; i < routing.TokensOf(rank) * row_bytes; ++i)
      rows[rank].push_back(static_cast<std::byte>(random.Below(256)));
  return rows;
}

// Values whose sums round, so the order of additions shows in the bits.
Rows DrawnOutputs(size_t values, DataType type, Random& random) {
  Rows rows;
  for (size_t i = 0; i < values; ++i) {
    const auto value = static_cast<float>(random.Unit() * 4 - 2);
    const uint16_t narrow = type == DataType::kHalf ? FloatToHalf(value) : FloatToBfloat16(value);
    const auto* from = type == DataType::kFloat ? reinterpret_cast<const std::byte*>(&value)
                                                : reinterpret_cast<const std::byte*>(&narrow);
    rows.insert(rows.end(), from, from + SizeOf(type));
  }
  return rows;
}

void ExpectEqual(const Received& gpu, const Received& cpu) {
  EXPECT_EQ(gpu.rows, cpu.rows);
  EXPECT_EQ(gpu.rows_of_home, cpu.rows_of_home);
  EXPECT_EQ(gpu.rows_of_expert, cpu.rows_of_expert);
  EXPECT_EQ(gpu.first_of_expert, cpu.first_of_expert);
  EXPECT_EQ(gpu.row_of_entry, cpu.row_of_entry);
  EXPECT_EQ(gpu.weight_of_entry, cpu.weight_of_entry);
  EXPECT_EQ(gpu.seen.homes, cpu.seen.homes);
  EXPECT_EQ(gpu.seen.tokens, cpu.seen.tokens);
  EXPECT_EQ(gpu.seen.experts, cpu.seen.experts);
  EXPECT_EQ(gpu.seen.weights, cpu.seen.weights);
  EXPECT_EQ(gpu.seen.rows, cpu.seen.rows);
}

// One dispatch and one combine on both.
void RunBoth(GpuTeam& gpu, ExpertTeam& cpu, const ExpertPlan& plan, const Routing& routing, DataType type,
             Random& random) {
  const std::vector<Rows> rows = DrawnRows(routing, plan.sizes.row_bytes, random);
  const auto expected = cpu.Dispatch(routing, rows);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const auto received = gpu.Dispatch(routing, rows);
  ASSERT_TRUE(received.ok()) << received.status().message();
  for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank) {
    SCOPED_TRACE(rank);
    ExpectEqual((*received)[rank], (*expected)[rank]);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_TRUE(gpu.host_counts_agree());
  const int64_t elements = 16 * static_cast<int64_t>(1 + random.Below(2)) / SizeOf(type);
  std::vector<Rows> outputs;
  for (const Received& of_rank : *expected)
    outputs.push_back(
        DrawnOutputs(of_rank.row_of_entry.size() * static_cast<size_t>(elements), type, random));
  const auto sums = cpu.Combine(*expected, type, elements, outputs);
  ASSERT_TRUE(sums.ok()) << sums.status().message();
  const auto combined = gpu.Combine(*received, type, elements, outputs);
  ASSERT_TRUE(combined.ok()) << combined.status().message();
  EXPECT_EQ(*combined, *sums);
}

class EveryMachine : public ::testing::TestWithParam<TestMachine> {};
INSTANTIATE_TEST_SUITE_P(Machines, EveryMachine, ::testing::ValuesIn(TestMachines()), TestName);

TEST_P(EveryMachine, DrawnCallsHaveTheBitsOfCpuRanks) {
  Random random(17);
  for (const DataType type : {DataType::kFloat, DataType::kHalf, DataType::kBfloat16}) {
    const Machine machine(type);
    for (const Aim aim : {Aim::kLatency, Aim::kThroughput})
      for (const int32_t top_k : {1, 3, 16})
        for (const Sums sums : {Sums::kHome, Sums::kOnWay}) {
          ExpertPlan plan = PlanFor(GetParam(), aim, top_k, 7);
          plan.sums = sums;
          plan.rows_per_message = aim == Aim::kLatency ? 1 : 2;
          for (Hop& hop : plan.hops) hop.slots = aim == Aim::kLatency ? 7 * top_k * plan.sizes.ranks : 1;
          ASSERT_TRUE(VerifyExpertPlan(plan).empty());
          const auto cpu = ExpertTeam::Create(plan, kPatience);
          ASSERT_TRUE(cpu.ok());
          GpuTeamOptions options;
          options.experts.workers = static_cast<int32_t>(1 + random.Below(2));
          const auto gpu = machine.Team(plan, options);
          ASSERT_TRUE(gpu.ok()) << gpu.status().message();
          for (int i = 0; i < 2; ++i) RunBoth(**gpu, **cpu, plan, Drawn(plan.sizes, random), type, random);
          if (HasFailure()) return;
        }
    EXPECT_EQ(machine.fake.Leaks(), "2 contexts");  // those of `gpus`
  }
}

}  // namespace
}  // namespace xccl::dispatch
