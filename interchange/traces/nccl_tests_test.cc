#include "interchange/traces/nccl_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
NcclTestsRun OnlyRun(const std::string& text) {
  std::vector<NcclTestsRun> runs = ReadNcclTests(text, "t").value();
  EXPECT_EQ(runs.size(), 1U);
  return std::move(runs.front());
}

TEST(NcclTestsTable, HasTimesOutOfPlace) {
  ASSERT_TRUE(IsNcclTests(Table(kRows)));
  const NcclTestsRun run = OnlyRun(Table(kRows));
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
  const NcclTestsRun old = OnlyRun(
      "#   Rank  0 Pid  16402 on     a100 device  0 [0x07] NVIDIA A100-SXM4-40GB\n"
      "#       size         count      type   redop     time   algbw   busbw  error\n"
      "        1024           256     float     sum    21.00    0.05    0.09  0e+00\n");
  EXPECT_EQ(old.program, "");
  EXPECT_FALSE(old.collective);
  EXPECT_EQ(old.ranks, 1);
  EXPECT_EQ(old.times[0].us, 21);
  const NcclTestsRun ours = OnlyRun(
      "# Collective test starting: broadcast\n# 4 ranks as threads warmup iters: 1\n" + std::string(kNames) +
      "        1024           256     float    none       3    5.50    0.19    0.19       "
      "2   N/A   N/A\n");
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

// Each line of a text with a prefix, in which % stands for two digits that differ from line to line.
std::string Prefixed(const std::string& text, const std::string& prefix) {
  std::string made;
  int number = 10;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    for (const char c : prefix) c == '%' ? made += std::to_string(number) : made += c;
    made += rest.substr(0, end);
    rest.remove_prefix(end);
    number = number == 59 ? 10 : number + 1;
  }
  return made;
}

TEST(NcclTestsTable, APrefixOfAllLinesIsCut) {
  for (const char* const prefix :
       {"[1,0]<stdout>:", "[1,0]<stdout>: ", "[prterun-h0-6899@1,0]<stdout>: ", "0: ", " 0: ", "h0: ",
        "[pod/nccl-test-launcher-x7k2p/main] ", "2026-05-01T10:00:%.123456789Z ", "2026/05/01 10:%:00 ",
        "2026-05-01T10:00:%.12+02:00 stdout F ", "[pod/a-0/main] 2026-05-01T10:00:%.5Z ",
        "May  1 10:00:% h0 job[77]: ", "Fri May 1 10:00:% 2026[1,0]<stdout>:", "[2026-05-01 10:00:%,123] ",
        "17145576%.123456 ", "\t"}) {
    const std::string text = Prefixed(Table(kRows), prefix);
    ASSERT_TRUE(IsNcclTests(text)) << prefix;
    const NcclTestsRun run = OnlyRun(text);
    EXPECT_EQ(run.program, "all_reduce_perf") << prefix;
    EXPECT_EQ(run.program_place, "t:2") << prefix;
    EXPECT_EQ(run.ranks, 2) << prefix;
    EXPECT_EQ(run.hosts, 1) << prefix;
    ASSERT_EQ(run.times.size(), 2U) << prefix;
    EXPECT_EQ(run.times[1].us, 12) << prefix;
    EXPECT_EQ(Refused(Prefixed(Table(" 1024 256 float sum\n"), prefix)),
              "t:14: a row of 4 columns; expected 11");
  }
}

// A stamp moves on over days and months.
TEST(NcclTestsTable, StampsOfOneRunDiffer) {
  std::string text = Prefixed(std::string(kHead) + std::string(kNames), "Sat Oct 31 23:59:% 2026 ");
  text += Prefixed(std::string(kRows), "Sun Nov  1 00:00:% 2026 ");
  EXPECT_EQ(OnlyRun(text).times.size(), 2U);
}

TEST(NcclTestsTable, LinesOfOtherRanksCountForNothing) {
  std::string text;
  for (const std::string& line : {std::string(kHead), std::string(kNames), std::string(kRows)})
    text +=
        Prefixed("h1:77:77 [1] NCCL INFO Channel 00 : 1[1] -> 0[0]\n1024 256 is no row\n", "[1,1]<stdout>:") +
        "a launcher's own line\n" + Prefixed(line, "[1,0]<stdout>:");
  const NcclTestsRun run = OnlyRun(text);
  EXPECT_EQ(run.ranks, 2);
  EXPECT_EQ(run.times.size(), 2U);
  EXPECT_EQ(run.cut_rows, 0);
}

