// One plan has one time. Every command that prints the time of a plan prints the same one: that of the
// program where the machine's model is known, and that of the schedule on ideal links elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "tests/testing/cli.h"

namespace xccl {
namespace {

class CliTimes : public Cli {
 protected:
  // The first group of the pattern in the text.
  static std::string Found(const std::string& text, const std::string& pattern) {
    std::smatch found;
    EXPECT_TRUE(std::regex_search(text, found, std::regex(pattern))) << pattern << " in\n" << text;
    return found.empty() ? "" : found[1].str();
  }

  // Expects that a printed number, such as "12.35", is `us` within half of its last digit. `scale`: the
  // microseconds of its unit.
  static void ExpectSame(const std::string& printed, double us, const std::string& command,
                         double scale = 1) {
    ASSERT_FALSE(printed.empty()) << command;
    const size_t point = printed.find('.');
    const size_t places = point == std::string::npos ? 0 : printed.size() - point - 1;
    const double half = 0.5 * std::pow(10.0, -static_cast<double>(places));
    EXPECT_NEAR(std::stod(printed), us / scale, half * 1.000001) << command;
  }

  static Words With(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // Simulates and runs the plan in the file.
  void ExpectTimeOfFile(const std::string& file, double us) const {
    ExpectSame(Found(Out({"simulate", file}), "\n *[0-9]+[KMGi]*B +([0-9.]+) "), us, "simulate");
    const std::string table = Run({"run", file, "--iters", "1", "--warmup", "0"}).out;
    ExpectSame(Found(table, "\n +[0-9]+ +[0-9]+ [^\n]* ([0-9.]+)\n#"), us, "run");
  }
};

TEST_F(CliTimes, AreTheSameFromEveryCommand) {
  const struct {
    Words machine;
    std::string collective, size;
    bool known;  // whether the machine's model is known
  } plans[] = {{{"dgx-a100"}, "allreduce", "16MiB", true},
               {{"dgx-a100"}, "allgather", "64KiB", true},
               {{"dgx-h100"}, "allreduce", "8KiB", true},
               {{"dgx-h100"}, "alltoall", "1MiB", true},
               {{"ring:4", "--machine", "hopper"}, "allreduce", "1MiB", true},
               {{"full-mesh:4", "--machine", "ampere"}, "broadcast", "4KiB", true},
               {{"dgx1"}, "allreduce", "1MiB", false},
               {{"torus:3x3"}, "allgather", "16MiB", false},  // rounded down
               {{"ring:6"}, "reduce_scatter", "1KiB", false},
               {{"dgx-a100", "--machine", "none"}, "allreduce", "64KiB", false}};
  for (const auto& [machine, collective, size, known] : plans) {
    SCOPED_TRACE(machine.back() + " " + collective + " " + size);
    const Words what = With(machine, {"-c", collective, "-s", size});
    const Json row = Json::parse(Out(With(With({"plan"}, what), {"-o", "a.json", "--json"})));
    EXPECT_EQ(row["machine"].is_null(), !known);
    const double us = row[known ? "time_program_us" : "time_us"];
    // With and without a file.
    for (const Words& output : {Words{}, Words{"-o", "again.json"}}) {
      const std::string text = Out(With(With({"plan"}, what), output));
      ExpectSame(Found(text, "\n  time +([0-9.]+)[um]s "), us, "plan",
                 Found(text, "\n  time +[0-9.]+([um]s) ") == "ms" ? 1000 : 1);
      ExpectSame(Found(text, " ratio ([0-9.]+)"), us / row["bound_us"].get<double>(), "ratio");
      EXPECT_NE(text.find(": bandwidths and latencies alone\n"), std::string::npos) << text;
    }
    const std::string ranked = Out(With(With({"compare"}, what), {"--engines", "auto"}));
    ExpectSame(Found(ranked, " auto \\([^)]*\\) +([0-9.]+) "), us, "compare");
    ExpectTimeOfFile("a.json", us);
    // The plan for another executor is a plan of its own, with one time as well.
    if (Run({"emit", "a.json", "--to", "msccl-xml", "-o", "a.xml"}).code != 0) continue;
    Words import = {"import", "a.xml", "--sizes", size, "-o", "b.json", "--on"};
    import.insert(import.end(), machine.begin(), machine.end());
    const Json theirs = Json::parse(Out(With(import, {"--json"})))["times"][0];
    EXPECT_EQ(theirs["machine"].is_null(), !known);
    ExpectSame(Found(Out(import), "\n *[0-9]+[KMGi]*B +([0-9.]+) "), theirs["time_us"], "import");
    const std::string simulated = Out({"simulate", "b.json", "--sizes", size});
    ExpectSame(Found(simulated, "\n *[0-9]+[KMGi]*B +([0-9.]+) "), theirs["time_us"], "simulate b.json");
    const std::string table = Run({"run", "b.json", "--sizes", size, "--iters", "1", "--warmup", "0"}).out;
    ExpectSame(Found(table, "\n +[0-9]+ +[0-9]+ [^\n]* ([0-9.]+)\n#"), theirs["time_us"], "run b.json");
  }
}

TEST_F(CliTimes, SayWhichTheyAre) {
  Out({"plan", "dgx-a100", "-c", "allreduce", "-s", "64KiB", "-o", "on.json"});
  Out({"plan", "dgx1", "-c", "allreduce", "-s", "64KiB", "-o", "links.json"});
  const Words quick = {"--iters", "1", "--warmup", "0"};
  EXPECT_NE(Out(With({"run", "on.json"}, quick))
                .find("\n# predicted: the program on dgx-a100, which is not this host: NCCL "),
            std::string::npos);
  EXPECT_NE(Out(With({"run", "links.json"}, quick))
                .find("\n# predicted: ideal links of dgx1, which is not this host: bandwidths and latencies "
                      "alone\n"),
            std::string::npos);
  EXPECT_EQ(Out({"simulate", "on.json"}).find("allreduce on dgx-a100 by "), 0u);
  EXPECT_NE(Out({"simulate", "on.json"}).find(", program simulated, "), std::string::npos);
  EXPECT_NE(Out({"simulate", "links.json"}).find(", schedule simulated, "), std::string::npos);
  EXPECT_NE(Out({"simulate", "on.json", "--level", "schedule"}).find(", schedule simulated, "),
            std::string::npos);
  // Scripts compare the time_us of simulate with that of plan, which is the schedule's.
  const Json planned = Json::parse(Out({"plan", "dgx-a100", "-c", "allreduce", "-s", "64KiB", "--json"}));
  EXPECT_EQ(Json::parse(Out({"simulate", "on.json", "--json"}))[0]["time_us"], planned["time_us"]);
}

}  // namespace
}  // namespace xccl
