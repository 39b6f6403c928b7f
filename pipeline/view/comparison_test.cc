#include "pipeline/view/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "pipeline/view/engine_lines.h"
#include "pipeline/view/failures.h"

namespace xccl {
namespace {

// Names of engines with their times, in picoseconds, at 1, 2, ... KiB; 0: no plan. The bound is 10 ps.
struct Times {
  std::string engine;
  std::vector<int64_t> time_ps;
};
Comparison Made(const std::vector<Times>& engines) {
  Comparison comparison{.title = "allgather on a <b> & \"c\"", .on = {}, .times = {}, .skipped = {}};
  for (const Times& engine : engines)
    for (size_t i = 0; i < engine.time_ps.size(); ++i) {
      if (engine.time_ps[i] == 0) continue;
      PlanTime timed{.engine = engine.engine, .made_by = engine.engine};
      timed.size_bytes = 1024 * (static_cast<int64_t>(i) + 1);
      timed.time_ps = engine.time_ps[i];
      timed.bound_ps = 10;
      timed.ratio = static_cast<double>(engine.time_ps[i]) / 10;
      timed.busbw_bytes_per_s = 1e9;
      comparison.times.push_back(timed);
    }
  return comparison;
}

std::vector<std::string> FrontOf(const std::vector<Times>& engines) {
  std::vector<std::string> front;
  for (const EngineLine& line : EngineLines(Made(engines)))
    if (line.on_front) front.push_back(line.name);
  return front;
}

using Names = std::vector<std::string>;

TEST(EngineLines, TheFrontIsTheLinesThatNoOtherBeats) {
  EXPECT_EQ(FrontOf({{"ring", {20, 20}}, {"tree", {30, 30}}}), Names{"ring"});
  EXPECT_EQ(FrontOf({{"ring", {30, 20}}, {"tree", {20, 30}}}), (Names{"ring", "tree"}));
  // The first of two equal engines counts; auto is not asked.
  EXPECT_EQ(FrontOf({{"ring", {20, 20}}, {"tree", {20, 20}}}), Names{"ring"});
  EXPECT_EQ(FrontOf({{"ring", {20, 20}}, {"auto", {10, 10}}}), Names{"ring"});
  // One that has a plan for a size more is not beaten by one that is faster elsewhere.
  EXPECT_EQ(FrontOf({{"ring", {20, 0}}, {"tree", {30, 30}}}), (Names{"ring", "tree"}));
  EXPECT_EQ(FrontOf({{"ring", {20, 0}}, {"tree", {20, 30}}}), Names{"tree"});
}

TEST(EngineLines, LeadersAreTheFastestAtSomeSize) {
  Names leaders;
  for (const EngineLine& line :
       EngineLines(Made({{"ring", {10, 30}}, {"tree", {30, 10}}, {"bruck", {20, 20}}, {"auto", {10, 10}}}))) {
    EXPECT_EQ(line.on_front, line.name != "auto") << line.name;
    if (line.leads) leaders.push_back(line.name);
  }
  EXPECT_EQ(leaders, (Names{"ring", "tree"}));
}

TEST(EngineLines, AutoThenTheFrontThenTheOthers) {
  Names names;
  for (const EngineLine& line :
       EngineLines(Made({{"tree", {90, 90}}, {"bruck", {50, 50}}, {"ring", {20, 20}}, {"auto", {20, 20}}})))
    names.push_back(line.name);
  EXPECT_EQ(names, (Names{"auto", "ring", "bruck", "tree"}));
}

TEST(EngineLines, MeasuredLinesCompeteWithNone) {
  Comparison comparison = Made({{"ring", {20, 20}}, {"measured: a", {10, 10}}, {"auto", {20, 20}}});
  for (PlanTime& timed : comparison.times) timed.measured = timed.engine == "measured: a";
  Names names;
  for (const EngineLine& line : EngineLines(comparison)) {
    names.push_back(line.name);
    EXPECT_EQ(line.leads, line.name == "ring") << line.name;
    EXPECT_EQ(line.group == EngineGroup::kMeasured, line.name == "measured: a");
  }
  EXPECT_EQ(names, (Names{"auto", "measured: a", "ring"}));
  EXPECT_NE(ComparisonSvg(comparison, {}).find("stroke-dasharray"), std::string::npos);
}

TEST(EngineLines, ALineIsOneMachineOfSeveral) {
  Comparison comparison = Made({{"auto", {10, 30}}, {"ring", {30, 40}}});
  for (PlanTime& timed : comparison.times) timed.topology = "a";
  for (PlanTime timed : Made({{"auto", {20, 20}}}).times) {
    timed.topology = "b";
    comparison.times.push_back(timed);
  }
  Names machines;
  for (const EngineLine& line : EngineLines(comparison))
    machines.push_back(std::string(ToString(line.group)) + " " + line.name);
  EXPECT_EQ(machines, (Names{"machines a", "machines b", "trees a: ring"}));
}

TEST(EngineLines, AnEngineHasTheGroupOfItsFamily) {
  const struct {
    std::string engine;
    EngineGroup group;
  } cases[] = {
      {"auto", EngineGroup::kAuto},           {"forest", EngineGroup::kSearches},
      {"smt", EngineGroup::kSearches},        {"multicast", EngineGroup::kSwitches},
      {"in-network", EngineGroup::kSwitches}, {"ring", EngineGroup::kTrees},
      {"2d-mesh", EngineGroup::kTrees},       {"hierarchical-alltoall", EngineGroup::kExchanges},
      {"swing", EngineGroup::kExchanges},     {"allpairs.xml", EngineGroup::kOthers},
  };
  for (const auto& c : cases) EXPECT_EQ(ToString(GroupOf(c.engine)), ToString(c.group)) << c.engine;
}

// Well-formed whatever names there are; lines over sizes, rows for one size.
TEST(ComparisonSvg, IsXmlWithEveryEngineThatLeads) {
  for (const size_t sizes : {1, 3}) {
    std::vector<int64_t> ring = {20, 40, 80}, other = {10, 90, 90};
    ring.resize(sizes);
    other.resize(sizes);
    const std::string svg =
        ComparisonSvg(Made({{"ring", ring}, {"a<&\".xml", other}}), {"0.1.0", "xccl-synth compare '<'"});
    pugi::xml_document document;
    ASSERT_TRUE(document.load_string(svg.c_str())) << svg;
    Names texts;
    for (const pugi::xpath_node& node : document.select_nodes("//text"))
      texts.emplace_back(node.node().text().get());
    for (const char* text : {"ring", "a<&\".xml", "Time", "Bus bandwidth", "Time / lower bound"})
      EXPECT_NE(std::ranges::find(texts, text), texts.end()) << text;
    // No number is lost on an axis.
    EXPECT_EQ(svg.find("nan"), svg.npos);
    EXPECT_EQ(svg.find("inf\""), svg.npos);
  }
}

FailureComparison Failed() {
  FailureComparison comparison;
  comparison.title = "allgather on <a>";
  comparison.on = {.collective = "allgather", .topology = "<a>", .model = "pipelined"};
  comparison.failed = {"0<->1", "1<->2", "0<->1", "2<->3"};
  comparison.times = {
      {.engine = "ring", .size_bytes = 8, .whole_us = 1, .draw_us = {2, 3, 2, 1.5}},
      {.engine = "auto", .size_bytes = 8, .whole_us = 1, .draw_us = {1.25, std::nullopt, 1.25, 1.5}},
      {.engine = "auto", .size_bytes = 4, .whole_us = 1, .draw_us = {1, 1, 1, 1}}};
  comparison.bounds = {{.size_bytes = 8, .whole_us = 1, .draw_us = {1, 1, 1, 1}}};
  return comparison;
}

// The costliest first, no plan before all others, a failure that is drawn twice once.
TEST(FailuresSvg, IsXmlWithARowForEachFailure) {
  const std::string svg = FailuresSvg(Failed(), {"0.1.0 (commit abc)", "xccl-synth compare '<'"});
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(svg.c_str())) << svg;
  Names failures;
  bool has_commit = false;
  for (const pugi::xpath_node& node : document.select_nodes("//text")) {
    const std::string text = node.node().text().get();
    if (text.find("<->") != std::string::npos) failures.push_back(text);
    has_commit |= text.starts_with("xccl-synth 0.1.0 (commit abc): ");
  }
  EXPECT_EQ(failures, (Names{"1<->2", "2<->3", "0<->1"}));
  EXPECT_TRUE(has_commit);
  EXPECT_EQ(svg.find("nan"), svg.npos);
  EXPECT_EQ(svg.find("inf"), svg.npos);
}

}  // namespace
}  // namespace xccl
