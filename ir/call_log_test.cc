#include "ir/call_log.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

CallLog Sample() {
  CountedCalls allreduce{.collective = CollectiveKind::kAllreduce,
                         .size_bytes = 1 << 20,
                         .type = DataType::kBfloat16,
                         .op = ReduceOp::kAvg,
                         .root = {},
                         .served_by = "ar.plan.json",
                         .calls = 12,
                         .timed = 12,
                         .time_ps = 3'456'000'000};
  CountedCalls reduce{.collective = CollectiveKind::kReduce,
                      .size_bytes = 64,
                      .type = DataType::kFloat,
                      .op = {},
                      .root = Rank(1),
                      .served_by = "NCCL",
                      .calls = 1,
                      .timed = 0,
                      .time_ps = 0};
  const CountedExperts dispatch{.combines = false,
                                .row_bytes = 7392,
                                .served_by = "moe.plan.json",
                                .tokens = 49152,
                                .calls = 12,
                                .timed = 11,
                                .time_ps = 9'876'000'000};
  const CountedExperts combine{.combines = true, .row_bytes = 0, .calls = 1};
  return {.library = "nccl",
          .host = "gpu01",
          .process = 4711,
          .rank = Rank(3),
          .ranks = 8,
          .communicators = {{.rank = Rank(1), .ranks = 2, .members = {Rank(2), Rank(3)}, .rows = {allreduce}},
                            {.rank = Rank(3),
                             .ranks = 8,
                             .rows = {allreduce, reduce},
                             .experts = {dispatch, combine},
                             .left_out = 5}}};
}

TEST(CallLog, ReadsBackWhatItWrites) {
  const StatusOr<CallLog> read = ReadCallLog(WriteCallLog(Sample()), "calls.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, Sample());
  const CallLog least{.library = "xccl", .host = "", .process = 1, .rank = {}};
  EXPECT_EQ(ReadCallLog(WriteCallLog(least), "calls.json").value(), least);
}

TEST(CallLog, CallsOfExpertsAreAllTimedWhereAFileDoesNotSay) {
  const StatusOr<CallLog> read = ReadCallLog(
      R"({"format":1,"call_log":"xccl","process":1,"communicators":[{"rank":0,"ranks":2,"calls":[],"experts":[)"
      R"({"call":"combine","row_bytes":8,"tokens":1,"calls":7,"time_ps":5}]}]})",
      "calls.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->communicators.at(0).experts.at(0).timed, 7);
}

TEST(CallLog, RefusalsNameTheKey) {
  struct Case {
    std::string_view text, message;
  };
  const std::string head = R"({"format":1,"call_log":"xccl","process":1,"communicators":)";
  const std::string row = R"([{"rank":0,"ranks":2,"calls":[{"collective":"allreduce","type":"float",)";
  const std::string two = head + R"([{"rank":2,"ranks":2,"calls":[]}]})";
  const std::string members = head + R"([{"rank":0,"ranks":2,"members":[0],"calls":[]}]})";
  const std::string timed = head + row + R"("size_bytes":8,"calls":1,"timed":2,"time_ps":0}]}]})";
  const std::string root = head + row + R"("root":2,"size_bytes":8,"calls":1,"timed":0,"time_ps":0}]}]})";
  const std::string twice = head + R"([{"rank":0,"ranks":3,"members":[4,1,4],"calls":[]}]})";
  const std::string unrooted = head + row + R"("root":1,"size_bytes":8,"calls":1,"timed":0,"time_ps":0}]}]})";
  const std::string rooted = head +
                             R"([{"rank":0,"ranks":2,"calls":[{"collective":"reduce","type":"float",)" +
                             R"("size_bytes":8,"calls":1,"timed":0,"time_ps":0}]}]})";
  const std::string experts = head + R"([{"rank":0,"ranks":2,"calls":[],"experts":[{"call":"gather"}]}]})";
  const std::string timed_experts = head +
                                    R"([{"rank":0,"ranks":2,"calls":[],"experts":[{"call":"combine",)" +
                                    R"("row_bytes":8,"tokens":1,"calls":1,"timed":2,"time_ps":0}]}]})";
  const Case cases[] = {
      {R"({"plans":[]})", "c.json: this is the index of a plan book; expected a log of calls"},
      {R"({"format":2,"call_log":"xccl"})", "c.json: format: 2; expected 1..1"},
      {R"({"format":1,"call_log":"mpi"})", "c.json: call_log: 'mpi'; expected xccl or nccl"},
      {two, "c.json: communicators[0].rank: 2; expected 0..1"},
      {members, "c.json: communicators[0].members: 1 entries; expected 2, one for each rank"},
      {timed, "c.json: communicators[0].calls[0].timed: 2; expected 0..1"},
      {root, "c.json: communicators[0].calls[0].root: 2; expected 0..1"},
      {twice, "c.json: communicators[0].members: rank 4 twice; expected each rank once"},
      {unrooted, "c.json: communicators[0].calls[0]: allreduce with a root; expected none"},
      {rooted, "c.json: communicators[0].calls[0]: reduce without a root; expected one"},
      {experts, "c.json: communicators[0].experts[0].call: 'gather'; expected dispatch or combine"},
      {timed_experts, "c.json: communicators[0].experts[0].timed: 2; expected 0..1"},
  };
  for (const Case& c : cases) EXPECT_EQ(ReadCallLog(c.text, "c.json").status().message(), c.message);
}

}  // namespace
}  // namespace xccl
