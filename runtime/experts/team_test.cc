#include "runtime/experts/team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "dispatch/machines_for_tests.h"
#include "dispatch/make_plan.h"
#include "dispatch/verify.h"

namespace xccl::dispatch {
namespace {

constexpr std::chrono::seconds kPatience(60);

// Bytes that no other row has.
std::byte ByteOf(int32_t home, int32_t token, int64_t at) {
  return static_cast<std::byte>((home * 40503 + token * 9973 + at * 31) >> 2 & 0xff);
}

std::vector<Rows> RowsFor(const Routing& routing, int64_t row_bytes) {
  std::vector<Rows> rows(routing.ranks());
  for (int32_t home = 0; home < routing.ranks(); ++home)
    for (int32_t token = 0; token < routing.TokensOf(home); ++token)
      for (int64_t i = 0; i < row_bytes; ++i) rows[home].push_back(ByteOf(home, token, i));
  return rows;
}

float Read(DataType type, const std::byte* at) {
  uint16_t bits;
  float value;
  std::memcpy(&bits, at, 2);
  if (type == DataType::kHalf) return HalfToFloat(bits);
  if (type == DataType::kBfloat16) return Bfloat16ToFloat(bits);
  std::memcpy(&value, at, 4);
  return value;
}

void Append(DataType type, float value, Rows& to) {
  const uint16_t bits = type == DataType::kHalf ? FloatToHalf(value) : FloatToBfloat16(value);
  const auto* from = type == DataType::kFloat ? reinterpret_cast<const std::byte*>(&value)
                                              : reinterpret_cast<const std::byte*>(&bits);
  to.insert(to.end(), from, from + SizeOf(type));
}

// A small whole number, so that every sum of a few of them is exact in every type.
float OutputOf(int32_t home, int32_t token, int32_t expert, int64_t element) {
  return static_cast<float>((home * 7 + token * 3 + expert * 5 + element) % 4);
}

constexpr int64_t kElements = 5;

// Returns the output of a rank's experts for their entries.
Rows OutputsOf(const Received& received, int32_t rank, const Sizes& sizes, DataType type,
               float (*output)(int32_t, int32_t, int32_t, int64_t)) {
  std::map<int32_t, size_t> seen_of_row;
  for (size_t i = 0; i < received.seen.size(); ++i)
    if (received.seen.rows[i] >= 0) seen_of_row[received.seen.rows[i]] = i;
  Rows outputs;
  for (int32_t local = 0; local < sizes.local_experts(); ++local)
    for (int32_t entry = received.first_of_expert[local]; entry < received.first_of_expert[local + 1];
         ++entry) {
      const size_t i = seen_of_row.at(received.row_of_entry[entry]);
      for (int64_t e = 0; e < kElements; ++e)
        Append(
            type,
            output(received.seen.homes[i], received.seen.tokens[i], rank * sizes.local_experts() + local, e),
            outputs);
    }
  return outputs;
}

// Compares what every rank got with what the routing says, which one process can tell.
void CheckReceived(const std::vector<Received>& received, const Routing& routing, const Sizes& sizes) {
  for (int32_t rank = 0; rank < sizes.ranks; ++rank) {
    const Received& of_rank = received[rank];
    Rows rows;
    std::vector<int32_t> of_home(sizes.ranks), of_expert(sizes.local_experts());
    std::vector<std::vector<int32_t>> entries(sizes.local_experts());
    int32_t count = 0;
    for (int32_t home = 0; home < sizes.ranks; ++home)
      for (int32_t token = 0; token < routing.TokensOf(home); ++token) {
        bool needed = false;
        for (const int32_t expert : routing.ExpertsOf(routing.first_token[home] + token)) {
          if (expert < 0 || expert / sizes.local_experts() != rank) continue;
          needed = true;
          ++of_expert[expert % sizes.local_experts()];
          entries[expert % sizes.local_experts()].push_back(count);
        }
        if (!needed) continue;
        ++count;
        ++of_home[home];
        for (int64_t i = 0; i < sizes.row_bytes; ++i) rows.push_back(ByteOf(home, token, i));
      }
    ASSERT_EQ(of_rank.rows, rows) << "rank " << rank;
    EXPECT_EQ(of_rank.rows_of_home, of_home);
    EXPECT_EQ(of_rank.rows_of_expert, of_expert);
    std::vector<int32_t> all;
    for (const std::vector<int32_t>& of : entries) all.insert(all.end(), of.begin(), of.end());
    EXPECT_EQ(of_rank.row_of_entry, all);
  }
}

// Dispatches and combines once, and compares both with one process.
void RunBoth(ExpertTeam& team, const ExpertPlan& plan, const Routing& routing, DataType type) {
  const auto received = team.Dispatch(routing, RowsFor(routing, plan.sizes.row_bytes));
  ASSERT_TRUE(received.ok()) << received.status().message();
  CheckReceived(*received, routing, plan.sizes);
  std::vector<Rows> outputs;
  for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank)
    outputs.push_back(OutputsOf((*received)[rank], rank, plan.sizes, type, OutputOf));
  const auto combined = team.Combine(*received, type, kElements, outputs);
  ASSERT_TRUE(combined.ok()) << combined.status().message();
  for (int32_t home = 0; home < plan.sizes.ranks; ++home) {
    Rows expected;
    for (int32_t token = 0; token < routing.TokensOf(home); ++token)
      for (int64_t e = 0; e < kElements; ++e) {
        const int64_t t = routing.first_token[home] + token;
        float sum = 0;
        for (int32_t k = 0; k < routing.top_k; ++k)
          if (const int32_t expert = routing.ExpertsOf(t)[k]; expert >= 0)
            sum += routing.WeightOf(t, k) * OutputOf(home, token, expert, e);
        Append(type, sum, expected);
      }
    ASSERT_EQ((*combined)[home], expected) << plan.route << " home " << home;
  }
}

// Tokens of any number on each rank, some positions and some ranks empty, weights of a half or one.
Routing Drawn(const Sizes& sizes, Random& random) {
  const RoutingSource source{.kind = RoutingSource::Kind::kZipf, .exponent = random.Unit() * 2};
  const Routing whole = DrawRouting(source, sizes, random);
  Routing routing{.top_k = sizes.top_k};
  for (int32_t rank = 0; rank < sizes.ranks; ++rank) {
    const auto tokens = static_cast<int32_t>(random.Below(3) == 0 ? 0 : random.Below(sizes.max_tokens + 1));
    for (int32_t token = 0; token < tokens; ++token)
      for (int32_t k = 0; k < sizes.top_k; ++k) {
        const int32_t expert = whole.ExpertsOf(whole.first_token[rank] + token)[k];
        routing.experts.push_back(random.Below(4) == 0 ? -1 : expert);
        routing.weights.push_back(random.Below(2) == 0 ? 0.5F : 1.0F);
      }
    routing.first_token.push_back(routing.first_token.back() + tokens);
  }
  return routing;
}

ExpertPlan PlanFor(const TestMachine& machine, Aim aim, int32_t top_k, int32_t tokens) {
  const Topology topology = Read(machine);
  PlanRequest request = RequestOf(topology, tokens, std::min(top_k, 2 * topology.num_ranks()));
  request.aim = aim;
  StatusOr<ExpertPlan> plan = MakeExpertPlan(topology, request);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return *std::move(plan);
}

class EveryMachine : public ::testing::TestWithParam<TestMachine> {};
INSTANTIATE_TEST_SUITE_P(Machines, EveryMachine, ::testing::ValuesIn(TestMachines()), TestName);

TEST_P(EveryMachine, DrawnCallsAreThoseOfOneProcess) {
  Random random(11);
  for (const Aim aim : {Aim::kLatency, Aim::kThroughput})
    for (const int32_t top_k : {1, 3, 16})
      for (const Sums sums : {Sums::kHome, Sums::kOnWay}) {
        ExpertPlan plan = PlanFor(GetParam(), aim, top_k, 7);
        plan.sums = sums;
        plan.rows_per_message = aim == Aim::kLatency ? 1 : 2;
        for (Hop& hop : plan.hops) hop.slots = aim == Aim::kLatency ? 7 * top_k * plan.sizes.ranks : 1;
        ASSERT_TRUE(VerifyExpertPlan(plan).empty());
        const auto team = ExpertTeam::Create(plan, kPatience, {.connection_bytes = 0});
        ASSERT_TRUE(team.ok());
        for (const DataType type : {DataType::kFloat, DataType::kHalf, DataType::kBfloat16})
          for (int i = 0; i < 3; ++i) RunBoth(**team, plan, Drawn(plan.sizes, random), type);
      }
}

TEST_P(EveryMachine, AllTokensMayGoToOneExpertOrToNone) {
  const ExpertPlan plan = PlanFor(GetParam(), Aim::kThroughput, 1, 40);
  const auto team = ExpertTeam::Create(plan, kPatience);
  ASSERT_TRUE(team.ok());
  for (const int32_t expert : {0, plan.sizes.experts - 1, -1}) {
    Routing routing{.top_k = 1};
    for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank)
      routing.first_token.push_back(routing.first_token.back() + plan.sizes.max_tokens);
    routing.experts.assign(routing.first_token.back(), expert);
    RunBoth(**team, plan, routing, DataType::kBfloat16);
  }
}

