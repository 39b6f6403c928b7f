// xccl-synth run and emit from outside.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ir/plan.h"
#include "ir/translated.h"
#include "tests/testing/cli.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

TEST_F(Cli, ASizeThatIsRoundedToNothingIsNoted) {
  RingPlan();
  const Said said = Run({"run", "a.json", "--sizes", "3,64", "--iters", "1"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.err, "note: 3 bytes: allgather of 4 ranks in float rounds them down to 0 bytes\n");
}

TEST_F(Cli, TuneServesTheRootsThatAreAskedFor) {
  // On a busy machine a note says that no model of it can be measured.
  const Said said = Run({"tune", "torus:2x2", "--collectives", "broadcast,allgather,reduce", "--root", "all",
                         "--sizes", "1KiB,64KiB", "--iters", "1", "-o", "book", "--json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json rows = Json::parse(said.out);
  ASSERT_EQ(rows.size(), 2u * (4 + 1 + 4));
  EXPECT_EQ(rows[2]["root"], 1);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_GE(rows[i]["samples"], 5);
    EXPECT_GE(rows[i]["time_spread"], 0);
    const size_t first = i < 8 ? 0 : i < 10 ? 8 : 10;  // row of the collective; its roots are alike
    EXPECT_EQ(rows[i]["engine"], rows[first + i % 2]["engine"]) << i;
  }
  EXPECT_EQ(rows[8]["collective"], "allgather");
  EXPECT_EQ(rows[8]["root"], nullptr);
  const Json index = Json::parse(Read("book/index.json"));
  EXPECT_EQ(index["plans"][0]["root"], 0);
  EXPECT_EQ(index["plans"][0]["file"], "broadcast-root0-1KiB.plan.json");
  // Every size of every root is served, and right: a table for each.
  const std::string ran = Out({"run", "book", "--sizes", "1KiB,64KiB", "--iters", "1"});
  int tables = 0;
  for (size_t at = 0; (at = ran.find("# Out of bounds values : 0 OK", at)) != std::string::npos; ++at)
    ++tables;
  EXPECT_EQ(tables, 4 + 1 + 4) << ran;
  Out({"tune", "torus:2x2", "--collectives", "gather", "--root", "1,3", "--sizes", "1KiB", "--iters", "1",
       "-o", "some"});
  const Json some = Json::parse(Read("some/index.json"))["plans"];
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0]["root"], 1);
  EXPECT_EQ(some[1]["root"], 3);
  EXPECT_EQ(some[1]["min_bytes"], 0);
}

