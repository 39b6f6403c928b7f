#include "ir/collective.h"

#include <gtest/gtest.h>

#include "ir/sizes.h"

namespace xccl {
namespace {

CollectiveSpec SpecOf(CollectiveKind kind, std::vector<int> ranks, std::optional<int> root = std::nullopt,
                      std::vector<int64_t> counts = {}) {
  CollectiveSpec spec;
  spec.kind = kind;
  for (int r : ranks) spec.ranks.push_back(Rank(r));
  if (root) spec.root = Rank(*root);
  spec.counts = std::move(counts);
  return spec;
}

Collective Make(CollectiveKind kind, std::vector<int> ranks, std::optional<int> root = std::nullopt,
                std::vector<int64_t> counts = {}) {
  return Collective::Create(SpecOf(kind, std::move(ranks), root, std::move(counts))).value();
}

// The contributions to a chunk that each rank holds, or needs: "3:{3} 5:{3,5}".
std::string Shown(const Collective& collective, int chunk, bool before) {
  std::vector<Holding> holdings;
  before ? collective.Before(ChunkId(chunk), holdings) : collective.After(ChunkId(chunk), holdings);
  std::string text;
  for (const Holding& holding : holdings) {
    text += (text.empty() ? "" : " ") + std::to_string(holding.rank.value) + ":{";
    for (size_t i = 0; i < holding.contributions.size(); ++i)
      text += (i > 0 ? "," : "") + std::to_string(holding.contributions[i].value);
    text += "}";
  }
  return text;
}

std::string Shown(const std::vector<PartId>& parts) {
  std::string text;
  for (PartId p : parts) text += (text.empty() ? "" : " ") + std::to_string(p.value);
  return text;
}

// Members 5 and 3, in this order, so that member order and rank order differ.
TEST(Collective, Conditions) {
  const struct {
    CollectiveKind kind;
    std::optional<int> root;
    std::vector<int64_t> counts;
    int parts, chunk;
    std::string before, after;
    bool reduces;
  } cases[] = {
      {CollectiveKind::kAllreduce, {}, {}, 1, 0, "5:{5} 3:{3}", "5:{3,5} 3:{3,5}", true},
      {CollectiveKind::kBarrier, {}, {}, 1, 0, "5:{5} 3:{3}", "5:{3,5} 3:{3,5}", true},
      {CollectiveKind::kAllgather, {}, {}, 2, 1, "3:{3}", "5:{3} 3:{3}", false},
      {CollectiveKind::kAllgatherv, {}, {0, 1}, 2, 0, "5:{5}", "", false},
      {CollectiveKind::kReduceScatter, {}, {}, 2, 0, "5:{5} 3:{3}", "5:{3,5}", true},
      {CollectiveKind::kReduceScatterv, {}, {1, 2}, 2, 1, "5:{5} 3:{3}", "3:{3,5}", true},
      {CollectiveKind::kBroadcast, 3, {}, 1, 0, "3:{3}", "5:{3} 3:{3}", false},
      {CollectiveKind::kReduce, 3, {}, 1, 0, "5:{5} 3:{3}", "3:{3,5}", true},
      {CollectiveKind::kGather, 3, {}, 2, 0, "5:{5}", "3:{5}", false},
      {CollectiveKind::kScatter, 3, {}, 2, 0, "3:{3}", "5:{3}", false},
      {CollectiveKind::kAlltoall, {}, {}, 4, 1, "5:{5}", "3:{5}", false},
      {CollectiveKind::kAlltoallv, {}, {1, 2, 3, 4}, 4, 2, "3:{3}", "5:{3}", false},
  };
  for (const auto& c : cases) {
    const Collective collective = Make(c.kind, {5, 3}, c.root, c.counts);
    EXPECT_EQ(collective.num_parts(), c.parts) << collective.name();
    EXPECT_EQ(Shown(collective, c.chunk, true), c.before) << collective.name();
    EXPECT_EQ(Shown(collective, c.chunk, false), c.after) << collective.name();
    EXPECT_EQ(collective.Reduces(), c.reduces) << collective.name();
  }
}

TEST(Collective, Buffers) {
  const struct {
    CollectiveKind kind;
    std::optional<int> root;
    std::string input, output;  // buffers of rank 3, the second member
    std::optional<Collective::InPlace> in_place;
  } cases[] = {
      {CollectiveKind::kAllreduce, {}, "0", "0", Collective::InPlace{}},
      {CollectiveKind::kAllgather, {}, "1", "0 1", Collective::InPlace{.input_at_output_part = 1}},
      {CollectiveKind::kReduceScatter,
       {},
       "0 1",
       "1",
       Collective::InPlace{.input_at_output_part = 0, .output_at_input_part = 1}},
      {CollectiveKind::kBroadcast, 5, "", "0", Collective::InPlace{}},
      {CollectiveKind::kReduce, 5, "0", "", Collective::InPlace{}},
      {CollectiveKind::kGather, 3, "1", "0 1", Collective::InPlace{.input_at_output_part = 1}},
      {CollectiveKind::kGather, 5, "1", "", Collective::InPlace{}},
      {CollectiveKind::kScatter, 3, "0 1", "1",
       Collective::InPlace{.input_at_output_part = 0, .output_at_input_part = 1}},
      {CollectiveKind::kAlltoall, {}, "2 3", "1 3", std::nullopt},
  };
  for (const auto& c : cases) {
    const Collective collective = Make(c.kind, {5, 3}, c.root);
    EXPECT_EQ(Shown(collective.InputParts(Rank(3))), c.input) << collective.name();
    EXPECT_EQ(Shown(collective.OutputParts(Rank(3))), c.output) << collective.name();
    EXPECT_TRUE(collective.InPlaceOf(Rank(3)) == c.in_place) << collective.name();
    EXPECT_EQ(Shown(collective.InputParts(Rank(4))), "") << collective.name();
  }
}

TEST(Collective, Chunks) {
  const Collective cut = Make(CollectiveKind::kAllgather, {0, 1}).WithWeights({{1, 2}, {3, 0, 5}});
  EXPECT_EQ(cut.num_chunks(), 5);
  EXPECT_FALSE(cut.HasEvenParts());
  EXPECT_EQ(cut.PartOf(ChunkId(3)), PartId(1));
  EXPECT_EQ(cut.FirstChunk(PartId(1)), ChunkId(2));
  EXPECT_EQ(cut.WeightBefore(ChunkId(4)), 3);
  EXPECT_EQ(cut.PartWeight(PartId(1)), 8);
  EXPECT_TRUE(cut.AlwaysEmpty(ChunkId(3)));
  EXPECT_FALSE(cut.AlwaysEmpty(ChunkId(4)));
  EXPECT_EQ(Shown(cut, 3, true), "1:{1}");
  EXPECT_EQ(Shown(cut, 3, false), "");
  EXPECT_TRUE(cut.WithChunks(3).HasEvenParts());
}

// Weights of 2 are listed, weights of 1 are not.
TEST(Collective, EvenPartsAreAsIfTheyWereListed) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAlltoall}) {
    const Collective whole = Make(kind, {0, 1, 2});
    const Collective even = whole.WithChunks(3);
    const auto weighted = [&](int64_t weight) {
      return whole.WithWeights(
          std::vector(static_cast<size_t>(whole.num_parts()), std::vector<int64_t>(3, weight)));
    };
    EXPECT_TRUE(weighted(1) == even);
    const Collective listed = weighted(2);
    EXPECT_FALSE(listed == even);
    ASSERT_EQ(listed.num_chunks(), even.num_chunks());
    EXPECT_TRUE(listed.HasEvenParts());
    const CollectiveSizes even_sizes(even, 1000), listed_sizes(listed, 1000);
    EXPECT_EQ(even_sizes.LargestChunkBytes(), listed_sizes.LargestChunkBytes());
    for (ChunkId c(0); c.value < even.num_chunks(); ++c.value) {
      const PartId part = even.PartOf(c);
      EXPECT_EQ(part, listed.PartOf(c));
      EXPECT_EQ(even.FirstChunk(part), listed.FirstChunk(part));
      EXPECT_EQ(even.ChunksOf(part), listed.ChunksOf(part));
      EXPECT_EQ(even.PartWeight(part) * 2, listed.PartWeight(part));
      EXPECT_EQ(even.Weight(c) * 2, listed.Weight(c));
      EXPECT_EQ(even.WeightBefore(c) * 2, listed.WeightBefore(c));
      EXPECT_EQ(even_sizes.PartBytes(part), listed_sizes.PartBytes(part));
      EXPECT_EQ(even_sizes.ChunkBytes(c), listed_sizes.ChunkBytes(c));
    }
  }
}

