// xccl-sweep-mpi on three ranks of this machine, beside xccl-synth sweep.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/testing/cli.h"
#include "tests/testing/sweep.h"

namespace xccl {
namespace {

class SweepMpi : public Cli {
 protected:
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "no mpirun on PATH";
    Cli::SetUp();
    Write("work.txt", SweepList());
  }
  // A command of the shell, in which $M is mpirun with three ranks of xccl-sweep-mpi, and $X xccl-synth.
  // Files of Open MPI have short paths, since sockets are among them.
  Said Mpi(const std::string& command) const {
    const std::string built = std::filesystem::current_path().string();
    return Shell(
        fmt::format("PATH={0}/cli:$PATH; export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                    "TMPDIR=$(mktemp -d); "
                    "M='mpirun -n 3'; mpirun --version | grep -q 'Open MPI' && "
                    "M=\"$M --oversubscribe --mca btl self,vader,tcp --mca mpi_yield_when_idle 1\"; "
                    "P={0}/sweep/mpi/xccl-sweep-mpi; "
                    "M=\"$M $P\"; trap 'rm -r $TMPDIR' EXIT; {1}",
                    built, command));
  }
  // The table of a sweep without MPI.
  std::string Whole() const {
    Out({"sweep", "work.txt", "-o", "whole.csv"});
    return WithoutSeconds(Read("whole.csv"));
  }
};

TEST_F(SweepMpi, ThreeRanksAndOneMakeTheTableOfTheCommand) {
  const Said three = Mpi("$M work.txt -o t.csv");
  EXPECT_EQ(three.code, 0) << three.err;
  EXPECT_EQ(three.out, "t.csv: 36 jobs: 30 ok, 6 invalid; 0 were there\n");
  EXPECT_EQ(WithoutSeconds(Read("t.csv")), Whole());
  const Said one = Mpi("$P work.txt -o one.csv");
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(WithoutSeconds(Read("one.csv")), Whole());
  // A table that is complete needs no job.
  EXPECT_EQ(Mpi("$M work.txt -o t.csv").out, "t.csv: 36 jobs: 30 ok, 6 invalid; 36 were there\n");
}

TEST_F(SweepMpi, AKilledRankEndsTheJobAndTheNextGoesOn) {
  const std::string whole = Whole();
  for (const int rank : {0, 1}) {
    const Said killed =
        Mpi(fmt::format("rm -f t.csv; $M work.txt -o t.csv & mpi=$!; {}"
                        "for p in $(cat /proc/$mpi/task/$mpi/children); do "
                        "grep -qz '^OMPI_COMM_WORLD_RANK={}$\\|^PMI_RANK={}$' /proc/$p/environ && kill -9 "
                        "$p; done; wait $mpi",
                        WaitForLines("t.csv", 5), rank, rank));
    EXPECT_NE(killed.code, 0) << rank;
    EXPECT_EQ(killed.out, "");
    EXPECT_TRUE(Read("t.csv").ends_with('\n'));
    const Said again = Mpi("$M work.txt -o t.csv");
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_TRUE(again.out.starts_with("t.csv: 36 jobs: 30 ok, 6 invalid; ")) << again.out;
    EXPECT_FALSE(again.out.ends_with("; 0 were there\n")) << again.out;
    EXPECT_EQ(WithoutSeconds(Read("t.csv")), whole);
  }
}

TEST_F(SweepMpi, AFailedWriteEndsTheJobWithItsReason) {
  const Said said = Mpi("trap '' XFSZ; $P work.txt -o t.csv & job=$!; " + WaitForLines("t.csv", 4) +
                        "prlimit --pid $job --fsize=3072; wait $job");
  EXPECT_NE(said.code, 0);
  EXPECT_NE(said.err.find("xccl-sweep-mpi: t.csv: cannot write: File too large\n"), std::string::npos)
      << said.err;
  EXPECT_TRUE(Read("t.csv").ends_with('\n'));
  EXPECT_EQ(Mpi("$M work.txt -o t.csv").code, 0);
  EXPECT_EQ(WithoutSeconds(Read("t.csv")), Whole());
}

TEST_F(SweepMpi, AWrongCommandLineIsSaidOnce) {
  const Said said = Mpi("$M work.txt");
  EXPECT_EQ(said.code, 2);
  const std::string text = "xccl-sweep-mpi: no table; expected: xccl-sweep-mpi LIST -o TABLE [--retry]\n";
  EXPECT_NE(said.err.find(text), std::string::npos) << said.err;
  EXPECT_EQ(said.err.find(text), said.err.rfind(text)) << said.err;
  const Said odd = Mpi("$P work.txt more.txt -o t.csv");
  EXPECT_EQ(odd.err.rfind("xccl-sweep-mpi: unexpected 'more.txt'; expected: xccl-sweep-mpi LIST -o TABLE", 0),
            0U)
      << odd.err;
  const Said none = Mpi("$P -o t.csv");
  EXPECT_EQ(none.err.rfind("xccl-sweep-mpi: no work list; expected", 0), 0U) << none.err;
}

}  // namespace
}  // namespace xccl
