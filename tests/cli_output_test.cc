// The output of xccl-synth: JSON keys, texts, files, and the data of pages.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "synth/engines.h"
#include "tests/testing/cli.h"

namespace xccl {
namespace {

TEST_F(Cli, UnwritableOutputsLeaveNothingBehind) {
  std::filesystem::create_directory(folder_ + "/folder");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"folder", "folder: cannot write: Is a directory"},
      {"/proc/a.json", "/proc/a.json: cannot write: No such file or directory"},
      {"/dev/full", "/dev/full: cannot write: No space left on device"},
  };
  for (const auto& [path, err] : cases) {
    ExpectWrong({{path}, 1, err}, Run({"plan", "torus:2x2", "-c", "allgather", "-o", path}));
    Said page = Run({"compare", "torus:2x2", "-c", "allgather", "--sizes", "1KiB", "--html", path});
    page.out.clear();  // the rows come before the page
    ExpectWrong({{path}, 1, err}, page);
    Said picture = Run({"compare", "torus:2x2", "-c", "allgather", "--sizes", "1KiB", "--svg", path});
    picture.out.clear();
    ExpectWrong({{path}, 1, err}, picture);
  }
  // The error comes before anything is read or searched.
  ExpectWrong({{"early"}, 1, "folder: cannot write: Is a directory"},
              Run({"plan", "no-such-machine", "-c", "allgather", "-o", "folder"}));
  ExpectWrong({{"early"}, 1, "folder: cannot write: Is a directory"},
              Run({"compare", "no-such-machine", "-c", "allgather", "--sizes", "1KiB", "--html", "folder"}));
  EXPECT_EQ(Files(), Words{"folder"});
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/folder"));
}

TEST_F(Cli, ALostOutputIsAnError) {
  RingPlan();
  for (const char* arguments : {"topo --list",
                                "topo dgx1",
                                "topo dgx1 --format xml",
                                "bound torus:2x2 -c allgather",
                                "bound torus:2x2 -c allgather --json",
                                "verify a.json",
                                "verify a.json --json",
                                "plan torus:2x2 -c allgather -e ring -s 64KiB",
                                "plan torus:2x2 -c allgather -e ring -s 64KiB --json",
                                "simulate a.json",
                                "simulate a.json --json",
                                "emit a.json --to host",
                                "compare torus:2x2 -c allgather --sizes 1KiB --engines ring",
                                "compare torus:2x2 -c allgather --sizes 1KiB --engines ring --csv",
                                "compare torus:2x2 -c allgather --sizes 1KiB --engines ring --json",
                                "run a.json --iters 1",
                                "run a.json --iters 1 --json",
                                "tune torus:2x2 --sizes 1KiB --collectives allgather -o book",
                                "--help",
                                "--version",
                                "plan --help",
                                "help run"})
    ExpectWrong({{arguments}, 1, "standard output: cannot write: No space left on device"},
                Shell(std::string("$X ") + arguments + " >/dev/full"));
}

TEST_F(Cli, EmitNamesTheFilesThatItWrites) {
  RingPlan();
  EXPECT_TRUE(Out({"emit", "a.json", "--to", "svg", "-o", "a.svg"}).starts_with("file      a.svg, "));
  EXPECT_TRUE(
      Out({"emit", "a.json", "--to", "chakra", "-o", "t"}).starts_with("files     t.0.et to t.3.et, "));
  EXPECT_EQ(Out({"emit", "a.json", "--to", "host", "-o", "/dev/stdout"}),
            Out({"emit", "a.json", "--to", "host"}));
}

TEST_F(Cli, EmitsPicturesAndTraces) {
  RingPlan();
  const std::string svg = Out({"emit", "a.json", "--to", "svg"});
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg.substr(0, 80);
  EXPECT_NE(svg.find("allgather of 64KiB on torus:2x2, by ring"), std::string::npos);
  EXPECT_NE(Out({"emit", "a.json", "--to", "svg", "-s", "1MiB"}).find("allgather of 1MiB on"),
            std::string::npos);
  const std::string dot = Out({"emit", "a.json", "--to", "dot"});
  EXPECT_NE(dot.find("digraph \"torus:2x2\""), std::string::npos);
  EXPECT_EQ(dot, Out({"topo", "torus:2x2", "--format", "dot"}));
  EXPECT_NE(Out({"topo", "torus:2x2", "--format", "svg"}).find("4 ranks: hypercube 2"), std::string::npos);
  Out({"emit", "a.json", "--to", "perfetto", "-o", "trace.json"});
  const Json trace = Json::parse(Read("trace.json"));
  const Json times = Json::parse(Out({"simulate", "a.json", "--json"}));
  EXPECT_EQ(trace["otherData"]["schedule_time_ps"].get<double>(), times[0]["time_us"].get<double>() * 1e6);
  const Json program = Json::parse(Out({"simulate", "a.json", "--level", "program", "--json"}));
  EXPECT_EQ(trace["otherData"]["program_time_ps"].get<double>(), program[0]["time_us"].get<double>() * 1e6);
}

