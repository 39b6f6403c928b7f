// The kernels on the host, under a driver in host memory, beside the CPU ranks: the same rows, counts, lists
// and sums, bit for bit.
#include "runtime/experts/cuda/gpu_team.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "dispatch/machines_for_tests.h"
#include "dispatch/make_plan.h"
#include "dispatch/verify.h"
#include "runtime/experts/cuda/images.h"
#include "runtime/experts/cuda/measure_gpus.h"
#include "runtime/experts/cuda/on_host.h"
#include "runtime/experts/team.h"

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

// Plans of a route for an aim and a number of positions, on GPUs beside CPU ranks: every type meets each aim,
// some numbers of positions, and both ways of sums.
void RunAllKinds(const std::function<ExpertPlan(Aim aim, int32_t top_k)>& make, device::HostShape shape) {
  Random random(17);
  int32_t turn = 0;
  for (const DataType type : {DataType::kFloat, DataType::kHalf, DataType::kBfloat16}) {
    const Machine machine(type, shape);
    for (const Aim aim : {Aim::kLatency, Aim::kThroughput})
      for (const Sums sums : {Sums::kHome, Sums::kOnWay}) {
        const int32_t top_k = std::to_array({1, 2, 3, 7, 16})[turn++ % 5];
        ExpertPlan plan = make(aim, top_k);
        plan.sums = sums;
        plan.rows_per_message = aim == Aim::kLatency ? 1 : 2;
        for (Hop& hop : plan.hops) hop.slots = aim == Aim::kLatency ? 7 * top_k * plan.sizes.ranks : 1;
        ASSERT_TRUE(VerifyExpertPlan(plan).empty());
        const auto cpu = ExpertTeam::Create(plan, kPatience);
        ASSERT_TRUE(cpu.ok());
        GpuTeamOptions options;
        options.experts.workers = 1 + turn % 2;
        const auto gpu = machine.Team(plan, options);
        ASSERT_TRUE(gpu.ok()) << gpu.status().message();
        RunBoth(**gpu, **cpu, plan, Drawn(plan.sizes, random), type, random);
        if (::testing::Test::HasFailure()) return;
      }
    EXPECT_EQ(machine.fake.Leaks(), "2 contexts");  // those of `gpus`
  }
}

class EveryMachine : public ::testing::TestWithParam<TestMachine> {};
INSTANTIATE_TEST_SUITE_P(Machines, EveryMachine, ::testing::ValuesIn(TestMachines()), TestName);

TEST_P(EveryMachine, DrawnCallsHaveTheBitsOfCpuRanks) {
  RunAllKinds([](Aim aim, int32_t top_k) { return PlanFor(GetParam(), aim, top_k, 7); }, {});
}

// Hosts whose GPUs stand in pairs under PCIe switches; those of three GPUs do not begin at a power of two.
std::vector<TestMachine> MachinesWithPairs() {
  std::vector<TestMachine> machines;
  for (const auto& [name, hosts, gpus] :
       {std::tuple("pairs", 2, 4), std::tuple("odd", 3, 3), std::tuple("eight", 2, 8)}) {
    const int pairs = (gpus + 1) / 2;
    std::string xml = fmt::format(
        "<topology name='m'><cluster hosts='{}'><gpu count='{}'/><switch id='pcie' count='{}'/>"
        "<nic id='nic' count='{}'/><cpu count='1'/>",
        hosts, gpus, pairs, pairs);
    for (int pair = 0; pair < pairs; ++pair)
      xml += fmt::format("<link from='gpu:{}..{}' to='pcie{}' bandwidth='63GB/s' latency='300ns'/>", 2 * pair,
                         std::min(2 * pair + 1, gpus - 1), pair);
    machines.push_back(
        {name, xml + "<link from='nic:*' to='pcie*' pairwise='true' bandwidth='50GB/s' latency='300ns'/>"
                     "<link from='pcie*' to='cpu0' bandwidth='63GB/s' latency='300ns'/>"
                     "<fabric bandwidth='50GB/s' latency='1us'/></cluster></topology>"});
  }
  return machines;
}

