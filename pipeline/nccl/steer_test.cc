#include "pipeline/nccl/steer.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xccl::nccl {
namespace {

// As nccl-tests 2.19 writes with -J: two sizes on two ranks of one host.
std::string Written(const std::string& program, const std::string& env, double first_us, double second_us) {
  return fmt::format(
      R"({{"version":2,"start_time":"2026-01-01 00:00:00","args":["./build/{}","-b","1K"],
  "env":["HOME=/root"{}],"nccl_version":22809,"config":{{"nthreads":1}},
  "devices":[{{"rank":0,"group":0,"pid":1,"hostname":"a","device":0,"device_hex":"0000:04:00","device_info":"H100"}},
             {{"rank":1,"group":0,"pid":1,"hostname":"a","device":1,"device_hex":"0000:05:00","device_info":"H100"}}],
  "results":[{{"size":1024,"count":256,"type":"float","redop":"sum","root":"    -1",
      "out_of_place":{{"time":{},"alg_bw":0.1,"bus_bw":0.1,"nwrong":0.0}},"in_place":null,"actual_iterations":20}},
     {{"size":4096,"count":1024,"type":"float","redop":"sum","root":"    -1",
      "out_of_place":{{"time":{},"alg_bw":0.1,"bus_bw":0.1,"nwrong":0.0}},"in_place":null,"actual_iterations":20}}],
  "out_of_bounds":{{"count":0,"okay":"true"}}}})",
      program, env, first_us, second_us);
}

TestRun Read(const std::string& text) { return ReadTestRun(text, "t.json").value(); }

TEST(NcclTests, FasterChoicesBecomeRows) {
  const std::vector<TestRun> runs = {
      Read(Written("all_reduce_perf", "", 10.5, 12)),
      Read(Written("all_reduce_perf", R"(,"NCCL_ALGO=Tree","NCCL_PROTO=ll")", 8, 11.9)),
      Read(Written(
          "all_reduce_perf",
          R"(,"NCCL_ALGO=nvlstree","NCCL_PROTO=Simple","NCCL_MIN_NCHANNELS=4","NCCL_MAX_NCHANNELS=4")", 9,
          6))};
  EXPECT_EQ(runs[0].ranks, 2);
  EXPECT_EQ(runs[0].nodes, 1);
  const std::vector<nccl_tuner::Row> rows = Steer(runs, 1.1).value();
  EXPECT_EQ(nccl_tuner::WriteTable(rows),
            "xccl-tuner 1\n"
            "allreduce max_bytes=1024 nodes=1 ranks=2 algorithm=tree protocol=ll\n"
            "allreduce min_bytes=4096 max_bytes=4096 nodes=1 ranks=2 algorithm=nvls_tree protocol=simple "
            "channels=4\n");
}

TEST(NcclTests, NothingIsSaidWhereNcclIsFastEnough) {
  const std::vector<TestRun> runs = {
      Read(Written("all_gather_perf", "", 10, 10)),
      Read(Written("all_gather_perf", R"(,"NCCL_ALGO=ring","NCCL_PROTO=LL")", 9.5, 20))};
  EXPECT_TRUE(Steer(runs, 1.1).value().empty());
}

std::string Refused(const std::string& text) { return ReadTestRun(text, "t.json").status().message(); }

TEST(NcclTests, SayWhatIsWrong) {
  EXPECT_EQ(Refused(Written("alltoall_perf", "", 1, 1)),
            "t.json: args: program 'alltoall_perf'; expected all_reduce_perf, all_gather_perf, "
            "reduce_scatter_perf, broadcast_perf or reduce_perf");
  EXPECT_EQ(Refused(Written("all_reduce_perf", R"(,"NCCL_ALGO=ring,tree","NCCL_PROTO=LL")", 1, 1)),
            "t.json: env: NCCL_ALGO 'ring,tree'; expected one algorithm");
  EXPECT_EQ(Refused(Written("all_reduce_perf", R"(,"NCCL_ALGO=ring")", 1, 1)),
            "t.json: env: NCCL_PROTO ''; expected one protocol");
  EXPECT_EQ(Refused(Written("all_reduce_perf", R"(,"NCCL_ALGO=ring","NCCL_PROTO=LL","NCCL_MAX_NCHANNELS=4")",
                            1, 1)),
            "t.json: env: NCCL_MIN_NCHANNELS '' and NCCL_MAX_NCHANNELS '4'; expected both, equal, of 1..64");
  EXPECT_EQ(Refused(Written("all_reduce_perf", "", 1, 0)),
            "t.json: results[1].out_of_place.time: 0; expected more than 0");
  EXPECT_EQ(Refused("{}"), "t.json: no key 'args'; expected one");
  EXPECT_EQ(Refused("# size count type redop root time\n 8 2 float sum -1 9.1\n"),
            "t.json: a table, which does not say NCCL_ALGO; expected what nccl-tests writes with -J");
  const std::vector<TestRun> alone = {
      Read(Written("all_reduce_perf", R"(,"NCCL_ALGO=ring","NCCL_PROTO=LL")", 1, 1))};
  EXPECT_EQ(
      Steer(alone, 1.1).status().message(),
      "--from: 2 ranks on 1 hosts ran with NCCL_ALGO alone; expected a run of NCCL's own choice beside it");
}

}  // namespace
}  // namespace xccl::nccl