TEST_F(Cli, ExplainsAPlanInFiveLines) {
  const Words arguments = {"plan", "dgx1", "-c", "allgather", "-s", "1MiB", "--explain"};
  const std::string text = Out(arguments);
  const size_t why = text.find("\nwhy\n");
  ASSERT_NE(why, std::string::npos) << text;
  std::istringstream lines(text.substr(why + 1));
  Words names;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    if (line.starts_with("  ") && line[2] != ' ') names.push_back(line.substr(2, line.find("  ", 2) - 2));
  }
  EXPECT_EQ(names, (Words{"bound", "path", "next", "faster", "no gain"})) << text;
  Words json = arguments;
  json.emplace_back("--json");
  EXPECT_EQ(Json::parse(Out(json))["why"].size(), 5u);
}

// The page says which command made it, as a shell takes it; the picture has a line for each engine.
TEST_F(Cli, ComparisonsAsPageAndPicture) {
  Out({"compare", "torus:2x2", "-c", "allgather", "--sizes", "1KiB:1MiB:x32", "--engines", "ring,direct,auto",
       "--html", "a page.html", "--svg", "a.svg"});
  const std::string page = Read("a page.html");
  const size_t begin = page.find("id=\"data\">") + 10;
  const Json data = Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(
      data["command"],
      "xccl-synth compare torus:2x2 -c allgather --sizes 1KiB:1MiB:x32 --engines ring,direct,auto --html "
      "'a page.html' --svg a.svg");
  EXPECT_EQ(data["topology"]["links"]["from"].size(), 8u);
  ASSERT_EQ(data["engines"].size(), 3u);
  EXPECT_EQ(data["engines"][0]["name"], "auto");
  EXPECT_EQ(data["engines"][0]["size_bytes"], (std::vector<int64_t>{1024, 32768, 1048576}));
  const std::string picture = Read("a.svg");
  EXPECT_EQ(picture.substr(0, 5), "<svg ");
  for (const char* text : {">auto</text>", ">ring</text>", ">Bus bandwidth</text>", ">32KiB</text>"})
    EXPECT_NE(picture.find(text), picture.npos) << text;
  // One size alone: rows of engines.
  Out({"compare", "torus:2x2", "-c", "allgather", "--sizes", "1MiB", "--engines", "ring,auto", "--svg",
       "one.svg"});
  EXPECT_NE(Read("one.svg").find(">ring</text>"), std::string::npos);
}

// A slip in a folder's name is told, before a long search where there is one.
TEST_F(Cli, OutputsToFoldersThatAreMissingAreRefused) {
  RingPlan();
  const std::vector<Words> commands = {
      {"plan", "no-such-machine", "-c", "allgather", "-o", "none/f"},
      {"plan", "no-such-machine", "-c", "dispatch", "-o", "none/f"},
      {"compare", "no-such-machine", "-c", "allgather", "--sizes", "1KiB", "--html", "none/f"},
      {"compare", "no-such-machine", "-c", "allgather", "--sizes", "1KiB", "--svg", "none/f"},
      {"emit", "a.json", "--to", "host", "-o", "none/f"},
      {"emit", "a.json", "--to", "svg", "-o", "none/f"},
      {"import", "none.xml", "-o", "none/f"},
      {"view", "a.json", "-o", "none/f"},
  };
  const Words before = Files();
  for (const Words& command : commands)
    ExpectWrong({command, 1, "none/f: cannot write: No such file or directory"}, Run(command));
  ExpectWrong({{"traces"}, 1, "none/f.0.et: cannot write: No such file or directory"},
              Run({"emit", "a.json", "--to", "chakra", "-s", "1KiB", "-o", "none/f"}));
  EXPECT_EQ(Files(), before);
}