TEST_F(Cli, KernelsOfAPlanBook) {
  std::filesystem::create_directories(folder_ + "/book");
  std::filesystem::create_directories(folder_ + "/empty");
  RingPlan("book/ag.plan.json");
  Write("book/index.json",
        R"({"format":1,"plans":[{"file":"ag.plan.json","collective":"allgather","ranks":4}]})");
  // Stands in for nvcc: shows its arguments.
  Write("nvcc", "#!/bin/sh\necho \"$2 $7 $8 $9\" >\"$6\"\n");
  std::filesystem::permissions(folder_ + "/nvcc", std::filesystem::perms::owner_all);
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
                        Case{{"emit", "book/ag.plan.json", "--to", "chakra"},
                             2,
                             "--to chakra: needs -o PREFIX: one file a rank, PREFIX.0.et, ...\n"},
                        Case{{"emit", "book", "--to", "chakra", "-o", "trace"},
                             2,
                             "book: a plan book; expected one plan for --to chakra\n"},
                        Case{{"emit", "book/ag.plan.json", "--to", "host", "--size", "1KiB"},
                             2,
                             "--size: needs --to chakra, svg or perfetto; other formats serve all sizes\n"},
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

// All sizes would take hours. The head is there at once, and each size as it ends.
TEST_F(Cli, RunShowsEachSizeAsItEnds) {
  RingPlan();
  const std::string head = PrintedUntil("# predicted: ", "run a.json --sizes 1GiB --iters 20000");
  EXPECT_EQ(head.rfind("# Collective test starting: allgather\n", 0), 0u) << head;
  EXPECT_NE(
      head.find("\n# predicted: ideal links of torus:2x2, which is not this host: bandwidths and latencies "
                "alone\n"),
      std::string::npos)
      << head;
  const std::string rows = PrintedUntil(" *1024 ", "run a.json --sizes 1KiB,1GiB --iters 20000");
  EXPECT_NE(rows.find("\n        1024  "), std::string::npos) << rows;
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

// Processes that are ranks 0, 1, ... of a run, each with its flags.
std::vector<Said> RunRanks(const std::string& folder, const std::vector<Words>& flags) {
  const std::string address = "127.0.0.1:" + std::to_string(20000 + getpid() % 20000);
  std::vector<std::unique_ptr<Command>> ranks;
  for (size_t r = 0; r < flags.size(); ++r) {
    Words arguments = {"run",       "a.json",          "--iters",   "2",
                       "--rank",    std::to_string(r), "--ranks",   std::to_string(flags.size()),
                       "--address", address,           "--timeout", "10s"};
    arguments.insert(arguments.end(), flags[r].begin(), flags[r].end());
    ranks.push_back(std::make_unique<Command>(SynthProgram(), arguments, folder));
  }
  std::vector<Said> said;
  for (const std::unique_ptr<Command>& rank : ranks) said.push_back(rank->Wait());
  return said;
}

TEST_F(Cli, LaunchedRanksMakeOneRun) {
  RingPlan();
  const Words small = {"--sizes", "1KiB"}, large = {"--sizes", "1KiB,64KiB"};
  const std::vector<Said> good = RunRanks(folder_, {small, small, small, small});
  for (const Said& rank : good) EXPECT_EQ(rank.code, 0) << rank.err;
  EXPECT_NE(good[0].out.find("# Out of bounds values : 0 OK"), std::string::npos) << good[0].out;
  EXPECT_EQ(good[1].out, "");
  for (const Said& rank : RunRanks(folder_, {small, small, large, small})) {
    EXPECT_EQ(rank.code, 1);
    EXPECT_NE(
        rank.err.find("another --sizes, --dtype, --redop, --iters, --warmup, --backend or flag of GPUs"),
        std::string::npos)
        << rank.err;
  }
  const Words forks = {"--processes"};
  for (const Said& rank : RunRanks(folder_, {forks, forks, forks, forks}))
    EXPECT_NE(rank.err.find("--processes: 4 processes were started, one for each rank; expected one"),
              std::string::npos)
        << rank.err;
}

// Every process makes the program of its own rank alone.
TEST_F(Cli, LaunchedRanksRunACompressedPlan) {
  constexpr int32_t kRanks = 6;
  const Topology topology = LoadTopology("nvswitch:6").value();
  for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter}) {
    const bool sums = kind == CollectiveKind::kReduceScatter;
    CollectiveSpec spec;
    spec.kind = kind;
    spec.ranks = AllRanks(kRanks);
    Schedule columns;  // rank 0's part goes to all other ranks, or comes from them
    columns.num_chunks = kRanks;
    for (Rank other(1); other.value < kRanks; ++other.value) {
      const NodeId from = topology.NodeOf(sums ? other : Rank(0)),
                   to = topology.NodeOf(sums ? Rank(0) : other);
      const LinkId up = topology.Out(from).front();
      for (const LinkId down : topology.Out(topology.link(up).to))
        if (topology.link(down).to == to)
          columns.Add(ChunkId(0), 1, *topology.RankOf(from), *topology.RankOf(to), std::vector{up, down},
                      sums ? TransferOp::kReduce : TransferOp::kCopy, other.value - 1);
    }
    const Plan plan{topology,
                    Collective::Create(spec).value(),
                    Translate(columns, FindTranslations(topology)),
                    std::nullopt,
                    {}};
    ASSERT_TRUE(WritePlan(plan, folder_ + "/a.json", 0).ok());
    const Words sizes = {"--sizes", "1KiB,64KiB"};
    const std::vector<Said> said = RunRanks(folder_, std::vector<Words>(kRanks, sizes));
    for (const Said& rank : said) EXPECT_EQ(rank.code, 0) << rank.err;
    EXPECT_NE(said[0].out.find("# Out of bounds values : 0 OK"), std::string::npos) << said[0].out;
    // So do threads of one process, which make the program of all ranks.
    EXPECT_NE(Out({"run", "a.json", "--sizes", "1KiB", "--iters", "1"}).find("# Out of bounds values : 0 OK"),
              std::string::npos);
  }
}

