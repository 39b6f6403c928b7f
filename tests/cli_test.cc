// Tests xccl-synth from outside: its output, its exit codes and the files that it leaves.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "synth/engines.h"
#include "tests/testing/command.h"

namespace xccl {
namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

std::string Program() {
  static const std::string program = fs::current_path().string() + "/cli/xccl-synth";
  return program;
}

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  Said Run(const Words& arguments) const { return Command(Program(), arguments, folder_).Wait(); }
  // Runs a command that must succeed, and returns its output.
  std::string Out(const Words& arguments) const {
    const Said said = Run(arguments);
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_EQ(said.err, "");
    return said.out;
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const { return WholeFile(folder_ + "/" + name); }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  void RingPlan(const std::string& file = "a.json") const {
    Out({"plan", "torus:2x2", "-c", "allgather", "-e", "ring", "-s", "64KiB", "-o", file});
  }

  std::string folder_;
};

Words Keys(const Json& object) {
  Words keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

const char kTry[] = "Try: xccl-synth ";

struct Wrong {
  Words arguments;
  int code;
  std::string err;  // without "xccl-synth: " and the last line break
};

void ExpectWrong(const Wrong& wrong, const Said& said) {
  std::string line;
  for (const std::string& word : wrong.arguments) line += " " + word;
  SCOPED_TRACE(line);
  EXPECT_EQ(said.code, wrong.code);
  EXPECT_EQ(said.err, "xccl-synth: " + wrong.err + "\n");
  EXPECT_EQ(said.out, "");
}

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

TEST_F(Cli, PlansForAMachineAsItWasAreRepaired) {
  RingPlan("a.json");
  const Words damaged = {"plan", "torus:2x2", "-c", "allgather", "-s", "64KiB", "--without-link", "0<->1"};
  const auto with = [&](const Words& more) {
    Words words = damaged;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Json repaired = Json::parse(Out(with({"--from", "a.json", "--json"})));
  EXPECT_EQ(repaired["engine"], "replan");
  EXPECT_EQ(repaired["ranks"], 4);
  EXPECT_NE(Out(with({"--from", "a.json"})).find("edges joined anew"), std::string::npos);
  Out(with({"--from", "a.json", "-o", "b.json"}));
  EXPECT_NE(Out({"verify", "b.json"}).find("b.json"), std::string::npos);
  // Ranks that exchange partial sums form no trees, so the plan is made from scratch, and the output says so.
  Out({"plan", "full-mesh:4", "-c", "allreduce", "-e", "recursive-doubling", "-s", "1KiB", "-o", "c.json"});
  const std::string anew = Out({"plan", "full-mesh:4", "-c", "allreduce", "-s", "1KiB", "--without-link",
                                "0<->1", "--from", "c.json"});
  EXPECT_NE(anew.find("planned anew: rank 0 sends two partial sums of chunk 0"), std::string::npos) << anew;
}

TEST_F(Cli, ComparesOnFailedMachines) {
  const Words words = {"compare", "torus:3x3", "-c",       "allgather",  "--sizes",
                       "1MiB",    "--engines", "ring,bfb", "--failures", "3"};
  const std::string text = Out(words);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "allgather on torus:3x3 with 1 of its cables failed, 3 draws: 9 ranks, pipelined model");
  Words json = words;
  json.emplace_back("--json");
  const Json rows = Json::parse(Out(json));
  ASSERT_GE(rows.size(), 2U);
  for (const Json& row : rows) {
    EXPECT_GE(row["ratio"], 1.0);
    EXPECT_GE(row["worst_ratio"], row["ratio"]);
    EXPECT_EQ(row["draws"], 3);
    EXPECT_LE(row["planned"], 3);
  }
  EXPECT_EQ(
      Run({"compare", "ring:4", "-c", "allgather", "--failures", "2", "--failed-cables", "2"}).err,
      "xccl-synth: ring:4 with 2 of its 4 cables failed: none of 100 draws left all ranks within reach\n");
  EXPECT_EQ(Run({"compare", "ring:1", "-c", "allgather", "--failures", "2"}).err,
            "xccl-synth: ring:1: no cables that could fail\n");
  EXPECT_EQ(Run({"compare", "ring:4", "-c", "allgather", "--failed-cables", "2"}).code, 2);
}

TEST_F(Cli, CompareNamesEnginesForOtherCollectivesInOneLine) {
  const std::string all = Out({"compare", "ring:3", "-c", "alltoall", "--sizes", "1KiB", "--engines", "all"});
  EXPECT_NE(all.find("\nleft out: ring, tree, "), std::string::npos) << all;
  EXPECT_NE(all.find(", bfb, forest: not for alltoall\n"), std::string::npos) << all;
  EXPECT_NE(all.find(" smt "), std::string::npos) << all;
  EXPECT_EQ(all.find("does not serve"), std::string::npos) << all;
  const std::string most = Out({"compare", "ring:3", "-c", "alltoall", "--sizes", "1KiB"});
  EXPECT_EQ(most.find("smt"), std::string::npos) << most;
  // An engine that the user named gives its own reason.
  const std::string ring =
      Out({"compare", "ring:3", "-c", "alltoall", "--sizes", "1KiB", "--engines", "ring,direct"});
  EXPECT_NE(ring.find("\nleft out: ring: does not serve alltoall; it serves allreduce, "), std::string::npos)
      << ring;
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
               1,
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
  ExpectWrong({{"groups"}, 1, "torus:4x4: no path from rank 0 to rank 5, which step needs"},
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
  EXPECT_EQ(Keys(plan), (Words{"model", "params", "tp", "ulysses", "dp", "ep", "pp", "step_us", "lines"}));
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

TEST_F(Cli, WrongCommandLines) {
  RingPlan();
  const std::vector<Wrong> cases = {
      {{},
       2,
       std::string("no command; expected topo, bound, plan, verify, simulate, compare, emit, run or tune\n") +
           kTry + "--help"},
      {{"plann", "torus:2x2"},
       2,
       std::string("no command 'plann'; did you mean 'plan'?\n") + kTry + "--help"},
      {{"plan"}, 2, std::string("TOPOLOGY is required\n") + kTry + "plan --help"},
      {{"plan", "torus:2x2", "--sze", "4"},
       2,
       std::string("plan: no option '--sze'; did you mean '--size'?\n") + kTry + "plan --help"},
      {{"verify", "a.json", "b.json"},
       2,
       std::string("verify: unexpected 'b.json'\n") + kTry + "verify --help"},
      {{"topo", "torus:2x2", "--format", "yaml"},
       2,
       std::string("--format: yaml not in {text,xml,json,dot}\n") + kTry + "topo --help"},
      {{"plan", "torus:2x2", "--seed", "99999999999999999999"},
       2,
       std::string(
           "--seed: '99999999999999999999': expected a whole number from 0 to 9223372036854775807\n") +
           kTry + "plan --help"},
      {{"plan", "torus:2x2", "-c", "allgather", "-o", ""},
       2,
       std::string("--output: empty; expected a value\n") + kTry + "plan --help"},
      {{"tune", "torus:2x2", "--collectives", "allgather,x", "-o", "book"},
       2,
       "--collectives: no collective 'x'"},
      {{"plan", "torus:2x2"}, 2, "no collective; hint: --collective=allreduce"},
      {{"plan", "torus:2x2", "-c", "allgater"},
       2,
       "--collective: no collective 'allgater'; did you mean 'allgather'?"},
      {{"plan", "torus:2x2", "-c", "allgather", "-e", "rng"}, 2, "no engine 'rng'; did you mean 'ring'?"},
      {{"plan", "torus:2x2", "-c", "allgather", "-e", "ring", "--from", "a.json"},
       2,
       "--from: ring does not start from a plan; expected auto or greedy"},
      {{"plan", "torus:2x2", "-c", "allgather", "--chunks", "2", "--from", "a.json"},
       2,
       "--chunks: the plan's own chunks are kept with --from; expected one of the two"},
      {{"plan", "torus:2x2", "-c", "allgather", "--groups", "g.json"},
       2,
       "--collective: not together with --groups"},
      {{"plan", "torus:2x2", "--chunks", "2", "--groups", "g.json"},
       2,
       "--chunks: not together with --groups"},
      {{"plan", "torus:2x2", "-s", "1KiB", "--groups", "g.json"}, 2, "--size: not together with --groups"},
      {{"plan", "torus:2x2", "-s", "64MiB", "--for", "tp"}, 2, "--size: not together with --for"},
      {{"plan", "torus:2x2", "--for", "tp", "--llm", "llama-3-8b", "--micro-batches", "7812500"},
       2,
       "--for tp: activations take 1000000000 times 1.007ms; at most 1 day a step is supported"},
      {{"plan", "torus:2x2", "--ranks", "0,1", "--for", "tp"}, 2, "--ranks: not together with --for"},
      {{"plan", "torus:2x2", "--groups", "g.json", "--for", "tp"}, 2, "--groups: not together with --for"},
      {{"plan", "torus:2x2", "-c", "allgather", "--tp", "2"}, 2, "--tp: only together with --for"},
      {{"plan", "torus:2x2", "--for", "tpp"},
       2,
       "--for: no parallelism 'tpp'; did you mean 'tp'?; expected dp, zero1, zero2, zero3, tp, sp, ulysses, "
       "pp "
       "or ep"},
      {{"plan", "torus:2x2", "--for", "tp", "--llm", "llama-3-8"},
       2,
       "--llm: no model 'llama-3-8'; did you mean 'llama-3-8b'?"},
      {{"plan", "torus:2x2", "--for", "tp"},
       2,
       "--layers: not given; hint: --llm=llama-3-8b has all of a model"},
      {{"plan", "torus:2x2", "--for", "tp", "--llm", "llama-3-8b", "--tp", "3"},
       2,
       "degrees of parallelism multiply to 3; expected a divisor of 4 ranks"},
      {{"compare", "torus:2x2", "-c", "allgather", "--engines", "ring,rng"},
       2,
       "no engine 'rng'; did you mean 'ring'?"},
      {{"plan", "torus:2x2", "-c", "allreduce", "--root", "1"}, 2, "allreduce: takes no root"},
      {{"plan", "torus:2x2", "-c", "broadcast", "--root", "99"},
       2,
       "broadcast: root 99 is not one of the ranks"},
      {{"plan", "torus:2x2", "-c", "broadcast", "--root", "-3"},
       2,
       "broadcast: root -3 is not one of the ranks"},
      {{"plan", "torus:2x2", "-c", "allgather", "--ranks", "0,0"},
       2,
       "--ranks: '0,0': rank 0 is given twice"},
      {{"plan", "torus:2x2", "-c", "sendrecv"}, 2, "sendrecv: no pairs; hint: --pairs='0>1,1>0'"},
      {{"plan", "torus:2x2", "-c", "sendrecv", "--pairs", "0-1"},
       2,
       "--pairs: '0-1': '0-1'; expected a pair such as 0>1"},
      {{"plan", "torus:2x2", "-c", "sendrecv", "--pairs", "0>9"},
       2,
       "--pairs: '0>9': rank 9; ranks are 0..3"},
      {{"plan", "torus:2x2", "-c", "allgatherv"}, 2, "allgatherv: no counts; hint: --counts=FILE.csv"},
      {{"plan", "torus:2x2", "-c", "allgather", "--model", "blok"},
       2,
       "--model: no time model 'blok'; expected pipelined or blocking"},
      {{"plan", "torus:2x2", "-c", "allgather", "--size", "8EiB"},
       2,
       "--size: '8EiB': unknown unit 'EiB'; did you mean 'KiB'?; a size is written like 64MiB"},
      {{"plan", "torus:2x2", "-c", "allgather", "--size", "9000000TiB"},
       2,
       "--size: '9000000TiB': too large; a size is written like 64MiB"},
      {{"plan", "torus:2x2", "-c", "allgather", "--size", "8000000TiB"},
       2,
       "--size: 8000000TiB; at most 1024TiB is supported"},
      {{"bound", "torus:2x2", "-c", "allgather", "--size", "8000000TiB"},
       2,
       "--size: 8000000TiB; at most 1024TiB is supported"},
      {{"simulate", "a.json", "--sizes", "1KiB,8000000TiB"},
       2,
       "--sizes: 8000000TiB; at most 1024TiB is supported"},
      {{"compare", "torus:2x2", "-c", "allgather", "--sizes", "1KiB:1GiB:x1"},
       2,
       "--sizes: '1': expected a whole number from 2 to 1048576"},
      {{"plan", "torus:2x2", "-c", "allgather", "--time-limit", "5"},
       2,
       "--time-limit: '5': no unit; a time is written like 500ns"},
      {{"plan", "torus:2x2", "-c", "allgather", "--hosts", "0"}, 2, "--hosts 0: expected 1 or more"},
      {{"plan", "torus:2x2", "-c", "allgather", "--without-link", "0-1"},
       2,
       "--without-link: '0-1': expected A->B, such as 0->1 or h0/gpu:3->h0/nvswitch"},
      {{"run", "a.json", "--dtype", "flot"}, 2, "--dtype: no data type 'flot'; did you mean 'float'?"},
      {{"run", "a.json", "--redop", "smu"}, 2, "--redop: no reduction 'smu'; did you mean 'sum'?"},
      {{"run", "a.json", "--timeout", "0s"}, 2, "--timeout: 0s; expected more than 0"},
      {{"run", "a.json", "--memory-limit", "1x"},
       2,
       "--memory-limit: '1x': unknown unit 'x'; a size is written like 64MiB"},
  };
  for (const Wrong& c : cases) ExpectWrong(c, Run(c.arguments));
}

TEST_F(Cli, WrongMachines) {
  struct Case {
    std::string xml;
    std::string err;
  };
  const std::string two = R"(<topology name="m"><gpu id="0"/><gpu id="1"/>)";
  const std::vector<Case> cases = {
      {"", "m.xml:1:1: no element; expected <topology>"},
      {R"(<topology><gpu id="0")",
       "m.xml:1:21: the file ends inside a start tag; expected more, up to </topology>"},
      {two + R"(<link from="0" to="1" bandwith="1GB/s"/></topology>)",
       "m.xml:1:46: link: unknown attribute 'bandwith'; did you mean 'bandwidth'?"},
      {two + R"(<link from="0" to="7" bandwidth="1GB/s"/></topology>)",
       "m.xml:1:46: link 0->7: no node 7; nodes are 0..1"},
      {R"(<topology name="m"><gpu id="0"/><gpu id="0"/></topology>)",
       "m.xml:1:33: a second gpu 0; expected another id"},
      {two + R"(<link from="0" to="1" bandwidth="0GB/s"/></topology>)",
       "m.xml:1:46: link: bandwidth '0GB/s': a bandwidth must be more than zero"},
      {two + R"(<link from="0" to="1" bandwidth="-5GB/s"/></topology>)",
       "m.xml:1:46: link: bandwidth '-5GB/s': below zero"},
  };
  for (const Case& c : cases) {
    Write("m.xml", c.xml);
    if (c.xml.find("/>") != std::string::npos || c.xml.size() < 30)
      ExpectWrong({{"topo", "m.xml"}, 1, c.err}, Run({"topo", "m.xml"}));
    ExpectWrong({{"plan", "m.xml", "-c", "allgather"}, 1, c.err}, Run({"plan", "m.xml", "-c", "allgather"}));
  }
  Write(
      "m.xml",
      R"(<topology name="m"><gpu id="0"/><gpu id="1"/><gpu id="2"/><link from="0" to="1" bandwidth="10GB/s"/></topology>)");
  const std::string apart = "m: no path from rank 0 to rank 2, which allgather needs";
  for (const char* command : {"plan", "bound", "compare"})
    ExpectWrong({{command}, 1, apart}, Run({command, "m.xml", "-c", "allgather"}));
  EXPECT_EQ(Run({"plan", "m.xml", "-c", "allgather", "--ranks", "0,1"}).code, 0);
  const std::vector<Wrong> others = {
      {{"topo", "none.xml"}, 1, ""},
      {{"topo", "torus:100000x100000"},
       1,
       "torus:100000x100000: torus: 10000000000 nodes; at most 262144 are supported"},
      {{"topo", "."}, 1, ".: cannot read: Is a directory"},
      {{"plan", "torsu:2x2", "-c", "allgather"},
       1,
       "'torsu:2x2': no short form 'torsu'; did you mean 'torus:2x2'?"},
      {{"plan", "torus:2x2", "-c", "alltoall", "--counts", "none.csv"},
       1,
       "none.csv: cannot read: No such file or directory"},
  };
  for (const Wrong& c : others) {
    if (!c.err.empty()) ExpectWrong(c, Run(c.arguments));
    EXPECT_EQ(Run(c.arguments).code, 1);
  }
  Write("c.csv", "1,2\n");
  ExpectWrong({{"counts"}, 1, "c.csv: 2 counts; expected 4, one per rank"},
              Run({"plan", "torus:2x2", "-c", "allgatherv", "--counts", "c.csv"}));
  ExpectWrong({{"counts"}, 1, "c.csv:1:1: 2 counts; expected 4, one per destination"},
              Run({"plan", "torus:2x2", "-c", "alltoallv", "--counts", "c.csv"}));
}

TEST_F(Cli, PlansEditedByHandAreRefused) {
  RingPlan();
  const std::string text = Read("a.json");
  const auto edited = [&](const std::function<void(Json&)>& edit) {
    Json plan = Json::parse(text);
    edit(plan);
    return plan.dump();
  };
  const auto each_column = [](Json& plan, const std::function<void(Json&)>& edit) {
    for (auto& [name, column] : plan["schedule"].items())
      if (column.is_array()) edit(column);
  };
  struct Case {
    std::string text;
    std::string err;  // after "bad.json: "; what begins with [ comes from proof alone
  };
  const std::vector<Case> cases = {
      {"", "1:1: truncated: the text ends before its value is complete"},
      {edited([](Json& p) { p["schedule"]["dst"][0] = 3; }),
       " [S2] step 0: path from rank 0 to rank 3 goes from rank 0 to rank 1"},
      {edited([&](Json& p) { each_column(p, [](Json& c) { std::swap(c[0], c[23]); }); }),
       " [S1] transfer 0: step 2; the first step is 0 (and 2 more)"},
      {edited([](Json& p) { std::swap(p["schedule"]["step"][0], p["schedule"]["step"][23]); }),
       " [S1] transfer 0: step 2; the first step is 0 (and 2 more)"},
      {edited([&](Json& p) { each_column(p, [](Json& c) { c.erase(5); }); }),
       " schedule.first: 23 entries; schedule.op has 24"},
      {edited([](Json& p) { p["format"] = 9; }), " format: version 9; this program reads version 1"},
      {edited([](Json& p) {
         p["topology"] =
             "<topology name=\"m\"><gpu id=\"0\"/><gpu id=\"1\"/>"
             "<link from=\"0\" to=\"1\" bandwidth=\"1GB/s\"/></topology>";
       }),
       " collective.ranks: entry 2 is 2; expected 0..1"},
  };
  for (const Case& c : cases) {
    Write("bad.json", c.text);
    const std::string err = "bad.json:" + c.err;
    for (const char* command : {"run", "simulate"})
      ExpectWrong({{command, err}, 1, err}, Run({command, "bad.json"}));
    const Said verified = Run({"verify", "bad.json"});
    EXPECT_EQ(verified.code, 1);
    EXPECT_EQ(verified.err, "xccl-synth: " + err + "\n");
  }
  // One transfer fewer in every column: what it carried is missing at the end.
  Json less = Json::parse(text);
  each_column(less, [](Json& c) { c.erase(23); });
  std::string ops = less["schedule"]["op"];
  less["schedule"]["op"] = ops.substr(0, 23);
  Write("bad.json", less.dump());
  const Said lost = Run({"verify", "bad.json", "--json"});
  EXPECT_EQ(lost.code, 1);
  const Json report = Json::parse(lost.out);
  EXPECT_EQ(Keys(report), (Words{"ok", "violations"}));
  EXPECT_EQ(report["ok"], false);
  ASSERT_FALSE(report["violations"].empty());
  EXPECT_EQ(Keys(report["violations"][0]), (Words{"rule", "where", "text"}));
  EXPECT_EQ(report["violations"][0]["rule"], "S6");
  // Every prefix of a plan is refused without a crash.
  for (size_t end = 1; end + 2 < text.size(); end += text.size() / 40) {
    Write("bad.json", text.substr(0, end));
    EXPECT_EQ(Run({"verify", "bad.json"}).code, 1) << end;
  }
  ExpectWrong({{"verify"}, 1, "none.json: cannot read: No such file or directory"},
              Run({"verify", "none.json"}));
  ExpectWrong({{"verify"}, 1, ".: cannot read: Is a directory"}, Run({"verify", "."}));
}

TEST_F(Cli, UnwritableOutputsLeaveNothingBehind) {
  fs::create_directory(folder_ + "/folder");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"none/a.json", "none/a.json: cannot write: No such file or directory"},
      {"folder", "folder: cannot write: Is a directory"},
      {"/proc/a.json", "/proc/a.json: cannot write: No such file or directory"},
      {"/dev/full", "/dev/full: cannot write: No space left on device"},
  };
  for (const auto& [path, err] : cases) {
    ExpectWrong({{path}, 1, err}, Run({"plan", "torus:2x2", "-c", "allgather", "-o", path}));
    ExpectWrong({{path}, 1, err},
                Run({"compare", "torus:2x2", "-c", "allgather", "--sizes", "1KiB", "--html", path}));
  }
  // The error comes before anything is read or searched.
  ExpectWrong({{"early"}, 1, "none/a: cannot write: No such file or directory"},
              Run({"plan", "no-such-machine", "-c", "allgather", "-o", "none/a"}));
  ExpectWrong({{"early"}, 1, "none/a: cannot write: No such file or directory"},
              Run({"compare", "no-such-machine", "-c", "allgather", "--sizes", "1KiB", "--html", "none/a"}));
  EXPECT_EQ(Files(), Words{"folder"});
  EXPECT_TRUE(fs::is_empty(folder_ + "/folder"));
}

TEST_F(Cli, ALostOutputIsAnError) {
  RingPlan();
  for (const char* arguments :
       {"topo --list", "topo dgx1 --format xml", "bound torus:2x2 -c allgather", "verify a.json",
        "plan torus:2x2 -c allgather -e ring -s 64KiB --json", "simulate a.json", "emit a.json --to host",
        "compare torus:2x2 -c allgather --sizes 1KiB --engines ring", "run a.json --iters 1"})
    ExpectWrong({{arguments}, 1, "standard output: cannot write: No space left on device"},
                Command("/bin/sh", {"-c", Program() + " " + arguments + " >/dev/full"}, folder_).Wait());
}

TEST_F(Cli, SmtSaysInfeasibleAndStopped) {
  ExpectWrong({{"infeasible"},
               3,
               "smt: no allgather on 4 ranks in 1 steps: rank 3 is 2 links from rank 0; hint: --steps=2"},
              Run({"plan", "torus:2x2", "-c", "allgather", "-e", "smt", "--steps", "1"}));
  ExpectWrong({{"stopped"}, 5, "smt: allgather on 8 ranks: nothing found within --time-limit=0.001s"},
              Run({"plan", "dgx1", "-c", "allgather", "-e", "smt", "--chunks", "6", "--steps", "3",
                   "--rounds", "7", "--time-limit", "0.001s"}));
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
           {plan({"-o", "a.json"}), 2,
            "--pareto: writes no plan; expected no --output, or --chunks, --steps and --rounds of a point"}})
    ExpectWrong(wrong, Run(wrong.arguments));
}

