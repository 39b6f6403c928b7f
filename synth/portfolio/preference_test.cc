#include "synth/portfolio/preference.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "synth/common/synthesizer.h"
#include "synth/common/test_machines.h"
#include "synth/common/why_chosen.h"

namespace xccl {
namespace {

constexpr int64_t kSlowest = 25'000'000'000;  // bytes a second: messages below 15,000 bytes are short

PlanCosts Plan(double time_ps, int64_t messages, int32_t steps, double message_bytes = 1024,
               double between_hosts_bytes = 0) {
  return {.time_ps = time_ps,
          .link_use = {messages, message_bytes, between_hosts_bytes, kSlowest},
          .steps = steps};
}

TEST(Preference, AmongPlansAboutAsFastTheOneWithFewerMessagesThenSteps) {
  const struct {
    const char* name;
    std::vector<PlanCosts> plans;
    size_t preferred;
  } cases[] = {
      {"one", {Plan(100, 9, 9)}, 0},
      {"a fiftieth slower, a tenth of the messages", {Plan(100, 60, 3), Plan(102, 6, 3)}, 1},
      {"slower by more", {Plan(100, 60, 3), Plan(102.1, 6, 3)}, 0},
      {"as many messages in fewer steps", {Plan(100, 6, 3), Plan(101, 6, 2)}, 1},
      {"alike but for the time", {Plan(101, 6, 3), Plan(100, 6, 3)}, 1},
      {"long messages of the fastest", {Plan(100, 60, 3, 1 << 20), Plan(101, 6, 3, 1 << 24)}, 0},
      {"long messages, as fast", {Plan(100, 60, 3, 1 << 20), Plan(100, 6, 3, 1 << 24)}, 1},
      {"nothing moves", {Plan(0, 0, 0, 0)}, 0},
      {"nothing moves, over no link", {PlanCosts{}}, 0},
  };
  for (const auto& c : cases) EXPECT_EQ(Preferred(c.plans), c.preferred) << c.name;
}

TEST(Preference, WhatLeavesHostsCountsBeforeMessages) {
  EXPECT_EQ(Preferred(std::vector{Plan(100, 6, 1, 1024, 12e9), Plan(101, 60, 2, 1024, 1e9)}), 1u);
  // A tenth more is about as much.
  EXPECT_EQ(Preferred(std::vector{Plan(100, 6, 1, 1024, 1.1e9), Plan(101, 60, 2, 1024, 1e9)}), 0u);
}

// A message of 20 kB is short on a link of 50 GB/s, and long on one of 1 GB/s. Links that no plan uses
// decided: a dead end, or a fabric without traffic.
TEST(Preference, OnlyLinksThatThePlanUsesDecideWhetherItsMessagesAreShort) {
  const Topology topology = testing::MakeLine({50, 1}, {});
  for (const int32_t members : {2, 3}) {
    CollectiveSpec spec;
    spec.kind = CollectiveKind::kBroadcast;
    spec.ranks = AllRanks(members);
    spec.root = Rank(0);
    const Collective broadcast = Collective::Create(std::move(spec)).value();
    Synthesis made{.collective = broadcast, .schedule = {}, .engine = "line", .note = ""};
    made.schedule.num_chunks = 1;
    for (int32_t r = 0; r + 1 < members; ++r)
      made.schedule.Add(ChunkId(0), 1, Rank(r), Rank(r + 1), std::vector{LinkId(r)}, TransferOp::kCopy, r);
    made.simulation.emplace().time_ps = 1;
    const SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 20'000};
    EXPECT_EQ(HasShortMessages(CostsOf(made, request).link_use), members == 2) << members;
  }
}

}  // namespace
}  // namespace xccl
