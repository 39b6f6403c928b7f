// xccl-synth compare from outside.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "ir/known_machines.h"
#include "tests/testing/cli.h"

namespace xccl {
namespace {

TEST_F(Cli, ComparesOnFailedMachines) {
  const Words words = {"compare", "torus:3x3", "-c",       "allgather",  "--sizes",
                       "1MiB",    "--engines", "ring,bfb", "--failures", "3"};
  const std::string text = Out(words);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "allgather on torus:3x3 with 1 of its cables failed, 3 draws: 9 ranks, pipelined model");
  EXPECT_NE(text.find("\ntimes on ideal links: bandwidths and latencies alone\n"), std::string::npos) << text;
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
      "xccl-synth: ring:4 with 2 of its 4 cables failed: none of 6 draws left all ranks within reach\n");
  const std::string all =
      Out({"compare", "ring:4", "-c", "allgather", "-s", "1MiB", "--engines", "ring,bfb", "--failures", "9"});
  EXPECT_NE(all.find("with 1 of its cables failed, 4 draws"), std::string::npos) << all;
  EXPECT_NE(all.find("\n4 of 9 draws: no other failure leaves all ranks within reach\n"), std::string::npos)
      << all;
  EXPECT_EQ(Run({"compare", "ring:1", "-c", "allgather", "--failures", "2"}).err,
            "xccl-synth: ring:1: no cables that could fail\n");
  EXPECT_EQ(Run({"compare", "ring:4", "-c", "allgather", "--failed-cables", "2"}).code, 2);
}