TEST_F(Cli, JsonKeys) {
  Words plan = {"engine",         "ranks",           "chunks_per_rank",
                "steps",          "rounds",          "transfers",
                "messages",       "synthesis_s",     "size_bytes",
                "time_us",        "time_program_us", "algbw_gb_per_s",
                "busbw_gb_per_s", "latency_us",      "bandwidth_us",
                "bound_us",       "bound_kind",      "ratio",
                "exact",          "bitwise_same",    "depth",
                "relays",         "threadblocks",    "channels",
                "scratch_bytes",  "warnings",        "file"};
  const Words timed = {"engine",         "size_bytes", "time_us", "algbw_gb_per_s",
                       "busbw_gb_per_s", "bound_us",   "ratio"};
  for (const Words& extra : {Words{}, Words{"-o", "a.json"}}) {
    Words arguments = {"plan", "torus:2x2", "-c", "allreduce", "-s", "64KiB", "--json"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    EXPECT_EQ(Keys(Json::parse(Out(arguments))), plan);
  }
  EXPECT_EQ(Keys(Json::parse(Out({"bound", "torus:2x2", "-c", "allreduce", "--json"}))),
            (Words{"latency_us", "bandwidth_us", "bound_us", "bound_kind", "algbw_gb_per_s", "warnings"}));
  EXPECT_EQ(Json::parse(Out({"topo", "torus:2x2", "--json"})),
            Json::parse(R"({"name":"torus:2x2","ranks":4,"hosts":1,"nodes":4,"links":8,"warnings":[]})"));
  EXPECT_EQ(Json::parse(Out({"verify", "a.json", "--json"})), Json::parse(R"({"ok":true,"violations":[]})"));
  for (const char* level : {"schedule", "program"}) {
    const Json rows =
        Json::parse(Out({"simulate", "a.json", "--sizes", "1KiB,1MiB", "--level", level, "--json"}));
    ASSERT_EQ(rows.size(), 2u);
    for (const Json& row : rows) {
      EXPECT_EQ(Keys(row), timed);
      EXPECT_GE(row["ratio"], 1.0);
    }
  }
  const Json ranked = Json::parse(Out({"compare", "torus:2x2", "-c", "allreduce", "--sizes", "1KiB,1MiB",
                                       "--engines", "ring,greedy,auto", "--json"}));
  ASSERT_EQ(ranked.size(), 6u);
  for (const Json& row : ranked) EXPECT_EQ(Keys(row), timed);
  for (const bool processes : {false, true}) {
    Words arguments = {"run", "a.json", "--sizes", "1KiB,64KiB", "--iters", "2", "--json"};
    if (processes) arguments.push_back("--processes");
    const Json rows = Json::parse(Out(arguments));
    ASSERT_EQ(rows.size(), 4u);
    for (const Json& row : rows) {
      EXPECT_EQ(Keys(row), (Words{"size_bytes", "in_place", "time_us", "algbw_gb_per_s", "busbw_gb_per_s",
                                  "predicted_us", "wrong"}));
      EXPECT_EQ(row["wrong"], 0);
    }
  }
}

// A dump of two GPUs whose reader warns of one element.
constexpr const char* kOddDump = R"(<system version="1"><cpu numaid="0" arch="arm64">
<odd/>
<pci busid="0000:01:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
<gpu dev="0" sm="80" rank="0" gdr="1"><nvlink target="0000:02:00.0" count="4" tclass="0x030200"/></gpu></pci>
<pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
<gpu dev="1" sm="80" rank="1" gdr="1"><nvlink target="0000:01:00.0" count="4" tclass="0x030200"/></gpu></pci>
</cpu></system>
)";