// The plan whose rows enter each block of ranks once, which the planner has among those that it compares.
ExpertPlan NestedPlanFor(const TestMachine& machine, Aim aim, int32_t top_k, int32_t tokens) {
  const Topology topology = Read(machine);
  PlanRequest request = RequestOf(topology, tokens, std::min(top_k, 2 * topology.num_ranks()));
  request.aim = aim;
  const auto ground = Prepare(topology, request);
  XCCL_CHECK(ground.ok());
  auto routes = MakeAllRoutes(*ground);
  XCCL_CHECK(routes.ok());
  const auto nested = std::ranges::find(routes->plans, Entry::kNested, &ExpertPlan::entry);
  XCCL_CHECK(nested != routes->plans.end());
  return *nested;
}

class MachineWithPairs : public ::testing::TestWithParam<TestMachine> {};
INSTANTIATE_TEST_SUITE_P(Machines, MachineWithPairs, ::testing::ValuesIn(MachinesWithPairs()), TestName);

TEST_P(MachineWithPairs, NestedRowsHaveTheBitsOfCpuRanks) {
  RunAllKinds([](Aim aim, int32_t top_k) { return NestedPlanFor(GetParam(), aim, top_k, 7); }, {});
}

// One slot a connection, and every row passes all blocks of every host, or all rows go to one rank.
TEST_P(MachineWithPairs, NestedRowsOfManyRanksFitOneSlot) {
  const Machine machine(DataType::kBfloat16);
  const int32_t ranks = Read(GetParam()).num_ranks();
  ExpertPlan plan = NestedPlanFor(GetParam(), Aim::kThroughput, ranks, 5);
  plan.rows_per_message = 1;
  for (Hop& hop : plan.hops) hop.slots = 1;
  Random random(7);
  for (const Sums sums : {Sums::kHome, Sums::kOnWay}) {
    plan.sums = sums;
    ASSERT_TRUE(VerifyExpertPlan(plan).empty());
    const auto cpu = ExpertTeam::Create(plan, kPatience);
    const auto gpu = machine.Team(plan);
    ASSERT_TRUE(gpu.ok()) << gpu.status().message();
    for (const int32_t to : {-1, 0, ranks - 1}) {  // -1: to all ranks
      Routing routing{.top_k = ranks};
      for (int32_t rank = 0; rank < ranks; ++rank) {
        routing.first_token.push_back(routing.first_token.back() + plan.sizes.max_tokens);
        for (int32_t token = 0; token < plan.sizes.max_tokens; ++token)
          for (int32_t k = 0; k < ranks; ++k)
            routing.experts.push_back(to < 0 ? 2 * k + token % 2 : k == 1 ? 2 * to : -1);
      }
      RunBoth(**gpu, **cpu, plan, routing, machine.type, random);
      if (HasFailure()) return;
    }
  }
}

TEST_P(EveryMachine, AllTokensMayGoToOneExpertOrToNone) {
  const Machine machine(DataType::kBfloat16);
  const ExpertPlan plan = PlanFor(GetParam(), Aim::kThroughput, 1, 6);
  const auto cpu = ExpertTeam::Create(plan, kPatience);
  const auto gpu = machine.Team(plan);
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  Random random(5);
  for (const int32_t expert : {0, plan.sizes.experts - 1, -1}) {
    Routing routing{.top_k = 1};
    for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank)
      routing.first_token.push_back(routing.first_token.back() + plan.sizes.max_tokens);
    routing.experts.assign(routing.first_token.back(), expert);
    RunBoth(**gpu, **cpu, plan, routing, machine.type, random);
  }
}

const TestMachine kOneHost = TestMachines().back();
constexpr device::HostShape kTwoWarps = {4, 2};  // the fewest that show races between warps and within one

// A launch that is captured once serves all choices after it: the host computes nothing from them.
TEST(Graph, ReplaysHundredNewRoutings) {
  const Machine machine(DataType::kBfloat16);
  const ExpertPlan plan = PlanFor(kOneHost, Aim::kLatency, 4, 8);
  const auto cpu = ExpertTeam::Create(plan, kPatience);
  const auto gpu = machine.Team(plan, {.experts = {}, .graph = true, .wide_experts = true});
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  Random random(23);
  for (int i = 0; i < 100 && !::testing::Test::HasFailure(); ++i)
    RunBoth(**gpu, **cpu, plan, Drawn(plan.sizes, random), machine.type, random);
}

