#include "pipeline/import_sends.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr CollectiveKind kBoth = CollectiveKind::kAllreduce;

// Every rank's chunk goes around the ring of `ranks`.
PrintedSends Around(int32_t ranks) {
  PrintedSends printed{.tool = "tacos",
                       .format = "TACOS CSV",
                       .ranks = ranks,
                       .weights = {},
                       .sends = {},
                       .links_in_order = true};
  printed.weights.assign(static_cast<size_t>(ranks), {1});
  for (int32_t src = 0; src < ranks; ++src)
    for (int32_t hop = 0; hop + 1 < ranks; ++hop)
      printed.sends.push_back({.src = Rank(src),
                               .dst = Rank((src + 1) % ranks),
                               .chunk = ChunkId((src + ranks - hop) % ranks),
                               .line = 6 + src});
  return printed;
}

TEST(ImportSends, AreProvedAndTimedAsAPlanOfOurs) {
  const Topology topology = LoadTopology("ring:4").value();
  for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, kBoth}) {
    const StatusOr<PlanResult> result = ImportSends(Around(4), "t.csv", topology, kind, {.lower = true});
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->plan.made_by.engine, "tacos");
    EXPECT_EQ(result->plan.schedule.num_steps(), kind == kBoth ? 6 : 3);
    EXPECT_EQ(result->no_program, "");
    // Copies and sums use one direction each, an allreduce both.
    EXPECT_NEAR(result->ratio, kind == kBoth ? 1 : 2, 0.1) << ToString(kind);
  }
}

// Two trees of a rank, one of twice the data: 1 and 2 thirds of its part.
TEST(ImportSends, TreesCarryWhatTheirRootGivesThem) {
  const Topology topology = LoadTopology("full-mesh:2").value();
  const PrintedSends printed{
      .tool = "forestcoll",
      .format = "ForestColl XML",
      .ranks = 2,
      .weights = {{1, 2}, {3}},
      .sends = {
          {Rank(0), Rank(1), ChunkId(0)}, {Rank(0), Rank(1), ChunkId(1)}, {Rank(1), Rank(0), ChunkId(2)}}};
  for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, kBoth}) {
    const StatusOr<PlanResult> result = ImportSends(printed, "t.xml", topology, kind, {.lower = true});
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_NEAR(result->ratio, 1, 0.1) << ToString(kind);
  }
}

std::string Refused(const PrintedSends& printed, const char* topology, CollectiveKind kind) {
  return ImportSends(printed, "t.csv", LoadTopology(topology).value(), kind, {}).status().message();
}

TEST(ImportSends, WrongOnesAreRefusedWithTheirPlace) {
  const CollectiveKind allgather = CollectiveKind::kAllgather;
  EXPECT_EQ(Refused(Around(4), "ring:4", CollectiveKind::kAlltoall),
            "t.csv: no alltoall can be made of an allgather's sends; expected allgather, reduce_scatter or "
            "allreduce");
  EXPECT_EQ(Refused(Around(4), "ring:5", allgather), "t.csv: 4 ranks; topology ring:5 has 5");
  PrintedSends jump = Around(4);
  jump.sends[0].dst = Rank(2);
  EXPECT_EQ(Refused(jump, "ring:4", allgather),
            "t.csv:7: rank 1 sends rank 2 a chunk of rank 0, which never reaches it");
  PrintedSends across = Around(4);
  across.sends = {{Rank(0), Rank(2), ChunkId(0), 9}};
  EXPECT_EQ(Refused(across, "ring:4", allgather),
            "t.csv:9: rank 0 sends to rank 2; no link of topology ring:4 leads there");
  EXPECT_EQ(Refused(across, "ring:4", kBoth),
            "t.csv:9: rank 0 sends to rank 2; no link of topology ring:4 leads back, for the sums");
  // Two links that wait for each other: each must carry first what the other brings.
  PrintedSends circle = Around(3);
  circle.sends = {{Rank(0), Rank(1), ChunkId(2), 6}, {Rank(1), Rank(0), ChunkId(2), 7}};
  EXPECT_EQ(Refused(circle, "ring:3", allgather),
            "t.csv:6: rank 0 sends rank 1 a chunk of rank 2, which never reaches it");
  PrintedSends missing = Around(4);
  missing.sends.pop_back();
  EXPECT_EQ(Refused(missing, "ring:4", allgather),
            "t.csv: [S6] end: rank 0 has nothing of chunk 1; expected {1}");
}

}  // namespace
}  // namespace xccl
