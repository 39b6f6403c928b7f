// Algorithms given by the pairs that send in each round: butterflies, groups that exchange, trees, rings of a
// grid. The blocks of each send are derived: in a gather, all blocks that the receiver lacks. Memory: n^2 / 4
// bytes, for a bit of each pair of positions; work: n^2 / 64 a round.
#pragma once

#include <cstdint>
#include <functional>
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
using Round = std::vector<RoundSend>;

// Requires, except for trees: if all sends carry everything that their senders have, every position's data
// reaches every other position.
struct Rounds {
  Positions positions;
  std::vector<Round> rounds;
  int32_t size() const { return positions.size(); }
};

// Position 0's tree of radix k: in each round each position with the data cuts the range that it serves into
// k and sends to the first of each other part.
Rounds TreeRounds(const Positions& positions, int32_t k);
// All positions of a line send to each other. A line is `size` of the n positions, `stride` apart.
Round LineRound(int32_t n, int32_t size, int32_t stride);

// Every send carries the blocks that its receiver lacks; of two senders in one round the first sends. Every
// rank receives each block once.
void RoundsAllgather(const Rounds& rounds, const Blocks& blocks, Moves& moves);
// Broadcasts down the tree of the first sends that bring the root's data to each rank.
void RoundsBroadcast(const Rounds& rounds, Rank root, ChunkRange all, Moves& moves);
// Gathers up the tree of RoundsBroadcast, the last round first; messages grow.
void RoundsGather(const Rounds& rounds, Rank root, const Blocks& blocks, Moves& moves);
// A block waits as long as later rounds can still bring it to its destination. The blocks of one send are one
// message.
void RoundsAlltoall(const Rounds& rounds, const PairBlocks& pairs, Moves& moves);
// An allreduce: every send carries the sender's whole sum, which the receiver adds, or copies if it has
// nothing that the sender lacks. Returns false if some contribution would be added twice.
bool RoundsExchange(const Rounds& rounds, ChunkRange all, Moves& moves);

// A broadcast from position 0: the root deals pieces out to the owners, in order, down the tree of the
// rounds. Then an allgather of the rounds, or `gather`, brings all pieces to all ranks.
using GatherPieces = std::function<void(const Blocks&, Moves&)>;
void DealAndGather(const Rounds& rounds, std::span<const int32_t> owners, ChunkRange all, Moves& moves,
                   const GatherPieces& gather = {});

// The recipe for the request's collective. Each stripe takes a piece of every block; the pieces of member i's
// block are dealt out from stripe turn[i], or i, on. Only allgathers and broadcasts use more than the first
// stripe. The cost of an allgather is measured unless it is given.
Recipe RoundsRecipe(std::vector<Rounds> stripes, const RankGraph& graph, const SynthesisRequest& request,
                    const std::optional<Cost>& allgather_cost = {}, const std::vector<int32_t>& turn = {});

// The moves of an allgather or alltoall for estimates: one for each send, with as many chunks as the send
// carries blocks. For an alltoall exact if one path leads from each position to each other. Linear in sends.
Moves AllgatherLoads(std::span<const Rounds> stripes);
Moves AlltoallLoads(const Rounds& rounds);
// Sets the recipe's cost and alltoall_hops.
void SetAlltoallCost(const Moves& loads, int32_t n, const RankGraph& graph, Recipe& recipe);
// The alpha-beta time of moves, in the request's model. Each chunk has `fraction` of the request's size.
double MovesTimePs(const Moves& moves, const RankGraph& graph, const SynthesisRequest& request,
                   double fraction);

// Sets the recipe's exchange to RoundsExchange for an allreduce in which every contribution comes once and
// partners are neighbours, if it is faster than two allgathers of the recipe's cost. All ranks get the same
// bits if in each round all ranks of a group exchange with all others of the group, as all callers' do.
void ExchangeIfFaster(const Rounds& rounds, const RankGraph& graph, const SynthesisRequest& request,
                      Recipe& recipe);

}  // namespace xccl
