#include "draw/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <pugixml.hpp>
#include <string>

#include "draw/plot.h"
#include "draw/svg.h"
#include "ir/simulate/trace.h"
#include "ir/testing/graphs.h"

namespace xccl {
namespace {

using testing::Links;
using testing::MakeCollective;

int64_t Count(const std::string& text, std::string_view what) {
  int64_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// A host of two GPUs beside one of its own, behind a switch; one cable is two links, one has one direction.
Topology Small() {
  TopologySpec spec;
  spec.name = "a <b> \"c\"";
  spec.source = "made & measured";
  spec.hosts = {Host{"h0"}, Host{"h1"}};
  spec.nodes = {Node{NodeKind::kGpu, "0", HostId(0), false, false},
                Node{NodeKind::kGpu, "1", HostId(0), false, false},
                Node{NodeKind::kGpu, "0", HostId(1), false, false},
                Node{NodeKind::kSwitch, "leaf", std::nullopt, true, false}};
  const auto link = [&](int a, int b, int64_t bandwidth) {
    spec.links.push_back(Link{NodeId(a), NodeId(b), bandwidth, 1000, 0});
  };
  link(0, 3, 5'000'000'000);
  link(0, 3, 5'000'000'000);
  link(3, 0, 5'000'000'000);
  link(3, 0, 5'000'000'000);
  link(1, 3, 6'000'000'000);
  link(3, 1, 7'000'000'000);
  link(3, 2, 7'000'000'000);
  return Topology::Create(spec).value();
}

pugi::xml_document Parsed(const std::string& svg) {
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_string(svg.c_str());
  EXPECT_TRUE(result) << result.description();
  EXPECT_STREQ(document.document_element().name(), "svg");
  return document;
}

// Every text lies within the picture; its width is estimated.
void CheckTexts(const pugi::xml_document& document) {
  const double width = document.document_element().attribute("width").as_double();
  const double height = document.document_element().attribute("height").as_double();
  EXPECT_GT(width, 100);
  for (const pugi::xpath_node& found : document.select_nodes("/svg/text")) {
    const pugi::xml_node text = found.node();
    const double length = 0.5 * text.attribute("font-size").as_double() *
                          static_cast<double>(std::string_view(text.child_value()).size());
    const std::string_view anchor = text.attribute("text-anchor").value();
    const double x = text.attribute("x").as_double();
    const double left = anchor == "start" ? x : anchor == "end" ? x - length : x - length / 2;
    EXPECT_GE(left, -1) << text.child_value();
    EXPECT_LE(left + length, width + 1) << text.child_value();
    EXPECT_LE(text.attribute("y").as_double(), height) << text.child_value();
  }
}

TEST(TopologySvg, ShowsNodesCablesAndALegend) {
  const Topology topology = Small();
  const std::string svg = TopologySvg(topology, LayOut(topology));
  const pugi::xml_document document = Parsed(svg);
  CheckTexts(document);
  EXPECT_EQ(Count(svg, "<path"), 3);  // cables
  EXPECT_NE(svg.find("a &lt;b&gt; &quot;c&quot;"), std::string::npos);
  EXPECT_NE(svg.find("made &amp; measured"), std::string::npos);
  EXPECT_NE(svg.find(">2x<"), std::string::npos);
  EXPECT_NE(svg.find(">←<"), std::string::npos);  // the link from the switch to rank 2
  EXPECT_NE(svg.find("gpu–switch  5GB/s each way, latency 1ns  (4 links)"), std::string::npos);
  EXPECT_NE(svg.find("switches copy"), std::string::npos);
  EXPECT_EQ(svg, TopologySvg(topology, LayOut(topology)));
}

TEST(TopologyDot, HasPlacesAndMergedEdges) {
  const Topology topology = Small();
  const MachineLayout layout = LayOut(topology);
  const std::string dot = TopologyDot(topology, layout);
  EXPECT_EQ(Count(dot, "pos=\""), std::ssize(layout.items));
  EXPECT_NE(dot.find("digraph \"a <b> \\\"c\\\"\" {"), std::string::npos);
  EXPECT_NE(dot.find("[label=\"2 x 5GB/s\", penwidth=2, bandwidth=\"5GB/s\", "), std::string::npos);
  EXPECT_NE(dot.find("[label=\"6GB/s\", penwidth=1.78, dir=forward, bandwidth=\"6GB/s\", "),
            std::string::npos);
  EXPECT_EQ(Count(dot, "[label=\"7GB/s\", penwidth=1.85, dir=back, bandwidth=\"7GB/s\", "), 2);
  EXPECT_NE(dot.find("subgraph cluster_0 { label=\"h0\"; labelloc=b;"), std::string::npos);
}

struct Chain {
  Topology topology = testing::MakeGraph("chain", 3, 0, {{0, 1, 1, 100}, {1, 2, 1, 100}});
  Collective collective = MakeCollective(CollectiveKind::kBroadcast, 3, Rank(0));
  Schedule schedule;
  Chain() {
    schedule.num_chunks = 1;
    schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 0);
    schedule.Add(ChunkId(0), 1, Rank(1), Rank(2), Links({1}), TransferOp::kCopy, 1);
  }
};

TEST(ScheduleSvg, ShowsStepsATimelineAndTheCriticalPath) {
  const Chain chain;
  const ScheduleTrace trace = TraceSchedule(chain.schedule, chain.collective, chain.topology,
                                            {.size_bytes = 1000, .segment_bytes = 500})
                                  .value();
  const std::string svg = ScheduleSvg(chain.topology, LayOut(chain.topology), trace,
                                      {"broadcast on a chain", "pipelined", 1'200'000});
  const pugi::xml_document document = Parsed(svg);
  CheckTexts(document);
  EXPECT_NE(svg.find(">step 0<"), std::string::npos);
  EXPECT_NE(svg.find(">step 1<"), std::string::npos);
  EXPECT_EQ(Count(svg, "marker-end"), 2);             // an arrow in each step
  EXPECT_EQ(Count(svg, "<title>0 to 1, step 0"), 1);  // a bar; its segments follow one another
  EXPECT_EQ(Count(svg, "<title>1 to 2, step 1"), 1);
  EXPECT_NE(svg.find("1.7us in the pipelined model; 2 steps, 2 messages; no plan is faster than 1.2us"),
            std::string::npos);
  EXPECT_NE(svg.find("lower bound"), std::string::npos);
  // Red lines: four pieces of the path, and one of the legend.
  EXPECT_EQ(Count(svg, "#d00000"), 5);
}

// 64 rows at most, and no panels where there are too many steps.
TEST(ScheduleSvg, LeavesOutWhatWouldNotBeReadable) {
  constexpr int32_t kRanks = 100;
  const Topology topology = testing::MakeGrid("line", 1, kRanks, false);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, kRanks, Rank(0));
  Schedule schedule;
  schedule.num_chunks = 1;
  for (int32_t r = 0; r + 1 < kRanks; ++r)
    schedule.Add(ChunkId(0), 1, Rank(r), Rank(r + 1), Links({2 * r}), TransferOp::kCopy, r);
  const ScheduleTrace trace = TraceSchedule(schedule, collective, topology, {.size_bytes = 1 << 20}).value();
  const std::string svg = ScheduleSvg(topology, LayOut(topology), trace, {"line", "pipelined", 0});
  CheckTexts(Parsed(svg));
  EXPECT_NE(svg.find("64 of 99 links: the critical path's and the busiest"), std::string::npos);
  EXPECT_EQ(svg.find(">step 1<"), std::string::npos);
  EXPECT_EQ(svg.find("lower bound"), std::string::npos);
}

// A link that is busy all the time and not on the critical path, and a path over 70 idle links: the path is
// drawn, the busy link is the first row.
TEST(ScheduleSvg, TheCriticalPathIsAmongTheRowsAndTheBusiestIsFirst) {
  constexpr int32_t kRanks = 40;
  const Topology topology = testing::MakeGrid("line", 1, kRanks, false);
  ScheduleTrace trace;
  trace.simulation.time_ps = 1000;
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    trace.messages.push_back({.step = 0, .src = Rank(0), .dst = Rank(1), .path = {}, .bytes = 64});
    trace.hops.push_back(
        {.message = l, .link = LinkId(l), .start_ps = 0, .end_ps = 100 + l, .busy_ps = 100 + l});
  }
  trace.critical_path.pieces.push_back(
      {.kind = PathKind::kTransfer, .start_ps = 0, .end_ps = 1000, .link = LinkId(0)});
  const std::string svg = ScheduleSvg(topology, LayOut(topology), trace, {"line", "pipelined", 0});
  const size_t path = svg.find(">" + svg::Escaped(topology.LinkName(LinkId(0))) + "<");
  const size_t busiest =
      svg.find(">" + svg::Escaped(topology.LinkName(LinkId(topology.num_links() - 1))) + "<");
  EXPECT_LT(busiest, path);
  EXPECT_NE(path, svg.npos) << "the least busy link is the critical path's";
  EXPECT_EQ(Count(svg, "#d00000"), 2);  // the path and the legend
  trace.critical_path.pieces.clear();
  EXPECT_EQ(ScheduleSvg(topology, LayOut(topology), trace, {"line", "pipelined", 0}).find("critical path (d"),
            svg.npos);
}

// Thousands of messages on one link that nobody could tell apart.
TEST(ScheduleSvg, BarsTooThinToTellApartAreOne) {
  const Chain chain;
  ScheduleTrace trace;
  trace.simulation.time_ps = 1'000'000;
  for (int32_t m = 0; m < 10'000; ++m) {
    trace.messages.push_back({.step = 0, .src = Rank(0), .dst = Rank(1), .path = {}, .bytes = 64});
    trace.hops.push_back(
        {.message = m, .link = LinkId(0), .start_ps = 100 * m, .end_ps = 100 * m + 100, .busy_ps = 100});
  }
  const std::string svg =
      ScheduleSvg(chain.topology, LayOut(chain.topology), trace, {"chain", "pipelined", 0});
  EXPECT_LT(svg.size(), 30'000U);
  EXPECT_GT(Count(svg, " messages of step 0, "), 20);
}

TEST(Plot, NamesAreCutBetweenLetters) {
  EXPECT_EQ(svg::FittedName("ring", 4), "ring");
  EXPECT_EQ(svg::FittedName("double-binary-tree", 8), "double..");
  EXPECT_EQ(svg::FittedName("gr\xc3\xbc\xc3\xbc\xc3\x9f", 7), "gr\xc3\xbc..");  // no half of a letter
}

TEST(Plot, NotesAreOneBelowAnother) {
  double y = 10;
  const std::string text = svg::PlotNotes({"one", "two"}, y);
  EXPECT_EQ(y, 10 + 2 * svg::kPlot.label);
  EXPECT_EQ(Count(text, "<text"), 2);
}

}  // namespace
}  // namespace xccl
