// --time-limit and --memory-limit, which every command takes and keeps, and the times that are told.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/cli.h"

namespace xccl {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST_F(Cli, EveryCommandTakesBothLimits) {
  RingPlan();
  Write("work.txt", "torus:2x2 -c allgather");
  const std::vector<Words> commands = {{"topo", "torus:2x2"},
                                       {"bound", "torus:2x2", "-c", "allgather"},
                                       {"plan", "torus:2x2", "-c", "allgather"},
                                       {"verify", "a.json"},
                                       {"simulate", "a.json"},
                                       {"compare", "torus:2x2", "-c", "allgather", "--sizes", "1KiB"},
                                       {"sweep", "work.txt", "-o", "table.csv"},
                                       {"emit", "a.json", "--to", "host"},
                                       {"run", "a.json", "--iters", "1"},
                                       {"tune", "torus:2x2", "--sizes", "1KiB", "-o", "book"}};
  for (const Words& command : commands) {
    const auto with = [&](const Words& more) {
      Words words = command;
      words.insert(words.end(), more.begin(), more.end());
      return words;
    };
    ExpectWrong({command, 2, "--time-limit: '5': no unit; a time is written like 500ns"},
                Run(with({"--time-limit", "5"})));
    ExpectWrong({command, 2, "--memory-limit: 0; expected more than 0"}, Run(with({"--memory-limit", "0"})));
    if (!kSanitized) Out(with({"--time-limit", "60s", "--memory-limit", "4GiB"}));
  }
}

// No engine has a plan in this time.
TEST_F(Cli, TheTimeLimitEndsASearchWithoutAPlan) {
  const Said said = Run({"plan", "mesh:32x32", "-c", "alltoall", "--time-limit", "0.001s"});
  EXPECT_EQ(said.code, 5);
  EXPECT_EQ(said.out, "");
  EXPECT_NE(said.err.find("--time-limit=0.001s"), std::string::npos) << said.err;
}

TEST_F(Cli, MemoryBeyondTheLimitIsAnErrorAndNoCrash) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's allocator ends the program itself";
  ExpectWrong({{"bound"}, 5, "out of memory within --memory-limit=5MiB; hint: fewer ranks or a larger limit"},
              Run({"bound", "fat-tree:k=16", "-c", "allgather", "--memory-limit", "5MiB"}));
  // The flags of the hint are those of the command.
  const std::string within = "out of memory within --memory-limit=12MiB; hint: fewer ranks, ";
  const auto hinted = [&](const std::string& collective, const std::string& flags) {
    ExpectWrong({{collective}, 5, within + flags + " or a larger limit"},
                Run({"plan", "rail-8", "-c", collective, "--memory-limit", "12MiB"}));
  };
  hinted("allgather", "--chunks=1");
  hinted("dispatch", "fewer --tokens");
  ExpectWrong({{"compare"}, 5, within + "fewer --tokens or a larger limit"},
              Run({"compare", "rail-8", "-c", "dispatch", "--memory-limit", "12MiB"}));
}

// Each stage says what it would need before it starts.
TEST_F(Cli, WorkBeyondTheMemoryLimitIsRefusedBeforeItStarts) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's tables are larger than memory";
  struct Case {
    Words command;
    std::string place, hint;
  };
  std::string counts;
  for (int i = 0; i < 1000 * 1000; ++i) counts += i % 1000 == 999 ? "1\n" : "1,";
  Write("counts.csv", counts);
  for (const Case& at :
       {Case{{"plan", "ring:1000", "-c", "alltoallv", "--counts", "counts.csv", "--memory-limit", "64MiB"},
             "alltoallv of 1000 ranks: needs about 61MiB more for 1000000 parts; expected at most ",
             " which is left of 64MiB; hint: --memory-limit=1GiB or fewer ranks"},
        Case{{"plan", "mesh:32x32", "-c", "alltoall", "--memory-limit", "256MiB"},
             "auto: no engine has a plan for alltoall on mesh:32x32: ",
             " which is left of 256MiB; hint: --memory-limit=1GiB or fewer ranks"}}) {
    const Said said = Run(at.command);
    EXPECT_EQ(said.code, 5);
    EXPECT_EQ(said.out, "");
    EXPECT_NE(said.err.find(at.place), std::string::npos) << said.err;
    EXPECT_NE(said.err.find(at.hint), std::string::npos) << said.err;
  }
}

// An even alltoall has no table with a row for each pair: one of 8,192 ranks took over a gigabyte.
TEST_F(Cli, AnAlltoallOfManyRanksFitsLittleMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's tables are larger than memory";
  const Json plan = Json::parse(Out({"plan", "dgx-h100", "--hosts", "1024", "-c", "alltoall", "-o", "a.json",
                                     "--json", "--memory-limit", "512MiB"}));
  EXPECT_LE(plan["ratio"], 1.05);
  Out({"verify", "a.json", "--memory-limit", "512MiB"});
}

// The plan is kept without its program, and says so.
TEST_F(Cli, AProgramBeyondTheMemoryLimitIsLeftOut) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's tables are larger than memory";
  const Words plan = {"plan", "mesh:16x16", "-c",     "alltoall",       "-e",    "2d-mesh",
                      "-o",   "a.json",     "--json", "--memory-limit", "160MiB"};
  const Json json = Json::parse(Out(plan));
  EXPECT_EQ(json["threadblocks"], nullptr);
  ASSERT_FALSE(json["warnings"].empty());
  const std::string warning = json["warnings"].back();
  EXPECT_EQ(warning.find("no program: lowering: needs about "), 0u) << warning;
}

// The limit that holds without a flag is no problem for a plan that fits.
TEST_F(Cli, WithoutAFlagMemoryIsLimitedToAShareOfWhatIsFree) {
  EXPECT_NE(Out({"plan", "--help"}).find("the limit is three quarters"), std::string::npos);
  Out({"plan", "torus:4x4", "-c", "allreduce"});
}

TEST_F(Cli, TheWholeTimeIsToldBesideTheSearch) {
  const Json plan = Json::parse(Out({"plan", "torus:4x4", "-c", "allreduce", "-o", "a.json", "--json"}));
  EXPECT_GT(plan["total_s"], plan["synthesis_s"]);
  const std::string text = Out({"plan", "torus:4x4", "-c", "allreduce", "-o", "a.json"});
  const size_t line = text.find("  synthesis  ");
  ASSERT_NE(line, std::string::npos) << text;
  EXPECT_NE(text.find(" s in all\n", line), std::string::npos) << text;
}

TEST_F(Cli, MachineNoneMeansLinksAlone) {
  const Words plan = {"plan", "dgx1", "-c", "allgather", "-s", "1MiB", "-o", "a.json", "--json"};
  Words none = plan;
  none.insert(none.end(), {"--machine", "none"});
  const Json json = Json::parse(Out(none));
  EXPECT_EQ(json["machine"], nullptr);
  const std::string file = Read("a.json");
  Out(plan);
  EXPECT_TRUE(Read("a.json") == file);
  none.back() = "hopper";
  EXPECT_NE(Json::parse(Out(none))["machine"], nullptr);
  ExpectWrong({none, 2,
               "--machine: no machine 'hoper'; did you mean 'hopper'?; expected ampere, b200, blackwell, "
               "gb300, hopper, mi250x, mi300x, none, a machine.json or a plan book"},
              Run({"plan", "dgx1", "-c", "allgather", "--machine", "hoper"}));
}

}  // namespace
}  // namespace xccl
