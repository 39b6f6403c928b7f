// xccl-synth plan from outside: from plans, for groups, for a training step, with proofs.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "ir/known_machines.h"
#include "tests/testing/cli.h"

namespace xccl {
namespace {

TEST_F(Cli, PlanStartsFromAPlanOfTheSameMachineAndCollective) {
  RingPlan("a.json");
  const auto plan = [&](const std::string& machine, const std::string& collective) {
    return Run({"plan", machine, "-c", collective, "-s", "64KiB", "--from", "a.json", "--json"});
  };
  const Json from =
      Json::parse(Out({"plan", "torus:2x2", "-c", "allgather", "-s", "64KiB", "--from", "a.json", "--json"}));
  const Json ring =
      Json::parse(Out({"plan", "torus:2x2", "-c", "allgather", "-s", "64KiB", "-e", "ring", "--json"}));
  EXPECT_EQ(from["engine"], "greedy");
  EXPECT_EQ(from["chunks_per_rank"], ring["chunks_per_rank"]);
  EXPECT_LE(from["time_us"], ring["time_us"]);
  EXPECT_EQ(plan("torus:2x2", "reduce_scatter").err,
            "xccl-synth: a.json: a plan for allgather; expected reduce_scatter\n");
}

TEST_F(Cli, APlanThatIsNotMadeFasterKeepsItsEngine) {
  Out({"plan", "dgx1", "-c", "allreduce", "-e", "ring", "-s", "64MiB", "-o", "a.json"});
  const Json from = Json::parse(Out({"plan", "dgx1", "-c", "allreduce", "--from", "a.json", "--json"}));
  const Json ring = Json::parse(Out({"plan", "dgx1", "-c", "allreduce", "-e", "ring", "--json"}));
  EXPECT_EQ(from["time_us"], ring["time_us"]);
  EXPECT_EQ(from["engine"], "ring");
  const std::string text = Out({"plan", "dgx1", "-c", "allreduce", "--from", "a.json"});
  EXPECT_NE(text.find("  engine     ring (chosen by auto): as in a.json, which greedy did not make faster\n"),
            std::string::npos)
      << text;
}

// smt shows its questions to the solver on the terminal's line, while it plans and while the plan is
// explained.
TEST_F(Cli, PlansOfEnginesThatTellWhatTheyDoAreExplained) {
  const std::string text = Out({"plan", "ring:3", "-c", "allgather", "-e", "smt", "--explain"});
  EXPECT_NE(text.find("  engine     smt"), std::string::npos) << text;
  EXPECT_NE(text.find("\nwhy\n  bound      "), std::string::npos) << text;
}

// A plan has a program where it is asked for, and where it is kept in a file, unless that is refused.
TEST_F(Cli, LowersWhereAsked) {
  const auto lowered = [&](const Words& more) {
    Words all = {"plan", "ring:4", "-c", "allgather", "-e", "ring", "-s", "64KiB", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return !Json::parse(Out(all))["time_program_us"].is_null();
  };
  EXPECT_FALSE(lowered({}));
  EXPECT_TRUE(lowered({"--lower"}));
  EXPECT_TRUE(lowered({"-o", "a.json"}));
  EXPECT_EQ(Run({"run", "a.json", "--iters", "1"}).code, 0);
  EXPECT_FALSE(lowered({"-o", "b.json", "--lower=false"}));
  ExpectWrong({{},
               1,
               "b.json: no program in the plan, and its schedule is not compressed; expected one of the two; "
               "hint: xccl-synth plan ... --lower -o FILE writes a program"},
              Run({"run", "b.json"}));
}

TEST_F(Cli, OneRankHasNothingToMove) {
  const std::string text = Out({"plan", "dgx1", "-c", "allreduce", "--ranks", "2"});
  EXPECT_NE(text.find("  engine     none: nothing to move\n"), std::string::npos) << text;
  EXPECT_EQ(Json::parse(Out({"plan", "dgx1", "-c", "allreduce", "--ranks", "2", "--json"}))["engine"],
            "none");
  const std::string named = Out({"plan", "dgx1", "-c", "allreduce", "--ranks", "2", "-e", "ring"});
  EXPECT_NE(named.find("  engine     ring: nothing to move\n"), std::string::npos) << named;
}

// Repaired plans near the bound are kept: docs/tutorial.md has one, whose commands docs_commands_test runs.
TEST_F(Cli, PlansForAMachineAsItWasAreRepairedOrMadeAnew) {
  RingPlan("a.json");
  const Words damaged = {"plan", "torus:2x2", "-c", "allgather", "-s", "64KiB", "--without-link", "0<->1"};
  const auto with = [&](const Words& more) {
    Words words = damaged;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Json repaired = Json::parse(Run(with({"--from", "a.json", "--json"})).out);
  EXPECT_NE(repaired["engine"], "replan");
  EXPECT_EQ(repaired["ranks"], 4);
  const Said said = Run(with({"--from", "a.json", "-o", "b.json"}));
  const std::regex faster("planned anew: [0-9.]+us in place of [0-9.]+us for the repaired plan");
  EXPECT_TRUE(std::regex_search(said.out, faster)) << said.out;
  EXPECT_EQ(said.err, "");
  EXPECT_NE(Out({"verify", "b.json"}).find("b.json"), std::string::npos);
  // Ranks that exchange partial sums form no trees, so the plan is made from scratch, and the output says so.
  Out({"plan", "full-mesh:4", "-c", "allreduce", "-e", "recursive-doubling", "-s", "1KiB", "-o", "c.json"});
  const std::string anew = Out({"plan", "full-mesh:4", "-c", "allreduce", "-s", "1KiB", "--without-link",
                                "0<->1", "--from", "c.json"});
  EXPECT_NE(anew.find("planned anew: rank 0 sends two partial sums of chunk 0"), std::string::npos) << anew;
}

TEST_F(Cli, PlansMadeAnewAreThoseWithoutFrom) {
  Out({"plan", "dgx1", "-c", "allreduce", "-s", "64MiB", "-e", "ring", "-o", "a.json"});
  Out({"plan", "ring:8", "-c", "allgather", "-e", "ring", "-o", "b.json"});
  // Chunks of 64 MiB wait for one another at 17 KiB.
  const auto time = [&](const Words& more) {
    Words all = {"plan", "dgx1", "-c", "allreduce", "--without-link", "0->1", "-s", "17KiB", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return Json::parse(Out(all))["time_us"];
  };
  EXPECT_EQ(time({"--from", "a.json"}), time({}));
  const std::string machine = "ring:8@bandwidth=40GB/s";
  const std::string other = Run({"plan", machine, "-c", "allgather", "--from", "b.json"}).err;
  EXPECT_EQ(other, "warning: b.json: a plan for ring:8; this machine is " + machine +
                       ", and what they have alike was kept\n");
}

TEST_F(Cli, IdleRanksRelayUnlessTheyMustNot) {
  const auto plan = [&](const Words& more) {
    Words arguments = {"plan", "torus:4x4", "-c", "allreduce", "--ranks", "0-3", "-s", "1MiB"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Out(arguments);
  };
  const Json with = Json::parse(plan({"--json"}));
  const Json without = Json::parse(plan({"--no-relays", "--json", "-o", "a.json"}));
  EXPECT_FALSE(with["relays"].empty());
  for (const Json& rank : with["relays"]) EXPECT_GE(rank, 4);
  EXPECT_EQ(without["relays"], Json::array());
  EXPECT_LT(with["time_us"], without["time_us"]);
  EXPECT_LT(with["bound_us"], without["bound_us"]);
  EXPECT_NE(plan({}).find(fmt::format("  relays     {} of 12 idle ranks: ", with["relays"].size())),
            std::string::npos);
  EXPECT_NE(plan({"--no-relays"}).find("  relays     none of 12 idle ranks\n"), std::string::npos);
  EXPECT_EQ(Run({"run", "a.json", "--sizes", "64KiB", "--iters", "1"}).code, 0);
  const Words bound = {"bound", "torus:4x4", "-c",   "allreduce",  "--ranks",
                       "0-3",   "-s",        "1MiB", "--no-relays"};
  EXPECT_NE(Out(bound), Out({bound.begin(), bound.end() - 1}));
  ExpectWrong({{"apart"},
               3,
               "torus:4x4: no path from rank 0 to rank 5, which allreduce needs; hint: without --no-relays"},
              Run({"plan", "torus:4x4", "-c", "allreduce", "--ranks", "0,5", "--no-relays"}));
}

TEST_F(Cli, SeveralGroupsArePlannedTogether) {
  Write("groups.json",
        R"({"name":"step","groups":[{"name":"tp0","collective":"allreduce","size":"1MiB","ranks":"0-3"},
            {"name":"tp1","collective":"allreduce","size":"1MiB","ranks":"4-7","count":2},
            {"name":"dp0","collective":"allgather","size":65536,"ranks":[0,4]}]})");
  const Json plan = Json::parse(Out({"plan", "dgx1", "--groups", "groups.json", "-o", "a.json", "--json"}));
  EXPECT_EQ(plan["engine"], "groups");
  EXPECT_EQ(plan["file"], "a.json");
  EXPECT_LE(plan["time_us"], plan["unaware_us"]);
  ASSERT_EQ(plan["groups"].size(), 3u);
  for (const Json& group : plan["groups"]) {
    EXPECT_EQ(Keys(group), (Words{"name", "collective", "ranks", "size_bytes", "count", "engine",
                                  "time_alone_us", "time_together_us", "bound_us", "busbw_gb_per_s"}));
    EXPECT_LE(group["time_together_us"], plan["time_us"]);
  }
  EXPECT_EQ(plan["groups"][1]["count"], 2);
  // The plan of all groups is a plan like any other.
  EXPECT_EQ(Json::parse(Out({"verify", "a.json", "--json"}))["ok"], true);
  const Json simulated = Json::parse(Out({"simulate", "a.json", "--json"}));
  EXPECT_EQ(simulated[0]["size_bytes"], plan["size_bytes"]);
  EXPECT_EQ(simulated[0]["time_us"], plan["time_us"]);
  EXPECT_EQ(Run({"run", "a.json", "--sizes", "64KiB", "--iters", "1"}).code, 0);
  const std::string text = Out({"plan", "dgx1", "--groups", "groups.json"});
  EXPECT_EQ(text.rfind("step on dgx1: 8 ranks, ", 0), 0u) << text;
  EXPECT_NE(text.find("\ntp1    allreduce     4-7   1MiB "), std::string::npos) << text;
  Write("two.json",
        R"({"name":"step","groups":[{"name":"a","collective":"allreduce","size":"1MiB","ranks":"0,5"}]})");
  ExpectWrong({{"groups"}, 3, "torus:4x4: no path from rank 0 to rank 5, which step needs"},
              Run({"plan", "torus:4x4", "--groups", "two.json", "--no-relays"}));
}

TEST_F(Cli, ATrainingStepIsPlannedLineByLine) {
  const Words arguments = {"plan",     "leaf-spine:2x2x4",
                           "--for",    "sp,pp,zero1",
                           "--llm",    "llama-3-8b",
                           "--tp",     "4",
                           "--pp",     "2",
                           "--seq",    "512",
                           "--params", "20000000",
                           "-o",       "book"};
  Words with_json = arguments;
  with_json.push_back("--json");
  const Json plan = Json::parse(Out(with_json));
  EXPECT_EQ(Keys(plan),
            (Words{"model", "params", "tp", "ulysses", "dp", "ep", "pp", "step_us", "total_s", "lines"}));
  EXPECT_EQ(plan["params"], 20'000'000);
  EXPECT_EQ(plan["dp"], 1);
  // One rank holds each parameter, so there is nothing for zero1 to do.
  ASSERT_EQ(plan["lines"].size(), 4u);
  double share = 0, step_us = 0;
  for (const Json& line : plan["lines"]) {
    EXPECT_EQ(Keys(line),
              (Words{"for", "what", "collective", "groups", "ranks", "size_bytes", "count", "engine",
                     "time_us", "bound_us", "ratio", "busbw_gb_per_s", "step_us", "share", "file"}));
    share += line["share"].get<double>();
    step_us += line["step_us"].get<double>();
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_NEAR(step_us, plan["step_us"].get<double>(), 1e-3);
  EXPECT_EQ(plan["lines"][0]["size_bytes"], 512 * 4096 * 2);
  EXPECT_EQ(plan["lines"][0]["count"], 4 * 16 * 2);
  EXPECT_EQ(plan["lines"][0]["file"], "sp-activations-allgather.plan.json");
  EXPECT_EQ(Json::parse(Read("book/index.json"))["plans"].size(), 3u);  // both directions of pp have one size
  EXPECT_EQ(Run({"run", "book", "--sizes", "64KiB", "--iters", "1"}).code, 0);
  EXPECT_EQ(
      Out(arguments).rfind("llama-3-8b on leaf-spine:2x2x4: 0.0 billion parameters, tp 4 dp 1 pp 2\n", 0),
      0u);
}

// A stand-in for xccl-synth shows how it was called, and where.
TEST_F(Cli, TheTrainingExampleRunsFromAnyFolder) {
  Write("xccl-synth", "#!/bin/sh\nbasename \"$PWD\"; echo \"$@\"\n");
  std::filesystem::permissions(folder_ + "/xccl-synth", std::filesystem::perms::owner_all);
  const std::string script = std::filesystem::current_path().string() + "/examples/llama70b.sh";
  const Said said = Shell("PATH=$PWD:/usr/bin:/bin bash " + script + " book");
  EXPECT_EQ(said.err, "");
  EXPECT_EQ(
      said.out,
      "TheTrainingExampleRunsFromAnyFolder\nplan rail-8 --for sp,pp,zero1 --llm llama-3-70b --tp 8 --pp 4 "
      "--micro-batches 16 --grad-bytes 4 -o book\n");
  const Said missing = Shell("PATH=/usr/bin:/bin bash " + script);
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.err,
            "llama70b.sh: no xccl-synth in bazel-bin or PATH; hint: bazel build --config=release "
            "//cli:xccl-synth\n");
}

TEST_F(Cli, SmtSaysInfeasibleAndStopped) {
  ExpectWrong({{"infeasible"},
               3,
               "smt: no allgather on 4 ranks in 1 step: rank 3 is 2 links from rank 0; hint: --steps=2"},
              Run({"plan", "torus:2x2", "-c", "allgather", "-e", "smt", "--steps", "1"}));
  ExpectWrong({{"stopped"}, 5, "smt: allgather on 8 ranks: nothing found within --time-limit=0.001s"},
              Run({"plan", "dgx1", "-c", "allgather", "-e", "smt", "--chunks", "6", "--steps", "3",
                   "--rounds", "7", "--time-limit", "0.001s"}));
}

// Every engine and command exits alike where a rank is too far away, and every hint works.
TEST_F(Cli, TooFewStepsNameThoseThatWork) {
  const struct {
    const char* engine;
    const char* collective;
    const char* steps;
    int code;
    const char* text;
    const char* hint;
  } cases[] = {
      {"auto", "allgather", "1", 3, "auto: no allgather on 8 ranks in 1 step: rank 5 is 2 links from rank 0",
       "2"},
      {"ring", "allgather", "1", 3, "ring: no allgather on 8 ranks in 1 step: rank 5 is 2 links from rank 0",
       "7"},
      {"smt", "allgather", "1", 3, "smt: no allgather on 8 ranks in 1 step: rank 5 is 2 links from rank 0",
       "2"},
      {"auto", "reduce", "1", 3, "auto: no reduce on 8 ranks in 1 step: rank 0 is 2 links from rank 5", "2"},
      {"auto", "allreduce", "2", 5, "auto: no engine has a plan for allreduce on 8 ranks in 2 steps", "3"},
      {"ring", "allgather", "2", 5, "ring: takes 7 steps; expected at most 2", "7"},
      {"greedy", "alltoall", "2", 5,
       "greedy: alltoall on dgx1: 6 steps at least were used; at most 2 are allowed", "6"},
  };
  for (const auto& c : cases) {
    Words plan = {"plan", "dgx1", "-c", c.collective, "-e", c.engine, "-s", "64KiB", "--steps", c.steps};
    const std::string text = fmt::format("{}; hint: --steps={}", c.text, c.hint);
    ExpectWrong({plan, c.code, text}, Run(plan));
    plan[plan.size() - 1] = c.hint;
    EXPECT_EQ(Run(plan).code, 0) << c.engine << " " << c.collective;
    ExpectWrong({{"compare"},
                 c.code,
                 fmt::format("compare: no engine has a plan for {} on dgx1: {}", c.collective, text)},
                Run({"compare", "dgx1", "-c", c.collective, "--engines", c.engine, "--sizes", "64KiB",
                     "--steps", c.steps}));
  }
  // In so few steps sums end in different orders.
  const Words sums = {"plan", "ring:8", "-c", "allreduce", "-e", "smt", "-s", "64KiB", "--steps"};
  const auto with = [&](const Words& more) {
    Words words = sums;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  ExpectWrong({{"smt"},
               3,
               "smt: no allreduce on 8 ranks in 1 step: rank 4 is 4 links from rank 0; hint: --steps=4 "
               "--allow-divergent"},
              Run(with({"1"})));
  EXPECT_EQ(Run(with({"4", "--allow-divergent"})).code, 0);
}

TEST_F(Cli, ParetoFront) {
  const Json front = Json::parse(Out({"plan", "dgx1", "-c", "alltoall", "--pareto", "--json"}));
  ASSERT_EQ(front.size(), 1u);
  EXPECT_EQ(Keys(front[0]), (Words{"chunks", "steps", "rounds", "cost", "cost_value", "bound", "proved_by",
                                   "proved_chunks", "found_by", "seconds", "front_complete"}));
  EXPECT_EQ(front[0]["cost"], "8/3");
  EXPECT_EQ(front[0]["proved_by"], "flow");
  const std::string text = Out({"plan", "ring:4", "-c", "allgather", "-e", "smt", "--pareto"});
  EXPECT_NE(text.find("complete: no number of chunks does better in as many steps"), std::string::npos)
      << text;
  const auto plan = [](Words more) {
    Words all = {"plan", "ring:4", "-c", "allgather", "--pareto"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  for (const Wrong& wrong : std::vector<Wrong>{
           {plan({"-e", "ring"}), 2, "--pareto: ring proves no front; expected smt"},
           {plan({"--rounds", "3"}), 2, "--pareto: finds the rounds; expected no --rounds"},
           {plan({"--from", "a.json"}), 2, "--pareto: starts from no plan; expected no --from"},
           {plan({"--lower"}), 2, "--pareto: makes no program; expected no --lower"},
           {plan({"-o", "a.json"}), 2,
            "--pareto: writes no plan; expected no --output, or --chunks, --steps and --rounds of a point"}})
    ExpectWrong(wrong, Run(wrong.arguments));
}

TEST_F(Cli, TheSameFlagsGiveTheSameBytes) {
  for (const char* engine : {"auto", "ring", "tree", "greedy", "direct"}) {
    SCOPED_TRACE(engine);
    for (const char* file : {"a.json", "b.json"})
      Out({"plan", "dgx1", "-c", "allreduce", "-e", engine, "-s", "1MiB", "-o", file});
    EXPECT_TRUE(Read("a.json") == Read("b.json"));
    EXPECT_EQ(Keys(Json::parse(Read("a.json"))["made_by"]),
              (Words{"engine", "seed", "limits", "version", "size_bytes", "model"}));
  }
}

// The README's lines, at a smaller size: what --without-link names is in the file that the line before wrote.
TEST_F(Cli, AClusterWrittenAsXmlLosesALinkAndIsRepaired) {
  Write("cluster.xml", Out({"topo", "dgx-h100", "--hosts", "2", "--format", "xml"}));
  EXPECT_EQ(Out({"topo", "cluster.xml", "--format", "xml"}), Read("cluster.xml"));
  const Words plan = {"plan", "cluster.xml", "-c", "allgather", "-s", "1MiB"};
  const auto with = [&](const Words& more) {
    Words all = plan;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  Out(with({"-o", "ag.plan.json"}));
  const std::string repaired = Run(with({"--without-link", "h0/0->h0/nic0", "--from", "ag.plan.json"})).out;
  EXPECT_EQ(repaired.find("allgather on 2x dgx-h100: 16 ranks, 1MiB"), 0u) << repaired;
  ExpectWrong(
      {{"without"},
       1,
       "--without-link: link h0/0->h0/mlx5_0: no node mlx5_0 in h0; nodes are 0..7, nvswitch, nic0..nic7"},
      Run({"topo", "cluster.xml", "--without-link", "h0/0->h0/mlx5_0"}));
}

// 2d-mesh's schedule is the fastest, or about as fast and of fewer messages; forest's program is faster.
TEST_F(Cli, TheProgramsTimeDecidesWhatIsWritten) {
  const Words plan = {"plan", "mesh:3x5", "-c", "allreduce", "-s", "4MiB", "--machine", "none", "--json"};
  const auto with = [&](const Words& more) {
    Words all = plan;
    all.insert(all.end(), more.begin(), more.end());
    return Json::parse(Out(all));
  };
  const Json schedule = with({}), written = with({"-o", "a.json"});
  const Json mesh = with({"-e", "2d-mesh", "-o", "b.json"});
  EXPECT_EQ(schedule["engine"], "2d-mesh");
  EXPECT_DOUBLE_EQ(schedule["ratio"], schedule["time_us"].get<double>() / schedule["bound_us"].get<double>());
  EXPECT_EQ(written["engine"], "forest");
  EXPECT_LT(written["time_program_us"], mesh["time_program_us"]);
  EXPECT_DOUBLE_EQ(written["ratio"],
                   written["time_program_us"].get<double>() / written["bound_us"].get<double>());
  EXPECT_NE(Out({"plan", "mesh:3x5", "-c", "allreduce", "-s", "4MiB", "--machine", "none", "-o", "a.json"})
                .find("fastest program of "),
            std::string::npos);
}

TEST_F(Cli, TheMachineOfTheGpusTimesThePrograms) {
  const std::string hopper = HopperModel().source;
  const Words plan = {"plan", "dgx-h100", "-c", "allreduce", "-s", "8KiB"};
  const auto with = [&](const Words& more) {
    Words all = plan;
    all.insert(all.end(), more.begin(), more.end());
    return Out(all);
  };
  // Without a program the time is the schedule's.
  EXPECT_TRUE(Json::parse(with({"--lower=false", "--json"}))["machine"].is_null());
  EXPECT_NE(with({"--lower=false"}).find("  machine    with --lower: the program's time by " + hopper + "\n"),
            std::string::npos);
  EXPECT_EQ(Json::parse(with({"--json"}))["machine"], hopper);
  EXPECT_NE(with({"-o", "on.json"})
                .find("  in flight  32 x 64KiB in 3.571us: 587.2GB/s at most; a GPU's links to GPUs reach "
                      "370.8GB/s\n"),
            std::string::npos)
      << with({"-o", "on.json"});
  const Json on = Json::parse(with({"-o", "on.json", "--json"})),
             off = Json::parse(with({"-o", "off.json", "--machine", "none", "--json"}));
  EXPECT_EQ(on["machine"], hopper);
  EXPECT_TRUE(off["machine"].is_null());
  EXPECT_EQ(on["time_us"], off["time_us"]);
  EXPECT_GT(on["time_program_us"], 3 * off["time_program_us"].get<double>());
  EXPECT_LT(on["messages"], 896);
  // Each is simulated as it was planned.
  const auto simulated = [&](const Words& words) {
    Words all = {"simulate", "--level", "program", "--json"};
    all.insert(all.end(), words.begin(), words.end());
    return Json::parse(Out(all))[0];
  };
  EXPECT_EQ(simulated({"on.json"})["time_us"], on["time_program_us"]);
  EXPECT_EQ(simulated({"on.json"})["machine"], hopper);
  EXPECT_EQ(simulated({"off.json"})["time_us"], off["time_program_us"]);
  EXPECT_TRUE(simulated({"off.json"})["machine"].is_null());
  EXPECT_TRUE(simulated({"on.json", "--machine", "none"})["machine"].is_null());
  EXPECT_EQ(Json::parse(Out({"simulate", "on.json", "--machine", "hopper", "--json"}))[0]["time_us"],
            on["time_program_us"]);
  EXPECT_EQ(Run({"simulate", "on.json", "--level", "schedule", "--machine", "hopper"}).err,
            "xccl-synth: --machine: only programs run on machines; hint: --level=program\n");
  // Engines are ranked by programs, and by schedules without a machine.
  const Words compare = {"compare", "dgx-h100", "-c",        "allreduce",          "--sizes",
                         "8KiB",    "--json",   "--engines", "auto,ring,multicast"};
  Words ideal = compare;
  ideal.insert(ideal.end(), {"--machine", "none"});
  const Json programs = Json::parse(Out(compare)), schedules = Json::parse(Out(ideal));
  ASSERT_EQ(programs.size(), 3u);
  EXPECT_EQ(programs[0]["engine"], "auto");
  EXPECT_EQ(programs[0]["time_us"], on["time_program_us"]);
  EXPECT_EQ(programs[0]["machine"], hopper);
  EXPECT_EQ(schedules[0]["time_us"], off["time_us"]);
  EXPECT_TRUE(schedules[0]["machine"].is_null());
}

// Small sizes: plans of tiny messages are not taken for a gain of a hundredth.
TEST_F(Cli, SmallSizesTakeFewMessages) {
  const struct {
    Words machine;
    int64_t most;
  } cases[] = {{{"ring:8", "-c", "allreduce"}, 112},
               {{"rail-2", "-c", "alltoall"}, 900},  // 240 take 2.3 % longer
               {{"torus:8x8", "-c", "allgather"}, 960}};
  for (const auto& c : cases) {
    Words plan = {"plan"};
    plan.insert(plan.end(), c.machine.begin(), c.machine.end());
    plan.insert(plan.end(), {"-s", "8KiB", "--json"});
    EXPECT_LE(Json::parse(Out(plan))["messages"], c.most) << c.machine[0];
  }
}

}  // namespace
}  // namespace xccl