TEST(Collective, Rejects) {
  CollectiveSpec pairs = SpecOf(CollectiveKind::kSendrecv, {0, 1});
  pairs.pairs = {{Rank(0), Rank(2)}};
  CollectiveSpec stray = SpecOf(CollectiveKind::kAllgather, {0, 1});
  stray.pairs = {{Rank(0), Rank(1)}};
  const struct {
    CollectiveSpec spec;
    std::string expected;
  } cases[] = {
      {SpecOf(CollectiveKind::kAllgather, {}), "allgather: no ranks; expected at least one"},
      {SpecOf(CollectiveKind::kAllgather, {0, -1}), "allgather: rank -1; expected zero or more"},
      {SpecOf(CollectiveKind::kAllgather, {2, 2}),
       "allgather: rank 2 is given twice; expected each rank once"},
      {SpecOf(CollectiveKind::kBroadcast, {0, 1}), "broadcast: no root; hint: --root=0"},
      {SpecOf(CollectiveKind::kAllgather, {0, 1}, 0), "allgather: takes no root"},
      {SpecOf(CollectiveKind::kReduce, {0, 1}, 7), "reduce: root 7; expected a rank from 0 to 1"},
      {SpecOf(CollectiveKind::kAlltoallv, {0, 1}, {}, {1, 2, 3}),
       "alltoallv: 3 counts; expected 4 for 2 ranks"},
      {SpecOf(CollectiveKind::kAllgatherv, {0, 1}, {}, {1, -2}),
       "allgatherv: count -2; expected zero or more"},
      {SpecOf(CollectiveKind::kAllgatherv, {0, 1}, {}, {INT64_MAX, INT64_MAX}),
       "allgatherv: the counts' sum does not fit 63 bits; expected less than 2^62"},
      {pairs, "sendrecv: pair 0>2: rank 2; expected a rank from 0 to 1"},
      {stray, "allgather: takes no pairs"},
  };
  for (const auto& c : cases) EXPECT_EQ(Collective::Create(c.spec).status(), InvalidInput(c.expected));
  EXPECT_EQ(ParseCollectiveKind("all_reduce").status(),
            InvalidInput("no collective 'all_reduce'; did you mean 'allreduce'?"));
}

