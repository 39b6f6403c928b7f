// xccl-synth sweep from outside: lists, tables, parts, kills and full disks.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "base/strings.h"
#include "sweep/table.h"
#include "sweep/work_list.h"
#include "tests/testing/cli.h"
#include "tests/testing/sweep.h"

namespace xccl {
namespace {

class CliSweep : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    Write("work.txt", SweepList());
  }
  // The table of a sweep that nothing disturbed.
  std::string Whole() const {
    Out({"sweep", "work.txt", "-o", "whole.csv", "-j", "2"});
    return WithoutSeconds(Read("whole.csv"));
  }
  std::vector<std::vector<std::string>> Rows(const std::string& table) const {
    return *ParseCsv(Read(table));
  }
};

TEST_F(CliSweep, JobsAreListedAsCommands) {
  Write("two.txt",
        "dgx1 -c gather -s 1KiB --without-link 0->1 --ranks 0,2,4-7 --time-limit 5s\ndgx2 -c barrier");
  EXPECT_EQ(Out({"sweep", "two.txt", "--list"}),
            "0  xccl-synth plan dgx1 --collective=gather --size=1024 --engine=auto --ranks=0,2,4-7 "
            "'--without-link=0->1' --time-limit=5s\n"
            "1  xccl-synth plan dgx2 --collective=barrier --size=67108864 --engine=auto\n");
  EXPECT_EQ(Out({"sweep", "two.txt", "--list", "--part", "1/2"}),
            "1  xccl-synth plan dgx2 --collective=barrier --size=67108864 --engine=auto\n");
}

TEST_F(CliSweep, ARowIsWhatPlanSays) {
  Write("two.txt",
        "dgx1 -c allreduce -s 1MiB -e auto --program\ndgx1 -c allgather -e smt --chunks 1 --steps 1");
  EXPECT_EQ(Out({"sweep", "two.txt", "-o", "t.csv"}), "t.csv: 2 jobs: 1 ok, 1 infeasible; 0 were there\n");
  const auto rows = Rows("t.csv");
  ASSERT_EQ(rows.size(), 3U);
  const Json plan =
      Json::parse(Out({"plan", "dgx1", "-c", "allreduce", "-s", "1MiB", "-o", "a.json", "--json"}));
  for (size_t c = 5; c + 3 < rows[0].size(); ++c) {
    const Json& value = plan[rows[0][c] == "made_by" ? "engine" : rows[0][c]];
    const std::string text = value.is_number()   ? fmt::format("{}", value.get<double>())
                             : value.is_string() ? value.get<std::string>()
                                                 : value.dump();
    EXPECT_EQ(rows[1][c], text) << rows[0][c];
  }
  EXPECT_NE(rows[1][8], "");  // the program's time
  const Said wrong = Run({"plan", "dgx1", "-c", "allgather", "-e", "smt", "--chunks", "1", "--steps", "1"});
  EXPECT_EQ(rows[2][20], "infeasible");
  EXPECT_EQ("xccl-synth: " + rows[2][21] + "\n", wrong.err);
}

TEST_F(CliSweep, TheTableIsTheSameWhateverTheNumberOfWorkers) {
  EXPECT_EQ(Out({"sweep", "work.txt", "-o", "one.csv"}),
            "one.csv: 36 jobs: 30 ok, 6 invalid; 0 were there\n");
  EXPECT_EQ(Rows("one.csv").size(), kSweepJobs + 1U);
  EXPECT_EQ(WithoutSeconds(Read("one.csv")), Whole());
  EXPECT_EQ(Files(), (Words{"one.csv", "whole.csv", "work.txt"}));
  // Rows stand in the order of the list.
  const StatusOr<std::vector<SweepJob>> jobs = ParseWorkList(SweepList(), "");
  const auto rows = Rows("one.csv");
  for (size_t j = 0; j < jobs->size(); ++j)
    EXPECT_EQ(rows[j + 1][0] + rows[j + 1][2], (*jobs)[j].topology + std::to_string((*jobs)[j].size_bytes));
}

TEST_F(CliSweep, PartsMakeTheSameTable) {
  for (const char* part : {"0", "1", "2"})
    Out({"sweep", "work.txt", "--part", std::string(part) + "/3", "-o", std::string("t.csv.") + part});
  EXPECT_EQ(Rows("t.csv.1").size(), kSweepJobs / 3 + 1U);
  EXPECT_EQ(Out({"sweep", "work.txt", "--merge", "t.csv.0", "t.csv.1", "t.csv.2", "-o", "t.csv"}),
            "t.csv: 36 of 36 jobs\n");
  EXPECT_EQ(WithoutSeconds(Read("t.csv")), Whole());
  const Said some = Run({"sweep", "work.txt", "--merge", "t.csv.1", "-o", "some.csv"});
  EXPECT_EQ(some.out, "some.csv: 12 of 36 jobs\n");
  EXPECT_EQ(some.err, "note: 24 of 36 jobs have no row; hint: xccl-synth sweep work.txt -o some.csv\n");
  EXPECT_EQ(Out({"sweep", "work.txt", "-o", "some.csv"}),
            "some.csv: 36 jobs: 30 ok, 6 invalid; 12 were there\n");
  EXPECT_EQ(WithoutSeconds(Read("some.csv")), Whole());
}