TEST_F(Cli, WarningsOfAReaderReachEveryCommandWithATopology) {
  Write("odd.xml", kOddDump);
  Write("groups.json",
        R"({"name":"all","groups":[{"name":"all","collective":"allreduce","ranks":[0,1],"size":"1KiB"}]})");
  const std::string warning = "odd.xml:2:1: unknown element <odd> left out";
  for (const Words& arguments : std::vector<Words>{
           {"topo", "odd.xml"},
           {"topo", "odd.xml", "--format", "xml"},
           {"bound", "odd.xml", "-c", "allreduce"},
           {"plan", "odd.xml", "-c", "allreduce"},
           {"plan", "odd.xml", "-c", "allgather", "-e", "smt", "--pareto", "--json"},
           {"plan", "odd.xml", "--groups", "groups.json"},
           {"plan", "odd.xml", "--for", "tp", "--llm", "llama-3-8b", "--tp", "2", "--json"},
           {"compare", "odd.xml", "-c", "allreduce", "--sizes", "1KiB", "--engines", "ring"},
           {"compare", "odd.xml", "-c", "allreduce", "--sizes", "1KiB", "--engines", "ring", "--json"},
           {"tune", "odd.xml", "--collectives", "allreduce", "--sizes", "1KiB", "--iters", "1", "-o",
            "book"}}) {
    const Said said = Run(arguments);
    EXPECT_EQ(said.code, 0) << arguments[0] << ": " << said.err;
    EXPECT_EQ(said.err, "warning: " + warning + "\n") << arguments[0];
    EXPECT_EQ(said.out.find(warning), std::string::npos) << arguments[0];
  }
  for (const Words& arguments : std::vector<Words>{{"topo", "odd.xml", "--json"},
                                                   {"bound", "odd.xml", "-c", "allreduce", "--json"},
                                                   {"plan", "odd.xml", "-c", "allreduce", "--json"},
                                                   {"plan", "odd.xml", "--groups", "groups.json", "--json"}})
    EXPECT_EQ(Json::parse(Out(arguments))["warnings"], Json(Words{warning})) << arguments[0];
}

