// Plans of expert dispatch and combine from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/cli.h"

namespace xccl {
namespace {

const std::vector<std::string> kSmall = {"plan",  "rail-2",  "-c",      "dispatch", "--experts",
                                         "32",    "--top-k", "4",       "--tokens", "64",
                                         "--row", "256B",    "--draws", "5"};

std::vector<std::string> With(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(Cli, ExpertsArePlannedProvedSimulatedAndRun) {
  for (const char* call : {"dispatch", "combine"})
    for (const char* aim : {"latency", "throughput"}) {
      std::vector<std::string> words =
          With(kSmall, {"--aim", aim, "--routing", "zipf:1.0", "-o", "moe.json", "--json"});
      words[3] = call;
      const Json row = Json::parse(Out(words));
      EXPECT_EQ(row["engine"], "experts");
      EXPECT_EQ(row["ranks"], 16);
      EXPECT_EQ(row["draws"], 5);
      EXPECT_EQ(row["file"], "moe.json");
      EXPECT_GE(row["ratio_median"], 1.0);
      EXPECT_GE(row["ratio_p99"], row["ratio_median"]);
      EXPECT_GE(row["time_p99_us"], row["time_median_us"]);
      EXPECT_GE(row["time_median_us"], row["bound_median_us"]);
      for (const char* beside : {"deepep_route_us", "pairwise_us", "padded_us"})
        EXPECT_GE(row[beside], row["bound_median_us"]) << beside;
      EXPECT_THAT(Out({"verify", "moe.json"}),
                  testing::HasSubstr("proved for every routing of up to 64 tokens"));
      const Json simulated = Json::parse(Out({"simulate", "moe.json", "--routing", "zipf:1.0", "--json"}));
      EXPECT_GE(simulated[0]["time_us"], simulated[0]["bound_us"]);
      const Json ran =
          Json::parse(Out({"run", "moe.json", "--routing", "zipf:1.0", "--iters", "2", "--json"}));
      ASSERT_EQ(ran.size(), 4U);
      for (const Json& one : ran) EXPECT_EQ(one["wrong"], 0);
    }
}

TEST_F(Cli, AFileOfARoutingIsDispatched) {
  Write("routing.csv", "0,5,6\n3,-1,2\n");
  Out({"plan", "full-mesh:4", "-c", "dispatch", "--experts", "8", "--top-k", "2", "--tokens", "4", "--row",
       "64B", "--routing", "routing.csv", "-o", "moe.json"});
  const Json ran =
      Json::parse(Out({"run", "moe.json", "--routing", "routing.csv", "--iters", "1", "--json"}));
  EXPECT_EQ(ran[0]["wrong"], 0);
  EXPECT_EQ(ran[1]["wrong"], 0);
}

TEST_F(Cli, WrongFlagsOfExpertsAreRefused) {
  const auto refusal = [&](const std::vector<std::string>& words) {
    const Said said = Run(words);
    EXPECT_EQ(said.code, 2) << said.err;
    return said.err;
  };
  EXPECT_THAT(refusal({"plan", "gb200-nvl72", "-c", "dispatch"}),
              testing::StartsWith(
                  "xccl-synth: experts: 256 on 72 ranks; expected a multiple of 72; hint: --experts=288"));
  EXPECT_THAT(refusal({"plan", "rail-2", "-c", "dispatch", "--experts", "16", "--top-k", "17"}),
              testing::StartsWith("xccl-synth: top-k: 17 of 16 experts; expected at most as many as there "
                                  "are experts; hint: --top-k=16"));
  EXPECT_THAT(refusal({"plan", "rail-2", "-c", "dispatch", "--size", "1MiB"}),
              testing::StartsWith("xccl-synth: --size: not together with --collective dispatch"));
  EXPECT_THAT(
      refusal({"plan", "rail-2", "-c", "allreduce", "--tokens", "16"}),
      testing::StartsWith("xccl-synth: --tokens: only together with --collective dispatch or combine"));
}

TEST_F(Cli, OtherCommandsNameAPlanOfExperts) {
  Out(With(kSmall, {"-o", "moe.json"}));
  const Said said = Run({"emit", "moe.json", "--to", "cuda"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, testing::HasSubstr("moe.json: this is a plan of expert dispatch; expected a plan"));
  RingPlan("a.json");
  EXPECT_THAT(Run({"run", "a.json", "--routing", "uniform"}).err,
              testing::StartsWith("xccl-synth: --routing: only for plans of expert dispatch"));
  EXPECT_THAT(
      Run({"run", "moe.json", "--sizes", "1KiB"}).err,
      testing::StartsWith("xccl-synth: --sizes: moe.json is a plan of expert dispatch; expected no --sizes"));
}

}  // namespace
}  // namespace xccl
