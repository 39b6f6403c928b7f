#include "synth/groups/plan_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "ir/interpret/interpret.h"
#include "ir/lower/testing/checked.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"
#include "synth/groups/groups.h"
#include "synth/groups/joint.h"
#include "synth/groups/member_plans.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

ProcessGroup MakeGroup(const std::string& name, CollectiveKind kind, const std::vector<int32_t>& ranks,
                       int64_t size_bytes) {
  CollectiveSpec spec;
  spec.kind = kind;
  for (int32_t r : ranks) spec.ranks.push_back(Rank(r));
  if (kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kGather) spec.root = spec.ranks.back();
  if (kind == CollectiveKind::kSendrecv) spec.pairs = {{spec.ranks.front(), spec.ranks.back()}};
  return {name, Collective::Create(spec).value(), size_bytes, 1};
}

JointPlan Planned(const Topology& topology, const GroupRequest& request,
                  const MemberPlanOptions& options = {}) {
  StatusOr<JointPlan> plan = PlanGroups(topology, request, options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return *std::move(plan);
}

int32_t Value(Rank rank, PartId part, int64_t e) {
  return static_cast<int32_t>(1000003 * (rank.value + 1) + 10007 * (part.value + 1) + 31 * e);
}

// Checks that the plan verifies, is no faster than its bound, ends when its last group ends, and that its
// program computes what each group asks for.
void ExpectSound(const JointPlan& plan, const Topology& topology, const GroupRequest& request) {
  const Synthesis& made = plan.made;
  EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, topology)).message(), "");
  ASSERT_EQ(plan.groups.size(), request.groups.size());
  int64_t last_ps = 0;
  for (const GroupOutcome& outcome : plan.groups) {
    EXPECT_GE(outcome.alone_ps, outcome.bound_ps);
    EXPECT_GE(outcome.together_ps, outcome.bound_ps);
    EXPECT_LE(outcome.together_ps, made.simulation->time_ps);
    EXPECT_LE(outcome.bound_ps, plan.bound.bound_ps);
    last_ps = std::max(last_ps, outcome.together_ps);
  }
  EXPECT_NEAR(static_cast<double>(last_ps), static_cast<double>(made.simulation->time_ps),
              1e-3 * static_cast<double>(last_ps) + 1);
  EXPECT_GE(made.simulation->time_ps, plan.bound.bound_ps);
  EXPECT_LE(made.simulation->time_ps, plan.unaware_ps);

  const CollectiveSizes sizes(plan.joint.collective, plan.joint.size_bytes);
  EXPECT_EQ(sizes.size_bytes(), plan.joint.size_bytes);
  for (size_t g = 0; g < request.groups.size(); ++g) {
    const ProcessGroup& group = request.groups[g];
    const CollectiveSizes own(group.collective, group.size_bytes);
    for (int32_t p = 0; p < group.collective.num_parts(); ++p)
      EXPECT_EQ(sizes.PartBytes(PartId(plan.joint.first_part[g] + p)), own.PartBytes(PartId(p)));
  }

  const StatusOr<LoweredProgram> lowered =
      LowerFoldedChecked(made.schedule, made.collective, topology, {.size_bytes = plan.joint.size_bytes});
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  ASSERT_EQ(ToStatus(VerifyProgram(lowered->program, lowered->collective, topology)).message(), "");
  InterpretOptions options;
  options.type = DataType::kInt32;
  options.size_bytes = 4000;
  const CollectiveSizes small(made.collective, options.size_bytes);
  const auto buffers = [&](bool before) {
    std::vector<std::vector<std::byte>> all(static_cast<size_t>(topology.num_ranks()));
    std::vector<Holding> holdings;
    for (Rank r : made.collective.ranks()) {
      std::vector<int32_t> elements;
      for (PartId p : before ? made.collective.InputParts(r) : made.collective.OutputParts(r)) {
        const ChunkId chunk = made.collective.FirstChunk(p);
        before ? made.collective.Before(chunk, holdings) : made.collective.After(chunk, holdings);
        const auto held = std::ranges::find(holdings, r, &Holding::rank);
        for (int64_t e = 0; e < small.PartElements(p); ++e) {
          uint32_t sum = 0;
          for (Rank from : held->contributions) sum += static_cast<uint32_t>(Value(from, p, e));
          elements.push_back(static_cast<int32_t>(sum));
        }
      }
      const auto bytes = std::as_bytes(std::span(elements));
      all[r.index()].assign(bytes.begin(), bytes.end());
    }
    return all;
  };
  const auto outputs = Interpret(lowered->program, lowered->collective, buffers(true), options);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_TRUE(*outputs == buffers(false));
}