TEST_F(Cli, ManyWarningsAreCut) {
  std::string text = kOddDump;
  for (int i = 0; i < 24; ++i) text.insert(text.find("<odd/>"), fmt::format("<odd{}/>\n", i));
  Write("odd.xml", text);
  const std::string err = Run({"topo", "odd.xml"}).err;
  EXPECT_EQ(std::ranges::count(err, '\n'), 21) << err;
  EXPECT_NE(err.find("warning: and 5 more; hint: xccl-synth topo --json lists all\n"), std::string::npos)
      << err;
}

TEST_F(Cli, KernelsOfAPlanBook) {
  fs::create_directories(folder_ + "/book");
  fs::create_directories(folder_ + "/empty");
  RingPlan("book/ag.plan.json");
  Write("book/index.json",
        R"({"format":1,"plans":[{"file":"ag.plan.json","collective":"allgather","ranks":4}]})");
  // Stands in for nvcc: shows its arguments.
  Write("nvcc", "#!/bin/sh\necho \"$2 $7 $8 $9\" >\"$6\"\n");
  fs::permissions(folder_ + "/nvcc", fs::perms::owner_all);
  const std::string nvcc = folder_ + "/nvcc";
  Out({"emit", "book", "--to", "cuda"});
  EXPECT_EQ(Json::parse(Read("book/index.json"))["plans"][0]["kernel"], "ag.cu");
  const std::string source = Read("book/ag.cu");
  EXPECT_NE(source.find("xccl_kernel"), std::string::npos);
  Out({"emit", "book", "--to", "cuda", "--arch", "sm_90,100", "--dtype", "float,half", "--redop", "sum,max",
       "--nvcc", nvcc});
  const Json cubins = Json::parse(Read("book/index.json"))["plans"][0]["cubins"];
  ASSERT_EQ(cubins.size(), 4u) << "an allgather needs no max";
  EXPECT_EQ(Keys(cubins[3]), (Words{"file", "arch", "type", "op", "made_from"}));
  EXPECT_EQ(cubins[3]["file"], "ag.sm_100.half.sum.cubin");
  EXPECT_EQ(Read("book/ag.sm_100.half.sum.cubin").substr(0, 48),
            "-arch=sm_100 -DXCCL_TYPE=Half -DXCCL_OPERATOR=kS");
  EXPECT_EQ(Read("book/ag.cu"), source);
  Out({"run", "book", "--sizes", "1KiB", "--iters", "1"});
  struct Case {
    Words arguments;
    int code;
    std::string text;
  };
  for (const Case& c : {Case{{"emit", "book", "--to", "host"},
                             2,
                             "book: a plan book; expected --to cuda and no -o: kernels go "
                             "into the book\n"},
                        Case{{"emit", "book/ag.plan.json", "--to", "cuda", "--arch", "sm_90", "--nvcc", nvcc},
                             2,
                             "--arch: needs -o FILE: cubins are written beside it\n"},
                        Case{{"emit", "book", "--to", "cuda", "--arch", "hopper"},
                             2,
                             "--arch: no architecture 'hopper'; expected sm_80, sm_90, sm_100 or the like\n"},
                        Case{{"emit", "book", "--to", "cuda", "--dtype", "float,half"},
                             2,
                             "--dtype, --redop: several; expected one of each without --arch\n"},
                        Case{{"emit", "book", "--to", "cuda", "--arch", "sm_90", "--nvcc", "/nowhere/nvcc"},
                             1,
                             "/nowhere/nvcc: cannot run: No such file or directory\n"},
                        Case{{"run", "empty"},
                             1,
                             "empty: a directory without index.json; expected a plan file or a plan book; "
                             "hint: xccl-synth tune TOPOLOGY -o BOOK makes one\n"}}) {
    const Said said = Run(c.arguments);
    EXPECT_EQ(said.code, c.code) << said.err;
    EXPECT_EQ(said.err.substr(0, 12 + c.text.size()), "xccl-synth: " + c.text);
  }
}

