#include "pipeline/job_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xccl {
namespace {

std::vector<Rank> Ranks(std::initializer_list<int> numbers) {
  std::vector<Rank> ranks;
  for (const int number : numbers) ranks.emplace_back(number);
  return ranks;
}

CountedCalls Row(int64_t size, int64_t calls, int64_t us = 0) {
  CountedCalls row;
  row.size_bytes = size;
  row.calls = calls;
  row.timed = us > 0 ? calls : 0;
  row.time_ps = us * calls * 1'000'000;
  return row;
}

CallLog Log(int rank, int ranks, std::vector<LoggedCommunicator> communicators) {
  return {.library = "nccl",
          .process = rank,
          .rank = Rank(rank),
          .ranks = ranks,
          .communicators = std::move(communicators)};
}

TEST(JobCalls, CountsARanksCallsAndTheMeanOfTimes) {
  JobLogs logs;
  logs.logs = {Log(0, 2, {{.rank = Rank(0), .ranks = 2, .members = Ranks({0, 1}), .rows = {Row(64, 10, 3)}}}),
               Log(1, 2,
                   {{.rank = Rank(1), .ranks = 2, .members = Ranks({0, 1}), .rows = {Row(64, 12, 5)}},
                    {.rank = Rank(1), .ranks = 2, .members = Ranks({0, 1}), .rows = {Row(64, 1)}}})};
  const JobCalls job = CallsOfJob(logs).value();
  ASSERT_EQ(job.calls.size(), 1U);
  EXPECT_EQ(job.calls[0].calls, 13);
  EXPECT_NEAR(*job.calls[0].us, (10 * 3 + 12 * 5) / 22.0, 1e-9);
  EXPECT_TRUE(job.calls[0].nccl_may_serve);
  EXPECT_EQ(job.ranks, 2);
  EXPECT_TRUE(job.warnings.empty());
}

TEST(JobCalls, CallsOfExpertsAreLeftOut) {
  JobLogs logs;
  const CountedExperts dispatches{.row_bytes = 64, .tokens = 30, .calls = 3};
  logs.logs = {Log(0, 2, {{.rank = Rank(0), .ranks = 2, .rows = {}, .experts = {dispatches}}})};
  EXPECT_EQ(CallsOfJob(logs).status().message(),
            "the logs have calls of experts alone; expected a collective; hint: plan -c dispatch");
  logs.logs[0].communicators[0].rows = {Row(64, 10)};
  const JobCalls job = CallsOfJob(logs).value();
  ASSERT_FALSE(job.warnings.empty());
  EXPECT_EQ(job.warnings[0], "3 calls of expert dispatch and combine left out; hint: plan -c dispatch");
}

// Threads of one process: two groups of two ranks.
TEST(JobCalls, RanksOfOneProcessAreNotOneRank) {
  CallLog log{.library = "xccl", .process = 1};
  for (int r = 0; r < 4; ++r)
    log.communicators.push_back({.rank = Rank(r / 2),
                                 .ranks = 2,
                                 .members = Ranks({r % 2, r % 2 + 2}),
                                 .rows = {Row(64, r % 2 == 0 ? 5 : 7)}});
  JobLogs logs;
  logs.logs = {log};
  const JobCalls job = CallsOfJob(logs).value();
  EXPECT_EQ(job.calls[0].calls, 7);
  EXPECT_FALSE(job.calls[0].nccl_may_serve);
  ASSERT_EQ(job.groups.size(), 1U);
  EXPECT_EQ(job.groups[0].members, (std::vector{Ranks({1, 3}), Ranks({0, 2})})) << "the busiest first";
}

TEST(JobCalls, GroupsAreFoundByTheirPlaces) {
  struct Case {
    int stride;
    bool complete;
    std::vector<std::vector<Rank>> expected;
  };
  const Case cases[] = {{1, true, {Ranks({0, 1}), Ranks({2, 3}), Ranks({4, 5}), Ranks({6, 7})}},
                        {4, true, {Ranks({0, 4}), Ranks({1, 5}), Ranks({2, 6}), Ranks({3, 7})}},
                        {2, true, {Ranks({0, 2}), Ranks({1, 3}), Ranks({4, 6}), Ranks({5, 7})}},
                        {1, false, {Ranks({0, 1})}}};
  for (const Case& c : cases) {
    JobLogs logs;
    for (int r = 0; r < (c.complete ? 8 : 1); ++r)
      logs.logs.push_back(Log(r, 8, {{.rank = Rank(r / c.stride % 2), .ranks = 2, .rows = {Row(64, 1)}}}));
    const JobCalls job = CallsOfJob(logs).value();
    EXPECT_EQ(job.groups[0].members, c.expected);
    EXPECT_EQ(job.groups[0].known, c.complete);
    std::vector<std::string> warnings;
    if (!c.complete) warnings.push_back("2 ranks: the log does not say which of 8; the first are taken");
    EXPECT_EQ(job.groups[0].warnings, warnings);
  }
}

TEST(JobCalls, SaysWhatItLeavesOut) {
  JobLogs logs;
  logs.logs = {Log(
      0, 2, {{.rank = Rank(0), .ranks = 2, .members = Ranks({1, 0}), .rows = {Row(64, 1)}, .left_out = 3}})};
  const JobCalls job = CallsOfJob(logs).value();
  EXPECT_EQ(job.warnings, std::vector<std::string>{"3 calls of sizes beyond a table's end left out"});
  EXPECT_EQ(
      job.groups[0].warnings,
      std::vector<std::string>{"2 ranks: their ranks are not in the job's order; expected ascending ranks, "
                               "which the plans are made for"});
  EXPECT_EQ(CallsOfJob({}).status(), InvalidInput("the logs have no call; expected at least one"));
}

}  // namespace
}  // namespace xccl
