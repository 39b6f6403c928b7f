#include "synth/groups/apart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/groups/alike.h"
#include "synth/groups/joint.h"
#include "synth/groups/member_plans.h"
#include "synth/groups/plan_groups.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr CollectiveKind kAllreduce = CollectiveKind::kAllreduce;
constexpr CollectiveKind kSendrecv = CollectiveKind::kSendrecv;

ProcessGroup MakeGroup(CollectiveKind kind, const std::vector<int32_t>& ranks, int64_t size_bytes) {
  CollectiveSpec spec;
  spec.kind = kind;
  for (int32_t r : ranks) spec.ranks.emplace_back(r);
  if (kind == kSendrecv) spec.pairs = {{spec.ranks.front(), spec.ranks.back()}};
  return {"g" + std::to_string(ranks.front()), Collective::Create(spec).value(), size_bytes, 1};
}

// Groups of all ranks, with members `stride` apart.
std::vector<ProcessGroup> Division(CollectiveKind kind, int32_t all, int32_t ranks, int32_t stride) {
  std::vector<ProcessGroup> groups;
  for (int32_t begin = 0; begin < all; begin += ranks * stride)
    for (int32_t first = begin; first < begin + stride; ++first) {
      std::vector<int32_t> members;
      for (int32_t i = 0; i < ranks; ++i) members.push_back(first + i * stride);
      groups.push_back(MakeGroup(kind, members, 1 << 20));
    }
  return groups;
}

ApartPlan Planned(const Topology& topology, const std::vector<ProcessGroup>& groups, MemberPlans& plans) {
  StatusOr<ApartPlan> plan = PlanApart(topology, groups, TimeModel::kPipelined, plans);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->groups.size(), groups.size());
  int64_t last_ps = 0;
  for (const GroupOutcome& outcome : plan->groups) {
    EXPECT_GE(outcome.together_ps, outcome.alone_ps);
    EXPECT_GE(outcome.alone_ps, outcome.bound_ps);
    last_ps = std::max(last_ps, outcome.together_ps);
  }
  EXPECT_EQ(last_ps, plan->time_ps);
  EXPECT_LE(plan->time_ps, plan->unaware_ps);
  for (const ApartPlan::Kind& kind : plan->kinds)
    EXPECT_EQ(ToStatus(VerifySchedule(kind.plan->made.schedule, kind.plan->made.collective,
                                      kind.plan->alone.topology))
                  .message(),
              "");
  return *std::move(plan);
}

TEST(AlikeGroups, TranslatesOfAGroupAreOneKind) {
  const Topology torus = LoadTopology("torus:4x4").value();
  std::vector<ProcessGroup> groups = Division(kAllreduce, 16, 4, 1);  // rows: kind 0
  for (ProcessGroup& column : Division(kAllreduce, 16, 4, 4)) groups.push_back(std::move(column));
  groups.push_back(MakeGroup(kAllreduce, {4, 5, 6, 7}, 1 << 19));  // another size
  groups.push_back(MakeGroup(kAllreduce, {0, 1, 5}, 1 << 20));     // no translate of any
  groups.push_back(MakeGroup(kSendrecv, {0, 1}, 1 << 20));
  groups.push_back(MakeGroup(kSendrecv, {9, 10}, 1 << 20));  // the same pair elsewhere
  groups.push_back(MakeGroup(kSendrecv, {10, 9}, 1 << 20));  // the other way round
  const AlikeGroups alike(torus, groups);
  std::vector<size_t> kinds;
  for (size_t g = 0; g < groups.size(); ++g) kinds.push_back(alike.KindOf(g));
  EXPECT_EQ(kinds, (std::vector<size_t>{0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 4, 4, 5}));
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::span<const Rank> from = groups[alike.FirstOf(alike.KindOf(g))].collective.ranks();
    for (size_t i = 0; i < from.size(); ++i)
      EXPECT_EQ(alike.translations().Image(alike.ElementOf(g), from[i]), groups[g].collective.ranks()[i]);
  }
}

