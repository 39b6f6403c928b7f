#include "sweep/table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "sweep/job.h"

namespace xccl {
namespace {

constexpr char kNames[] =
    "topology,collective,size_bytes,engine,options,ranks,made_by,time_us,time_program_us,algbw_gb_per_s,"
    "busbw_gb_per_s,bound_us,bound_kind,ratio,exact,steps,chunks_per_rank,transfers,messages,synthesis_s,"
    "status,error\n";

SweepJob Job(int64_t size_bytes) {
  return {"ring:4@bandwidth=1GB/s,latency=1us", "gather", size_bytes, "auto"};
}
SweepResult Failed(const std::string& error) {
  SweepResult result(ResultNames().size());
  result[result.size() - 2] = "limit";
  result.back() = error;
  return result;
}
std::string Row(int64_t size_bytes, const std::string& error) {
  return fmt::format("\"ring:4@bandwidth=1GB/s,latency=1us\",gather,{},auto,,,,,,,,,,,,,,,,,limit,{}\n",
                     size_bytes, error);
}

class SweepTableTest : public testing::Test {
 protected:
  SweepTableTest()
      : file_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove(file_);
  }
  std::string Text() const { return *ReadFile(file_); }
  std::string Opened() const {
    const StatusOr<SweepTable> table = SweepTable::Open(file_);
    return table.ok() ? "" : table.status().message();
  }

  std::string file_;
};

TEST_F(SweepTableTest, RowsAreWholeLinesAndComeBackAsTheyWere) {
  const std::string error = "a \"quoted\" word, a comma\nand a line";
  {
    StatusOr<SweepTable> table = SweepTable::Open(file_);
    ASSERT_TRUE(table.ok()) << table.status().message();
    ASSERT_TRUE(table->Append(Job(2), Failed(error)).ok());
    ASSERT_TRUE(table->Append(Job(1), Failed("late")).ok());
  }
  const std::string quoted = Row(2, "\"a \"\"quoted\"\" word, a comma\nand a line\"");
  EXPECT_EQ(Text(), kNames + quoted + Row(1, "late"));
  const StatusOr<SweepTable> again = SweepTable::Open(file_);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->rows().StatusOf(Job(2)), "limit");
  EXPECT_EQ(again->rows().StatusOf(Job(3)), "");
  // Rows come in the order of the list; a row that the list lacks is kept at the end.
  ASSERT_TRUE(again->Finish(std::vector{Job(3), Job(1)}).ok());
  EXPECT_EQ(Text(), kNames + Row(1, "late") + quoted);
}

TEST_F(SweepTableTest, ATornLastLineIsRemovedWhereverItEnds) {
  const std::string whole = kNames + Row(1, "late");
  const std::string more = Row(2, "\"late, again\"");
  for (size_t torn = 0; torn < more.size(); ++torn) {
    ASSERT_TRUE(WriteFileAtomically(file_, whole + more.substr(0, torn)).ok());
    StatusOr<SweepTable> table = SweepTable::Open(file_);
    ASSERT_TRUE(table.ok()) << table.status().message();
    EXPECT_EQ(table->rows().size(), 1U);
    EXPECT_EQ(Text(), whole);
    ASSERT_TRUE(table->Append(Job(3), Failed("")).ok());
    EXPECT_EQ(Text(), whole + Row(3, ""));
  }
}

TEST_F(SweepTableTest, TornNamesAreWrittenAnew) {
  const std::string names = kNames;
  for (const size_t torn : {size_t{0}, size_t{5}, names.size() - 1}) {
    ASSERT_TRUE(WriteFileAtomically(file_, names.substr(0, torn)).ok());
    EXPECT_EQ(Opened(), "");
    EXPECT_EQ(Text(), names);
  }
}

TEST_F(SweepTableTest, TheLastRowOfAJobCounts) {
  ASSERT_TRUE(WriteFileAtomically(file_, kNames + Row(1, "first") + Row(2, "other") + Row(1, "last")).ok());
  const StatusOr<SweepTable> table = SweepTable::Open(file_);
  ASSERT_TRUE(table.ok()) << table.status().message();
  ASSERT_TRUE(table->Finish(std::vector{Job(1), Job(2)}).ok());
  EXPECT_EQ(Text(), kNames + Row(1, "last") + Row(2, "other"));
}

TEST_F(SweepTableTest, WhatIsNoTableIsRefusedAndKept) {
  const std::string names(kNames, sizeof kNames - 2);
  const std::pair<std::string, std::string> wrong[] = {
      {"a letter", ": no table of a sweep; expected one or no file"},
      {"a,b\n", ":1: other columns than a sweep's table has; expected " + names},
      {kNames + std::string("a,b\n"), ":2: 2 cells; expected 22"},
      {kNames + Row(1, "") + "\"a\"b,\n", ":3: text behind a quoted cell; expected a comma or a line break"},
      {kNames + std::string("\"a\n"), ":2: a quote that does not end; expected '\"' behind it"},
      {kNames + std::string("a,b,x,d,,,,,,,,,,,,,,,,,,\n"),
       ":2: size_bytes: 'x': expected a whole number from 0 to 9223372036854775807"}};
  for (const auto& [text, message] : wrong) {
    ASSERT_TRUE(WriteFileAtomically(file_, text).ok());
    EXPECT_EQ(Opened(), file_ + message);
    EXPECT_EQ(Text(), text);
  }
}

TEST_F(SweepTableTest, OneSweepAtATimeWritesATable) {
  const StatusOr<SweepTable> first = SweepTable::Open(file_);
  EXPECT_EQ(Opened(), file_ + ": another sweep is writing it; expected one at a time");
}

TEST_F(SweepTableTest, ATableIsARegularFile) {
  file_ = "/dev/null";
  EXPECT_EQ(Opened(), "/dev/null: no regular file; expected a table or no file");
  file_ = testing::TempDir() + "/no/folder";
  EXPECT_EQ(Opened(), file_ + ": cannot write: No such file or directory");
}

TEST(SweepResultTest, ErrorsAreOneCellWithoutTheProgramsName) {
  const auto ended = [](int code, const std::string& err) {
    const SweepResult result = ResultOf({.status = code << 8, .out = "", .err = err});
    EXPECT_EQ(result.size(), ResultNames().size());
    return result[result.size() - 2] + ": " + result.back();
  };
  EXPECT_EQ(ended(3, "warning: a link\nxccl-synth: no plan\nTry: xccl-synth plan --help\n"),
            "infeasible: no plan");
  EXPECT_EQ(ended(2, "xccl-synth: --seed: no\n"), "usage: --seed: no");
  EXPECT_EQ(ended(9, ""), "failed: plan: exit code 9 without a reason");
  EXPECT_EQ(ended(0, ""),
            "failed: plan --json:1:1: truncated: the text ends inside its value; expected the rest");
  const SweepResult killed = ResultOf({.status = SIGSEGV, .out = "", .err = ""});
  EXPECT_EQ(killed[killed.size() - 2], "killed");
  EXPECT_EQ(killed.back(), "plan: killed by signal 11 (Segmentation fault)");
}

}  // namespace
}  // namespace xccl