TEST_F(Cli, PlansAreWrittenForMsccl) {
  Out({"plan", "torus:4", "-c", "allgather", "-s", "1MiB", "-o", "a.plan.json"});
  const Said written =
      Run({"emit", "a.plan.json", "--to", "msccl-xml", "--for", "rccl", "--max-size", "2MiB", "-o", "a.xml"});
  EXPECT_EQ(written.code, 0);
  EXPECT_TRUE(
      written.err.starts_with("note: rccl selects it for allgather on 4 ranks, in place and out of "
                              "place, from 0 bytes to 2097152 bytes, where "))
      << written.err;
  EXPECT_TRUE(Read("a.xml").starts_with("<algo name=\"a\" proto=\"Simple\" "));
}

// Its program is 30 times as slow with the executor's two slots; another one of the schedule is not.
TEST_F(Cli, TheFasterProgramIsWrittenForMsccl) {
  Out({"plan", "mesh:4", "-c", "alltoall", "-s", "3KiB", "-o", "a.plan.json"});
  const Said said = Run({"emit", "a.plan.json", "--to", "msccl-xml", "--for", "msccl", "-o", "a.xml"});
  EXPECT_EQ(said.code, 0);
  EXPECT_NE(said.err.find("for 2 slots: the plan's own takes "), std::string::npos) << said.err;
  EXPECT_EQ(said.err.find("slower than the plan"), std::string::npos) << said.err;
}

// Its program needs 8 slots, so that another is lowered.
TEST_F(Cli, PlansForMscclDoWithItsSlots) {
  Out({"plan", "torus:4", "-c", "allreduce", "-o", "a.plan.json"});
  const Said said = Run({"emit", "a.plan.json", "--to", "msccl-xml", "-o", "a.xml"});
  EXPECT_EQ(said.code, 0);
  EXPECT_NE(said.err.find(
                "\nwarning: it is another program of the plan's schedule, for 2 slots: a: waits in a circle "
                "with 2 chunks under way on a connection, which is what executor has in protocol Simple; "
                "expected a program that needs no more, not 8 slots\nwarning: at 64MiB it is slower than "
                "the plan: "),
            std::string::npos)
      << said.err;
  Out({"import", "a.xml", "--on", "torus:4"});
}

TEST_F(Cli, PlansAreWrittenForMscclpp) {
  Out({"plan", "torus:4", "-c", "allgather", "-s", "1MiB", "-o", "a.plan.json"});
  const Said written = Run(
      {"emit", "a.plan.json", "--to", "mscclpp-json", "--in-place", "--max-size", "2MiB", "-o", "a.json"});
  EXPECT_EQ(written.code, 0);
  EXPECT_TRUE(written.err.starts_with("note: MSCCL++ selects it for allgather on 4 ranks, in place, from "))
      << written.err;
  const Json plan = Json::parse(Read("a.json"));
  EXPECT_TRUE(plan["name"].get<std::string>().starts_with("a-")) << plan["name"];
  EXPECT_EQ(plan["max_message_size"], 2097152);
  ExpectWrong(
      {{},
       1,
       "a: sizes from 3221225472 bytes; expected 2147483647 at most: MSCCL++ reads min_message_size as "
       "32 bits"},
      Run({"emit", "a.plan.json", "--to", "mscclpp-json", "--min-size", "3GiB", "-o", "b.json"}));
}