TEST_F(CliSweep, AKilledSweepGoesOnWhereItWas) {
  const std::string whole = Whole();
  for (const int lines : {1, 4, 20}) {
    const Said killed = Shell("rm -f t.csv; $X sweep work.txt -o t.csv -j 3 & running=$!; " +
                              WaitForLines("t.csv", lines) + "kill -9 $running; wait $running");
    EXPECT_EQ(killed.code, 128 + 9) << killed.err;
    const size_t rows = Rows("t.csv").size();
    EXPECT_GE(rows, static_cast<size_t>(lines));
    EXPECT_LE(rows, kSweepJobs + 1U);
    Shell("printf 'torus:2x2,allred' >>t.csv");  // as a machine that loses power leaves it
    EXPECT_EQ(Out({"sweep", "work.txt", "-o", "t.csv"}),
              fmt::format("t.csv: 36 jobs: 30 ok, 6 invalid; {} were there\n", rows - 1));
    EXPECT_EQ(WithoutSeconds(Read("t.csv")), whole);
  }
}

TEST_F(CliSweep, JobsEndWithAKilledSweep) {
  Write("long.txt", "mesh:32x32 -c alltoall");
  const Said said = Shell(
      "$X sweep long.txt -o t.csv & running=$!; "
      "until job=$(cat /proc/$running/task/$running/children) && [ -n \"$job\" ]; do sleep 0.01; done; "
      "kill -9 $running; while grep -q '^State:.[^Z]' /proc/$job/status 2>/dev/null; do sleep 0.01; done; "
      "echo ended");
  EXPECT_EQ(said.out, "ended\n");
}

TEST_F(CliSweep, AListMayGrow) {
  Write("some.txt", "torus:2x2 -c allreduce -s 1KiB --program\n");
  Out({"sweep", "some.txt", "-o", "t.csv"});
  EXPECT_EQ(Out({"sweep", "work.txt", "-o", "t.csv"}), "t.csv: 36 jobs: 30 ok, 6 invalid; 1 were there\n");
  EXPECT_EQ(WithoutSeconds(Read("t.csv")), Whole());
  // Rows that a list does not name are kept.
  Out({"sweep", "some.txt", "-o", "t.csv"});
  EXPECT_EQ(Rows("t.csv").size(), kSweepJobs + 1U);
}

TEST_F(CliSweep, LimitsOfOneJobAreRows) {
  Write("limits.txt",
        "mesh:32x32 -c alltoall --time-limit 0.001s\ntorus:2x2 -c allgather --memory-limit 0\n");
  EXPECT_EQ(Out({"sweep", "limits.txt", "-o", "t.csv"}),
            "t.csv: 2 jobs: 0 ok, 1 limit, 1 usage; 0 were there\n");
  const auto rows = Rows("t.csv");
  EXPECT_NE(rows[1][21].find("--time-limit=0.001s"), std::string::npos) << rows[1][21];
  EXPECT_EQ(rows[2][21], "--memory-limit: 0; expected more than 0");
}

// Runs $X sweep with the words, sends the signal to its first job, and waits for its end.
std::string SweepWithASignal(std::string_view words, std::string_view signal) {
  return fmt::format(
      "$X sweep {} & running=$!; "
      "until job=$(cut -d' ' -f1 /proc/$running/task/$running/children) && [ -n \"$job\" ]; do sleep 0.01; "
      "done; kill -{} $job; wait $running",
      words, signal);
}

TEST_F(CliSweep, ACrashOfOneJobIsARowAndDoneAgainWhereAsked) {
  Write("crash.txt", "mesh:32x32 -c alltoall\ntorus:2x2 -c allgather\n");
  Shell(SweepWithASignal("crash.txt -o t.csv", "SEGV"));
  EXPECT_EQ(Rows("t.csv")[1][20], "killed");
  EXPECT_EQ(Rows("t.csv")[1][21], "plan: killed by signal 11 (Segmentation fault)");
  EXPECT_EQ(Rows("t.csv")[2][20], "ok");
  Write("t.csv", std::regex_replace(Read("t.csv"), std::regex("mesh:32x32"), "torus:3x3"));
  Write("crash.txt", "torus:3x3 -c alltoall\ntorus:2x2 -c allgather\n");
  EXPECT_EQ(Out({"sweep", "crash.txt", "-o", "t.csv"}), "t.csv: 2 jobs: 1 ok, 1 killed; 2 were there\n");
  EXPECT_EQ(Out({"sweep", "crash.txt", "-o", "t.csv", "--retry"}), "t.csv: 2 jobs: 2 ok; 1 were there\n");
  EXPECT_EQ(Rows("t.csv").size(), 3U);
}