TEST_F(Cli, RunOfANameThatIsTooLongIsAnErrorAndNoCrash) {
  const std::string name(300, 'a');
  const Said said = Run({"run", name});
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.err, "xccl-synth: " + name + ": cannot read: File name too long\n");
}

TEST_F(Cli, Texts) {
  EXPECT_EQ(Out({"bound", "dgx1", "-c", "allgather", "-s", "1GiB"}).substr(0, 57),
            "allgather on dgx1: 8 ranks, 1GiB, pipelined model\n  bound");
  const std::string xml = Out({"topo", "torus:2x2", "--format", "xml"});
  Write("again.xml", xml);
  EXPECT_EQ(Out({"topo", "again.xml", "--format", "xml"}), xml);
  EXPECT_EQ(Out({"topo", "torus:2x2", "--format", "dot"}).substr(0, 20), "digraph \"torus:2x2\" ");
  EXPECT_EQ(Out({"topo", "torus:2x2"}).substr(0, 29), "torus:2x2: 4 ranks on 1 host\n");
  RingPlan();
  EXPECT_EQ(Out({"verify", "a.json"}),
            "a.json: ok: allgather on torus:2x2, 24 transfers, schedule and program proved\n");
  EXPECT_EQ(Json::parse(Read("a.json"))["topology"], xml);
  EXPECT_EQ(Out({"simulate", "a.json", "--sizes", "1MiB"}).substr(0, 51),
            "allgather on torus:2x2 by ring, schedule simulated\n");
  const std::string table = Out({"run", "a.json", "--iters", "1"});
  EXPECT_NE(table.find("# Out of bounds values : 0 OK"), std::string::npos) << table;
  const Words compare = {"compare", "torus:2x2", "-c", "allgather", "--sizes", "1MiB", "--engines", "ring"};
  EXPECT_EQ(Out(compare).substr(0, 50), "allgather on torus:2x2: 4 ranks, pipelined model\ns");
  Words csv = compare;
  csv.push_back("--csv");
  EXPECT_EQ(Out(csv).substr(0, 83),
            "engine,size_bytes,time_us,algbw_gb_per_s,busbw_gb_per_s,bound_us,ratio\nring,1048576");
  Words html = compare;
  html.insert(html.end(), {"--html", "page.html"});
  Out(html);
  const std::string page = Read("page.html");
  EXPECT_EQ(page.substr(0, 15), "<!doctype html>");
  EXPECT_EQ(page.find("src="), page.npos) << "the page must not need other files";
  EXPECT_EQ(Files(), (Words{"a.json", "again.xml", "page.html"}));
  for (const char* command : {"topo", "bound", "plan", "verify", "simulate", "compare", "run"})
    EXPECT_NE(Out({command, "--help"}).find("\nExample"), std::string::npos) << command;
  const std::string plan = Out({"plan", "--help"});
  for (const Engine& engine : AllEngines())
    EXPECT_NE(plan.find(fmt::format(" {}", engine.name)), std::string::npos) << engine.name;
}