// The sizes that a file is for become the plan's, and the sizes of the files that are written from the plan.
TEST_F(Cli, SizesOfForeignPlansAreKept) {
  Out({"plan", "torus:4", "-c", "allgather", "-s", "1MiB", "-o", "a.plan.json"});
  EXPECT_EQ(Run({"emit", "a.plan.json", "--to", "msccl-xml", "--min-size", "1KiB", "--max-size", "64KiB",
                 "-o", "a.xml"})
                .code,
            0);
  Out({"import", "a.xml", "--on", "torus:4", "-o", "b.plan.json"});
  const auto emitted = [&](Words more) {
    Words words = {"emit", "b.plan.json", "--to", "msccl-xml", "-o", "b.xml"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(Run(words).code, 0);
    const std::string text = Read("b.xml");
    return text.substr(text.find("minBytes"), text.find(">") - text.find("minBytes"));
  };
  EXPECT_EQ(emitted({}), "minBytes=\"1024\" maxBytes=\"65536\"");
  EXPECT_EQ(emitted({"--max-size", "2MiB"}), "minBytes=\"1024\" maxBytes=\"2097152\"");
  EXPECT_EQ(emitted({"--min-size", "0"}), "minBytes=\"0\" maxBytes=\"65536\"");
  EXPECT_EQ(Run({"emit", "b.plan.json", "--to", "mscclpp-json", "-o", "b.json"}).code, 0);
  EXPECT_EQ(Json::parse(Read("b.json"))["min_message_size"], 1024);
  EXPECT_EQ(Json::parse(Read("b.json"))["max_message_size"], 65536);
  Out({"import", "b.json", "--on", "torus:4", "-o", "c.plan.json"});
  EXPECT_EQ(Json::parse(Read("c.plan.json"))["sizes"], Json::parse(Read("b.plan.json"))["sizes"]);
  const Said said = Run({"run", "b.plan.json", "--sizes", "64KiB,128KiB", "--iters", "1"});
  EXPECT_EQ(said.code, 0);
  EXPECT_NE(said.err.find("128KiB is none of the sizes that the plan is for: 1KiB to 64KiB\n"),
            std::string::npos)
      << said.err;
}

// The root is the only rank that reads input, or that writes output.
TEST_F(Cli, RootsOfForeignPlansAreFound) {
  for (const char* kind : {"broadcast", "reduce"}) {
    Out({"plan", "ring:4", "-c", kind, "--root", "2", "-e", "binomial", "-o", "a.plan.json"});
    EXPECT_EQ(Run({"emit", "a.plan.json", "--to", "msccl-xml", "-o", "a.xml"}).code, 0);
    EXPECT_EQ(Json::parse(Out({"import", "a.xml", "--json"}))["root"], 2);
    EXPECT_NE(Out({"import", "a.xml"}).find("\n  root       rank 2\n"), std::string::npos);
  }
  for (const char* kind : {"broadcast", "reduce", "gather", "scatter"}) {
    Out({"plan", "ring:4", "-c", kind, "--root", "2", "-s", "1MiB", "-o", "a.plan.json"});
    EXPECT_EQ(Run({"emit", "a.plan.json", "--to", "mscclpp-json", "-o", "a.json"}).code, 0);
    EXPECT_EQ(Json::parse(Out({"import", "a.json", "--json"}))["root"], 2);
  }
}

TEST_F(Cli, ForeignPlansBecomePlans) {
  Out({"plan", "torus:4", "-c", "allgather", "-s", "1MiB", "-o", "a.plan.json"});
  EXPECT_EQ(Run({"emit", "a.plan.json", "--to", "msccl-xml", "--max-size", "2MiB", "-o", "a.xml"}).code, 0);
  const std::string text = Out({"import", "a.xml", "--on", "torus:4", "--sizes", "1MiB", "-o", "b.json"});
  EXPECT_TRUE(
      text.starts_with("a.xml: ok: MSCCL XML 'a', allgather of 4 ranks, proved\n  program    simple, "))
      << text;
  EXPECT_NE(text.find("\n  sizes      0B to 2MiB\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  file       b.json, for torus:4\nschedule simulated on torus:4\n"),
            std::string::npos)
      << text;
  Write("mark.xml", "\xEF\xBB\xBF" + Read("a.xml"));  // with a byte-order mark
  Out({"import", "mark.xml"});
  Out({"verify", "b.json"});
  Out({"simulate", "b.json", "--level", "program"});
  Out({"emit", "b.json", "--to", "cuda", "-o", "b.cu"});
  for (const Json& row : Json::parse(Out({"run", "b.json", "--sizes", "4KiB", "--iters", "1", "--json"})))
    EXPECT_EQ(row["wrong"], 0);
  const Json json =
      Json::parse(Out({"import", "a.xml", "--on", "torus:4", "--sizes", "1KiB,1MiB", "--json"}));
  EXPECT_EQ(Keys(json), (Words{"format",          "name",     "collective",   "root",      "ranks",
                               "chunks_per_rank", "protocol", "in_place",     "min_bytes", "max_bytes",
                               "threadblocks",    "channels", "instructions", "steps",     "transfers",
                               "bitwise_same",    "topology", "warnings",     "file",      "times"}));
  EXPECT_EQ(json["times"].size(), 2U);
  EXPECT_EQ(json["max_bytes"], 2 << 20);
  // Without a machine there are no times, and the plan is for a full mesh.
  const Json alone = Json::parse(Out({"import", "a.xml", "--json"}));
  EXPECT_EQ(alone["topology"], "full-mesh:4");
  EXPECT_TRUE(alone["times"].empty());
}

// A plan's multicasts, sums in switches and paths are kept on the machine that the plan names. On another
// machine they become messages rank by rank, over paths of that machine.
TEST_F(Cli, ForeignPlansOfSwitches) {
  Out({"plan", "dgx-h100", "-c", "allreduce", "-s", "1MiB", "-o", "a.plan.json"});
  EXPECT_EQ(Run({"emit", "a.plan.json", "--to", "mscclpp-json", "-o", "a.json"}).code, 0);
  const auto on = [&](const std::string& machine) {
    return Json::parse(Out({"import", "a.json", "--on", machine, "--sizes", "1MiB", "--json"}));
  };
  const Json own = on("dgx-h100"), other = on("dgx-a100");
  EXPECT_TRUE(own["warnings"].empty()) << own["warnings"];
  const Json plan =
      Json::parse(Out({"simulate", "a.plan.json", "--level", "program", "--sizes", "1MiB", "--json"}));
  EXPECT_EQ(own["times"][0]["time_us"], plan[0]["time_us"]);
  EXPECT_EQ(
      other["warnings"],
      (Words{"the multicast of rank 0 and 7 others: no switch on dgx-a100 that does it has links to all of "
             "them; expected one: what the file has switches do is done rank by rank"}));
  EXPECT_GT(other["transfers"], own["transfers"]);
  EXPECT_TRUE(Json::parse(Out({"import", "a.json", "--json"}))["warnings"].empty());
}

TEST_F(Cli, ForeignPlansThatAreWrongAreRefused) {
  Out({"plan", "torus:4", "-c", "allgather", "-s", "1MiB", "-o", "a.plan.json"});
  EXPECT_EQ(Run({"emit", "a.plan.json", "--to", "msccl-xml", "-o", "a.xml"}).code, 0);
  ExpectWrong({{}, 2, "--sizes, --machine: times need a machine; hint: --on=TOPOLOGY"},
              Run({"import", "a.xml", "--sizes", "1MiB"}));
  ExpectWrong({{}, 1, "a.xml: torus:5: 5 ranks; expected 4, as the plan has"},
              Run({"import", "a.xml", "--on", "torus:5"}));
  ExpectWrong({{}, 1, "a.xml: allgather; expected allreduce, as --collective says"},
              Run({"import", "a.xml", "-c", "allreduce"}));
  ExpectWrong({{}, 2, "--root: allgather has none; expected no --root"},
              Run({"import", "a.xml", "--root", "1"}));
  ExpectWrong({{}, 2, "--collective: no collective 'brodcast'; did you mean 'broadcast'?"},
              Run({"import", "a.xml", "-c", "brodcast"}));
  // A swap in which rank 1 puts the received data where its own data should be.
  Write("b.xml",
        R"(<algo name="b" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allgather"
  inplace="0">
  <gpu id="0" i_chunks="1" o_chunks="2" s_chunks="0"><tb id="0" send="1" recv="1" chan="0">
    <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    <step s="2" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
  </tb></gpu>
  <gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0"><tb id="0" send="0" recv="0" chan="0">
    <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
  </tb></gpu></algo>)");
  ExpectWrong({{}, 1, "b.xml: rank 1 chunk 0 of its output is never written"},
              Run({"import", "b.xml", "-o", "b.json"}));
  EXPECT_EQ(Files(), (Words{"a.plan.json", "a.xml", "b.xml"}));
}

TEST_F(Cli, HelpFitsItsTerminal) {
  for (const auto& [columns, least] : {std::pair<size_t, size_t>{80, 60}, {120, 100}}) {
    size_t longest = 0;
    for (const char* command : {"", "topo", "bound", "plan", "verify", "simulate", "compare", "sweep", "emit",
                                "import", "run", "tune"}) {
      const Said said = Shell("COLUMNS=" + std::to_string(columns) + " $X " + command + " --help");
      std::istringstream lines(said.out);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(line.size() <= columns || line.starts_with("  xccl-synth ")) << line;
        longest = std::max(longest, line.size());
      }
    }
    EXPECT_GT(longest, least);
  }
  const std::string plan = Out({"plan", "--help"});
  for (const char* heading : {"Topology", "Collective", "Search", "Machine", "Training", "Output", "Limits"})
    EXPECT_NE(plan.find(std::string("\n") + heading + ":\n"), std::string::npos) << heading;
  EXPECT_EQ(plan.find("1125899906842624"), std::string::npos);
  EXPECT_EQ(Out({"help", "plan"}), plan);
  EXPECT_EQ(Out({"help"}), Out({"--help"}));
  ExpectWrong({{"export", "--help"},
               2,
               std::string("no command 'export'; did you mean 'import'?\n") + kTry + "--help"},
              Run({"export", "--help"}));
}