constexpr CollectiveKind kAllreduce = CollectiveKind::kAllreduce;
constexpr CollectiveKind kAllgather = CollectiveKind::kAllgather;
constexpr CollectiveKind kAlltoall = CollectiveKind::kAlltoall;

TEST(PlanGroups, PlansAreSound) {
  struct Case {
    std::string machine;
    std::vector<ProcessGroup> groups;
  };
  const std::vector<Case> cases = {
      {"dgx1",  // tensor and data parallel groups over the same links
       {MakeGroup("tp0", kAllreduce, {0, 1, 2, 3}, 1 << 20),
        MakeGroup("tp1", kAllreduce, {4, 5, 6, 7}, 1 << 20),
        MakeGroup("dp0", CollectiveKind::kReduceScatter, {0, 4}, 1 << 18),
        MakeGroup("dp1", CollectiveKind::kReduceScatter, {3, 7}, 1 << 18)}},
      {"torus:4x4",  // groups that need relays
       {MakeGroup("corners", kAllgather, {0, 5, 10, 15}, 1 << 20),
        MakeGroup("row", kAlltoall, {4, 5, 6, 7}, 1 << 19),
        MakeGroup("one", CollectiveKind::kSendrecv, {3, 12}, 1 << 16)}},
      {"nvswitch:6",  // the same ranks twice, and sizes that do not divide
       {MakeGroup("a", kAllreduce, {0, 1, 2, 3, 4, 5}, 12345),
        MakeGroup("b", kAllgather, {0, 1, 2, 3, 4, 5}, 999),
        MakeGroup("c", CollectiveKind::kBroadcast, {5, 1}, 77),
        MakeGroup("d", CollectiveKind::kGather, {2, 3, 4}, 4096)}},
      {"ring:4", {MakeGroup("alone", kAllreduce, {0, 1, 2, 3}, 1 << 20)}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.machine);
    const Topology topology = LoadTopology(c.machine).value();
    const GroupRequest request{"step", c.groups};
    const JointPlan plan = Planned(topology, request);
    ExpectSound(plan, topology, request);
    const JointPlan again = Planned(topology, request);
    EXPECT_TRUE(plan.made.schedule == again.made.schedule && plan.made.collective == again.made.collective);
    MemberPlanOptions blocking;
    blocking.model = TimeModel::kBlocking;
    const Synthesis stored = Planned(topology, request, blocking).made;
    EXPECT_EQ(ToStatus(VerifySchedule(stored.schedule, stored.collective, topology)).message(), "");
  }
}

// Rows and columns of a torus share no link: all of them together take as long as one.
TEST(PlanGroups, GroupsThatShareNothingTakeTheTimeOfOne) {
  const Topology topology = LoadTopology("torus:4x4").value();
  GroupRequest request{"rows", {}};
  for (int32_t row = 0; row < 4; ++row)
    request.groups.push_back(MakeGroup("row" + std::to_string(row), kAllreduce,
                                       {4 * row, 4 * row + 1, 4 * row + 2, 4 * row + 3}, 4 << 20));
  for (int32_t column = 0; column < 4; ++column)
    request.groups.push_back(MakeGroup("column" + std::to_string(column), kAllreduce,
                                       {column, column + 4, column + 8, column + 12}, 4 << 20));
  const JointPlan plan = Planned(topology, request);
  const Topology ring = LoadTopology("ring:4").value();
  const GroupRequest one{"one", {MakeGroup("row", kAllreduce, {0, 1, 2, 3}, 4 << 20)}};
  const double alone = static_cast<double>(Planned(ring, one).made.simulation->time_ps);
  EXPECT_NEAR(static_cast<double>(plan.made.simulation->time_ps), alone, 0.01 * alone);
  // If each group used the others' links, all would be slower.
  EXPECT_GE(plan.unaware_ps, plan.made.simulation->time_ps);
}