TEST_F(Cli, AProgramIsEmittedForOneRank) {
  RingPlan();
  const Json whole = Json::parse(Out({"emit", "a.json", "--to", "program"}));
  EXPECT_EQ(whole, Json::parse(Read("a.json"))["program"]);
  const Json part = Json::parse(Out({"emit", "a.json", "--to", "program", "--rank", "2"}));
  EXPECT_EQ(part["ranks"][2], whole["ranks"][2]);
  EXPECT_EQ(part["ranks"][1]["threadblocks"], Json::array());
  EXPECT_LT(part["connections"].size(), whole["connections"].size());
  EXPECT_EQ(Run({"emit", "a.json", "--to", "msccl-xml", "--rank", "2"}).err,
            "xccl-synth: --rank: needs --to program; a file for msccl-xml says what all ranks do\n");
  EXPECT_EQ(Run({"emit", "a.json", "--to", "program", "--rank", "4"}).err,
            "xccl-synth: a.json: no rank 4; ranks are 0..3\n");
}

TEST_F(Cli, TokensDoNotStayInPs) {
  RingPlan();
  for (const std::string flag : {"--token ", "--token="}) {
    // The pattern does not match itself: until the shell runs the program, its own command line has the
    // words.
    const Said said = Shell("$X run a.json --rank 1 --ranks 4 --address 127.0.0.1:1 " + flag +
                            "sesame & running=$!; until tr '\\0' ' ' </proc/$running/cmdline | "
                            "grep -o 'token[ =]x\\{6\\}'; do sleep 0.01; done; "
                            "grep -c sesame /proc/$running/cmdline; kill $running");
    EXPECT_EQ(said.out, flag.substr(2) + "xxxxxx\n0\n");
  }
}

TEST_F(Cli, AKilledRankEndsTheOthers) {
  RingPlan();
  Command command(
      SynthProgram(),
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
  EXPECT_EQ(said.out.find("\n       65536 "), std::string::npos) << said.out;
  for (const pid_t rank : ranks) EXPECT_NE(kill(rank, 0), 0) << "a rank lives on";
}

TEST_F(Cli, AStoppedRankEndsTheRunAfterTheTimeLimit) {
  RingPlan();
  Command command(
      SynthProgram(),
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

TEST_F(Cli, ABookRunsAtTheSizesOfItsPlans) {
  for (const std::string size : {"1KiB", "64KiB"})
    Out({"plan", "ring:2", "-c", "allgather", "-e", "ring", "-s", size, "-o", size + ".json"});
  Write("index.json",
        R"({"format":1,"plans":[
             {"file":"1KiB.json","collective":"allgather","ranks":2,"min_bytes":0,"max_bytes":8191,"types":"any","in_place":"both"},
             {"file":"64KiB.json","collective":"allgather","ranks":2,"min_bytes":8192,"types":"any","in_place":"both"}]})");
  std::vector<int64_t> sizes;
  for (const Json& row : Json::parse(Out({"run", ".", "--iters", "1", "--json"})))
    if (row["in_place"] == false) sizes.push_back(row["size_bytes"]);
  EXPECT_EQ(sizes, (std::vector<int64_t>{1 << 10, 64 << 10}));
}

TEST_F(Cli, AnInterruptedTuneLeavesNothing) {
  const Said said = Shell("timeout -s INT 1 $X tune ring:4 --iters 1000000 --machine hopper -o book");
  EXPECT_EQ(said.err, "xccl-synth: interrupted; no book is written\n");
  EXPECT_EQ(Files(), Words{});
}

// The run is far from its end when it is interrupted.
TEST_F(Cli, AnInterruptSaysHowManyRowsAreDone) {
  RingPlan();
  const Said said = Shell("timeout -s INT 1 $X run a.json --sizes 64MiB,128MiB --iters 1048576");
  EXPECT_EQ(said.err, "xccl-synth: interrupted; 0 rows are done\n");
}

}  // namespace
}  // namespace xccl
