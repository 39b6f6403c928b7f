// Algorithms that are told by who sends to whom in which round: butterflies, groups that exchange, trees.
// What is sent follows from it: in a gather whatever the receiver lacks. Bits of all pairs of positions are
// kept: n^2 / 4 bytes, n^2 / 64 steps of work a round.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "synth/common/moves.h"
#include "synth/common/rank_graph.h"
#include "synth/textbook/positions.h"
#include "synth/textbook/textbook.h"

namespace xccl {

struct RoundSend {
  int32_t from = 0, to = 0;  // positions
  bool own_only = false;     // the sender's own data, nothing that it was given
};

// Requires: what any position has reaches every other if in each round each sends on all it has.
struct Rounds {
  Positions positions;
  std::vector<std::vector<RoundSend>> rounds;
  int32_t size() const { return positions.size(); }
};

// Every send carries what its receiver lacks, of two senders in one round the first: every rank receives each
// block once.
void RoundsAllgather(const Rounds& rounds, const Blocks& blocks, Moves& moves);
// The same with blocks dealt out to lanes that start in turn.
void RoundsAllgatherInLanes(std::span<const Rounds> lanes, const Blocks& blocks, Moves& moves);
// The tree of those sends that bring the root's data to whom lacks it.
void RoundsBroadcast(const Rounds& rounds, Rank root, ChunkRange all, Moves& moves);
// The same tree upwards, the last round first; messages grow.
void RoundsGather(const Rounds& rounds, Rank root, const Blocks& blocks, Moves& moves);
// The same tree downwards.
void RoundsScatter(const Rounds& rounds, Rank root, const Blocks& blocks, Moves& moves);
// A block waits until no later round would bring it on; in one round a pair's blocks are one message.
void RoundsAlltoall(const Rounds& rounds, const Pairs& pairs, Moves& moves);

// A move a send of as many chunks as it carries blocks, for estimates: of an allgather, and of an alltoall
// (exact where only one way leads from each position to each other). Linear in sends.
void AddRoundsAllgatherLoads(const Rounds& rounds, Moves& moves);
void AddRoundsAlltoallLoads(const Rounds& rounds, Moves& moves);
// Ranks up to which costs are measured: on more, ways over relays take long to find, and auto does without.
inline constexpr int32_t kMostMeasured = 1024;
// The cost of an allgather whose blocks are dealt out to these lanes evenly; absent on more ranks than are
// measured.
std::optional<Cost> RoundsAllgatherCost(std::span<const Rounds> lanes, const RankGraph& graph);
// Sets alltoall_cost, where it is measured, and alltoall_hops.
void SetRoundsAlltoallCost(const Rounds& rounds, const RankGraph& graph, Recipe& recipe);
// alpha-beta time of moves of chunks that are each this fraction of the request's size, in the request's
// model: a message occupies its links for their overhead, and when blocking for their latency too.
double MovesTimePs(const Moves& moves, const RankGraph& graph, const SynthesisRequest& request,
                   double fraction);

// Whole vectors exchanged in every round, sums on all sides, as the recipe's allreduce: where ranks may end
// with sums of different orders (groups of these rounds overlap), where every contribution then comes once,
// partners are next to each other, and it takes less time than two allgathers of the recipe's cost.
void ExchangeWhereFaster(const Rounds& rounds, const RankGraph& graph, const SynthesisRequest& request,
                         Recipe& recipe);

}  // namespace xccl
