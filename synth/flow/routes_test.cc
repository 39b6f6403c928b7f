#include "synth/flow/routes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/collective.h"
#include "ir/sizes.h"
#include "synth/common/test_machines.h"
#include "topologies/load/load.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

// Two ranks and two routes between them: a cable of 10 GB/s, and over a third rank.
struct Fixture {
  explicit Fixture(double direct) : topology(testing::MakeGraph(3, {{0, 1}, {0, 2}, {2, 1}})) {
    CollectiveSpec spec;
    spec.kind = CollectiveKind::kSendrecv;
    spec.ranks = {Rank(0), Rank(1), Rank(2)};
    spec.pairs = {{Rank(0), Rank(1)}};
    const Collective collective = Collective::Create(spec).value();
    const CollectiveSizes sizes(collective, 10'000'000'000);
    problem = FlowOf(topology, DemandsOf(topology, collective, sizes), SymmetryGroup(topology));
    flow.load_s = std::max(direct, 1 - direct);
    AddTree(direct, Link(0, 1), Link(0, 2));
    AddTree(1 - direct, Link(2, 1), Link(0, 2));
  }

  LinkId Link(int32_t from, int32_t to) const {
    for (int32_t l = 0; l < topology.num_links(); ++l)
      if (topology.link(LinkId(l)).from.value == from && topology.link(LinkId(l)).to.value == to)
        return LinkId(l);
    return LinkId();
  }
  void AddTree(double weight, LinkId into_one, LinkId into_two) {
    flow.trees.push_back({.source = 0, .weight = weight, .into = {LinkId(), into_one, into_two}});
  }

  Topology topology;
  FlowProblem problem;
  ConcurrentFlow flow;
};

TEST(FlowRoutes, SharesOutWholePieces) {
  struct Case {
    double direct;  // share of the flow
    int32_t pieces, on_cable;
    double seconds;  // of the busiest link
  };
  for (const Case& c : std::vector<Case>{{0.5, 1, 1, 1},
                                         {0.5, 2, 1, 0.5},
                                         {0.5, 8, 4, 0.5},
                                         {0.25, 4, 1, 0.75},
                                         // What is left goes where it crowds least, ...
                                         {0.25, 2, 1, 0.5},
                                         {0.6, 3, 2, 2.0 / 3},
                                         // ... which is the route of one link.
                                         {0.5, 3, 2, 2.0 / 3}}) {
    const Fixture made(c.direct);
    Routes routes(made.problem, made.flow);
    EXPECT_DOUBLE_EQ(routes.ShareOut(c.pieces), c.seconds) << c.direct << ", " << c.pieces;
    ASSERT_EQ(routes.parts().size(), 1u);
    const RoutedPart& part = routes.parts()[0];
    ASSERT_EQ(part.routes.size(), 2u);
    int32_t all = 0;
    for (const Route& route : part.routes) {
      all += route.pieces;
      if (route.links.size() == 1) {
        EXPECT_EQ(route.pieces, c.on_cable) << c.direct << ", " << c.pieces;
      } else {
        ASSERT_EQ(route.links.size(), 2u);
        EXPECT_EQ(route.links[0], made.Link(0, 2));
        EXPECT_EQ(route.links[1], made.Link(2, 1));
      }
    }
    EXPECT_EQ(all, c.pieces);
  }
}

TEST(FlowRoutes, EqualRoutesOfAPartAreOne) {
  Fixture made(0.5);
  for (FlowTree& tree : made.flow.trees) tree.weight /= 2;
  made.AddTree(0.25, made.Link(0, 1), made.Link(1, 2));
  made.AddTree(0.25, made.Link(2, 1), made.Link(0, 2));
  Routes routes(made.problem, made.flow);
  ASSERT_EQ(routes.parts()[0].routes.size(), 2u);
  for (const Route& route : routes.parts()[0].routes) EXPECT_DOUBLE_EQ(route.flow, 0.5);
  // Again with other pieces: nothing is left of the time before.
  EXPECT_DOUBLE_EQ(routes.ShareOut(1), 1);
  EXPECT_DOUBLE_EQ(routes.ShareOut(2), 0.5);
}

// Links that several translates of a route cross carry each of them: orbit by orbit the busiest link is the
// same as link by link.
TEST(FlowRoutes, OrbitsCarryWhatTheirTranslatesDo) {
  for (const char* machine : {"leaf-spine:2x1x2", "leaf-spine:4x2x2", "torus:3x3", "nvswitch:4"}) {
    const Topology topology = LoadTopology(machine).value();
    CollectiveSpec spec;
    spec.kind = CollectiveKind::kAlltoall;
    spec.ranks = AllRanks(topology.num_ranks());
    const Collective collective = Collective::Create(spec).value();
    const CollectiveSizes sizes(collective, int64_t{1} << 30);
    const auto seconds = [&](const SymmetryGroup& group) {
      const FlowProblem problem = FlowOf(topology, DemandsOf(topology, collective, sizes), group);
      const ConcurrentFlow flow = SolveConcurrentFlow(problem, {});
      const double shared = Routes(problem, flow).ShareOut(64);
      EXPECT_GE(shared, flow.bound_s * (1 - 1e-9)) << machine;
      return shared;
    };
    const SymmetryGroup group = FindTranslations(topology);
    ASSERT_GT(group.order(), 1) << machine;
    const double plain = seconds(SymmetryGroup(topology));
    EXPECT_NEAR(seconds(group) / plain, 1, 0.02) << machine;
  }
}

}  // namespace
}  // namespace xccl
