#include "pipeline/nccl/book_of_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/verify/read_plan.h"
#include "runtime/plan_book.h"
#include "topologies/load/load.h"

namespace xccl::nccl {
namespace {

JobCall Call(CollectiveKind kind, int32_t ranks, int64_t size, int64_t calls, bool nccl,
             std::optional<double> us = {}) {
  JobCall call{kind, ranks};
  call.size_bytes = size;
  call.calls = calls;
  call.us = us;
  call.nccl_may_serve = nccl;
  if (IsRooted(kind)) call.root = Rank(1);
  return call;
}

std::optional<size_t> Served(const LogBook& book, const JobCall& call) {
  return FindPlan({"", book.entries}, {.collective = call.collective,
                                       .ranks = call.ranks,
                                       .root = call.root,
                                       .size_bytes = call.size_bytes,
                                       .in_place = {}});
}

// The C library's calls are served at all sizes, also those that no plan was made for.
TEST(BookOfLog, ServesEverySizeOfTheLibrarysLog) {
  const Topology topology = LoadTopology("full-mesh:4").value();
  JobCalls job;
  job.ranks = 4;
  job.groups = {{4, {AllRanks(4)}}, {2, {{Rank(1), Rank(3)}}}};
  for (const int64_t size : {4, 100, 1024, 1025, 2000, 1 << 20, 1 << 26})
    job.calls.push_back(Call(CollectiveKind::kAllreduce, 4, size, 10, false, 5.0));
  for (const int64_t size : {8, 1 << 16}) {
    job.calls.push_back(Call(CollectiveKind::kAllgather, 2, size, 1, false));
    job.calls.push_back(Call(CollectiveKind::kBroadcast, 4, size, 1, false));
    job.calls.push_back(Call(CollectiveKind::kAlltoall, 4, size, 1, false));
  }
  job.calls.push_back(Call(CollectiveKind::kSendrecv, 4, 64, 9, false));
  job.calls.push_back(Call(CollectiveKind::kAllreduce, 1, 64, 9, false));
  const LogBook book = MakeBookOfLog(topology, job, {}, 1.1).value();
  for (const JobCall& call : job.calls) {
    const bool plans = call.collective != CollectiveKind::kSendrecv && call.ranks > 1;
    EXPECT_EQ(Served(book, call).has_value(), plans) << ToString(call.collective) << call.size_bytes;
  }
  EXPECT_TRUE(Served(book, Call(CollectiveKind::kAllreduce, 4, int64_t{1} << 33, 1, false)));
  EXPECT_EQ(book.warnings, std::vector<std::string>{
                               "sendrecv: 9 calls not planned: a log does not have their pairs and counts"});
  EXPECT_TRUE(book.steering.empty());
  // Each size has one entry: where one ends the next begins.
  int neighbours = 0;
  for (size_t i = 1; i < book.entries.size(); ++i) {
    const PlanBookEntry &before = book.entries[i - 1], &entry = book.entries[i];
    if (entry.collective != before.collective || entry.ranks != before.ranks) continue;
    ++neighbours;
    EXPECT_EQ(entry.min_bytes, before.max_bytes.value_or(0) + 1) << entry.file;
  }
  EXPECT_GT(neighbours, 0);
  // Sizes within a factor of two are one row.
  const auto row = std::ranges::find_if(book.rows, [](const LogRow& r) { return r.min_bytes == 1024; });
  ASSERT_NE(row, book.rows.end());
  EXPECT_EQ(row->max_bytes, 2000);
  EXPECT_EQ(row->calls, 30);
  EXPECT_NEAR(*row->measured_us, 5, 1e-9);
  double share = 0;
  for (const LogRow& each : book.rows) share += each.share;
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_TRUE(std::ranges::is_sorted(book.rows, std::ranges::greater(), &LogRow::share));
  // Reading the book proves its plans.
  const std::string directory = testing::TempDir() + "/book-of-log";
  ASSERT_EQ(MakePlanBookDirectory(directory), OkStatus());
  ASSERT_EQ(WriteBook(book.entries, book.plans, {}, directory), OkStatus());
  const PlanBook read = ReadPlanBook(directory).value();
  for (const PlanBookEntry& entry : read.entries) {
    const StatusOr<Plan> plan = ReadPlan(read.PathOf(entry));
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan->collective.num_members(), entry.ranks);
    EXPECT_EQ(plan->topology.num_ranks(), entry.ranks);
  }
}

TEST(BookOfLog, LeavesToNcclWhatDoesNotGain) {
  const Topology topology = LoadTopology("dgx-a100").value();
  JobCalls job;
  job.ranks = 8;
  job.groups = {{8, {AllRanks(8)}}, {2, {{Rank(0), Rank(1)}, {Rank(2), Rank(3)}}}};
  job.calls = {Call(CollectiveKind::kAllreduce, 8, 1024, 10, true),
               Call(CollectiveKind::kAllreduce, 2, 1024, 10, true),
               Call(CollectiveKind::kAlltoall, 8, 1 << 20, 10, true)};
  TuneRequest request;
  request.pipeline.machine_of_topology = true;
  const LogBook all = MakeBookOfLog(topology, job, request, 1).value();
  for (const LogRow& row : all.rows)
    EXPECT_EQ(row.nccl.has_value(), row.collective != CollectiveKind::kAlltoall);
  const LogBook none = MakeBookOfLog(topology, job, request, 1e6).value();
  EXPECT_TRUE(Served(all, job.calls[0]));
  EXPECT_FALSE(Served(none, job.calls[0]));
  EXPECT_FALSE(Served(none, job.calls[1]));
  EXPECT_TRUE(Served(none, job.calls[2])) << "NCCL has no model of it";
  EXPECT_FALSE(Served(all, Call(CollectiveKind::kAllreduce, 8, 1 << 30, 1, true)))
      << "nothing is known beyond the last size";
  EXPECT_FALSE(Served(all, Call(CollectiveKind::kAllreduce, 8, 512, 1, true))) << "or below the first";
  EXPECT_TRUE(all.warnings.empty());
}

// Calls of the C library lie below, between and above sizes that NCCL serves faster.
TEST(BookOfLog, CallsThatNcclMayNotServeTakeNoSizesFromIt) {
  const Topology topology = LoadTopology("dgx-a100").value();
  JobCalls job;
  job.ranks = 8;
  job.groups = {{8, {AllRanks(8)}}};
  for (const int64_t size : {1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26})
    job.calls.push_back(Call(CollectiveKind::kAllreduce, 8, size, 10, size == 1 << 14 || size == 1 << 22));
  TuneRequest request;
  request.pipeline.machine_of_topology = true;
  const LogBook book = MakeBookOfLog(topology, job, request, 1e6).value();
  ASSERT_EQ(book.entries.size(), 3u);
  for (const JobCall& call : job.calls) EXPECT_EQ(Served(book, call).has_value(), !call.nccl_may_serve);
  for (const int64_t size : {4, 1 << 19, 1 << 30})
    EXPECT_TRUE(Served(book, Call(CollectiveKind::kAllreduce, 8, size, 1, false))) << size;
}

TEST(BookOfLog, Refusals) {
  const Topology topology = LoadTopology("full-mesh:4").value();
  JobCalls job;
  job.ranks = 8;
  job.groups = {{8, {AllRanks(8)}}};
  job.calls = {Call(CollectiveKind::kSendrecv, 8, 64, 9, true)};
  EXPECT_EQ(MakeBookOfLog(topology, job, {}, 1.1).status(),
            InvalidInput("the job has 8 ranks; " + topology.name() + " has 4; hint: --hosts=N"));
  EXPECT_EQ(
      MakeBookOfLog(LoadTopology("full-mesh:8").value(), job, {}, 1.1).status(),
      InvalidInput("the log has no call that a plan can serve: sendrecv: 9 calls not planned: a log does "
                   "not have their pairs and counts"));
}

}  // namespace
}  // namespace xccl::nccl