TEST_F(Cli, CompareNamesEnginesForOtherCollectivesInOneLine) {
  const std::string all = Out({"compare", "ring:3", "-c", "alltoall", "--sizes", "1KiB", "--engines", "all"});
  EXPECT_NE(all.find("\nleft out: ring, tree, "), std::string::npos) << all;
  EXPECT_NE(all.find(", bfb, forest, mended: not for alltoall\n"), std::string::npos) << all;
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
  std::filesystem::create_directory(folder_ + "/theirs");
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

// nccl-tests' table of an allreduce, two columns after the first busbw left out.
std::string MeasuredTable(int ranks, const std::string& rows) {
  std::string text = "# Collective test starting: all_reduce_perf\n# Using devices\n";
  for (int r = 0; r < ranks; ++r)
    text += "#  Rank  " + std::to_string(r) + " Group  0 Pid 1 on h0 device " + std::to_string(r) +
            " NVIDIA H100\n";
  return text +
         "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time\n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)\n" +
         rows + "# Out of bounds values : 0 OK\n";
}
constexpr const char* kMeasuredRows =
    "        1024           256     float     sum      -1    20.50    0.05    0.07       0    19.00\n"
    "     1048576        262144     float     sum      -1    80.00   13.11   19.66       0    79.00\n"
    "     2097152        524288     float     sum      -1    90.00   13.11   19.66       7    79.00\n"
    "     4194304       1048576     float     sum      -1   100.00   41.94   62.91       0    99.00\n";

TEST_F(Cli, ComparesWithWhatWasMeasured) {
  Write("t.txt", MeasuredTable(4, kMeasuredRows));
  const Words words = {"compare",   "full-mesh:4", "-c",     "allreduce", "-s", "1KiB,64KiB,1MiB,2MiB",
                       "--engines", "ring",        "--with", "t.txt"};
  const std::string text = Out(words);
  EXPECT_NE(
      text.find("\nmeasured: t.txt: all_reduce_perf of 4 ranks on 1 host, out of place; not simulated; 1 "
                "other size not compared; 1 row with wrong elements left out\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(" measured: t.txt (nccl-tests) "), std::string::npos) << text;
  Words json = words;
  json.emplace_back("--json");
  std::vector<std::pair<int64_t, double>> measured;
  for (const Json& row : Json::parse(Out(json))) {
    EXPECT_EQ(row["measured"], row["engine"] == "measured: t.txt") << row;
    EXPECT_EQ(row["messages"].is_null(), row["measured"].get<bool>()) << row;
    if (!row["measured"]) continue;
    measured.emplace_back(row["size_bytes"], row["time_us"]);
    EXPECT_NEAR(row["busbw_gb_per_s"],
                1.5 * row["size_bytes"].get<double>() / row["time_us"].get<double>() / 1e3, 1e-6);
    EXPECT_NEAR(row["ratio"], row["time_us"].get<double>() / row["bound_us"].get<double>(), 1e-6);
  }
  // None at 64 KiB, which was not measured, nor at 2 MiB, where elements were wrong; times are out of place.
  EXPECT_EQ(measured, (std::vector<std::pair<int64_t, double>>{{1024, 20.5}, {1 << 20, 80}}));
}

TEST_F(Cli, MeasuredTimesAreOfTheSame) {
  Write("t.txt", MeasuredTable(4, kMeasuredRows));
  Write("broken.txt", MeasuredTable(4, "        1024           256     float\n"));
  const auto with = [&](const std::string& topology, const std::string& collective, const std::string& file) {
    return Run({"compare", topology, "-c", collective, "-s", "1KiB", "--engines", "ring", "--with", file});
  };
  ExpectWrong({{}, 1, "t.txt:1: all_reduce_perf; expected allgather, as is compared"},
              with("ring:4", "allgather", "t.txt"));
  ExpectWrong({{}, 1, "t.txt:6: 4 ranks; expected 5, as is compared"}, with("ring:5", "allreduce", "t.txt"));
  ExpectWrong({{}, 1, "broken.txt:9: a row of 3 columns; expected 10"},
              with("ring:4", "allreduce", "broken.txt"));
  ExpectWrong({{}, 1, "t.txt: none of its sizes is compared; hint: --sizes=1KiB,1MiB,2MiB,4MiB"},
              Run({"compare", "ring:4", "-c", "allreduce", "-s", "3KiB", "--with", "t.txt"}));
}

// Logs of jobs: with the prefixes of launchers, several runs, and results of rccl-tests.
TEST_F(Cli, MeasuredTimesOfLogs) {
  const Words words = {"compare",   "full-mesh:4", "-c",   "allreduce", "-s",
                       "1KiB,1MiB", "--engines",   "ring", "--json",    "--with"};
  const auto measured = [&](const std::string& file) {
    Words with = words;
    with.push_back(file);
    std::vector<std::pair<std::string, double>> rows;
    for (const Json& row : Json::parse(Out(with)))
      if (row["measured"]) rows.emplace_back(row["engine"], row["time_us"]);
    return rows;
  };
  const auto prefixed = [](const std::string& prefix, const std::string& text) {
    std::istringstream lines(text);
    std::string made;
    for (std::string line; std::getline(lines, line);) made.append(prefix).append(line).append("\n");
    return made;
  };
  using Rows = std::vector<std::pair<std::string, double>>;
  const std::string table = MeasuredTable(4, kMeasuredRows);
  for (const char* const prefix : {"[1,0]<stdout>:", "0: ", "[pod/launcher-0/main] "}) {
    Write("log", "a line of its own\n" + prefixed(prefix, table));
    EXPECT_EQ(measured("log"), (Rows{{"measured: log", 20.5}, {"measured: log", 80}})) << prefix;
  }
  std::string other = table, slower = table;
  other.replace(other.find("all_reduce_perf"), 15, "all_gather_perf");
  slower.replace(slower.find("20.50"), 5, "30.50");
  Write("log", other + table + slower);
  EXPECT_EQ(measured("log"), (Rows{{"measured: log:14", 20.5},
                                   {"measured: log:27", 30.5},
                                   {"measured: log:14", 80},
                                   {"measured: log:27", 80}}));
  const std::string text =
      Out({"compare", "full-mesh:4", "-c", "allreduce", "-s", "1KiB", "--engines", "ring", "--with", "log"});
  EXPECT_NE(text.find("; 1 other run of the file left out: log:1: all_gather_perf; expected allreduce, as is "
                      "compared\n"),
            std::string::npos)
      << text;
  ExpectWrong(
      {{},
       1,
       "log:1: all_gather_perf; expected alltoall, as is compared; nor does another of its 3 runs fit"},
      Run({"compare", "ring:4", "-c", "alltoall", "-s", "1KiB", "--engines", "auto", "--with", "log"}));
  Write("r.csv",
        "numCycle,collective,gpus,size,type,redop,inplace,time,algbw,busbw,#wrong\n"
        "0,\"AllReduce\",4,1024,\"float\",\"sum\",0,20.5,1,1,\"0\"\n"
        "0,\"AllReduce\",4,1048576,\"float\",\"sum\",0,80,1,1,\"0\"\n");
  EXPECT_EQ(measured("r.csv"), (Rows{{"measured: r.csv", 20.5}, {"measured: r.csv", 80}}));
  // A file of a rooted collective may have no place for a root.
  Write("b.csv", "collective,gpus,size,inplace,time\nBroadcast,4,1024,0,20.5\n");
  EXPECT_EQ(
      Run({"compare", "ring:4", "-c", "broadcast", "--root", "2", "-s", "1KiB", "--with", "b.csv"}).code, 0);
  Write("notes", "my notes\n");
  ExpectWrong(
      {{},
       1,
       "notes: begins with 'my notes'; expected MSCCL XML, an MSCCL++ plan, ForestColl's trees, TACOS' "
       "lists or a table, JSON or CSV of nccl-tests or rccl-tests, or a log of a job's calls"},
      Run({"compare", "ring:4", "-c", "alltoall", "-s", "1KiB", "--engines", "auto", "--with", "notes"}));
}

TEST_F(Cli, ComparesMachines) {
  const Words words = {"compare", "ring:4", "ring:8", "-c", "allreduce", "-s", "1KiB,1MiB"};
  const std::string text = Out(words);
  EXPECT_EQ(
      text.rfind("allreduce on 2 machines: ring:4, ring:8, pipelined model\n"
                 "times on ideal links: bandwidths and latencies alone\n"
                 "all times are on ideal links: no machine model for ring:4 (no arch), ring:8 (no arch); ",
                 0),
      0u)
      << text;
  Words json = words;
  json.insert(json.end(), {"--engines", "ring", "--html", "a.html", "--svg", "a.svg", "--json"});
  const Json rows = Json::parse(Out(json));
  ASSERT_EQ(rows.size(), 8U);  // sizes, machines, auto and ring
  const Json one =
      Json::parse(Out({"compare", "ring:8", "-c", "allreduce", "-s", "1MiB", "--engines", "auto", "--json"}));
  bool found = false;
  for (const Json& row : rows) {
    EXPECT_EQ(Keys(row), Keys(one[0]));
    if (row["topology"] == "ring:8" && row["engine"] == "auto" && row["size_bytes"] == 1 << 20) {
      EXPECT_EQ(row, one[0]);
      found = true;
    }
  }
  EXPECT_TRUE(found);
  EXPECT_NE(Read("a.svg").find(">ring:8: ring</text>"), std::string::npos);
  EXPECT_NE(Read("a.html").find("\"name\":\"ring:8: ring\""), std::string::npos);
}

TEST_F(Cli, ComparesMachinesThatDiffer) {
  EXPECT_EQ(Run({"compare", "ring:4", "ring:4", "-c", "allreduce"}).err,
            "xccl-synth: TOPOLOGY: 'ring:4' twice; expected different ones\n");
  EXPECT_EQ(Run({"compare", "ring:4", "ring:5", "-c", "allreduce", "--failures", "2"}).err,
            "xccl-synth: --failures: 2 topologies; expected one\n");
  EXPECT_EQ(Run({"compare", "ring:4", "ring:5", "-c", "allreduce", "--with", "a.xml"}).err,
            "xccl-synth: --with: 2 topologies; expected one\n");
  // One machine has no model: all times, also in CSV and on the page, are of links, and the text says so.
  const Words words = {"compare", "ring:4",    "dgx-a100", "-c",     "allreduce", "-s",
                       "1MiB",    "--engines", "ring",     "--html", "a.html"};
  const std::string text = Out(words);
  EXPECT_NE(text.find("\ntimes on ideal links: bandwidths and latencies alone\nall times are on ideal "
                      "links: no machine model for ring:4 (no arch); hint: --machine=hopper "),
            std::string::npos)
      << text;
  EXPECT_NE(Read("a.html").find("\"notes\":[\"all times are on ideal links: "), std::string::npos);
  const auto machines = [&](const Words& more) {
    Words json = words;
    json.insert(json.end(), more.begin(), more.end());
    json.push_back("--json");
    std::vector<Json> found;
    for (const Json& row : Json::parse(Out(json))) found.push_back(row["machine"]);
    return found;
  };
  EXPECT_EQ(machines({}), std::vector<Json>(4, nullptr));
  EXPECT_EQ(machines({"--machine", "mi300x"}), std::vector<Json>(4, Mi300xModel().source));
  EXPECT_EQ(machines({"--gpu-arch", "sm80"}), std::vector<Json>(4, AmpereModel().source));
}

// A row is printed before the rows after it are known; the columns of all sizes are as wide.
TEST_F(Cli, CompareColumnsStayInLine) {
  const std::string text =
      Out({"compare", "ring:8", "-c", "allreduce", "-s", "1KiB,64MB,1MiB", "--engines", "auto,tree,greedy"});
  size_t width = 0;
  int64_t rows = 0;
  std::istringstream lines(text.substr(text.find("   size  engine ")));
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" rounded ") != std::string::npos || line.find(" faster ") != std::string::npos) continue;
    if (width == 0) width = line.size();
    EXPECT_EQ(line.size(), width) << text;
    ++rows;
  }
  EXPECT_EQ(rows, 10);
}