TEST_F(Cli, OneNumberIsShownInOneUnit) {
  Write(
      "slow.xml",
      R"(<topology name="slow"><gpu id="0"/><gpu id="1"/><link from="0" to="1" bandwidth="47.82MB/s" latency="1us"/></topology>)");
  const std::string text = Out({"topo", "slow.xml"});
  EXPECT_NE(text.find("0.04782GB/s"), std::string::npos) << text;
  EXPECT_EQ(text.find("MB/s"), std::string::npos) << text;
  EXPECT_NE(Out({"bound", "torus:2x2", "-c", "allreduce", "-s", "1MB"}).find(" 1MB,"), std::string::npos);
  EXPECT_NE(Out({"plan", "torus:2x2", "-c", "allreduce", "-s", "1MB"}).find(" 1MB,"), std::string::npos);
  EXPECT_NE(
      Out({"plan", "ring:3", "-c", "allgather", "-s", "64KiB"}).find(" 64KiB (rounded down to 65520B),"),
      std::string::npos);
  RingPlan();
  EXPECT_NE(Out({"simulate", "a.json", "--sizes", "64KiB"}).find("\n64KiB "), std::string::npos);
}

TEST_F(Cli, JsonKeys) {
  Words plan = {"engine",          "ranks",          "chunks_per_rank", "steps",       "rounds",
                "transfers",       "messages",       "synthesis_s",     "size_bytes",  "time_us",
                "time_program_us", "algbw_gb_per_s", "busbw_gb_per_s",  "latency_us",  "bandwidth_us",
                "bound_us",        "bound_kind",     "ratio",           "exact",       "bitwise_same",
                "depth",           "relays",         "threadblocks",    "channels",    "scratch_bytes",
                "machine",         "warnings",       "total_s",         "file",        "collective",
                "topology",        "model",          "version",         "asked_bytes", "note"};
  const Words timed = {"engine",   "size_bytes", "time_us", "algbw_gb_per_s", "busbw_gb_per_s",
                       "bound_us", "ratio",      "made_by", "collective",     "topology",
                       "model",    "machine",    "version", "asked_bytes"};
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
  Words compared = timed;
  compared.insert(compared.end(), {"messages", "threadblocks", "measured", "note"});
  for (const Json& row : ranked) EXPECT_EQ(Keys(row), compared);
  for (const bool processes : {false, true}) {
    Words arguments = {"run", "a.json", "--sizes", "1KiB,64KiB", "--iters", "2", "--json"};
    if (processes) arguments.push_back("--processes");
    const Json rows = Json::parse(Out(arguments));
    ASSERT_EQ(rows.size(), 4u);
    for (const Json& row : rows) {
      EXPECT_EQ(Keys(row), (Words{"size_bytes", "in_place", "time_us", "slowest_us", "time_spread",
                                  "algbw_gb_per_s", "busbw_gb_per_s", "predicted_us", "wrong", "collective",
                                  "dtype", "redop", "version"}));
      EXPECT_EQ(row["wrong"], 0);
    }
  }
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
  EXPECT_EQ(Out({"simulate", "a.json", "--sizes", "1MiB"}).substr(0, 68),
            "allgather on torus:2x2 by ring, schedule simulated, pipelined model\n");
  const std::string table = Out({"run", "a.json", "--iters", "1"});
  EXPECT_NE(table.find("# Out of bounds values : 0 OK"), std::string::npos) << table;
  const Words compare = {"compare", "torus:2x2", "-c", "allgather", "--sizes", "1MiB", "--engines", "ring"};
  EXPECT_EQ(Out(compare).substr(0, 50), "allgather on torus:2x2: 4 ranks, pipelined model\nt");
  Words csv = compare;
  csv.push_back("--csv");
  EXPECT_EQ(Out(csv).substr(0, 83),
            "engine,size_bytes,time_us,algbw_gb_per_s,busbw_gb_per_s,bound_us,ratio,made_by,coll");
  Words html = compare;
  html.insert(html.end(), {"--html", "page.html"});
  Out(html);
  const std::string page = Read("page.html");
  EXPECT_EQ(page.substr(0, 15), "<!doctype html>");
  for (const char* need : {"<script src", "<link", "<img", "@import", "@XCCL_DATA@"})
    EXPECT_EQ(page.find(need), page.npos) << "the page must not need other files: " << need;
  EXPECT_EQ(Files(), (Words{"a.json", "again.xml", "page.html"}));
  for (const char* command :
       {"topo", "bound", "plan", "verify", "simulate", "compare", "import", "run", "view"})
    EXPECT_NE(Out({command, "--help"}).find("\nExample"), std::string::npos) << command;
  const std::string plan = Out({"plan", "--help"});
  for (const Engine& engine : AllEngines())
    EXPECT_NE(plan.find(fmt::format(" {}", engine.name)), std::string::npos) << engine.name;
}