// NCCL_DEBUG may print a line in the middle of a row.
TEST(NcclTestsTable, ARowThatIsCutIsLeftOut) {
  const NcclTestsRun run = OnlyRun(
      Table("        1024           256     float     sum      -1h0:77:77 [0] NCCL INFO Connected all rings\n"
            "    10.51    0.10    0.10       0     9.80    0.10\n" +
            std::string(kRows)));
  EXPECT_EQ(run.times.size(), 2U);
  EXPECT_EQ(run.cut_rows, 1);
}

TEST(NcclTestsTable, RunsOfOneLogAreToldApart) {
  std::string second =
      Table("        2048           512     float     sum      -1    20    1    1   0    9    1\n");
  second.replace(second.find("all_reduce_perf"), 15, "all_gather_perf");
  const std::string old = "# nThread 1 nGpus 1\n#\n# Using devices\n#   Rank  0 Pid 1 on h9 device 0\n" +
                          std::string(kNames) + std::string(kRows);
  const std::string log = Table(kRows) + "+ ./all_gather_perf -g 2\n" + second + old;
  const std::vector<NcclTestsRun> runs = ReadNcclTests(log, "t").value();
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].place, "t:1");
  EXPECT_EQ(runs[0].collective, CollectiveKind::kAllreduce);
  EXPECT_EQ(runs[0].ranks, 2);
  EXPECT_EQ(runs[1].place, "t:19");
  EXPECT_EQ(runs[1].collective, CollectiveKind::kAllgather);
  EXPECT_EQ(runs[1].ranks, 2);
  EXPECT_EQ(runs[1].times.size(), 1U);
  EXPECT_EQ(runs[2].program, "");
  EXPECT_EQ(runs[2].ranks, 1);
  EXPECT_EQ(runs[2].times.size(), 2U);
}

// A program built without MPI, started several times: each process has a table of its own.
TEST(NcclTestsTable, TablesThatPrintAtOnceNeedAPrefix) {
  const std::string log = Table(kRows);
  std::string tagged, plain;
  for (std::string_view rest = log; !rest.empty();) {
    const std::string line(rest.substr(0, rest.find('\n') + 1));
    tagged.append("[1,0]<stdout>:").append(line).append("[1,1]<stdout>:").append(line);
    plain.append(line).append(line);
    rest.remove_prefix(line.size());
  }
  EXPECT_EQ(ReadNcclTests(tagged, "t").value().size(), 2U);
  EXPECT_EQ(Refused(plain),
            "t:12: rank 0 twice, as where several runs print at once; expected one, or a prefix to tell them "
            "apart by, as of mpirun --tag-output or srun --label");
}

TEST(RcclTests, CsvAndJsonHaveTimesOutOfPlace) {
  const std::string csv =
      "numCycle,collective,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inplace,time,algbw,busbw,#"
      "wrong\r\n"
      "0,\"ReduceScatter\",2,4,2,2,1048576,\"float\",\"sum\",0,55.66,18.84,32.97,\"0\"\r\n"
      "0,\"ReduceScatter\",2,4,2,2,1048576,\"float\",\"sum\",1,54.66,19.18,33.57,\"0\"\r\n"
      "0,\"ReduceScatter\",2,4,2,2,2097152,\"float\",\"sum\",0,99,18.84,32.97,\"N/A\"\r\n";
  const std::string json =
      R"([
{"numCycle":0, "name":"ReduceScatter", "nodes":2, "ranks":4, "ranksPerNode":2, "gpusPerRank":2, "size":1048576,
 "type":"float", "redop":"sum", "inPlace":0, "time":55.66, "algBw":18.84, "busBw":32.97, "wrong":"0"},
{"numCycle":0, "name":"ReduceScatter", "nodes":2, "ranks":4, "ranksPerNode":2, "gpusPerRank":2, "size":2097152,
 "type":"float", "redop":"sum", "inPlace":0, "time":99, "algBw":18.84, "busBw":32.97, "wrong":"N/A"}
])";
  for (const std::string& text : {csv, "\xEF\xBB\xBF" + csv, json}) {
    ASSERT_TRUE(IsNcclTests(text));
    const NcclTestsRun run = OnlyRun(text);
    EXPECT_EQ(run.collective, CollectiveKind::kReduceScatter);
    EXPECT_EQ(run.program, "ReduceScatter");
    EXPECT_EQ(run.ranks, 8);
    EXPECT_EQ(run.hosts, 2);
    EXPECT_FALSE(run.names_root);
    ASSERT_EQ(run.times.size(), 2U);
    EXPECT_EQ(run.times[0].bytes, 1 << 20);
    EXPECT_EQ(run.times[0].us, 55.66);
    EXPECT_EQ(run.times[1].us, 99);
  }
}