// A translate whose bound was asked for first had no plan, and the plans made after it were never found
// again.
TEST(PlanGroups, GroupsThatATranslationJoinsShareOneSearch) {
  const Topology topology = LoadTopology("torus:4x4").value();
  std::vector<ProcessGroup> rows;
  for (int32_t row = 0; row < 4; ++row)
    rows.push_back(MakeGroup("row" + std::to_string(row), kAllreduce,
                             {4 * row, 4 * row + 1, 4 * row + 2, 4 * row + 3}, 1 << 20));
  MemberPlans plans(topology, rows, {});
  ASSERT_TRUE(plans.BoundOf(0).ok());
  for (size_t row = 1; row < rows.size(); ++row) ASSERT_TRUE(plans.OnWhole(row).ok());
  EXPECT_EQ(plans.searches(), 1);
}

// Alone, a host's GPUs gain a little by going over rails and spines. All hosts at once took four times as
// long there as over their own NVSwitches.
TEST(PlanGroups, HostsKeepOffTheFabricThatAllShare) {
  const Topology topology = LoadTopology("rail-16").value();
  GroupRequest request{"hosts", {}};
  for (int32_t host = 0; host < 16; ++host) {
    std::vector<int32_t> ranks;
    for (int32_t gpu = 0; gpu < 8; ++gpu) ranks.push_back(8 * host + gpu);
    request.groups.push_back(MakeGroup("host" + std::to_string(host), kAllgather, ranks, 256 << 20));
  }
  const JointPlan plan = Planned(topology, request);
  EXPECT_EQ(ToStatus(VerifySchedule(plan.made.schedule, plan.made.collective, topology)).message(), "");
  const double own_ps = 7.0 / 8 * (256 << 20) / 450e9 * 1e12;  // data that a GPU receives, at 450 GB/s
  EXPECT_LE(static_cast<double>(plan.made.simulation->time_ps), 1.01 * own_ps);
  EXPECT_EQ(plan.made.note, "groups on links of their own");
}

// Two pairs whose shortest paths share a cable; another path is free.
TEST(PlanGroups, OneGroupMakesRoomForTheOther) {
  const Topology topology = LoadTopology("ring:6").value();
  const GroupRequest request{"pairs",
                             {MakeGroup("a", CollectiveKind::kSendrecv, {0, 2}, 8 << 20),
                              MakeGroup("b", CollectiveKind::kSendrecv, {1, 3}, 8 << 20)}};
  const JointPlan plan = Planned(topology, request);
  ExpectSound(plan, topology, request);
  // Both together have four paths of 50 GB/s out of their sources, so 8 MiB take half of a single path's
  // time.
  EXPECT_LE(static_cast<double>(plan.made.simulation->time_ps),
            1.2 * static_cast<double>(plan.bound.bound_ps));
}

// A machine without links: the busiest of them was looked up all the same.
TEST(PlanGroups, GroupsOfOneRankOnAMachineWithoutLinks) {
  const Topology topology = LoadTopology("full-mesh:1").value();
  const JointPlan plan = Planned(
      topology,
      {"alone", {MakeGroup("a", kAllreduce, {0}, 1 << 20), MakeGroup("b", kAllgather, {0}, 1 << 20)}});
  EXPECT_EQ(plan.made.schedule.size(), 0);
  EXPECT_EQ(plan.made.simulation->time_ps, 0);
}

TEST(PlanGroups, WrongRequests) {
  LoadOptions damage;
  damage.without_links = {"0->1", "1->0"};
  const Topology line = LoadTopology("mesh:1x3", damage).value();
  EXPECT_EQ(PlanGroups(line, {"step", {MakeGroup("a", kAllreduce, {0, 1}, 1 << 20)}}, {}).status().message(),
            "mesh:1x3: no path from rank 0 to rank 1, which step needs");
  EXPECT_EQ(PlanGroups(line, {"step", {MakeGroup("a", kAllgather, {1, 2}, 16)}}, {}).status().message(),
            "group a: allgather on 2 ranks moves nothing: 16 bytes leave none for each part; expected a "
            "larger size");
  MemberPlanOptions options;
  options.engine = "rng";
  EXPECT_EQ(
      PlanGroups(line, {"step", {MakeGroup("a", kAllgather, {1, 2}, 1 << 20)}}, options).status().message(),
      "group a: no engine 'rng'; did you mean 'ring'?");
}