TEST(Sizes, FollowNcclTests) {
  const struct {
    CollectiveKind kind;
    std::optional<int> root;
    std::vector<int64_t> counts;
    int64_t requested, real, part0, part1;  // bytes
  } cases[] = {
      {CollectiveKind::kAllreduce, {}, {}, 1003, 1000, 1000, -1},
      {CollectiveKind::kBarrier, {}, {}, 1000, 0, 0, -1},
      {CollectiveKind::kBroadcast, 0, {}, 1000, 1000, 1000, -1},
      {CollectiveKind::kAllgather, {}, {}, 1000, 992, 496, 496},
      {CollectiveKind::kReduceScatter, {}, {}, 31, 0, 0, 0},
      {CollectiveKind::kAlltoall, {}, {}, 64, 64, 32, 32},
      {CollectiveKind::kAllgatherv, {}, {1, 3}, 1000, 1000, 248, 752},
      {CollectiveKind::kAlltoallv, {}, {1, 3, 0, 1}, 400, 400, 100, 300},
      {CollectiveKind::kAllgatherv, {}, {0, 0}, 1000, 0, 0, 0},
  };
  for (const auto& c : cases) {
    const Collective collective = Make(c.kind, {0, 1}, c.root, c.counts);
    const CollectiveSizes sizes(collective, c.requested);
    EXPECT_EQ(sizes.size_bytes(), c.real) << collective.name();
    EXPECT_EQ(sizes.PartBytes(PartId(0)), c.part0) << collective.name();
    if (c.part1 >= 0) {
      EXPECT_EQ(sizes.PartBytes(PartId(1)), c.part1) << collective.name();
    }
  }
}

TEST(Collective, RefusesMorePartsThanMemoryHas) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAlltoall;
  spec.ranks = AllRanks(1'048'577);
  EXPECT_EQ(
      Collective::Create(spec).status().message(),
      "alltoall: 1099513724929 parts, one for each pair of 1048577 ranks; at most 67108864 are supported, "
      "and in an alltoall as many as 1048576 ranks have");
  spec.kind = CollectiveKind::kAllgather;
  EXPECT_TRUE(Collective::Create(spec).ok());
}

// The ids of the parts of the first 16,384 sources fit 32 bits. No table has a row for each part.
TEST(Collective, AnAlltoallMayHaveMorePartsThanIds) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAlltoall;
  spec.ranks = AllRanks(131'072);
  const Collective collective = *Collective::Create(spec);
  EXPECT_EQ(collective.num_parts(), int64_t{1} << 34);
  EXPECT_EQ(collective.num_chunks(), int64_t{1} << 34);
  std::vector<Holding> holdings;
  collective.After(ChunkId(131'072 + 7), holdings);  // from rank 1 to rank 7
  ASSERT_EQ(holdings.size(), 1u);
  EXPECT_EQ(holdings[0].rank, Rank(7));
  EXPECT_EQ(CollectiveSizes(collective, int64_t{1} << 30).ChunkBytes(ChunkId(0)), 8192);
}

TEST(Sizes, ChunksCoverTheirPart) {
  const Collective cut = Make(CollectiveKind::kAllreduce, {0, 1}).WithWeights({{2, 0, 1, 4}});
  for (int64_t size : {0, 4, 20, 1000, 1 << 30}) {
    const CollectiveSizes sizes(cut, size);
    int64_t next = 0;
    for (int c = 0; c < 4; ++c) {
      next += sizes.ChunkElements(ChunkId(c));
    }
    EXPECT_EQ(next * 4, sizes.PartBytes(PartId(0)));
    EXPECT_EQ(sizes.ChunkElements(ChunkId(1)), 0);
  }
}

TEST(Sizes, BusFactors) {
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kAllreduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kAllgather, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kBroadcast, 4), 1);
}

}  // namespace
}  // namespace xccl