// 16 hosts' tensor parallel groups and 8 rails' data parallel groups are two kinds, pipeline pairs one: an
// engine is asked for one group of each. Pairs were once asked for one by one.
TEST(PlanApart, AsksTheEngineOncePerKind) {
  LoadOptions load;
  load.hosts = 16;
  const Topology cluster = LoadTopology("dgx-h100", load).value();
  std::vector<ProcessGroup> sums = Division(kAllreduce, 128, 8, 1);
  for (ProcessGroup& group : Division(kAllreduce, 128, 16, 8)) sums.push_back(std::move(group));
  const std::vector<ProcessGroup> pairs = Division(kSendrecv, 128, 2, 64);
  for (const auto& [groups, engine, kinds] :
       {std::tuple(std::as_const(sums), "ring", size_t{2}), std::tuple(pairs, "direct", size_t{1})}) {
    SCOPED_TRACE(engine);
    MemberPlans plans(cluster, groups, {.engine = engine});
    EXPECT_EQ(plans.alike().num_kinds(), kinds);
    Planned(cluster, groups, plans);
    const int64_t searches = plans.searches();
    EXPECT_LE(searches, 2 * static_cast<int64_t>(kinds));  // on all links, and on those of no other group
    for (size_t g = 0; g < groups.size(); ++g) ASSERT_TRUE(plans.Alone(g).ok());
    EXPECT_EQ(plans.searches(), searches);
  }
}

// Rows of a torus share no link: all take the time of one, apart as together.
TEST(PlanApart, GroupsThatShareNothingTakeTheTimeOfOne) {
  const Topology torus = LoadTopology("torus:4x4").value();
  const GroupRequest request{"rows", Division(kAllreduce, 16, 4, 1)};
  const MemberPlanOptions options{.engine = "ring"};
  MemberPlans plans(torus, request.groups, options);
  const ApartPlan apart = Planned(torus, request.groups, plans);
  EXPECT_EQ(apart.time_ps, apart.groups.front().alone_ps);
  const StatusOr<JointPlan> joint = PlanGroups(torus, request, options);
  ASSERT_TRUE(joint.ok()) << joint.status().message();
  EXPECT_NEAR(static_cast<double>(joint->made.simulation->time_ps), static_cast<double>(apart.time_ps),
              0.01 * static_cast<double>(apart.time_ps));
}

// Groups of other ranks whose only ways share a cable have half of it each; a third group of another size,
// which is no translate, keeps its time.
TEST(PlanApart, SharedLinksAreSharedFairly) {
  const Topology line = LoadTopology("mesh:1x6").value();
  const std::vector<ProcessGroup> groups = {MakeGroup(kSendrecv, {0, 2}, 8 << 20),
                                            MakeGroup(kSendrecv, {1, 3}, 8 << 20),
                                            MakeGroup(kAllreduce, {4, 5}, 1 << 20)};
  MemberPlans plans(line, groups, {});
  const ApartPlan apart = Planned(line, groups, plans);
  const double alone = static_cast<double>(apart.groups[0].alone_ps);
  EXPECT_NEAR(static_cast<double>(apart.groups[0].together_ps), 2 * alone, 0.05 * alone);
  EXPECT_NEAR(static_cast<double>(apart.groups[1].together_ps), 2 * alone, 0.05 * alone);
  EXPECT_EQ(apart.groups[2].together_ps, apart.groups[2].alone_ps);
  // One plan of all has the same shares, one after the other.
  const StatusOr<JointPlan> joint = PlanGroups(line, {"pairs", groups}, {});
  ASSERT_TRUE(joint.ok()) << joint.status().message();
  EXPECT_LE(static_cast<double>(joint->made.simulation->time_ps), 1.02 * static_cast<double>(apart.time_ps));
}

TEST(MakeJoint, RefusesTablesThatAreTooLarge) {
  const GroupRequest request{"step", Division(CollectiveKind::kAllgather, 4096, 2048, 1)};
  EXPECT_EQ(
      MakeJoint(request).status().message(),
      "step: one plan of 2 groups has tables of 8392704 rows and 8392704 contributions; at most 2^22 and "
      "2^26; hint: without --output the groups are planned apart");
}

}  // namespace
}  // namespace xccl
