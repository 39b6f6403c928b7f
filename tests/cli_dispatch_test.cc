// Plans of expert dispatch and combine from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
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

TEST_F(Cli, ExpertsRunAsProcessesAndAsRanksOfALauncher) {
  Out({"plan", "full-mesh:4", "-c", "dispatch", "--experts", "8", "--top-k", "2", "--tokens", "16", "--row",
       "64B", "-o", "moe.json"});
  const Words run = {"run", "moe.json", "--routing", "zipf:1.0", "--iters", "3", "--timeout", "20s"};
  const Json ran = Json::parse(Out(With(run, {"--processes", "--json"})));
  ASSERT_EQ(ran.size(), 6U);
  for (const Json& one : ran) EXPECT_EQ(one["wrong"], 0);
  EXPECT_THAT(Out(With(run, {"--processes"})), testing::HasSubstr("4 ranks as processes, 16 tokens a rank"));

  // Processes that are ranks 0, 1, ... of a run, each with its flags.
  const auto launched = [&](const std::vector<Words>& flags) {
    const std::string address = "127.0.0.1:" + std::to_string(20000 + getpid() % 20000);
    std::vector<std::unique_ptr<Command>> ranks;
    for (size_t r = 0; r < flags.size(); ++r)
      ranks.push_back(
          std::make_unique<Command>(SynthProgram(),
                                    With(With(run, {"--rank", std::to_string(r), "--ranks",
                                                    std::to_string(flags.size()), "--address", address}),
                                         flags[r]),
                                    folder_));
    std::vector<Said> said;
    for (const std::unique_ptr<Command>& rank : ranks) said.push_back(rank->Wait());
    return said;
  };
  const std::vector<Said> good = launched({{}, {}, {}, {}});
  for (const Said& rank : good) EXPECT_EQ(rank.code, 0) << rank.err;
  EXPECT_THAT(good[0].out, testing::HasSubstr("4 ranks as processes"));
  EXPECT_EQ(good[1].out, "");
  for (const Said& rank : launched({{}, {}, {"--tokens", "5"}, {}})) {
    EXPECT_EQ(rank.code, 1);
    EXPECT_THAT(rank.err, testing::HasSubstr("another --routing, --tokens, --dtype or --iters than rank 0"));
  }
  for (const Said& rank : launched({{}, {}}))
    EXPECT_THAT(rank.err, testing::HasSubstr("moe.json: a plan for 4 ranks; 2 processes were started"));
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

// A plan says for how many tokens it holds, and a simulation draws so many.
TEST_F(Cli, SimulationsOfTooManyTokensAreRefused) {
  Out(With(kSmall, {"-o", "moe.json"}));
  Json plan = Json::parse(Read("moe.json"));
  plan["sizes"]["max_tokens"] = 1 << 20;
  for (Json& slots : plan["hops"]["slots"]) slots = 1 << 30;
  Write("more.json", plan.dump());
  const Said little = Run({"simulate", "more.json", "--memory-limit", "256MiB"});
  EXPECT_EQ(little.code, 5);
  EXPECT_THAT(little.err, testing::HasSubstr("more.json: needs about"));
  ExpectWrong(
      {{"simulate"},
       5,
       "more.json: 16 ranks of 1048576 tokens make 67108864 choices of experts; their simulation takes "
       "about 34 s; expected at most --time-limit=1s; hint: --time-limit=68s"},
      Run({"simulate", "more.json", "--time-limit", "1s"}));
  plan["sizes"]["experts"] = plan["sizes"]["top_k"] = 64;
  Write("most.json", plan.dump());
  ExpectWrong(
      {{"simulate"},
       1,
       "most.json: 16 ranks of 1048576 tokens make 1073741824 choices of experts; at most 268435456 are "
       "simulated; hint: fewer --tokens"},
      Run({"simulate", "most.json"}));
}

// Half a minute of draws does not fit: fewer tokens are drawn, and the output says so.
TEST_F(Cli, PlansOfExpertsKeepTheTimeLimit) {
  const Words words = {"plan",    "rail-2", "-c", "dispatch", "--tokens",     "1048576",
                       "--draws", "1",      "-o", "moe.json", "--time-limit", "6s"};
  const Json row = Json::parse(Out(With(words, {"--json"})));
  EXPECT_EQ(row["draws"], 1);
  EXPECT_LT(row["drawn_tokens"], row["tokens"]);
  EXPECT_THAT(Out(words),
              testing::ContainsRegex("99 % of 1 draw within [^,]*, each drawn token for [0-9]+ alike"));
  EXPECT_THAT(Out({"verify", "moe.json"}), testing::HasSubstr("ok: dispatch"));
  const Json whole = Json::parse(Out(With(kSmall, {"--json", "--time-limit", "60s"})));
  EXPECT_EQ(whole["drawn_tokens"], whole["tokens"]);
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
  EXPECT_THAT(refusal({"plan", "rail-2", "-c", "dispatch", "--dp", "2"}),
              testing::StartsWith("xccl-synth: --dp: not together with --collective dispatch"));
  EXPECT_THAT(
      refusal({"plan", "rail-2", "-c", "allreduce", "--tokens", "16"}),
      testing::StartsWith("xccl-synth: --tokens: only together with --collective dispatch or combine"));
}

TEST_F(Cli, RoutesOfExpertsAreCompared) {
  std::vector<std::string> words = kSmall;
  words[0] = "compare";
  const Json rows = Json::parse(Out(With(words, {"--routing", "zipf:1.0", "--json"})));
  const Json plan = Json::parse(Out(With(kSmall, {"--routing", "zipf:1.0", "--json"})));
  std::set<std::string> routes;
  int chosen = 0;
  double before = 0;
  for (const Json& row : rows) {
    routes.insert(row["route"].get<std::string>());
    EXPECT_GE(row["time_median_us"], before);
    before = row["time_median_us"];
    EXPECT_EQ(row["bound_median_us"], plan["bound_median_us"]);
    if (!row["chosen"].get<bool>()) continue;
    ++chosen;
    EXPECT_EQ(row["route"], plan["route"]);
    EXPECT_EQ(row["time_p99_us"], plan["time_p99_us"]);
  }
  EXPECT_EQ(chosen, 1);
  for (const auto& [route, key] : {std::pair("DeepEP's route", "deepep_route_us"),
                                   {"pairwise alltoallv", "pairwise_us"},
                                   {"padded alltoall", "padded_us"}}) {
    const auto row = std::ranges::find(rows, Json(route), [](const Json& each) { return each["route"]; });
    ASSERT_NE(row, rows.end()) << route;
    EXPECT_EQ((*row)["time_median_us"], plan[key]) << route;
  }
  EXPECT_TRUE(routes.contains("direct") && routes.contains("rail") && routes.contains("same-index"));
  EXPECT_THAT(Out(words), testing::ContainsRegex("rail .* chosen"));
  EXPECT_THAT(Run({"compare", "rail-2", "-c", "dispatch", "--sizes", "1MiB"}).err,
              testing::StartsWith("xccl-synth: --sizes: not together with --collective dispatch"));
  EXPECT_THAT(
      Run({"compare", "ring:4", "-c", "allgather", "--experts", "8"}).err,
      testing::StartsWith("xccl-synth: --experts: only together with --collective dispatch or combine"));
}

TEST_F(Cli, RoutesOfExpertsAreDrawn) {
  Out(With(kSmall, {"-o", "moe.json"}));
  Out({"view", "moe.json", "-o", "moe.svg"});
  Out({"view", "moe.json", "-o", "moe.html"});
  const std::string svg = Read("moe.svg"), page = Read("moe.html");
  const auto count = [](const std::string& text, const std::string& what) {
    size_t times = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
    return times;
  };
  EXPECT_EQ(svg.rfind("<svg", 0), 0U);
  EXPECT_EQ(count(svg, "<circle"), 16U);  // ranks
  EXPECT_EQ(count(svg, "<path"), 15U);    // branches to all others
  EXPECT_THAT(svg, testing::HasSubstr("<title>0 to 8: "));
  EXPECT_EQ(count(page, "<svg"), 8U);  // one for each rank of the first host
  EXPECT_THAT(
      Run({"view", "moe.json", "--size", "1MiB", "-o", "moe.svg"}).err,
      testing::StartsWith("xccl-synth: --size: moe.json is a plan of expert dispatch; expected no --size"));
}

// A limit that the kernels cannot keep is no wish for one block of each role.
TEST_F(Cli, FewerCtasThanRolesOfExpertsAreRefused) {
  Out(With(kSmall, {"-o", "moe.json"}));
  const Said said = Run({"run", "moe.json", "--backend", "cuda", "--max-ctas", "1"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err,
              testing::MatchesRegex("xccl-synth: moe.json: [2-9] CTAs on a rank; --max-ctas allows 1\n"));
}

TEST_F(Cli, ATrainingStepDispatchesToItsExperts) {
  const Json plan = Json::parse(Out({"plan", "rail-2", "--for", "ep", "--llm", "mixtral-8x7b", "--tp", "2",
                                     "--dp", "8", "--seq", "256", "-o", "book", "--json"}));
  ASSERT_EQ(plan["lines"].size(), 2U);
  const char* const calls[] = {"dispatch", "combine"};
  for (size_t i = 0; i < 2; ++i) {
    const Json& line = plan["lines"][i];
    EXPECT_EQ(line["collective"], calls[i]);
    EXPECT_EQ(line["engine"], "experts");
    EXPECT_EQ(line["groups"], 2);
    EXPECT_EQ(line["ranks"], 8);
    EXPECT_EQ(line["count"], 2 * 32);  // forwards and backwards in every layer
    EXPECT_GE(line["ratio"], 1.0);
    EXPECT_THAT(Out({"verify", "book/" + line["file"].get<std::string>()}), testing::HasSubstr("ok: "));
  }
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