TEST(Threads, SeveralOfABlockGiveTheSameBits) {
  const Machine machine(DataType::kHalf, kTwoWarps);
  for (const ExpertPlan& plan :
       {PlanFor(TestMachines()[2], Aim::kThroughput, 5, 9), PlanFor(kOneHost, Aim::kThroughput, 5, 9),
        NestedPlanFor(MachinesWithPairs()[1], Aim::kThroughput, 5, 6)}) {
    const auto cpu = ExpertTeam::Create(plan, kPatience);
    const auto gpu = machine.Team(plan);
    ASSERT_TRUE(gpu.ok()) << gpu.status().message();
    Random random(29);
    for (int i = 0; i < 2; ++i) RunBoth(**gpu, **cpu, plan, Drawn(plan.sizes, random), machine.type, random);
  }
}

// Launches alone: nothing is copied, allocated or waited for by the host in between.
TEST(Launch, HostWaitsForNothing) {
  Machine machine(DataType::kFloat, {}, 1);
  const ExpertPlan plan = PlanFor(kOneHost, Aim::kLatency, 2, 4);
  std::vector<LocalExpertRank> ranks;
  for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank) ranks.push_back({rank, machine.gpus[0]});
  const auto experts =
      GpuExperts::Connect("plan", plan, FakeImage, ranks, AloneExchange(),
                          {.types = {DataType::kFloat}, .time_limit = kPatience, .host_of = {}});
  ASSERT_TRUE(experts.ok()) << experts.status().message();
  std::vector<GpuHandle> handles;
  std::vector<cuda::OwnedStream> streams;
  std::vector<std::span<int32_t>> words;
  std::vector<std::span<char>> bytes;
  for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank) {
    handles.push_back(*(*experts)->MakeHandle(rank, /*host_counts=*/false));
    streams.push_back(*CreateStream(machine.gpus[0]));
    words.push_back(machine.fake.Allocate<int32_t>(64));
    words.back()[0] = 4;  // tokens; the choices behind them are all expert 0 and 1
    for (size_t i = 0; i < 8; ++i) words.back()[16 + i] = static_cast<int32_t>(i % 2);
    bytes.push_back(machine.fake.Allocate<char>(1 << 16));
  }
  const int64_t waits = machine.fake.host_waits(), calls = machine.fake.calls();
  const auto ranks_of_plan = static_cast<size_t>(plan.sizes.ranks);
  for (size_t r = 0; r < ranks_of_plan; ++r) {
    const auto rank = static_cast<int32_t>(r);
    const GpuDispatch dispatch{.tokens = words[r].data(),
                               .experts = words[r].data() + 16,
                               .weights = nullptr,
                               .row_bytes = plan.sizes.row_bytes,
                               .rows = bytes[r].data(),
                               .received = bytes[r].data() + 4096};
    ASSERT_TRUE((*experts)->Dispatch(rank, handles[r], dispatch, streams[r].get()).ok());
    const GpuCombine combine{.outputs = bytes[r].data() + 16384,
                             .result = bytes[r].data() + 32768,
                             .type = DataType::kFloat,
                             .elements = 4};
    ASSERT_TRUE((*experts)->Combine(rank, handles[r], combine, streams[r].get()).ok());
  }
  EXPECT_EQ(machine.fake.host_waits(), waits);
  // A context pushed, a launch, the context popped.
  EXPECT_EQ(machine.fake.calls() - calls, 2 * 3 * plan.sizes.ranks);
  for (const cuda::OwnedStream& stream : streams) EXPECT_TRUE(Synchronize(stream).ok());
  EXPECT_EQ(*handles[0].tables().rows, 4 * plan.sizes.ranks);
  EXPECT_EQ(*handles[1].tables().rows, 0);
}

