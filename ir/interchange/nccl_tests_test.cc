#include "ir/interchange/nccl_tests.h"

#include <gtest/gtest.h>

#include <string>

namespace xccl {
namespace {

constexpr std::string_view kHead =
    "# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 2 minBytes 1024 maxBytes 4096 step: 4(factor) warmup iters: 1 iters: 20 agg iters: 1\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid   6899 on       h0 device  0 [0000:04:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid   6899 on       h0 device  1 [0000:05:00] NVIDIA H100 80GB HBM3\n"
    "h0:6899:6899 [0] NCCL INFO Bootstrap: Using eth0\n"
    "10-0-0-1:6899:6899 [0] NCCL INFO cudaDriverVersion 13000\n"
    "#\n";
constexpr std::string_view kNames =
    "#                                                              out-of-place                in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  "
    "(GB/s)\n";
constexpr std::string_view kRows =
    "        1024           256     float     sum      -1    10.51    0.10    0.10       0     9.80    0.10\n"
    "        4096          1024     float     sum      -1  1.2e+01    0.34    0.34     N/A    11.80    "
    "0.35\n";
constexpr std::string_view kEnd = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.2\n";

std::string Table(std::string_view rows) {
  return std::string(kHead).append(kNames).append(rows).append(kEnd);
}
std::string Refused(const std::string& text) { return ReadNcclTests(text, "t").status().message(); }

TEST(NcclTestsTable, HasTimesOutOfPlace) {
  ASSERT_TRUE(IsNcclTests(Table(kRows)));
  const NcclTestsRun run = ReadNcclTests(Table(kRows), "t").value();
  EXPECT_EQ(run.program, "all_reduce_perf");
  EXPECT_EQ(run.collective, CollectiveKind::kAllreduce);
  EXPECT_EQ(run.ranks, 2);
  EXPECT_EQ(run.hosts, 1);
  EXPECT_FALSE(run.root);
  ASSERT_EQ(run.times.size(), 2U);
  EXPECT_EQ(run.times[0].bytes, 1024);
  EXPECT_EQ(run.times[0].us, 10.51);
  EXPECT_EQ(run.times[1].us, 12);
}

// Older versions have no column for the root and do not name the program; xccl-synth run names no devices.
TEST(NcclTestsTable, ColumnsAreThoseThatItNames) {
  const NcclTestsRun old =
      ReadNcclTests(
          "#   Rank  0 Pid  16402 on     a100 device  0 [0x07] NVIDIA A100-SXM4-40GB\n"
          "#       size         count      type   redop     time   algbw   busbw  error\n"
          "        1024           256     float     sum    21.00    0.05    0.09  0e+00\n",
          "t")
          .value();
  EXPECT_EQ(old.program, "");
  EXPECT_FALSE(old.collective);
  EXPECT_EQ(old.ranks, 1);
  EXPECT_EQ(old.times[0].us, 21);
  const NcclTestsRun ours =
      ReadNcclTests("# Collective test starting: broadcast\n# 4 ranks as threads warmup iters: 1\n" +
                        std::string(kNames) +
                        "        1024           256     float    none       3    5.50    0.19    0.19       "
                        "2   N/A   N/A\n",
                    "t")
          .value();
  EXPECT_EQ(ours.collective, CollectiveKind::kBroadcast);
  EXPECT_EQ(ours.ranks, 4);
  EXPECT_EQ(ours.root, 3);
  EXPECT_EQ(ours.times[0].wrong, 2);
}

TEST(NcclTestsTable, SaysWhatIsWrong) {
  EXPECT_EQ(Refused("x\n"), "t: no table of nccl-tests; expected a line '# size count type ... time'");
  EXPECT_EQ(Refused(Table("")), "t: a table without a row; expected a size and its time");
  EXPECT_EQ(Refused(std::string(kRows)),
            "t:1: a row before the line that names the columns, '# size count type ... time'");
  EXPECT_EQ(Refused(Table(" 1024 256 float sum\n")), "t:14: a row of 4 columns; expected 11");
  EXPECT_EQ(Refused(Table(" 1024 256 float sum -1 0.00 0.1 0.1 0 1 1\n")),
            "t:14: time '0.00'; expected more than 0 us");
}

TEST(NcclTestsJson, HasTimesOutOfPlace) {
  const std::string text =
      R"({"version":2,"args":["./build/gather_perf"],"env":["A=b=c"],
  "devices":[{"rank":0,"hostname":"a"},{"rank":1,"hostname":"b"}],
  "results":[{"size":1024,"count":256,"type":"float","redop":"none","root":"     1",
      "out_of_place":{"time":10.5,"alg_bw":0.1,"bus_bw":0.1,"nwrong":null},"in_place":null}]})";
  ASSERT_TRUE(IsNcclTests(text));
  const NcclTestsRun run = ReadNcclTests(text, "t").value();
  EXPECT_EQ(run.collective, CollectiveKind::kGather);
  EXPECT_EQ(run.ranks, 2);
  EXPECT_EQ(run.hosts, 2);
  EXPECT_EQ(run.root, 1);
  EXPECT_EQ(run.variables.at("A"), "b=c");
  EXPECT_EQ(run.times[0].us, 10.5);
  EXPECT_EQ(Refused("{}"), "t: no key 'args'");
}

TEST(IsNcclTests, KnowsOtherFiles) {
  EXPECT_FALSE(IsNcclTests(""));
  EXPECT_FALSE(IsNcclTests("<algo/>\n"));
  EXPECT_FALSE(IsNcclTests("{\"name\":\"x\",\"gpus\":[]}"));
  EXPECT_FALSE(IsNcclTests("#\n# some words\n1,2\n"));
}

}  // namespace
}  // namespace xccl
