// Real plan files that are edited so that they say something wrong: every command refuses them, and says why.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/verify/verify_plan.h"
#include "tests/testing/command.h"

namespace xccl {
namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

const Words kRing3 = {"full-mesh:3", "-c", "allreduce", "-e", "ring", "--chunks", "3", "-s", "1MiB"};
const Words kMulticast = {"nvswitch:4@multicast=true", "-c", "broadcast", "-e", "multicast", "-s", "1MiB"};
const Words kBroadcast = {"ring:3", "-c", "broadcast", "-e", "ring", "--chunks", "2", "-s", "1MiB"};
const Words kPair = {"full-mesh:2", "-c", "broadcast", "--chunks", "1", "-s", "64KiB"};
const Words kRing4 = {"ring:4", "-c", "allgather", "-e", "ring", "--chunks", "1"};
const Words kBfb4 = {"ring:4", "-c", "allgather", "-e", "bfb", "--chunks", "1"};
const Words kReduce = {
    "nvswitch:3@multicast=true,reduce=true", "-c", "allreduce", "-e", "multicast", "--chunks", "1"};
const Words kDivergent = {"ring:5",  "-c", "allreduce", "-e",   "smt",
                          "--steps", "3",  "-s",        "1KiB", "--allow-divergent"};

class PlanRules : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  Said Run(const Words& arguments) const {
    static const std::string program = std::filesystem::current_path().string() + "/cli/xccl-synth";
    return Command(program, arguments, folder_).Wait();
  }
  // The text of the plan file that these arguments make.
  std::string Plan(const Words& what) const {
    Words arguments = {"plan"};
    arguments.insert(arguments.end(), what.begin(), what.end());
    arguments.insert(arguments.end(), {"-o", "good.json"});
    const Said said = Run(arguments);
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_EQ(Run({"verify", "good.json"}).code, 0);
    return WholeFile(folder_ + "/good.json");
  }
  void Write(const std::string& text) const {
    std::ofstream(folder_ + "/bad.json", std::ios::binary) << text;
  }
  // Every command says `error` behind "bad.json:", `verify` on stdout where it is a violation.
  void ExpectRefused(const std::string& name, const std::string& error) const {
    const bool violation = error.starts_with(" [");
    const Said verified = Run({"verify", "bad.json"});
    EXPECT_EQ(verified.code, 1) << name;
    EXPECT_EQ(verified.out, violation ? "bad.json:" + error + "\n" : "") << name;
    EXPECT_EQ(verified.err,
              "xccl-synth: bad.json:" + (violation ? " 1 violation; expected none" : error) + "\n")
        << name;
    for (const Words& command :
         {Words{"simulate", "bad.json"}, Words{"simulate", "bad.json", "--level", "program"},
          Words{"run", "bad.json"}, Words{"emit", "bad.json", "--to", "cuda"}}) {
      const Said said = Run(command);
      EXPECT_EQ(said.code, 1) << name << ": " << command[0];
      EXPECT_EQ(said.err, "xccl-synth: bad.json:" + error + "\n") << name << ": " << command[0];
    }
  }
  std::string folder_;
};

struct Edit {
  std::string name;
  Words plan;
  std::function<void(Json& plan, Json& program)> change;
  std::string error;  // behind "bad.json:"
};

// Sets the links of the program's first connection or group.
std::function<void(Json&, Json&)> ConnectionPath(std::vector<int> links) {
  return [links](Json&, Json& program) {
    Json connection = {program["connections"][0][0], program["connections"][0][1], 0};
    for (int l : links) connection.push_back(l);
    program["connections"][0] = connection;
  };
}
std::function<void(Json&, Json&)> GroupPath(std::vector<int> links) {
  return [links](Json&, Json& program) { program["groups"][0]["path"] = links; };
}