TEST_F(Cli, TheSameFlagsGiveTheSameBytes) {
  for (const char* engine : {"auto", "ring", "tree", "greedy", "direct"}) {
    SCOPED_TRACE(engine);
    for (const char* file : {"a.json", "b.json"})
      Out({"plan", "dgx1", "-c", "allreduce", "-e", engine, "-s", "1MiB", "-o", file});
    EXPECT_TRUE(Read("a.json") == Read("b.json"));
    EXPECT_EQ(Keys(Json::parse(Read("a.json"))["made_by"]),
              (Words{"engine", "seed", "limits", "version", "size_bytes", "model", "exact"}));
  }
}

// "xccl-synth plan dgx1 --size 1MiB" and "`plan --from FILE`" name flags that the command has.
TEST_F(Cli, FlagsOnPagesExist) {
  const std::regex line(
      "(?:xccl-synth |`)(topo|bound|plan|verify|simulate|compare|emit|run|tune)( [^`\n#]*)");
  const std::regex flag("--[a-z-]+");
  std::map<std::string, std::string> helps;
  int flags = 0;
  for (const char* page : {"README.md", "docs/cuda.md", "docs/ir.md", "docs/kernels.md", "docs/synthesis.md",
                           "docs/topologies.md", "docs/training.md"}) {
    const std::string text = WholeFile(page);
    ASSERT_NE(text, "") << page;
    for (std::sregex_iterator found(text.begin(), text.end(), line), end; found != end; ++found) {
      const std::string command = (*found)[1], rest = (*found)[2];
      if (!helps.contains(command)) helps[command] = Out({command, "--help"});
      for (std::sregex_iterator each(rest.begin(), rest.end(), flag); each != end; ++each, ++flags)
        EXPECT_TRUE(std::regex_search(helps[command], std::regex(each->str() + "(?![a-z-])")))
            << page << ": " << command << rest << ": " << each->str();
    }
  }
  EXPECT_GT(flags, 50);
}

