#include "synth/portfolio/mirror.h"

#include <gtest/gtest.h>

#include <optional>

#include "ir/testing/graphs.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/reverse.h"
#include "synth/common/test_machines.h"
#include "synth/engines.h"

namespace xccl {
namespace {

Collective WholeOf(CollectiveKind kind, const Topology& topology) {
  const std::optional<Rank> root = IsRooted(kind) ? std::optional(Rank(1)) : std::nullopt;
  return testing::MakeCollective(kind, topology.num_ranks(), root);
}

TEST(Mirror, OfAPlanIsAPlan) {
  using enum CollectiveKind;
  for (const Topology& machine : {testing::MakeRing(4), testing::MakeGrid({2, 3}, false),
                                  testing::MakeSwitch(5), testing::MakeCluster(2, 3)}) {
    const Topology reversed = ReverseTopology(machine);
    for (const CollectiveKind kind : {kBroadcast, kReduce, kAllgather, kReduceScatter, kGather, kScatter}) {
      const Collective collective = WholeOf(kind, machine);
      const std::optional<Collective> mirror = MirrorOf(collective);
      ASSERT_TRUE(mirror);
      const SynthesisRequest request{.topology = &reversed, .collective = &*mirror, .size_bytes = 1 << 20};
      const StatusOr<Synthesis> image = FindEngine("greedy").value()->Synthesize(request);
      ASSERT_TRUE(image.ok()) << image.status().message();
      const std::optional<Synthesis> made =
          Mirrored(*image, reversed, machine, collective, request.size_bytes);
      ASSERT_TRUE(made) << machine.name() << " " << ToString(kind);
      EXPECT_EQ(made->collective.spec(), collective.spec());
      EXPECT_TRUE(VerifySchedule(made->schedule, made->collective, machine).empty());
      EXPECT_EQ(made->schedule.num_chunks, image->schedule.num_chunks);
    }
  }
}

TEST(Mirror, IsOfWhatHasOne) {
  const Topology ring = testing::MakeRing(3);
  EXPECT_FALSE(MirrorOf(WholeOf(CollectiveKind::kAllreduce, ring)));
  EXPECT_FALSE(MirrorOf(WholeOf(CollectiveKind::kAlltoall, ring)));
}

}  // namespace
}  // namespace xccl
