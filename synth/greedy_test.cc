#include "synth/greedy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/verify_schedule.h"

namespace xccl {
namespace {

constexpr int64_t kFifty = 50LL << 30;

// Row-major grid, the last dimension fastest; wrapped dimensions of two have one cable.
Topology Grid(const std::vector<int32_t>& dims, bool wraps) {
  TopologySpec spec;
  spec.name = wraps ? "torus" : "mesh";
  int32_t ranks = 1;
  for (int32_t d : dims) ranks *= d;
  for (int32_t r = 0; r < ranks; ++r) {
    Node node;
    node.id = fmt::format("{}", r);
    spec.nodes.push_back(node);
  }
  for (int32_t r = 0; r < ranks; ++r) {
    int32_t stride = 1;
    for (size_t k = dims.size(); k-- > 0; stride *= dims[k]) {
      const int32_t at = r / stride % dims[k];
      if (at + 1 == dims[k] && (!wraps || dims[k] < 3)) continue;
      const int32_t next = at + 1 < dims[k] ? r + stride : r - at * stride;
      for (const auto& [a, b] : {std::pair(r, next), std::pair(next, r)})
        spec.links.push_back({NodeId(a), NodeId(b), kFifty, 500'000, 0});
    }
  }
  return Topology::Create(spec).value();
}

Collective All(CollectiveKind kind, int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = kind;
  for (int32_t r = 0; r < ranks; ++r) spec.ranks.push_back(Rank(r));
  if (kind == CollectiveKind::kBroadcast) spec.root = Rank(0);
  return Collective::Create(spec).value();
}

TEST(Greedy, AllgatherOnAToriTakesTheFewestSlots) {
  const Topology torus = Grid({8, 8}, true);
  const Collective allgather = All(CollectiveKind::kAllgather, 64);
  const SynthesisRequest request{.topology = &torus,
                                 .collective = &allgather,
                                 .size_bytes = 1 << 30,
                                 .model = TimeModel::kBlocking,
                                 .limits = {}};
  const StatusOr<Synthesis> made = MakeGreedy()->Synthesize(request);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, torus)), OkStatus());
  EXPECT_EQ(made->schedule.num_steps(), 16);
}

}  // namespace
}  // namespace xccl
