#include "base/file_kinds.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

TEST(FileKinds, AreToldByTheirContents) {
  struct Case {
    std::string_view text;
    FileKind kind;
  };
  const Case cases[] = {
      {"", FileKind::kOther},
      {"notes of mine", FileKind::kOther},
      {"<", FileKind::kOther},
      {"<!-- <topology> --><?xml version='1.0'?>\n<topology name='t'>", FileKind::kTopology},
      {"<!-- never closed <topology>", FileKind::kOther},
      {"<x:system version=\"1\">", FileKind::kTopology},
      {"<graphml xmlns='http://graphml.graphdrawing.org/xmlns'>", FileKind::kTopology},
      {R"({"TopologyParams":{"name":"DGX1"}})", FileKind::kTopology},
      {R"({"name":"NDv2_1MB", "gpus_per_node":8})", FileKind::kTopology},
      {R"({"msccl_type":"topology", "links":[]})", FileKind::kTopology},
      {R"({"directed":true, "multigraph":false, "nodes":[]})", FileKind::kTopology},
      {"<algo name='a'>", FileKind::kMscclXml},
      {"<!doctype html>\n<html lang=en>", FileKind::kPage},
      {"<svg>", FileKind::kPicture},
      {R"({"format":1, "topology":"<topology/>")", FileKind::kPlan},
      {R"({"format":1, "expert_plan":"dispatch", "topology":"<topology/>")", FileKind::kExpertPlan},
      {R"({"format":1, "sizes":{"plans":[]}, "made_by":{}})", FileKind::kPlan},
      {R"({"a":"\"plans\":", "plans":[]})", FileKind::kBookIndex},
      {R"({"format":2, "source":"plans", "launch_ps":1})", FileKind::kMachineModel},
      {R"({"name":"step", "groups":[]})", FileKind::kGroups},
      {R"({"name":"mine", "pre":[]})", FileKind::kCollective},
      {R"({"name":"ar", "gpus":[]})", FileKind::kMscclppPlan},
      {R"({"traceEvents":[]})", FileKind::kTrace},
      {R"({"engine":"ring", "synthesis_s":0.1})", FileKind::kResults},
      {R"({"format":1, "call_log":"xccl", "communicators":[]})", FileKind::kCallLog},
      {R"({"name":"half)", FileKind::kOther},
      {"1,2\n3,4\n", FileKind::kCsv},
      {"#\n# Topology file: generated on a day\n#\n", FileKind::kFabric},
      {"\nvendid=0x2c9\ndevid=0xd2f2\n", FileKind::kFabric},
      {"Switch: 0x0000000000000a00 leaf-1:\n", FileKind::kFabric},
      {"# made by hand\nSwitchName=leaf1 Nodes=gpu[1-2]\n", FileKind::kFabric},
      {"---\n- topology: net\n", FileKind::kFabric},
      {R"({"lldp": {"interface": []}})", FileKind::kFabric},
      {"# a note\nhello\n", FileKind::kOther},
      {"12\n", FileKind::kOther},
      {"strict digraph \"a b\" {\n}", FileKind::kTopology},
      {"graph {", FileKind::kTopology},
      {"graphs of {", FileKind::kOther},
      {"a,b\n", FileKind::kOther},
  };
  for (const Case& c : cases) EXPECT_EQ(KindOfText(c.text), c.kind) << c.text;
}

TEST(FileKinds, AnotherKindIsNamed) {
  EXPECT_EQ(CheckKind("<topology/>", "t.xml", FileKind::kTopology), OkStatus());
  EXPECT_EQ(CheckKind("hello", "t.xml", FileKind::kTopology), OkStatus());
  EXPECT_EQ(
      CheckKind("<topology/>", "t.xml", FileKind::kPlan),
      InvalidInput("t.xml: this is a topology; expected a plan; hint: xccl-synth plan t.xml -c allreduce "
                   "-o FILE makes one"));
  EXPECT_EQ(
      CheckKind("<algo/>", "a.xml", FileKind::kPlan),
      InvalidInput("a.xml: this is MSCCL XML; expected a plan; hint: xccl-synth import a.xml -o FILE makes "
                   "one"));
  EXPECT_EQ(
      CheckKind("{\"call_log\":\"xccl\"}", "calls.json", FileKind::kPlan),
      InvalidInput("calls.json: this is a log of calls; expected a plan; hint: xccl-synth book TOPOLOGY "
                   "--from-log calls.json -o BOOK plans what it has"));
  EXPECT_EQ(CheckKind("{\"plans\":[]}", "index.json", FileKind::kMachineModel),
            InvalidInput("index.json: this is the index of a plan book; expected a machine model"));
}

}  // namespace
}  // namespace xccl
