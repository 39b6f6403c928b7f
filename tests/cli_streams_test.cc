// xccl-synth where its standard streams are closed, full or read by nobody, where files may not grow, and
// where texts begin with a byte-order mark.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/cli.h"

namespace xccl {
namespace {

// A dump that gives a warning: a GPU whose link has no width.
constexpr const char* kOddDump =
    "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
    "modelid=\"85\">\n<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"8 GT/s\" "
    "link_width=\"0\"><gpu "
    "dev=\"0\" sm=\"70\" rank=\"0\"/></pci>\n<pci busid=\"0000:02:00.0\" class=\"0x030200\" link_speed=\"8 "
    "GT/s\" "
    "link_width=\"16\"><gpu dev=\"1\" sm=\"70\" rank=\"1\"/></pci>\n</cpu>\n</system>\n";

// Ways to lose output that is written to a descriptor. In the last one the only reader has ended.
struct Lost {
  std::string before, descriptor;  // commands of the shell; what stands behind "2>"
  std::string reason;
};
std::vector<Lost> WaysToLose() {
  return {{"", "&-", "Bad file descriptor"},
          {"", "/dev/full", "No space left on device"},
          {"mkfifo pipe; : <pipe & exec 3>pipe; wait; rm pipe; ", "&3", "Broken pipe"}};
}

struct Case {
  std::string arguments;
  int code = 0;
  std::string file;  // that it writes
};

TEST_F(Cli, MessagesThatCannotBeWrittenEndNothing) {
  Write("odd.xml", kOddDump);
  Write("list.txt", "ring:4 odd.xml -c allgather -s 64KiB -e ring\n");
  ASSERT_EQ(Run({"plan", "odd.xml", "-c", "allreduce", "-s", "64KiB", "-o", "a.json"}).err.substr(0, 9),
            "warning: ");
  const std::vector<Case> cases = {
      {"plan odd.xml -c allreduce -s 64KiB -o new.json", 0, "new.json"},
      {"plan odd.xml -c allreduce -s 64KiB --explain", 0, ""},
      {"topo odd.xml", 0, ""},
      {"compare odd.xml -c allreduce -s 1KiB --engines ring,bruck --csv", 0, ""},
      {"sweep list.txt -o new.csv", 0, "new.csv"},
      {"emit a.json --to msccl-xml -o new.xml", 0, "new.xml"},
      {"run a.json --iters 1 --sizes 1KiB", 0, ""},
      {"tune odd.xml --collectives allreduce --sizes 1KiB --iters 1 -o book", 0, "book/index.json"},
      {"", 2, ""},
      {"frobnicate", 2, ""},
      {"plan --frobnicate", 2, ""},
      {"plan ring:4", 2, ""},
      {"topo nope.xml", 1, ""},
      {"verify nope.json", 1, ""},
      {"plan ring:4 -c allgather -e smt --steps 1", 3, ""},
  };
  for (const Lost& lost : WaysToLose())
    for (const auto& [arguments, code, file] : cases) {
      SCOPED_TRACE(arguments + " 2>" + lost.descriptor);
      const Said said =
          Shell("rm -rf new.* book; " + lost.before + "$X " + arguments + " 2>" + lost.descriptor);
      EXPECT_EQ(said.code, code);
      EXPECT_EQ(said.err, "");
      if (!file.empty()) {
        EXPECT_NE(Read(file), "");
      }
    }
}

TEST_F(Cli, ResultsThatCannotBeWrittenSayWhy) {
  Write("odd.xml", kOddDump);
  for (const Lost& lost : WaysToLose())
    for (const char* const arguments :
         {"topo ring:4", "plan ring:4 -c allgather -s 64KiB -e ring -o new.json", "--help"})
      ExpectWrong({{arguments, lost.descriptor}, 1, "standard output: cannot write: " + lost.reason},
                  Shell(lost.before + "$X " + arguments + " >" + lost.descriptor));
  EXPECT_EQ(Run({"verify", "new.json"}).code, 0);
}

// A file that got the number of a closed stream would have messages written into it.
TEST_F(Cli, NoFileGetsTheNumberOfAClosedStream) {
  Write("odd.xml", kOddDump);
  Write("list.txt", "ring:4 odd.xml -c allgather -s 64KiB -e ring\n");
  for (const auto& [command, file] :
       std::vector<std::pair<std::string, std::string>>{{"plan odd.xml -c allreduce -s 64KiB -o ", "p.json"},
                                                        {"emit a.json --to msccl-xml -o ", "e.xml"},
                                                        {"sweep list.txt -o ", "t.csv"},
                                                        {"view a.json -o ", "v.html"}}) {
    Shell("$X plan odd.xml -c allreduce -s 64KiB -o a.json");
    ASSERT_EQ(Shell("$X " + command + file).code, 0) << command;
    const std::string open = Read(file);
    EXPECT_NE(open, "");
    for (const char* const closed : {"<&- >&- 2>&-", "<&- 2>&-", ">&- 2>&-"}) {
      Shell("rm " + file);
      Shell("$X " + command + file + " " + closed);
      if (file == "t.csv")
        EXPECT_EQ(Read(file).size() > 0, true);  // it has the seconds that jobs took
      else
        EXPECT_EQ(Read(file), open) << command << closed;
      EXPECT_EQ(Read(file).find("warning"), std::string::npos) << command << closed;
    }
  }
}

// As "ulimit -f" of a cluster's job: the write fails with its reason, and the old file stays.
TEST_F(Cli, FilesThatMayNotGrowAreLeftAsTheyWere) {
  RingPlan();
  for (const char* const arguments :
       {"plan torus:4x4 -c allgather -s 1MiB -e ring -o new", "emit a.json --to cuda -o new",
        "view a.json -o new", "compare torus:2x2 -c allgather -s 1KiB --engines ring --html new"}) {
    Write("new", "old");
    const Said said = Shell(std::string("ulimit -f 2; $X ") + arguments);
    EXPECT_EQ(said.code, 1) << arguments;
    EXPECT_EQ(said.err, "xccl-synth: new: cannot write: File too large\n") << arguments;
    EXPECT_EQ(Read("new"), "old") << arguments;
    EXPECT_EQ(Files(), (Words{"a.json", "new"})) << arguments;
  }
  const Said said = Shell("ulimit -f 1; $X topo dgx1 --format xml >new");
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.err, "xccl-synth: standard output: cannot write: File too large\n");
}

// Rows are printed whether or not their picture can be written.
TEST_F(Cli, AResultOutlivesThePictureOfIt) {
  for (const char* const form : {"", "--json", "--csv"})
    for (const char* const failures : {"", "--failures 1"}) {
      const std::string command =
          std::string("$X compare torus:4x4 -c allgather -s 1KiB --engines ring ") + failures + " " + form;
      const Said whole = Shell(command);
      const Said without = Shell(command + " --html /dev/full --svg picture.svg");
      EXPECT_EQ(whole.code, 0) << command << whole.err;
      EXPECT_EQ(without.code, 1) << command;
      // Times of searches differ from run to run.
      EXPECT_EQ(std::ranges::count(without.out, '\n'), std::ranges::count(whole.out, '\n')) << without.out;
      EXPECT_EQ(without.err, "xccl-synth: /dev/full: cannot write: No space left on device\n") << command;
      EXPECT_NE(Read("picture.svg"), "") << command;
      Shell("rm picture.svg");
    }
}

std::string Utf16(const std::string& text) {
  std::string wide = "\xFF\xFE";
  for (const char c : text) wide.append({c, '\0'});
  return wide;
}

// Spreadsheets and editors write the mark of UTF-8; shells of Windows write UTF-16.
TEST_F(Cli, MarksOfTextsAreSkippedOrNamed) {
  Write("odd.xml", kOddDump);
  Write("counts.csv", "1,2,3,4\n");
  Write("machine.xml", "<topology name=\"m\"><ring ranks=\"3\" bandwidth=\"1GB/s\"/></topology>\n");
  Write("list.txt", "ring:4 -c allgather -s 64KiB -e ring\n");
  Write("own.json",
        R"({"name": "own", "part_sizes": [1], "pre": [{"rank": 0, "part": 0, "contributions": [0]}],
  "post": [{"rank": 1, "part": 0, "contributions": [0]}]})");
  Out({"plan", "ring:3", "-c", "allgather", "-s", "64KiB", "-e", "ring", "-o", "plan.json"});
  Shell("$X emit plan.json --to msccl-xml -o msccl.xml; $X emit plan.json --to mscclpp-json -o mscclpp.json");
  Out({"sweep", "list.txt", "-o", "table.csv"});
  Write("measured.txt",
        "# Rank 0 Group 0 Pid 1 on h0 device 0\n# Rank 1 Group 0 Pid 1 on h0 device 1\n"
        "# size count type redop root time\n 1024 256 float sum -1 5.0\n");
  struct Marked {
    std::string file, arguments;
    bool json = false;  // named, not skipped
  };
  const std::vector<Marked> cases = {
      {"counts.csv", "bound ring:4 -c allgatherv -s 64KiB --counts counts.csv"},
      {"machine.xml", "topo machine.xml"},
      {"odd.xml", "topo odd.xml"},
      {"msccl.xml", "import msccl.xml"},
      {"mscclpp.json", "import mscclpp.json"},
      {"list.txt", "sweep list.txt --list"},
      {"table.csv", "sweep list.txt -o table.csv"},
      {"table.csv", "sweep list.txt --merge table.csv -o merged.csv"},
      {"measured.txt", "compare ring:2 -c allreduce -s 1KiB --engines ring --with measured.txt"},
      {"plan.json", "verify plan.json", true},
      {"own.json", "bound ring:3 --collective-file own.json -s 64KiB", true},
  };
  for (const auto& [file, arguments, json] : cases) {
    SCOPED_TRACE(arguments);
    const std::string text = Read(file);
    const Said plain = Shell("$X " + arguments);
    EXPECT_EQ(plain.code, 0) << plain.err;
    Write(file, "\xEF\xBB\xBF" + text);
    const Said marked = Shell("$X " + arguments);
    if (json) {
      EXPECT_EQ(marked.err, "xccl-synth: " + file + ":1:1: begins with a byte-order mark; expected JSON\n");
    } else {
      EXPECT_EQ(marked.code, 0);
      EXPECT_EQ(marked.out, plain.out);
      EXPECT_EQ(marked.err, plain.err);
    }
    Write(file, Utf16(text));
    const Said wide = Shell("$X " + arguments);
    EXPECT_EQ(wide.code, 1);
    EXPECT_EQ(wide.err, "xccl-synth: " + file + ":1:1: begins with a mark of UTF-16; expected " +
                            (json ? "JSON in UTF-8\n" : "UTF-8\n"));
    Write(file, text);
  }
}

}  // namespace
}  // namespace xccl