const std::vector<Edit>& Edits() {
  static const std::string connection = " [P1] connection 0->1 channel 0: its path ";
  static const std::string group = " [P1] multicast group of rank 0 on channel 0: its path ";
  static const std::vector<Edit> edits = {
      {"a connection over a link that is not there", kRing3, ConnectionPath({99}),
       connection + "names link 99; links are 0..5"},
      {"a connection over no links", kRing3, ConnectionPath({}), connection + "has no links"},
      {"a connection to another rank", kRing3, ConnectionPath({2}),
       connection + "goes from rank 0 to rank 2"},
      {"a connection through a GPU", kRing3, ConnectionPath({2, 5}),
       connection + "passes gpu 2; through a GPU it is two transfers"},
      {"a connection there and back again", kRing3, ConnectionPath({0, 1, 0}),
       connection + "passes gpu 0; through a GPU it is two transfers"},
      {"a group over a link that is not there", kMulticast, GroupPath({99}),
       group + "names link 99; links are 0..7"},
      {"a group over no links", kMulticast, GroupPath({}), group + "has no links"},
      {"a group without one of its members", kMulticast, GroupPath({0, 3, 5}),
       group + "joins rank 0 with ranks 1, 2; expected rank 0 with ranks 1, 2, 3"},
      {"a group with a dead end", kMulticast,
       [](Json& plan, Json& program) {
         std::string xml = plan["topology"];
         xml.insert(xml.find("  <link "), "  <switch id=\"end\"/>\n");
         xml.insert(xml.find("</topology>"), "  <link from=\"nvswitch\" to=\"end\" bandwidth=\"1GB/s\"/>\n");
         plan["topology"] = xml;
         program["groups"][0]["path"].push_back(8);
       },
       group + "ends at switch end; expected a gpu"},
      {"a list of one destination of three", kMulticast,
       [](Json& plan, Json&) { plan["schedule"]["dst"] = {Json::array({1})}; },
       " schedule.dst: entry 0 is [1]; its path ends at [1,2,3]"},
      {"one destination of three", kMulticast, [](Json& plan, Json&) { plan["schedule"]["dst"] = {1}; },
       " schedule.dst: entry 0 is 1; its path ends at [1,2,3]"},
      {"one source of two", kReduce, [](Json& plan, Json&) { plan["schedule"]["src"][0] = 1; },
       " schedule.src: entry 0 is 1; its path starts at [2,1]"},
      {"weights without parts", kPair,
       [](Json& plan, Json&) {
         plan["collective"].erase("parts");
         plan["collective"]["weights"] = {-1, "x"};
       },
       " collective.weights: given without parts; expected both or neither"},
      {"a program in other chunks", kBroadcast,
       [](Json&, Json& program) {
         program["parts"] = {2};
         program["weights"] = {1, 3};
       },
       " [P10] program chunk 0: ends inside chunk 0 of the schedule; expected one or several of its chunks"},
      {"a claim that no proof backs", kBroadcast, [](Json& plan, Json&) { plan["made_by"]["exact"] = true; },
       " made_by: unknown key 'exact'; expected engine, seed, limits, version, size_bytes, model or machine"},
      {"bits that are said to be the same", kDivergent,
       [](Json& plan, Json&) { plan["bitwise_same"] = true; },
       " [C1] bitwise_same: true; the schedule may give ranks different bits"},
      {"bits that are said to differ", kRing3, [](Json& plan, Json&) { plan["bitwise_same"] = false; },
       " [C1] bitwise_same: false; the schedule gives all ranks the same bits"},
      {"a time model that is none", kPair, [](Json& plan, Json&) { plan["made_by"]["model"] = "x"; },
       " made_by.model: no time model 'x'; expected pipelined or blocking"},
      {"a name that UTF-8 cannot hold", kPair,
       [](Json& plan, Json&) { plan["topology"] = "<topology name=\"&#xD800;\"/>"; },
       " topology:1:17: &#xD800;: no character; expected one from &#1; to &#x10FFFF;"},
      {"slots copied one slot on", kPair,
       [](Json&, Json& program) {
         program["ranks"][0]["scratch"] = {0, 0, 0};
         Json& block = program["ranks"][0]["threadblocks"][0];
         block["op"] = "cpy cpy s";
         block["count"] = {1, 2, 1};
         block["src_buffer"] = "iss";
         block["src"] = {0, 0, 2};
         block["dst_buffer"] = "ss-";
         block["dst"] = {0, 1, 0};
         block["flags"] = "...";
       },
       " [P6] rank 0 threadblock 0 instruction 1: writes scratch slot 1, which it reads for another chunk; "
       "nothing orders the two"},
  };
  return edits;
}

