#include "ir/lower/threadblocks.h"

#include <gtest/gtest.h>

#include "ir/lower/testing/line.h"

namespace xccl::lowering {
namespace {

using testing::Links;

void ExpectEqual(const Assignment& made, const Assignment& expected) {
  EXPECT_EQ(made.channel, expected.channel);
  EXPECT_EQ(made.send_block, expected.send_block);
  EXPECT_EQ(made.recv_block, expected.recv_block);
  EXPECT_EQ(made.forwards_to, expected.forwards_to);
  EXPECT_EQ(made.blocks, expected.blocks);
}

TEST(Threadblocks, AReceiveIsPairedWithTheSendThatForwardsIt) {
  ExpectEqual(AssignThreadblocks(LineMoves().moves, LinePaths(), 3, true), LineAssignment());
}

Assignment Unpaired() {
  Assignment apart = LineAssignment();
  apart.forwards_to = {kNoIndex, kNoIndex};
  apart.send_block = {0, 0};
  apart.recv_block = {1, 0};
  apart.blocks[Rank(1)] = {Block(kNobody, Rank(2)), Block(Rank(0), kNobody)};
  return apart;
}

TEST(Threadblocks, NothingIsPairedUnlessAskedFor) {
  ExpectEqual(AssignThreadblocks(LineMoves().moves, LinePaths(), 3, false), Unpaired());
}

// Only one of three moves that rank 1 receives is sent on.
TEST(Threadblocks, FewForwardsAreNotPaired) {
  std::vector<Move> moves = {LineMove(0, 0, 0, kNoIndex, 2), LineMove(1, 1, 0, kNoIndex, 1),
                             LineMove(2, 2, 0, kNoIndex, 1), LineMove(3, 0, 1, 0, 1)};
  ExpectEqual(AssignThreadblocks(moves, LinePaths(), 3, true), Unpaired());
}

TEST(Threadblocks, PathsBetweenTheSameRanksHaveDifferentChannels) {
  const Paths paths{.paths = {{Rank(0), Rank(1), Links({0})},
                              {Rank(1), Rank(0), Links({1})},
                              {Rank(0), Rank(1), Links({2})}},
                    .groups = {},
                    .first_of = {0, 1, 2, 3}};
  const Assignment made = AssignThreadblocks({}, paths, 2, true);
  EXPECT_EQ(made.channel, std::vector<int32_t>({0, 0, 1}));
  EXPECT_EQ(made.send_block, std::vector<int32_t>({0, 0, 2}));
  EXPECT_EQ(made.recv_block, std::vector<int32_t>({1, 1, 2}));
  // Sorted by (channel, receive peer, send peer), where none comes first.
  EXPECT_EQ(made.blocks[Rank(0)], std::vector<Threadblock>({Block(kNobody, Rank(1)), Block(Rank(1), kNobody),
                                                            Block(kNobody, Rank(1), 1)}));
  EXPECT_EQ(made.blocks[Rank(1)], std::vector<Threadblock>({Block(kNobody, Rank(0)), Block(Rank(0), kNobody),
                                                            Block(Rank(0), kNobody, 1)}));
}

// The root sends to both members of its group by one threadblock; a second group has another channel.
TEST(Threadblocks, AGroupIsOneThreadblockAtItsRoot) {
  Paths paths;
  for (int32_t g = 0; g < 2; ++g) {
    for (const int32_t dst : {1, 2}) paths.paths.push_back({Rank(0), Rank(dst), Links({g}), g});
    paths.groups.push_back({Group::Kind::kMulticast, Rank(0), 2 * g, 2, Links({g})});
  }
  paths.first_of = {0, 2, 4};
  const Assignment made = AssignThreadblocks({}, paths, 3, true);
  EXPECT_EQ(made.channel, std::vector<int32_t>({0, 0, 1, 1}));
  EXPECT_EQ(made.send_block, std::vector<int32_t>({0, 0, 1, 1}));
  EXPECT_EQ(made.recv_block, std::vector<int32_t>({0, 0, 1, 1}));
  std::vector<Threadblock> root = {Block(kNobody, kNobody), Block(kNobody, kNobody, 1)};
  root[0].send_group = 0;
  root[1].send_group = 1;
  EXPECT_EQ(made.blocks[Rank(0)], root);
  for (const Rank member : {Rank(1), Rank(2)})
    EXPECT_EQ(made.blocks[member],
              std::vector<Threadblock>({Block(Rank(0), kNobody), Block(Rank(0), kNobody, 1)}));
}

// Rank 0 sends on 512 paths, or on one more; a group is one threadblock at its root.
TEST(Threadblocks, MoreConnectionsThanThreadblocksAreRefusedBeforeAnythingIsMade) {
  Paths paths;
  for (int32_t i = 0; i < kMostBlocks; ++i) paths.paths.push_back({Rank(0), Rank(1 + i), {}, kNoIndex});
  EXPECT_EQ(CheckConnections(paths, kMostBlocks + 2), OkStatus());
  paths.paths.push_back({Rank(0), Rank(kMostBlocks + 1), {}, kNoIndex});
  EXPECT_EQ(CheckConnections(paths, kMostBlocks + 2),
            InvalidInput("lower: 513 connections into or out of a rank, each with a threadblock; expected at "
                         "most 512; hint: --max-ctas=1026"));
  for (Path& path : paths.paths) path.group = 0;
  paths.groups.push_back({Group::Kind::kMulticast, Rank(0), 0, kMostBlocks + 1, {}});
  EXPECT_EQ(CheckConnections(paths, kMostBlocks + 2), OkStatus());
}

}  // namespace
}  // namespace xccl::lowering