TEST(RcclTests, ColumnsAreThoseThatItNames) {
  // Built without MPI; two programs' files joined.
  const std::string head = "numCycle,collective,gpus,size,type,redop,inplace,time,algbw,busbw,#wrong\n";
  const std::vector<NcclTestsRun> runs =
      ReadNcclTests(head + "0,\"AllReduce\",8,1024,\"float\",\"sum\",0,5,1,1,\"3\"\n" + head +
                        "0,\"AlltoAll\",8,2048,\"float\",\"none\",0,6,1,1,\"0\"\n",
                    "t")
          .value();
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].collective, CollectiveKind::kAllreduce);
  EXPECT_EQ(runs[0].ranks, 8);
  EXPECT_EQ(runs[0].hosts, 1);
  EXPECT_EQ(runs[0].times[0].wrong, 3);
  EXPECT_EQ(runs[1].collective, CollectiveKind::kAlltoall);
  EXPECT_EQ(runs[1].place, "t:4");
}

TEST(RcclTests, SaysWhatIsWrong) {
  const std::string head = "collective,gpus,size,inplace,time\n";
  EXPECT_EQ(Refused(head), "t: no row; expected a size and its time");
  EXPECT_EQ(Refused(head + "AllReduce,8,1024,1,5\n"), "t: rows in place alone; expected some out of place");
  EXPECT_EQ(Refused(head + "AllReduce,8,1024,0\n"), "t:2: a row of 4 columns; expected 5");
  EXPECT_EQ(Refused(head + "AllReduce,8,1024,0,0\n"), "t:2: time '0'; expected more than 0 us");
  EXPECT_EQ(Refused(head + "AllReduce,none,1024,0,5\n"),
            "t:2: gpus 'none'; expected a whole number from 1 to 1125899906842624");
  EXPECT_EQ(Refused("[{\"name\":\"AllReduce\",\"gpus\":8,\"size\":-1,\"inPlace\":0,\"time\":5,\"busBw\":1}]"),
            "t: [0]: size '-1'; expected a whole number from 0 to 1125899906842624");
}

TEST(NcclTestsJson, HasTimesOutOfPlace) {
  const std::string text =
      R"({"version":2,"args":["./build/gather_perf"],"env":["A=b=c"],
  "devices":[{"rank":0,"hostname":"a"},{"rank":1,"hostname":"b"}],
  "results":[{"size":1024,"count":256,"type":"float","redop":"none","root":"     1",
      "out_of_place":{"time":10.5,"alg_bw":0.1,"bus_bw":0.1,"nwrong":null},"in_place":null}]})";
  ASSERT_TRUE(IsNcclTests(text));
  const NcclTestsRun run = OnlyRun(text);
  EXPECT_EQ(run.collective, CollectiveKind::kGather);
  EXPECT_EQ(run.ranks, 2);
  EXPECT_EQ(run.hosts, 2);
  EXPECT_EQ(run.root, 1);
  EXPECT_EQ(run.variables.at("A"), "b=c");
  EXPECT_EQ(run.times[0].us, 10.5);
  EXPECT_EQ(Refused("{}"), "t: no key 'args'; expected one");
}

TEST(IsNcclTests, KnowsOtherFiles) {
  EXPECT_FALSE(IsNcclTests(""));
  EXPECT_FALSE(IsNcclTests("<algo/>\n"));
  EXPECT_FALSE(IsNcclTests("{\"name\":\"x\",\"gpus\":[]}"));
  EXPECT_FALSE(IsNcclTests("#\n# some words\n1,2\n"));
  EXPECT_FALSE(IsNcclTests("[1,2]"));
  EXPECT_FALSE(IsNcclTests("collective,size\n"));
  EXPECT_FALSE(IsNcclTests("NPUs Count,4\n"));
}

}  // namespace
}  // namespace xccl
