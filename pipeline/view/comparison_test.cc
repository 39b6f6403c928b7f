#include "pipeline/view/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/view/comparison_chart.h"
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
      {"levels", EngineGroup::kExchanges},    {"swing", EngineGroup::kExchanges},
      {"allpairs.xml", EngineGroup::kOthers},
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

// Where texts of the figure would leave it or meet another text. Letters are taken as 0.5 fonts wide, which
// is less than the figure leaves.
Names MisplacedTexts(const pugi::xml_document& document, double width, double height) {
  struct Box {
    double left, right, top, bottom;
    std::string text;
  };
  std::vector<Box> boxes;
  for (const pugi::xpath_node& node : document.select_nodes("//text")) {
    const pugi::xml_node text = node.node();
    const double font = text.attribute("font-size").as_double();
    const std::string letters = text.text().get(), anchor = text.attribute("text-anchor").as_string();
    const double room = 0.5 * font * static_cast<double>(letters.size());
    const double at = text.attribute("x").as_double(), y = text.attribute("y").as_double();
    const double left = anchor == "start" ? at : anchor == "end" ? at - room : at - room / 2;
    boxes.push_back({left, left + room, y - 0.7 * font, y + 0.2 * font, letters});
  }
  Names misplaced;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Box& a = boxes[i];
    if (a.left < 0 || a.right > width || a.top < 0 || a.bottom > height) misplaced.push_back(a.text);
    for (size_t j = 0; j < i; ++j) {
      const Box& b = boxes[j];
      if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
        misplaced.push_back(a.text + " on " + b.text);
    }
  }
  return misplaced;
}

TEST(ComparisonChart, HasItsWidthItsFontAndNoTextIsCut) {
  const std::string long_name = "hierarchical plan of another tool with a long name, in several words.xml";
  for (const size_t sizes : {1, 5})
    for (const std::string_view chart : ChartNames())
      for (const double font : {8.0, 13.0}) {
        std::vector<Times> engines = {
            {"auto", {9'000'000, 12'000'000, 40'000'000, 900'000'000, 15'000'000'000}},
            {long_name, {10'000'000, 11'000'000, 60'000'000, 990'000'000, 1}}};
        for (int e = 0; e < 9; ++e)
          engines.push_back({"engine-" + std::to_string(e), std::vector<int64_t>(5, 20'000'000 * (e + 1))});
        for (Times& engine : engines) engine.time_ps.resize(sizes);
        Comparison comparison = Made(engines);
        for (PlanTime& timed : comparison.times) timed.messages = timed.time_ps / 1000;
        const StatusOr<std::string> svg = ComparisonChart(comparison, chart, {245, font}, {});
        ASSERT_TRUE(svg.ok()) << svg.status().message();
        pugi::xml_document document;
        ASSERT_TRUE(document.load_string(svg->c_str())) << *svg;
        EXPECT_STREQ(document.first_child().attribute("width").as_string(), "245pt");
        for (const pugi::xpath_node& node : document.select_nodes("//text"))
          EXPECT_EQ(node.node().attribute("font-size").as_double(), font);
        EXPECT_EQ(MisplacedTexts(document, 245, document.first_child().attribute("height").as_double()),
                  Names())
            << chart << " " << sizes << "\n"
            << *svg;
        EXPECT_EQ(svg->find(".."), svg->npos) << "a shortened name";
        EXPECT_NE(svg->find("engine-8"), svg->npos);
      }
}

TEST(ComparisonChart, SaysItsUnitsAndWhereItsAxesBegin) {
  Comparison comparison = Made({{"ring", {20'000'000, 40'000'000}}, {"tree", {10'000'000, 90'000'000}}});
  const std::string time = ComparisonChart(comparison, "time", {245, 8}, {}).value();
  for (const char* text : {">Time (log scale)<", ">Size (log scale)<", ">10 µs<", ">1 KiB<", ">2 KiB<"})
    EXPECT_NE(time.find(text), time.npos) << text << "\n" << time;
  const std::string busbw = ComparisonChart(comparison, "busbw", {245, 8}, {}).value();
  for (const char* text : {">Bus bandwidth (from 0)<", ">0<", ">1 GB/s<"})
    EXPECT_NE(busbw.find(text), busbw.npos) << text << "\n" << busbw;
  EXPECT_EQ(ComparisonChart(comparison, "messages", {245, 8}, {}).status().message(),
            "--chart: no row has a value for 'messages'");
}

TEST(ParseFigureSize, TakesPhysicalUnits) {
  EXPECT_DOUBLE_EQ(ParseFigureSize("3.5in", "8pt")->width_pt, 252);
  EXPECT_DOUBLE_EQ(ParseFigureSize("12.7cm", "8pt")->width_pt, 360);
  EXPECT_DOUBLE_EQ(ParseFigureSize("127mm", "8pt")->width_pt, 360);
  for (const char* wrong : {"3.4", "in", "-1in", "0mm", "3.4 in", "1e9in", "nanin", "8px"}) {
    EXPECT_EQ(ParseFigureSize(wrong, "8pt").status().message(),
              std::string("--width: '") + wrong +
                  "'; expected a length up to 100in such as 3.4in, 86mm, 8.6cm or 245pt");
    EXPECT_EQ(ParseFigureSize("3in", wrong).status().message().substr(0, 8), "--font: ");
  }
  EXPECT_EQ(ParseFigureSize("1in", "8pt").status().message(),
            "--width: 1in; expected at least 18 times the font's 8pt, which is 144pt; hint: --font=4pt");
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

// An engine that is slow on every machine looks slow: values are over the bound of the machine that is left,
// not over the engine's own time on the whole machine.
TEST(FailuresSvg, ASlowEngineIsNotShownAsTheBest) {
  FailureComparison comparison = Failed();
  comparison.times = {{.engine = "auto", .size_bytes = 8, .whole_us = 2, .draw_us = {3, 3, 3, 3}},
                      {.engine = "ring", .size_bytes = 8, .whole_us = 9, .draw_us = {9, 9, 9, 9}}};
  comparison.bounds = {{.size_bytes = 8, .whole_us = 2, .draw_us = {2, 2, 2, 2}}};
  const std::string svg = FailuresSvg(comparison, {});
  EXPECT_NE(svg.find(">1.50, 3us<"), svg.npos) << svg;
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(svg.c_str()));
  double end = 0, dot = 0;
  for (const pugi::xpath_node& bar : document.select_nodes("//rect[@fill-opacity]"))
    end = bar.node().attribute("x").as_double() + bar.node().attribute("width").as_double();
  for (const pugi::xpath_node& circle : document.select_nodes("//circle"))
    dot = circle.node().attribute("cx").as_double();
  EXPECT_GT(dot, end);
}

// The worst first, no plan before all others, a failure that is drawn twice once.
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