TEST_F(PlanRules, EveryEditIsRefusedByEveryCommand) {
  for (const Edit& edit : Edits()) {
    Json plan = Json::parse(Plan(edit.plan));
    edit.change(plan, plan["program"]);
    Write(plan.dump());
    ExpectRefused(edit.name, edit.error);
  }
}

// Bytes before and behind the JSON.
TEST_F(PlanRules, AFileIsJsonFromItsFirstByteToItsLast) {
  const std::string plan = Plan(kBroadcast);
  Write("\xef\xbb\xbf" + plan);
  ExpectRefused("a byte-order mark", "1:1: begins with a byte-order mark; expected JSON");
  const std::string behind = std::to_string(std::count(plan.begin(), plan.end(), '\n') + 1) + ":1: ";
  Write(plan + std::string("\0{\"format\":2} garbage", 21));
  ExpectRefused("a zero byte", behind + "not JSON: unexpected byte 0x00");
  Write(plan + "garbage");
  ExpectRefused("garbage", behind + "not JSON: unexpected 'g'");
}

// The program of another engine proves nothing of the schedule beside it.
TEST_F(PlanRules, AProgramBelongsToItsSchedule) {
  const Json bfb = Json::parse(Plan(kBfb4));
  Json plan = Json::parse(Plan(kRing4));
  plan["program"] = bfb["program"];
  Write(plan.dump());
  ExpectRefused(
      "another engine's program",
      " [P10] chunk 0: is carried from rank 0 to rank 1 over links 0 once by the program and never by "
      "the schedule (and so for 3 more chunks)");
}

// A file may leave out "made_by"; the defaults are the pipelined model and 64 MiB.
TEST_F(PlanRules, WithoutMadeByThereIsAModelAndASize) {
  Json plan = Json::parse(Plan(kBroadcast));
  plan.erase("made_by");
  Write(plan.dump());
  EXPECT_EQ(Run({"verify", "bad.json"}).code, 0);
  for (const char* level : {"schedule", "program"}) {
    const Said said = Run({"simulate", "bad.json", "--level", level});
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_EQ(
        said.out.rfind("broadcast on ring:3, " + std::string(level) + " simulated, pipelined model\n", 0), 0u)
        << said.out;
    EXPECT_NE(said.out.find("\n64MiB "), said.out.npos) << said.out;
  }
}

TEST_F(PlanRules, VerifySaysWhoseBitsAreTheSame) {
  Plan(kDivergent);
  EXPECT_EQ(Run({"verify", "good.json"}).out,
            "good.json: ok: allreduce on ring:5, 16 transfers, schedule and program proved, bits may differ "
            "between ranks\n");
  Plan(kRing3);
  EXPECT_EQ(
      Run({"verify", "good.json"}).out,
      "good.json: ok: allreduce on full-mesh:3, 12 transfers, schedule and program proved, the same bits on "
      "every rank\n");
}

TEST_F(PlanRules, EveryRuleOfAPlanHasARejection) {
  for (const std::string_view rule : kPlanRules)
    EXPECT_TRUE(std::ranges::any_of(Edits(), [&](const Edit& edit) {
      return edit.error.find("[" + std::string(rule) + "]") != std::string::npos;
    })) << rule;
}

}  // namespace
}  // namespace xccl