// "xccl-synth plan dgx1 --size 1MiB" and "`plan --from FILE`" name flags that the command has.
TEST_F(Cli, FlagsOnPagesExist) {
  const std::regex line(
      "(?:xccl-synth |`)(topo|bound|plan|verify|simulate|compare|sweep|emit|import|run|tune|book|view)( "
      "[^`\n#]*)");
  const std::regex flag("--[a-z-]+");
  std::map<std::string, std::string> helps;
  int flags = 0;
  Words pages = {"README.md"};
  for (const auto& file : std::filesystem::recursive_directory_iterator("docs"))
    if (file.path().extension() == ".md") pages.push_back(file.path().string());
  for (const std::string& page : pages) {
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
  EXPECT_GT(pages.size(), 40U);
}

TEST_F(Cli, ViewWritesOnePageThatNeedsNothingElse) {
  Out({"plan", "ring:4", "-c", "allgather", "-s", "64KiB", "-o", "a.json"});
  EXPECT_TRUE(Out({"view", "a.json", "-o", "page.html"}).starts_with("file      page.html, "));
  const std::string page = Read("page.html");
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_NE(page.find("id=\"plan-0\""), page.npos);
  for (const char* other : {" src=", "@import", "url(", "@XCCL_DATA@"})
    EXPECT_EQ(page.find(other), page.npos) << other;
  Out({"view", "a.json", "-o", "again.html"});
  EXPECT_EQ(Read("again.html").size(), page.size() + 1) << "it differs by the name in its command";
  EXPECT_EQ(Run({"view", "a.json"}).code, 2);
  EXPECT_EQ(Run({"view", "a.json", "-s", "0x", "-o", "b.html"}).code, 2);
  EXPECT_EQ(Run({"view", "none.json", "-o", "b.html"}).code, 1);
  EXPECT_EQ(Run({"view", "a.json", "-o", "a.json/b.html"}).code, 1);
  EXPECT_EQ(Files(), (Words{"a.json", "again.html", "page.html"}));
}

TEST_F(Cli, ExampleFilesWork) {
  const std::string examples = std::filesystem::current_path().string() + "/examples/";
  EXPECT_EQ(Out({"topo", examples + "my_machine.xml"}).substr(0, 31), "my-machine: 8 ranks on 2 hosts\n");
  Out({"plan", "ring:4", "--collective-file", examples + "halo_exchange.json", "-o", "a.json"});
  Out({"plan", "dgx1", "--groups", examples + "groups.json", "-e", "ring"});
  EXPECT_EQ(Run({"run", "a.json", "--sizes", "64KiB", "--iters", "1"}).code, 0);
  EXPECT_NE(WholeFile("docs/training.md").find(WholeFile("examples/groups.json")), std::string::npos);
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

}  // namespace
}  // namespace xccl
