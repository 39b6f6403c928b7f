// xccl-synth compare from outside.
#include <gtest/gtest.h>

#include <string>

#include "base/version.h"
#include "tests/testing/cli.h"

namespace xccl {
namespace {

TEST_F(Cli, ComparesOnFailedMachines) {
  const Words words = {"compare", "torus:3x3", "-c",       "allgather",  "--sizes",
                       "1MiB",    "--engines", "ring,bfb", "--failures", "3"};
  const std::string text = Out(words);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "allgather on torus:3x3 with 1 of its cables failed, 3 draws: 9 ranks, pipelined model");
  EXPECT_NE(text.find("\ntimes on ideal links: their bandwidths and latencies alone\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\ndraws are of all cables of the machine, used by a plan or not\n"), std::string::npos)
      << text;
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

TEST_F(Cli, ComparesWithPlansOfOtherTools) {
  Out({"plan", "torus:4", "-c", "allgather", "-e", "ring", "-s", "1MiB", "-o", "a.json"});
  EXPECT_EQ(Run({"emit", "a.json", "--to", "msccl-xml", "-o", "theirs/one.xml"}).code, 0);
  EXPECT_EQ(Run({"emit", "a.json", "--to", "msccl-xml", "-o", "two.xml"}).code, 0);
  const Json rows = Json::parse(Out({"compare", "torus:4", "-c", "allgather", "--sizes", "1MiB", "--engines",
                                     "ring", "--with", "theirs/one.xml,two.xml", "--json"}));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["engine"], "ring");
  EXPECT_EQ(rows[1]["engine"], "one.xml");
  EXPECT_EQ(rows[1]["made_by"], "a");
  EXPECT_EQ(rows[2]["engine"], "two.xml");
  EXPECT_EQ(rows[1]["time_us"], rows[0]["time_us"]);
  EXPECT_EQ(rows[1]["bound_us"], rows[0]["bound_us"]);
  // Where programs run on a machine, theirs do, too.
  const std::string text = Out({"compare", "torus:4", "-c", "allgather", "--sizes", "1MiB", "--engines",
                                "ring", "--with", "two.xml", "--machine", "hopper"});
  EXPECT_NE(text.find("two.xml (a)"), std::string::npos) << text;
  ExpectWrong({{}, 1, "two.xml: allgather of 4 ranks; expected alltoall of 4 ranks, as is compared"},
              Run({"compare", "torus:4", "-c", "alltoall", "--with", "two.xml"}));
  ExpectWrong({{}, 1, "two.xml: torus:5: 5 ranks; expected 4, as the plan has"},
              Run({"compare", "torus:5", "-c", "allgather", "--with", "two.xml"}));
}

TEST_F(Cli, TextsSayThatTimesAreOfIdealLinks) {
  const std::string title = "allgather on ring:3: 3 ranks, pipelined model\n";
  const std::string ideal = "on ideal links: their bandwidths and latencies alone\n";
  EXPECT_EQ(Out({"compare", "ring:3", "-c", "allgather", "--sizes", "1KiB,4KiB", "--engines", "ring"})
                .rfind(title + "times " + ideal, 0),
            0u);
  const std::string plan = Out({"plan", "ring:3", "-c", "allgather", "-o", "a.json"});
  EXPECT_NE(plan.find("\n             " + ideal), std::string::npos) << plan;
  const std::string simulated = Out({"simulate", "a.json"});
  EXPECT_NE(simulated.find("simulated, pipelined model\ntimes " + ideal), std::string::npos) << simulated;
}

TEST_F(Cli, CompareWithoutARowSaysWhy) {
  ExpectWrong(
      {{"compare"},
       1,
       "compare: no engine has a plan for alltoall on torus:2x2: ring: does not serve alltoall; it serves "
       "allreduce, allgather, allgatherv, reduce_scatter, reduce_scatterv, broadcast, reduce, barrier; hint: "
       "--engine=auto"},
      Run({"compare", "torus:2x2", "-c", "alltoall", "--engines", "ring", "--sizes", "1KiB"}));
}

// All sizes together take minutes: the first is there while the command still runs.
TEST_F(Cli, CompareShowsEachSizeAsItEnds) {
  const std::string rows = PrintedUntil(
      "  6912B ", "compare torus:12x12 -c alltoall --engines greedy,flow,direct --sizes 4KiB:512GiB:x2");
  EXPECT_NE(rows.find("\n  6912B  "), std::string::npos) << rows;
}

TEST_F(Cli, CompareRowsSayWhatTheyAreOf) {
  const Words words = {
      "compare", "torus:4x4@bandwidth=50GB/s,latency=1us", "-c", "allgather", "--sizes", "1MiB", "--engines",
      "auto"};
  Words json = words, csv = words;
  json.emplace_back("--json");
  csv.emplace_back("--csv");
  const Json row = Json::parse(Out(json))[0];
  EXPECT_EQ(row["engine"], "auto");
  EXPECT_NE(row["made_by"], "auto");
  EXPECT_EQ(row["collective"], "allgather");
  EXPECT_EQ(row["model"], "pipelined");
  EXPECT_TRUE(row["machine"].is_null());
  const std::string name = row["topology"];
  EXPECT_EQ(name.rfind("torus:4x4", 0), 0u);
  const std::string text = Out(csv);
  const std::string cell = name.find(',') == name.npos ? name : '"' + name + '"';
  EXPECT_NE(text.find("," + row["made_by"].get<std::string>() + ",allgather," + cell + ",pipelined,," +
                      kVersion + ","),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace xccl