TEST(Measure, DrawnCallsAreThoseOfThreads) {
  const Machine machine(DataType::kBfloat16);
  const ExpertPlan plan = PlanFor(kOneHost, Aim::kThroughput, 3, 5);
  GpuMeasureOptions options;
  options.tokens = 4;
  options.calls = 3;
  options.ranks_per_gpu = 2;
  options.team = {.experts = {.time_limit = kPatience, .host_of = {}}, .graph = true};
  std::vector<GpuMeasured> calls;
  const auto keep = [&](const GpuMeasured& call) {
    calls.push_back(call);
    return OkStatus();
  };
  const Status measured = MeasureOnGpus(plan, FakeImage, machine.fake.table(), options, keep);
  ASSERT_TRUE(measured.ok()) << measured.message();
  ASSERT_EQ(calls.size(), 6U);
  for (const GpuMeasured& call : calls) {
    EXPECT_EQ(call.wrong, 0);
    EXPECT_GT(call.time_us, 0);
    EXPECT_GT(call.logical_bytes, 0);
  }
  options.ranks_per_gpu = 1;
  EXPECT_EQ(MeasureOnGpus(plan, FakeImage, machine.fake.table(), options, keep).message(),
            "cuda: 4 ranks on 2 devices, 1 on each; hint: --ranks-per-gpu 2");
}

TEST(Refusals, AreSentences) {
  const ExpertPlan plan = PlanFor(kOneHost, Aim::kLatency, 2, 4);
  Machine machine(DataType::kBfloat16);
  const auto message = [&](const GpuExpertOptions& options) {
    return machine.Team(plan, {.experts = options, .graph = false}).status().message();
  };
  EXPECT_EQ(
      message({.host_of = {0, 0, 1, 1}}),
      "direct: ranks 0 and 2 are on different hosts; expected one host: rows between hosts need a proxy "
      "that sends messages of dispatch, and collectives alone have one; hint: a communicator on the CPU");
  EXPECT_EQ(message({.memory_limit = 1 << 10, .host_of = {}}).substr(0, 26), "direct: rank 0: slots need");
  EXPECT_EQ(
      message({.workers = 200, .host_of = {}}),
      "direct: 800 blocks need 400 multiprocessors at once; device 0 has 132, and other communicators of "
      "this process hold 0; hint: --max-ctas");
  const auto team = machine.Team(plan);
  ASSERT_TRUE(team.ok());
  Random random(1);
  const Routing routing = DrawRouting({}, plan.sizes, random);
  const auto received = (*team)->Dispatch(routing, DrawnRows(routing, plan.sizes.row_bytes, random));
  ASSERT_TRUE(received.ok());
  std::vector<Rows> outputs;
  for (const Received& of : *received) outputs.push_back(Rows(of.row_of_entry.size() * 6));
  EXPECT_EQ((*team)->Combine(*received, DataType::kBfloat16, 3, outputs).status().message(),
            "direct: combine: rows of 6 bytes; expected a multiple of 16, at most 128");
  outputs.clear();
  for (const Received& of : *received) outputs.push_back(Rows(of.row_of_entry.size() * 16));
  EXPECT_EQ((*team)->Combine(*received, DataType::kHalf, 8, outputs).status().message(),
            "direct: combine: half rows; expected one of the types that were connected");
}

// The router's numbers are on the device, so the kernel is the first to see a wrong one. The others leave.
// int64_t that is right in its lower half is wrong, too.
TEST(Refusals, WrongExpertEndsTheCallOfAllRanks) {
  const ExpertPlan plan = PlanFor(kOneHost, Aim::kLatency, 2, 4);
  Machine machine(DataType::kBfloat16, {}, 1);
  std::vector<LocalExpertRank> ranks;
  for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank) ranks.push_back({rank, machine.gpus[0]});
  struct Case {
    int32_t tokens;
    bool wide;
    int32_t low, high;  // halves of the expert's number, or two experts
    std::string text;
  };
  for (const auto& [tokens, wide, low, high, text] :
       {Case{1, false, 8, 0, "token 0: expert 8; expected -1 to 7"},
        Case{1, true, 8, 0, "token 0: expert 8; expected -1 to 7"},
        Case{1, true, 8, 1, "token 0: expert 4294967304; expected -1 to 7"},
        Case{1, false, 5, 5, "token 0: expert 5 twice; expected each at most once"},
        Case{5, false, 8, 0, "5 tokens; expected 0 to 4"}}) {
    const auto experts =
        GpuExperts::Connect("plan", plan, FakeImage, ranks, AloneExchange(), {.host_of = {}});
    ASSERT_TRUE(experts.ok());
    std::vector<GpuHandle> handles;
    std::vector<cuda::OwnedStream> streams;
    for (const int32_t rank : {0, 1, 3, 2}) {  // the others are queued before it is found
      const std::span<int32_t> words = machine.fake.Allocate<int32_t>(64);
      const std::span<char> bytes = machine.fake.Allocate<char>(1 << 14);
      words[0] = rank == 2 ? tokens : 0;
      words[16] = low;
      words[17] = high;
      handles.push_back(*(*experts)->MakeHandle(rank, /*host_counts=*/false));
      streams.push_back(*CreateStream(machine.gpus[0]));
      ASSERT_TRUE((*experts)
                      ->Dispatch(rank, handles.back(),
                                 {.tokens = words.data(),
                                  .experts = words.data() + 16,
                                  .wide_experts = wide,
                                  .weights = nullptr,
                                  .row_bytes = plan.sizes.row_bytes,
                                  .rows = bytes.data(),
                                  .received = bytes.data() + 4096},
                                 streams.back().get())
                      .ok());
    }
    while ((*experts)->Failure().ok()) std::this_thread::yield();
    (*experts)->Abort();
    for (const cuda::OwnedStream& stream : streams) EXPECT_TRUE(Synchronize(stream).ok());
    EXPECT_EQ((*experts)->Failure().message(), "plan: rank 2: " + text);
  }
}