// The plan that auto keeps at small sizes is not the plan that its engine makes alone.
TEST_F(Cli, CompareSaysWhyAutoKeptAPlan) {
  const Words words = {"compare", "ring:8", "-c", "allreduce", "-s", "1KiB", "--engines", "auto,tree,greedy"};
  const std::string text = Out(words);
  EXPECT_TRUE(std::regex_search(text, std::regex(" auto \\(tree, (finer|coarser|reordered)\\) "))) << text;
  EXPECT_TRUE(
      std::regex_search(text, std::regex("\n +within 2 %: tree, [0-9]+ messages; greedy [0-9.]+ % faster "
                                         "with [0-9]+\n")))
      << text;
  Words json = words;
  json.emplace_back("--json");
  for (const Json& row : Json::parse(Out(json))) {
    EXPECT_EQ(row["note"].is_null(), row["engine"] != "auto") << row;
    if (row["engine"] == "auto") {
      EXPECT_EQ(row["note"].get<std::string>().rfind("within 2 %: tree, ", 0), 0u);
    }
  }
  // Alone, the row says how many messages the plan has.
  const std::string alone = Out({"compare", "ring:8", "-c", "allreduce", "-s", "1KiB", "--engines", "auto"});
  EXPECT_TRUE(std::regex_search(alone, std::regex(" auto \\(tree, [0-9]+ messages\\) "))) << alone;
}

