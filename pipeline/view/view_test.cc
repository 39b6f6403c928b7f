// The data of the page: lists agree in length, times are those of the simulations, and what is added up ends
// complete.
#include "pipeline/view/view.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json_value.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulate_program.h"
#include "pipeline/pipeline.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Plan MakePlanOf(const std::string& topology_name, CollectiveKind kind, const std::string& engine) {
  const Topology topology = LoadTopology(topology_name).value();
  CollectiveSpec spec;
  spec.kind = kind;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) spec.ranks.push_back(Rank(r));
  PlanOptions options;
  options.engine = engine;
  options.lower = true;
  options.request.size_bytes = 1 << 20;
  return MakePlan(topology, Collective::Create(spec).value(), options).value().plan;
}

int64_t Size(const JsonValue& object, std::string_view key) {
  return std::ssize(object.Get(key).value().Integers(INT64_MIN, INT64_MAX).value());
}
std::vector<int64_t> Numbers(const JsonValue& object, std::string_view key) {
  return object.GetIntegers<int64_t>(key, INT64_MIN, INT64_MAX).value();
}

struct Case {
  std::string topology;
  CollectiveKind kind;
  std::string engine;
};
class Views : public ::testing::TestWithParam<Case> {
 protected:
  const Plan plan_ = MakePlanOf(GetParam().topology, GetParam().kind, GetParam().engine);
  Plan WithoutProgram() const {
    Plan plan = plan_;
    plan.program.reset();
    return plan;
  }
};

INSTANTIATE_TEST_SUITE_P(Plans, Views,
                         ::testing::Values(Case{"full-mesh:4", CollectiveKind::kAlltoall, "direct"},
                                           Case{"torus:4x4", CollectiveKind::kAllgather, "bfb"},
                                           Case{"nvswitch:4@multicast=true,reduce=true",
                                                CollectiveKind::kAllreduce, "multicast"},
                                           Case{"ring:5", CollectiveKind::kReduceScatter, "ring"}),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           return info.param.engine + std::to_string(info.index);
                         });

// The lists of all messages, transfers and hops agree in length.
void ExpectDetail(const JsonValue& detail) {
  const int64_t messages = Size(detail, "bytes");
  EXPECT_GT(messages, 0);
  for (const char* key : {"start", "end"}) EXPECT_EQ(Size(detail, key), messages) << key;
  for (const char* key : {"transfer_first", "hop_first"}) EXPECT_EQ(Size(detail, key), messages + 1) << key;
  for (const char* key : {"hop_start", "hop_end", "hop_busy"})
    EXPECT_EQ(Size(detail, key), Size(detail, "hop_link")) << key;
  EXPECT_EQ(Numbers(detail, "hop_first").back(), Size(detail, "hop_link"));
  EXPECT_EQ(Size(detail, "chunk"), static_cast<int64_t>(detail.GetString("op").value().size()));
}

// All that is needed is there in the end, and the loads of a link add up to the time that it is busy, as far
// as a digit tells.
void ExpectBinned(const JsonValue& data) {
  EXPECT_TRUE(data.Get("detail").value().IsNull());
  const JsonValue binned = data.Get("binned").value();
  const std::vector<JsonValue> frames = binned.GetItems("ranks").value();
  const std::string needs(binned.GetString("needs").value());
  std::string complete;
  for (const char need : needs) complete += need == 'n' ? '/' : 'A';
  EXPECT_EQ(frames.back().String().value(), complete);
  EXPECT_NE(frames.front().String().value(), complete);
  const std::vector<JsonValue> loads = binned.GetItems("loads").value();
  const std::vector<int64_t> busy_ps = Numbers(data.Get("links").value(), "busy_ps");
  ASSERT_EQ(loads.size(), busy_ps.size());
  const double time_ps = static_cast<double>(data.GetInteger("time_ps", 1, INT64_MAX).value());
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t l = 0; l < loads.size(); ++l) {
    const std::string of_link(loads[l].String().value());
    double sum = 0;
    for (const char c : of_link) sum += static_cast<double>(digits.find(c)) / 63;
    const double share = of_link.empty() ? 0 : sum / static_cast<double>(of_link.size());
    EXPECT_NEAR(share, static_cast<double>(busy_ps[l]) / time_ps, 0.01) << "link " << l;
  }
  // A followed chunk reaches every rank that needs it.
  EXPECT_GT(Size(binned, "chunk"), 0);
  EXPECT_EQ(Numbers(binned, "arrival_first").back(), Size(binned, "arrival_ps"));
}

TEST_P(Views, EveryMessageIsThere) {
  const PlanView view = ViewPlan(WithoutProgram(), "a.plan.json", {}).value();
  const JsonDocument document = JsonDocument::Parse(view.json, "view").value();
  EXPECT_TRUE(document.root().Get("played").value().IsNull());
  const JsonValue schedule = document.root().Get("schedule").value();
  const JsonValue detail = schedule.Get("detail").value();
  ExpectDetail(detail);
  EXPECT_EQ(Size(detail, "step"), Size(detail, "bytes"));
  const Simulation simulation =
      Simulate(plan_.schedule, plan_.collective, plan_.topology, {.size_bytes = plan_.made_by.size_bytes});
  EXPECT_EQ(std::ranges::max(Numbers(detail, "end")), simulation.time_ps);
  EXPECT_EQ(std::ranges::max(Numbers(detail, "arrival")), simulation.time_ps);
  const JsonValue facts = document.root().Get("facts").value();
  EXPECT_EQ(facts.GetInteger("time_ps", 0, INT64_MAX).value(), simulation.time_ps);
  EXPECT_EQ(Numbers(document.root().Get("critical").value(), "end").back(), simulation.time_ps);
}

