#include "ir/schedule.h"

#include <gtest/gtest.h>

#include "ir/testing/graphs.h"

namespace xccl {
namespace {

using testing::Links;

constexpr TransferOp kCopy = TransferOp::kCopy, kReduce = TransferOp::kReduce;

// "0+2 1>0 c @3": chunks, ends, operation, step.
std::vector<std::string> Shown(const Schedule& s) {
  std::vector<std::string> lines;
  for (int64_t t = 0; t < s.size(); ++t)
    lines.push_back(std::to_string(s.first[t].value) + "+" + std::to_string(s.count[t]) + " " +
                    std::to_string(s.src[t].value) + ">" + std::to_string(s.dst[t].value) +
                    (s.op[t] == kCopy ? " c" : " r") + " @" + std::to_string(s.step[t]));
  return lines;
}

TEST(PathTable, InternsEqualListsOnce) {
  PathTable paths;
  EXPECT_EQ(paths.Intern(Links({1, 2})), PathId(0));
  EXPECT_EQ(paths.Intern(Links({2, 1})), PathId(1));
  EXPECT_EQ(paths.Intern(Links({})), PathId(2));
  EXPECT_EQ(paths.Intern(Links({1, 2})), PathId(0));
  EXPECT_EQ(paths.size(), 3);
  EXPECT_EQ(paths[PathId(1)][0], LinkId(2));
}

TEST(Normalize, SortsJoinsAndRenumbers) {
  Schedule s;
  s.num_chunks = 8;
  s.Add(ChunkId(4), 1, Rank(0), Rank(1), Links({9}), kCopy, 7);
  s.Add(ChunkId(0), 1, Rank(1), Rank(0), Links({3}), kReduce, 2);
  s.Add(ChunkId(1), 2, Rank(1), Rank(0), Links({3}), kReduce, 2);
  s.Add(ChunkId(3), 1, Rank(1), Rank(0), Links({3}), kCopy, 2);  // another operation
  s.Add(ChunkId(4), 1, Rank(1), Rank(0), Links({4}), kCopy, 2);  // another path
  s.Add(ChunkId(6), 1, Rank(1), Rank(0), Links({4}), kCopy, 2);  // not the next chunk
  s.Add(ChunkId(5), 1, Rank(0), Rank(1), Links({9}), kCopy, 7);
  Normalize(s);
  EXPECT_EQ(Shown(s), (std::vector<std::string>{"0+3 1>0 r @0", "3+1 1>0 c @0", "4+1 1>0 c @0",
                                                "6+1 1>0 c @0", "4+2 0>1 c @1"}));
  EXPECT_EQ(s.paths[PathId(0)][0], LinkId(3));
  EXPECT_EQ(s.paths[PathId(2)][0], LinkId(9));
  EXPECT_EQ(s.num_steps(), 2);
  Schedule again = s;
  Normalize(again);
  EXPECT_TRUE(again == s);
}

TEST(Normalize, Empty) {
  Schedule s;
  Normalize(s);
  EXPECT_EQ(s.size(), 0);
  EXPECT_EQ(s.num_steps(), 0);
}

TEST(Paths, ChainsAndEnds) {
  // GPUs 0..2 around switch 3: links 2r to it, 2r+1 from it.
  const Topology star = testing::MakeGraph("star", 3, 1, testing::Duplex({{0, 3}, {1, 3}, {2, 3}}));
  EXPECT_TRUE(IsChain(star, Links({0, 3})));
  EXPECT_FALSE(IsChain(star, Links({0, 3, 5})));
  EXPECT_FALSE(IsChain(star, {}));
  std::vector<Rank> sources, destinations;
  PathEnds(star, Links({2, 4, 1}), sources, destinations);
  EXPECT_EQ(sources, (std::vector<Rank>{Rank(1), Rank(2)}));
  EXPECT_EQ(destinations, (std::vector<Rank>{Rank(0)}));
}

}  // namespace
}  // namespace xccl