// Values whose sums round: the order of additions shows in the bits.
float RoughOutput(int32_t home, int32_t token, int32_t expert, int64_t element) {
  return 1.0F / static_cast<float>(1 + (home * 131 + token * 29 + expert * 17 + element) % 97);
}

TEST_P(EveryMachine, EqualCallsGiveEqualBits) {
  const ExpertPlan plan = PlanFor(GetParam(), Aim::kThroughput, 4, 20);
  const auto team = ExpertTeam::Create(plan, kPatience);
  ASSERT_TRUE(team.ok());
  Random random(3);
  const Routing routing = DrawRouting({}, plan.sizes, random);
  std::vector<std::vector<Rows>> results;
  for (int i = 0; i < 5; ++i) {
    const auto received = (*team)->Dispatch(routing, RowsFor(routing, plan.sizes.row_bytes));
    ASSERT_TRUE(received.ok());
    std::vector<Rows> outputs;
    for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank)
      outputs.push_back(OutputsOf((*received)[rank], rank, plan.sizes, DataType::kBfloat16, RoughOutput));
    const auto combined = (*team)->Combine(*received, DataType::kBfloat16, kElements, outputs);
    ASSERT_TRUE(combined.ok());
    results.push_back(*combined);
  }
  for (const std::vector<Rows>& result : results) EXPECT_EQ(result, results[0]);
}