TEST_F(Cli, ExampleFilesWork) {
  const std::string examples = fs::current_path().string() + "/examples/";
  EXPECT_EQ(Out({"topo", examples + "my_machine.xml"}).substr(0, 31), "my-machine: 8 ranks on 2 hosts\n");
  Out({"plan", "ring:4", "--collective-file", examples + "halo_exchange.json", "-o", "a.json"});
  Out({"plan", "dgx1", "--groups", examples + "groups.json", "-e", "ring"});
  EXPECT_EQ(Run({"run", "a.json", "--sizes", "64KiB", "--iters", "1"}).code, 0);
  EXPECT_NE(WholeFile("docs/training.md").find(WholeFile("examples/groups.json")), std::string::npos);
}

// With a device this runs; without one it prints the reason.
TEST_F(Cli, RunsOnGpusOrSaysWhatIsMissing) {
  RingPlan();
  for (const bool processes : {false, true}) {
    Words arguments = {"run", "a.json",  "--backend", "cuda",           "--ranks-per-gpu",
                       "4",   "--sizes", "1KiB",      "--kernel-cache", "cache"};
    if (processes) arguments.push_back("--processes");
    const Said said = Run(arguments);
    if (said.code == 0) {
      EXPECT_NE(said.out.find("CTA"), std::string::npos) << said.out;
      EXPECT_NE(said.out.find("# Out of bounds values : 0 OK"), std::string::npos) << said.out;
    } else {
      EXPECT_EQ(said.code, 1);
      EXPECT_EQ(said.err.substr(0, 18), "xccl-synth: cuda: ") << said.err;
      EXPECT_NE(said.err.find("hint: --backend=cpu"), std::string::npos) << said.err;
    }
  }
}

