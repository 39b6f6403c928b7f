#include "ir/plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "ir/lower/testing/checked.h"
#include "ir/testing/graphs.h"
#include "ir/verify/read_plan.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

using testing::Links;
using testing::MakeCollective;
using testing::MakeGraph;

// An allreduce of two chunks on a pair of GPUs, with its program.
Plan Pair() {
  const Topology topology = MakeGraph("pair", 2, 0, {{0, 1, 1, 500, 0}, {1, 0, 1, 500, 0}});
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 2).WithChunks(2);
  Schedule schedule;
  schedule.num_chunks = 2;
  schedule.Add(ChunkId(0), 1, Rank(1), Rank(0), Links({1}), TransferOp::kReduce, 0);
  schedule.Add(ChunkId(1), 1, Rank(0), Rank(1), Links({0}), TransferOp::kReduce, 0);
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 1);
  schedule.Add(ChunkId(1), 1, Rank(1), Rank(0), Links({1}), TransferOp::kCopy, 1);
  Normalize(schedule);
  Program program = LowerChecked(schedule, collective, topology).value();
  // Goes through XML, like every plan from a file, so that names of hosts are filled in.
  return Plan{ReadNativeXml(WriteNativeXml(topology), "pair").value(), collective, schedule,
              LoweredProgram{collective, program},
              MadeBy{"ring", UINT64_MAX, "--steps=2", "1.0", 64 << 20, TimeModel::kPipelined}};
}

class PlanFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
            ".plan.json";
    ASSERT_EQ(WritePlan(Pair(), path_), OkStatus());
    text_ = ReadFile(path_).value();
  }
  std::string Replaced(std::string_view find, std::string_view replace) const {
    std::string text = text_;
    const size_t at = text.find(find);
    XCCL_CHECK(at != text.npos);
    return text.replace(at, find.size(), replace);
  }
  // The error of reading `text`, without the path at its start.
  std::string ErrorOf(const std::string& text) {
    std::ofstream(path_, std::ios::trunc) << text;
    const StatusOr<Plan> plan = ReadPlan(path_);
    if (plan.ok()) return "";
    const std::string& message = plan.status().message();
    return message.rfind(path_, 0) == 0 ? message.substr(path_.size()) : "elsewhere: " + message;
  }
  std::string path_, text_;
};

TEST_F(PlanFile, ReadsWhatItWrites) {
  const Plan made = Pair();
  const StatusOr<Plan> read = ReadPlan(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read->topology == made.topology);
  EXPECT_TRUE(read->collective == made.collective);
  EXPECT_TRUE(read->schedule == made.schedule);
  EXPECT_TRUE(read->program == made.program);
  EXPECT_TRUE(read->made_by == made.made_by);
  EXPECT_EQ(WritePlan(*read, path_), OkStatus());
  EXPECT_EQ(ReadFile(path_).value(), text_);
}

TEST_F(PlanFile, SizesAreKept) {
  Plan made = Pair();
  for (const PlanSizes& sizes : {PlanSizes{16, 65536}, PlanSizes{1, 0}, PlanSizes{0, 1}}) {
    made.sizes = sizes;
    ASSERT_EQ(WritePlan(made, path_), OkStatus());
    const StatusOr<Plan> read = ReadPlan(path_);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(read->sizes == sizes);
  }
  EXPECT_NE(ReadFile(path_).value().find("\n \"sizes\":{\"min_bytes\":0,\"max_bytes\":1},\n \"made_by\""),
            std::string::npos);
  const auto with = [&](const std::string& sizes) {
    return ErrorOf(Replaced("\n \"made_by\"", "\n \"sizes\":" + sizes + ",\n \"made_by\""));
  };
  EXPECT_EQ(with("{\"min_bytes\":8,\"max_bytes\":7}"),
            ": sizes.max_bytes: 7; expected 8..9223372036854775807");
  EXPECT_EQ(with("{\"max_bytes\":7}"), ": sizes: no key 'min_bytes'; expected one");
}

TEST_F(PlanFile, KeysStandAsDocumented) {
  size_t at = 0;
  for (std::string_view line :
       {"{\n \"format\":1,\n \"topology\":\"<topology name=\\\"pair\\\"",
        "\n \"collective\":{\n  \"name\":\"allreduce\",\n  \"ranks\":[0,1],\n  \"root\":null,\n"
        "  \"parts\":[2],\n  \"weights\":[1,1]\n },\n \"schedule\":{\n  \"chunks\":2,\n"
        "  \"first\":[0,1,0,1],\n  \"count\":[1,1,1,1],\n  \"src\":[1,0,0,1],\n"
        "  \"dst\":[0,1,1,0],\n  \"path\":[[1],[0],[0],[1]],\n  \"op\":\"rrcc\",\n"
        "  \"step\":[0,0,1,1]\n },\n \"program\":{",
        "\n \"made_by\":{\"engine\":\"ring\",\"seed\":18446744073709551615,"
        "\"limits\":\"--steps=2\",\"version\":\"1.0\",\"size_bytes\":67108864,"
        "\"model\":\"pipelined\"}\n}\n"}) {
    at = text_.find(line, at);
    ASSERT_NE(at, text_.npos) << line << "\nis not in\n" << text_;
  }
}