// With sums at home: own experts in the order of positions, then the rounded sums of other ranks, ascending.
TEST(Combine, AddsInTheStatedOrder) {
  ExpertPlan plan = PlanFor(TestMachines()[0], Aim::kThroughput, 6, 20);
  plan.sums = Sums::kHome;
  const auto team = ExpertTeam::Create(plan, kPatience);
  ASSERT_TRUE(team.ok());
  Random random(4);
  const Routing routing = DrawRouting({}, plan.sizes, random);
  const auto received = (*team)->Dispatch(routing, RowsFor(routing, plan.sizes.row_bytes));
  ASSERT_TRUE(received.ok());
  std::vector<Rows> outputs;
  for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank)
    outputs.push_back(OutputsOf((*received)[rank], rank, plan.sizes, DataType::kHalf, RoughOutput));
  const auto combined = (*team)->Combine(*received, DataType::kHalf, kElements, outputs);
  ASSERT_TRUE(combined.ok());
  const auto rounded = [](float value) { return HalfToFloat(FloatToHalf(value)); };
  for (int32_t home = 0; home < plan.sizes.ranks; ++home)
    for (int32_t token = 0; token < 20; ++token)
      for (int64_t e = 0; e < kElements; ++e) {
        const auto sum_of = [&](int32_t rank) {
          float sum = 0;
          for (const int32_t expert : routing.ExpertsOf(routing.first_token[home] + token))
            if (plan.sizes.RankOfExpert(expert) == rank) sum += rounded(RoughOutput(home, token, expert, e));
          return sum;
        };
        float sum = sum_of(home);
        for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank)
          if (rank != home) sum += rounded(sum_of(rank));
        EXPECT_EQ(Read(DataType::kHalf, (*combined)[home].data() + (token * kElements + e) * 2),
                  rounded(sum));
      }
}

TEST(Run, RefusalsAreSentences) {
  const ExpertPlan plan = PlanFor(TestMachines()[2], Aim::kThroughput, 1, 2);
  const auto team = ExpertTeam::Create(plan, kPatience);
  ASSERT_TRUE(team.ok());
  Random random(1);
  const Routing routing = DrawRouting({}, plan.sizes, random);
  std::vector<Rows> rows = RowsFor(routing, plan.sizes.row_bytes);
  rows[1].pop_back();
  EXPECT_EQ((*team)->Dispatch(routing, rows).status().message(), "dispatch: rank 1: 127 bytes; expected 128");
  EXPECT_EQ((*team)->Combine({}, DataType::kFp8E4m3, 1, {}).status().message(),
            "combine: f8e4m3 rows; expected float, half or bfloat16");
}

}  // namespace
}  // namespace xccl::dispatch