// Machines of other numbers of ranks round a size to other sizes; rows are joined by the size asked for.
TEST_F(Cli, RowsKeepTheSizeAskedFor) {
  const Words words = {"compare", "ring:3", "-c", "allgather", "-s", "64KiB", "--engines", "ring"};
  const std::string text = Out(words);
  EXPECT_NE(text.find("\n  64KiB  ring "), std::string::npos) << text;
  EXPECT_NE(text.find("\n           64KiB is rounded down to 65520B\n"), std::string::npos) << text;
  Words json = words;
  json.emplace_back("--json");
  const Json row = Json::parse(Out(json))[0];
  EXPECT_EQ(row["asked_bytes"], 65536);
  EXPECT_EQ(row["size_bytes"], 65520);
}

TEST_F(Cli, BarriersHaveNoSize) {
  for (const std::string& text : {Out({"compare", "ring:4", "-c", "barrier", "-s", "1KiB"}),
                                  Out({"plan", "ring:4", "-c", "barrier"})}) {
    EXPECT_NE(text.find(" 0B"), std::string::npos) << text;
    EXPECT_EQ(text.find("rounded"), std::string::npos) << text;
  }
}

TEST_F(Cli, RowsSayMessagesAndThreadblocks) {
  const Json links = Json::parse(
      Out({"compare", "ring:4", "-c", "allgather", "-s", "1MiB", "--engines", "ring", "--json"}))[0];
  EXPECT_GT(links["messages"], 0);
  EXPECT_TRUE(links["threadblocks"].is_null());  // schedules have none
  const Json program = Json::parse(Out({"compare", "ring:4", "-c", "allgather", "-s", "1MiB", "--engines",
                                        "ring", "--machine", "hopper", "--json"}))[0];
  EXPECT_GT(program["threadblocks"], 0);
}