TEST(Refusals, EveryCallOfTheDriverMayFail) {
  const ExpertPlan plan = PlanFor(kOneHost, Aim::kLatency, 2, 4);
  Machine machine(DataType::kBfloat16);
  for (int64_t call = 0;; call += 7) {
    const int64_t before = machine.fake.calls();
    machine.fake.FailCall(before + call, cuda::Result::kOutOfMemory);
    const auto team = machine.Team(plan);
    const bool ended = machine.fake.calls() <= before + call;
    if (team.ok() && ended) break;
  }
  machine.fake.FailCall(-1, cuda::Result::kSuccess);
  EXPECT_EQ(machine.fake.Leaks(), "2 contexts");
}

// 450 GB/s for 2 us there and back are 900 KB; a block of 256 threads has 16 KiB in flight.
TEST(Workers, FillTheLinks) {
  const ExpertPlan plan = PlanFor(TestMachines()[0], Aim::kThroughput, 2, 400);
  EXPECT_EQ(ChooseWorkers(plan), 16);
  EXPECT_EQ(ChooseWorkers(PlanFor(kOneHost, Aim::kThroughput, 2, 3)), 3);
}

// A rank has 32 threadblocks at most, and one of each role at least.
TEST(Workers, FitTheLimitOfCtas) {
  const ExpertPlan plan = PlanFor(TestMachines()[0], Aim::kThroughput, 2, 400);
  const auto roles = static_cast<int32_t>(plan.stage_of_depth.size()) + 1;
  ASSERT_GT(roles * ChooseWorkers(plan), 32);
  const Machine machine(DataType::kBfloat16, {}, plan.sizes.ranks);  // a device for each rank
  const auto workers = [&](std::optional<int32_t> max_ctas) -> StatusOr<int32_t> {
    XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<GpuTeam> team,
                          machine.Team(plan, {.experts = {.max_ctas = max_ctas, .host_of = {}}}));
    EXPECT_EQ(team->experts().dispatch_blocks(), team->experts().shape().workers * roles);
    return team->experts().shape().workers;
  };
  EXPECT_EQ(*workers({}), 32 / roles);
  EXPECT_EQ(*workers(1000), ChooseWorkers(plan));
  EXPECT_EQ(*workers(2 * roles + 1), 2);
  EXPECT_EQ(workers(roles - 1).status().message(),
            fmt::format("{}: {} CTAs on a rank; --max-ctas allows {}", plan.route, roles, roles - 1));
}

TEST(Compile, EveryTypeAndArchitecture) {
  const auto nvrtc = cuda::LoadNvrtc();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const std::pair<DataType, int32_t> cases[] = {
      {DataType::kFloat, 80}, {DataType::kHalf, 90}, {DataType::kBfloat16, 100}};
  for (const auto& [type, arch] : cases) {
    const auto cubin = cuda::CompileToCubin(**nvrtc, ExpertKernelRequest(type, arch));
    ASSERT_TRUE(cubin.ok()) << cubin.status().message();
    EXPECT_NE(cubin->find("xccl_kernel_info"), std::string::npos);
  }
}

}  // namespace
}  // namespace xccl::dispatch