TEST_F(Cli, RunsABook) {
  RingPlan();
  Write(
      "index.json",
      R"({"format":1,"plans":[{"file":"a.json","collective":"allgather","ranks":4,"min_bytes":0,"max_bytes":65536,"types":"any","in_place":"both"}]})");
  const Json rows = Json::parse(Out({"run", ".", "--sizes", "1KiB,64KiB", "--iters", "1", "--json"}));
  EXPECT_EQ(rows.size(), 4u);
  const Said beyond = Run({"run", ".", "--sizes", "1MiB", "--iters", "1"});
  EXPECT_EQ(beyond.code, 1);
  EXPECT_NE(beyond.err.find("allgather"), std::string::npos) << beyond.err;
}

// The processes whose parent is `parent`, from /proc.
std::vector<pid_t> Children(pid_t parent) {
  std::vector<pid_t> found;
  const std::string pid = std::to_string(parent);
  std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
  for (pid_t child = 0; file >> child;) found.push_back(child);
  return found;
}

TEST_F(Cli, AKilledRankEndsTheOthers) {
  RingPlan();
  Command command(
      Program(),
      {"run", "a.json", "--processes", "--iters", "1000000", "--sizes", "64KiB", "--timeout", "20s"},
      folder_);
  std::vector<pid_t> ranks;
  for (int i = 0; i < 1000 && ranks.size() < 4; ++i) {
    usleep(10000);
    ranks = Children(command.pid());
  }
  ASSERT_EQ(ranks.size(), 4u);
  kill(ranks[2], SIGKILL);
  const Said said = command.Wait();
  EXPECT_EQ(said.code, 5);
  EXPECT_EQ(said.err, "xccl-synth: rank 2: its process " + std::to_string(ranks[2]) +
                          " was ended by signal 9 (Killed)\n");
  EXPECT_EQ(said.out, "");
  for (const pid_t rank : ranks) EXPECT_NE(kill(rank, 0), 0) << "a rank lives on";
}

TEST_F(Cli, AStoppedRankEndsTheRunAfterTheTimeLimit) {
  RingPlan();
  Command command(
      Program(),
      {"run", "a.json", "--processes", "--iters", "1000000", "--sizes", "64KiB", "--timeout", "1s"}, folder_);
  std::vector<pid_t> ranks;
  for (int i = 0; i < 1000 && ranks.size() < 4; ++i) {
    usleep(10000);
    ranks = Children(command.pid());
  }
  ASSERT_EQ(ranks.size(), 4u);
  kill(ranks[1], SIGSTOP);
  const Said said = command.Wait();
  EXPECT_EQ(said.code, 5) << said.err;
  EXPECT_NE(said.err.find("nothing moved for"), std::string::npos) << said.err;
}

}  // namespace
}  // namespace xccl