TEST_F(PlanFile, Errors) {
  const struct {
    std::string find, replace, expected;
  } cases[] = {
      {"\"format\":1", "\"format\":2", ": format: version 2; this program reads version 1"},
      {"\"format\":1", "\"format\":\"1\"", ": format: a string; expected a whole number"},
      {"\"format\":1,", "", ": no key 'format'; expected one"},
      {"\"made_by\"", "\"made_bi\"", ": unknown key 'made_bi'; did you mean 'made_by'?"},
      {"{\n \"format\":1", "<plan>", ":1:1: not JSON: unexpected '<'"},
      {"\"ranks\":[0,1]", "\"ranks\":[0,1,2]", ": collective.ranks: entry 2 is 2; expected 0..1"},
      {"\"first\":[0,1,0,1]", "\"first\":[0,1,0]",
       ": schedule.first: 3 entries; expected 4, as schedule.count has"},
      {"\"first\":[0,1,", "\"first\":[0,99,", ": [S1] transfer 1: 1 chunks from 99 on; chunks are 0..1"},
      {"\"chunks\":2", "\"chunks\":3", ": [S1] schedule.chunks: 3; allreduce has 2"},
      {"\"parts\":[2]", "\"parts\":[2000000000]",
       ": collective.weights: 2 entries; expected 2000000000, the chunks of parts"},
      {"\"step\":[0,0,1,1]", "\"step\":[0,0,0,1]", ": [S6] end: rank 1 has {0} of chunk 0; expected {0,1}"},
      {"\"op\":\"rrcc\"", "\"op\":\"rccc\"",
       ": [S6] end: rank 0 has {0} of chunk 1; expected {0,1} (and 1 more)"},
      {"\"pipelined\"}", "\"pipeline\"}",
       ": made_by.model: no time model 'pipeline'; expected pipelined or blocking; did you mean "
       "'pipelined'?"},
      {"\"pipelined\"}", "\"pipelined\",\"exact\":true}",
       ": made_by: unknown key 'exact'; expected engine, seed, limits, version, size_bytes, model or "
       "machine"},
      {"bandwidth=", "bandwith=", ""},
  };
  for (const auto& c : cases) {
    const std::string error = ErrorOf(Replaced(c.find, c.replace));
    if (c.expected.empty())
      EXPECT_NE(error.find(": topology:"), error.npos) << error;
    else
      EXPECT_EQ(error, c.expected) << c.find;
  }
}

// Wherever a plan is cut off, the error says so.
TEST_F(PlanFile, Truncated) {
  for (size_t length = 0; length + 2 < text_.size(); length += 7) {
    const std::string error = ErrorOf(text_.substr(0, length));
    EXPECT_NE(error.find(": truncated: the text ends inside its value; expected the rest"), error.npos)
        << length << error;
  }
}

TEST_F(PlanFile, WhatMadeByLeavesOutHasDefaults) {
  for (const std::string key : {"", ",\n \"made_by\":{}"}) {
    const size_t at = text_.find(",\n \"made_by\"");
    std::ofstream(path_, std::ios::trunc) << text_.substr(0, at) + key + "\n}\n";
    const StatusOr<Plan> plan = ReadPlan(path_);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_TRUE(plan->made_by == MadeBy());
    EXPECT_EQ(plan->made_by.size_bytes, 64 << 20);
  }
}

TEST_F(PlanFile, UnverifiedPlansKeepTheirMistakes) {
  std::ofstream(path_, std::ios::trunc) << Replaced("\"op\":\"rrcc\"", "\"op\":\"rccc\"");
  EXPECT_TRUE(ReadPlanUnverified(path_).ok());
}

TEST_F(PlanFile, PathsThatCannotBe) {
  EXPECT_EQ(ReadPlan(path_ + ".none").status(),
            InvalidInput(path_ + ".none: cannot read: No such file or directory"));
  EXPECT_EQ(WritePlan(Pair(), "/dev/null/folder/x.plan.json"),
            InvalidInput("/dev/null/folder/x.plan.json: cannot write: Not a directory"));
}

// A ring allgather on 1,024 ranks.
TEST_F(PlanFile, AMillionTransfers) {
  constexpr int kRanks = 1024;
  std::vector<testing::Edge> edges;
  for (int r = 0; r < kRanks; ++r) edges.push_back({r, (r + 1) % kRanks, 1, 500, 0});
  const Topology ring = MakeGraph("ring", kRanks, 0, edges);
  Schedule schedule;
  schedule.num_chunks = kRanks;
  for (int step = 0; step + 1 < kRanks; ++step)
    for (int r = 0; r < kRanks; ++r)
      schedule.Add(ChunkId((r + kRanks - step) % kRanks), 1, Rank(r), Rank((r + 1) % kRanks), Links({r}),
                   TransferOp::kCopy, step);
  Normalize(schedule);
  const Plan plan{ring, MakeCollective(CollectiveKind::kAllgather, kRanks), schedule, std::nullopt, MadeBy{}};
  ASSERT_EQ(WritePlan(plan, path_), OkStatus());
  const StatusOr<Plan> read = ReadPlan(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read->schedule == schedule);
}

TEST_F(PlanFile, WithoutAProgram) {
  Plan plan = Pair();
  plan.program.reset();
  ASSERT_EQ(WritePlan(plan, path_), OkStatus());
  EXPECT_EQ(ReadFile(path_).value().find("\"program\""), std::string::npos);
  EXPECT_FALSE(ReadPlan(path_).value().program.has_value());
}

}  // namespace
}  // namespace xccl