// A signal stops the first job, so that no machine is fast enough to end it within the limit.
TEST_F(CliSweep, TheTimeLimitEndsTheSweepAndKeepsItsRows) {
  Write("long.txt", "mesh:32x32 -c alltoall\ntorus:2x2 -c allgather\n");
  ExpectWrong(
      {{"sweep"}, 5, "sweep: --time-limit=5s passed with 1 of 2 jobs to do; hint: the same command again"},
      Shell(SweepWithASignal("long.txt -o t.csv -j 2 --time-limit 5s", "STOP")));
  EXPECT_EQ(Rows("t.csv").size(), 2U);
}

// As on a full disk, the file cannot grow beyond some size.
TEST_F(CliSweep, AFailedWriteKeepsTheWholeRowsBeforeIt) {
  const Said said = Shell("trap '' XFSZ; ulimit -f 6; exec $X sweep work.txt -o t.csv");
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.err, "xccl-synth: t.csv: cannot write: File too large\n");
  EXPECT_TRUE(Read("t.csv").ends_with('\n'));
  const size_t rows = Rows("t.csv").size();
  EXPECT_GT(rows, 3U);
  EXPECT_EQ(Out({"sweep", "work.txt", "-o", "t.csv"}),
            fmt::format("t.csv: 36 jobs: 30 ok, 6 invalid; {} were there\n", rows - 1));
  EXPECT_EQ(WithoutSeconds(Read("t.csv")), Whole());
}

// The Slurm script, with what Slurm tells a task of an array.
TEST_F(CliSweep, TheArrayScriptDoesOnePartEach) {
  const std::string examples = std::filesystem::current_path().string() + "/examples/";
  EXPECT_GT(std::ranges::count(Out({"sweep", examples + "sweep.txt", "--list"}), '\n'), 60);
  const Said said = Shell(
      "PATH=$(dirname $X):$PATH; export SLURM_ARRAY_TASK_MAX=1; "
      "for i in 0 1; do SLURM_ARRAY_TASK_ID=$i " +
      examples + "sweep.sbatch work.txt t.csv; done");
  EXPECT_EQ(said.err, "");
  EXPECT_EQ(Files(), (Words{"t.csv.0", "t.csv.1", "work.txt"}));
  EXPECT_EQ(Shell("$X sweep work.txt --merge t.csv.* -o t.csv").out, "t.csv: 36 of 36 jobs\n");
  EXPECT_EQ(WithoutSeconds(Read("t.csv")), Whole());
}

TEST_F(CliSweep, WrongCommandLines) {
  Write("a.csv", "a,b\n");
  const Wrong wrong[] = {
      {{"sweep", "none.txt", "-o", "t.csv"}, 1, "none.txt: cannot read: No such file or directory"},
      {{"sweep", "work.txt"}, 2, "sweep: no table; hint: --output=table.csv, or --list"},
      {{"sweep", "work.txt", "-o", "t.csv", "--part", "3/3"},
       2,
       "--part: '3/3': no part; expected I/N, part I of N, with I from 0 to N-1"},
      {{"sweep", "work.txt", "-o", "t.csv", "--merge", "none.csv"},
       1,
       "none.csv: cannot read: No such file or directory"},
      {{"sweep", "work.txt", "-o", "/dev/full"},
       1,
       "/dev/full: no regular file; expected a table or no file"}};
  for (const Wrong& each : wrong) ExpectWrong(each, Run(each.arguments));
  EXPECT_EQ(Run({"sweep", "work.txt", "-o", "a.csv"}).err.rfind("xccl-synth: a.csv:1: other columns", 0), 0U);
  EXPECT_EQ(Files(), (Words{"a.csv", "work.txt"}));
}

// Every flag of `plan` may stand in a work list, except flags with which `plan` makes no single plan.
TEST_F(CliSweep, ListsHaveTheFlagsOfPlan) {
  const std::vector<std::string> others = {"--help",   "--groups", "--from",    "--pareto", "--output",
                                           "--json",   "--for",    "--explain", "--lower",  "--place",
                                           "--tokens", "--row",    "--routing", "--aim",    "--draws"};
  const std::string help = Out({"plan", "--help"});
  const std::string before_training = help.substr(0, help.find("\nTraining:"));
  const std::string after = help.substr(help.find("\nOutput:"));
  const std::vector<std::string_view> known = WorkListFlags();
  std::vector<std::string> found;
  const std::regex flag("\n  (?:-[a-z],)?(--[a-z-]+)");
  for (const std::string& text : {before_training, after})
    for (std::sregex_iterator at(text.begin(), text.end(), flag), end; at != end; ++at)
      found.push_back((*at)[1]);
  EXPECT_GT(found.size(), 25U);
  for (const std::string& name : found)
    EXPECT_NE(std::ranges::find(known, name) != known.end(), std::ranges::find(others, name) != others.end())
        << name;
  for (const std::string_view name : known)
    EXPECT_TRUE(name == "--program" || std::ranges::find(found, name) != found.end()) << name;
}

}  // namespace
}  // namespace xccl