TEST_F(Cli, FailuresAreDrawn) {
  const Json rows =
      Json::parse(Out({"compare", "torus:3x3", "-c", "allgather", "-s", "1MiB", "--engines", "auto",
                       "--failures", "2", "--html", "a.html", "--svg", "a.svg", "--json"}));
  for (const Json& row : rows) {
    ASSERT_EQ(row["failed"].size(), 2U);
    ASSERT_EQ(row["draw_us"].size(), 2U);
    EXPECT_NEAR(row["time_us"], (row["draw_us"][0].get<double>() + row["draw_us"][1].get<double>()) / 2,
                1e-6);
    const std::string svg = Read("a.svg");
    std::string cable = row["failed"][0];
    cable.replace(cable.find("<->"), 3, "&lt;-&gt;");
    EXPECT_NE(svg.find(">" + cable + "</text>"), std::string::npos) << svg;
  }
  EXPECT_NE(Read("a.html").find("\"draw_us\":["), std::string::npos);
  const std::string text =
      Out({"compare", "torus:3x3", "-c", "allgather", "-s", "1MiB", "--engines", "auto", "--failures", "1"});
  EXPECT_NE(text.find("; auto takes "), std::string::npos) << text;
}

TEST_F(Cli, TextsSayThatTimesAreOfIdealLinks) {
  const std::string title = "allgather on ring:3: 3 ranks, pipelined model\n";
  const std::string ideal = "on ideal links: bandwidths and latencies alone\n";
  EXPECT_EQ(Out({"compare", "ring:3", "-c", "allgather", "--sizes", "1KiB,4KiB", "--engines", "ring"})
                .rfind(title + "times " + ideal, 0),
            0u);
  const std::string plan = Out({"plan", "ring:3", "-c", "allgather", "-o", "a.json"});
  EXPECT_NE(plan.find("\n             ideal links: bandwidths and latencies alone\n"), std::string::npos)
      << plan;
  const std::string simulated = Out({"simulate", "a.json"});
  EXPECT_NE(simulated.find("simulated, pipelined model\ntimes " + ideal), std::string::npos) << simulated;
}

TEST_F(Cli, TextsSayWhyThereIsNoMachineModel) {
  const std::string why =
      "no machine model: the topology has no arch; hint: arch=\"sm90\" in its file, --gpu-arch=sm90 or "
      "--machine=hopper\n";
  const Words compare = {"compare", "ring:3", "-c", "allgather", "--sizes", "1KiB", "--engines", "ring"};
  const Words plan = {"plan", "ring:3", "-c", "allgather", "-o", "a.json"};
  const auto with = [&](Words words, const std::string& more) {
    words.push_back(more);
    return Out(words);
  };
  Out({"plan", "ring:3", "-c", "allgather", "-o", "b.json"});
  for (const Words& words : {compare, plan, Words{"simulate", "b.json"}}) {
    EXPECT_NE(Out(words).find(why), std::string::npos) << words[0];
    EXPECT_EQ(with(words, "--machine=none").find(why), std::string::npos) << words[0];
    EXPECT_EQ(with(words, "--machine=hopper").find(why), std::string::npos) << words[0];
  }
  const std::string on_page = R"("no_machine":"no machine model)";
  Out({"view", "b.json", "-o", "b.html"});
  EXPECT_NE(Read("b.html").find(on_page), std::string::npos);
  Out({"view", "b.json", "--machine", "none", "-o", "b.html"});
  EXPECT_EQ(Read("b.html").find(on_page), std::string::npos);
  EXPECT_NE(
      Out({"plan", "mi355x", "-c", "allgather"}).find("no machine model of gfx950; hint: --machine=mi300x"),
      std::string::npos);
  EXPECT_NE(Out({"plan", "dgx1", "-c", "allgather"}).find("no machine model of sm70; hint: --machine=ampere"),
            std::string::npos);
  EXPECT_EQ(Out({"plan", "dgx-h100", "-c", "allgather"}).find("no machine model"), std::string::npos);
}

TEST_F(Cli, FailuresAreComparedOnIdealLinks) {
  ExpectWrong({{"compare"}, 2, "--failures: compares schedules, on ideal links; expected no --machine"},
              Run({"compare", "ring:3", "-c", "allgather", "--sizes", "1KiB", "--failures", "1", "--machine",
                   "hopper"}));
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
      "   8KiB ", "compare torus:12x12 -c alltoall --engines greedy,flow,direct --sizes 4KiB:512GiB:x2");
  EXPECT_NE(rows.find("\n   8KiB  "), std::string::npos) << rows;
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