TEST_P(Views, TheProgramIsThereWithItsTime) {
  const PlanView view = ViewPlan(plan_, "a.plan.json", {}).value();
  const JsonDocument document = JsonDocument::Parse(view.json, "view").value();
  const JsonValue program = document.root().Get("program").value();
  const Simulation simulation = SimulateProgram(plan_.program->program, plan_.program->collective,
                                                plan_.topology, {.size_bytes = plan_.made_by.size_bytes})
                                    .value();
  EXPECT_EQ(program.GetInteger("time_ps", 0, INT64_MAX).value(), simulation.time_ps);
  EXPECT_EQ(view.time_ps, simulation.time_ps);
  EXPECT_EQ(Size(program, "ranks"), plan_.topology.num_ranks());
  const int64_t instructions = static_cast<int64_t>(program.GetString("op").value().size());
  for (const char* key : {"count", "from", "to", "start", "end", "busy", "wait_message"})
    EXPECT_EQ(Size(program, key), instructions) << key;
  EXPECT_EQ(Numbers(program, "instruction_first").back(), instructions);
  EXPECT_EQ(std::ranges::max(Numbers(program, "end")) <= simulation.time_ps, true);
}

// The page plays the program: its messages, and what its writes leave in the ranks.
TEST_P(Views, TheProgramPlays) {
  const PlanView view = ViewPlan(plan_, "a.plan.json", {}).value();
  const JsonDocument document = JsonDocument::Parse(view.json, "view").value();
  EXPECT_TRUE(document.root().Get("schedule").value().Get("detail").value().IsNull());
  const JsonValue played = document.root().Get("played").value();
  EXPECT_EQ(played.GetInteger("time_ps", 0, INT64_MAX).value(), view.time_ps);
  const JsonValue detail = played.Get("detail").value();
  ExpectDetail(detail);
  EXPECT_LE(std::ranges::max(Numbers(detail, "end")), view.time_ps);
  const JsonValue writes = detail.Get("writes").value();
  EXPECT_TRUE(std::ranges::is_sorted(Numbers(writes, "end")));
  std::map<std::pair<int64_t, int64_t>, int64_t> held;  // (rank, chunk): contributions
  const auto hold = [&](int64_t rank, int64_t chunk, int64_t gain) { held[{rank, chunk}] += gain; };
  const auto each_cell = [](const JsonValue& runs, auto&& visit) {
    const std::vector<int64_t> rank = Numbers(runs, "rank"), chunk = Numbers(runs, "chunk");
    const std::vector<int64_t> count = Numbers(runs, "count"), contributions = Numbers(runs, "contributions");
    for (size_t i = 0; i < rank.size(); ++i)
      for (int64_t c = chunk[i]; c < chunk[i] + count[i]; ++c) visit(rank[i], c, contributions[i]);
  };
  each_cell(detail.Get("before").value(), hold);
  const std::vector<int64_t> rank = Numbers(writes, "rank"), chunk = Numbers(writes, "chunk");
  const std::vector<int64_t> gain = Numbers(writes, "gain");
  for (size_t i = 0; i < rank.size(); ++i) hold(rank[i], chunk[i], gain[i]);
  each_cell(detail.Get("needs").value(), [&](int64_t r, int64_t c, int64_t needed) {
    EXPECT_EQ((held[{r, c}]), needed) << "rank " << r << " chunk " << c;
  });
}

TEST_P(Views, WhatIsAddedUpEndsComplete) {
  ViewOptions options;
  options.most_entries = 0;
  for (const bool plays_program : {false, true}) {
    const PlanView view = ViewPlan(plays_program ? plan_ : WithoutProgram(), "a.plan.json", options).value();
    const JsonDocument document = JsonDocument::Parse(view.json, "view").value();
    ExpectBinned(document.root().Get(plays_program ? "played" : "schedule").value());
  }
}

TEST(ViewPage, NamesCannotEndTheScript) {
  PlanView view;
  view.name = "</script><b>";
  view.json = "{}";
  const std::string page = ViewPage("a<script>@XCCL_DATA@</script>z", {view}, "<title>", "view '<x>'");
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cb>"));
  EXPECT_EQ(page.substr(0, 9), "a<script>");
  EXPECT_THAT(page, HasSubstr("<script type=\"application/json\" id=\"plan-0\">{}</script>z"));
}

TEST(ViewPlan, ADeadlineThatPassedIsKept) {
  const Plan plan = MakePlanOf("torus:4x4", CollectiveKind::kAllgather, "bfb");
  ViewOptions options;
  options.deadline = Deadline(0.0);
  EXPECT_EQ(ViewPlan(plan, "a", options).status().code(), StatusCode::kLimit);
}

}  // namespace
}  // namespace xccl