TEST(ReadGroups, FilesAndTheirErrors) {
  const std::string path = testing::TempDir() + "/groups.json";
  const auto read = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return ReadGroups(path, 8);
  };
  const StatusOr<GroupRequest> good = read(
      R"({"name":"s","groups":[{"name":"a","collective":"broadcast","size":"1KiB","ranks":"2,4-5","root":4,"count":3},
                {"name":"b","collective":"sendrecv","size":16,"pairs":"0>7"},
                {"name":"c","collective":"allgatherv","size":"1KiB","ranks":[1,0],"counts":[3,4]}]})");
  ASSERT_TRUE(good.ok()) << good.status().message();
  ASSERT_EQ(good->groups.size(), 3u);
  EXPECT_EQ(good->groups[0].collective.num_members(), 3);
  EXPECT_EQ(good->groups[0].collective.spec().root, Rank(4));
  EXPECT_EQ(good->groups[0].size_bytes, 1024);
  EXPECT_EQ(good->groups[0].count, 3);
  EXPECT_EQ(good->groups[1].collective.num_members(), 8);
  EXPECT_EQ(good->groups[2].collective.ranks()[0], Rank(1));
  struct Case {
    std::string text, error;  // after the file's name
  };
  const auto one = [](const std::string& group) { return R"({"name":"s","groups":[)" + group + "]}"; };
  const std::vector<Case> cases = {
      {R"({"name":"s","groups":[]})", "groups: no groups; expected at least one"},
      {R"({"groups":[]})", "no key 'name'; expected one"},
      {one(R"({"name":"a","collective":"allredcue","size":1})"),
       "groups[0].collective: no collective 'allredcue'; did you mean 'allreduce'?"},
      {one(R"({"name":"a","collective":"barrier","size":1})"),
       "groups[0].collective: a barrier moves no bytes; expected another collective"},
      {one(R"({"name":"a","collective":"allreduce"})"), "groups[0]: no key 'size'; expected one"},
      {one(R"({"name":"a","collective":"allreduce","size":"0KiB"})"),
       "groups[0].size: 0KiB; expected 1 to 1024TiB"},
      {one(R"({"name":"a","collective":"allreduce","size":"x"})"),
       "groups[0].size: 'x': no number; a size is written like 64MiB"},
      {one(R"({"name":"a","collective":"allreduce","size":1,"ranks":"0-8"})"),
       "groups[0].ranks: '0-8': rank 8; ranks are 0..7"},
      {one(R"({"name":"a","collective":"allreduce","size":1,"ranks":[8]})"),
       "groups[0].ranks: entry 0 is 8; expected 0..7"},
      {one(R"({"name":"a","collective":"allreduce","size":1,"root":0})"),
       "groups[0]: allreduce: takes no root"},
      {one(R"({"name":"a","collective":"allreduce","size":1,"times":2})"),
       "groups[0]: unknown key 'times'; expected name, collective, size, ranks, root, counts, pairs or "
       "count"},
      {one(R"({"name":"a","collective":"allreduce","size":1,"ranks":[]})"),
       "groups[0]: allreduce: no ranks; expected at least one"},
      {one(R"({"name":"a","collective":"sendrecv","size":1})"),
       "groups[0]: sendrecv: no pairs; expected pairs such as \"0>1,1>0\""},
      {one(R"({"name":"a","collective":"sendrecv","size":1,"pairs":"0-1"})"),
       "groups[0].pairs: '0-1': '0-1'; expected a pair such as 0>1"},
      {one(R"({"name":"a","collective":"allreduce","size":1},{"name":"a","collective":"allreduce","size":1})"),
       "groups[1]: a second group 'a'; expected another name"},
  };
  for (const Case& c : cases) EXPECT_EQ(read(c.text).status().message(), path + ": " + c.error);
}

}  // namespace
}  // namespace xccl
