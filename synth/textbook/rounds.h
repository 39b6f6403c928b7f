// Algorithms given by the pairs of positions that send in each round: butterflies, groups that exchange,
// trees, rings of a grid. The functions derive the blocks of each send. Memory: n^2 / 4 bytes for two tables
// with a bit for each pair of positions; an alltoall keeps a table for each round. Time: n / 64 operations a
// send, and in an alltoall n^2 a round.
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
  bool own_only = false;     // sends only the sender's own data, no data that the sender received
};
using Round = std::vector<RoundSend>;

// The rounds of an algorithm. Requires, except for trees: if every send carries all data of its sender, the
// data of every position reaches every other position.
struct Rounds {
  Positions positions;
  std::vector<Round> rounds;
  int32_t size() const { return positions.size(); }
};

// Returns the tree of radix k from position 0. In each round a position with the data cuts the range of
// positions that it serves into up to k parts. It sends the data to the first position of each other part.
Rounds TreeRounds(const Positions& positions, int32_t k);
// Returns a round in which the positions of each line (`size` positions, `stride` apart) send to each other.
Round LineRound(int32_t n, int32_t size, int32_t stride);

// Adds the moves of an allgather. Every send carries all blocks that the sender has and the receiver lacks.
// If two sends of a round could bring the same block, the first brings it: a rank receives no block twice.
void RoundsAllgather(const Rounds& rounds, const Blocks& blocks, Moves& moves);
// Adds the moves of a broadcast, down the tree of the first sends that bring each rank the root's data.
void RoundsBroadcast(const Rounds& rounds, Rank root, ChunkRange all, Moves& moves);
// Adds the moves of a gather: up the tree of RoundsBroadcast, last round first, with messages that grow.
void RoundsGather(const Rounds& rounds, Rank root, const Blocks& blocks, Moves& moves);
// Adds the moves of an alltoall. A block stays where it is as long as later rounds can still bring it to its
// destination. All blocks of one send make one message.
void RoundsAlltoall(const Rounds& rounds, const PairBlocks& pairs, Moves& moves);
// Adds the moves of an allreduce in which every send carries the sender's whole sum. The receiver adds a sum
// that shares no contribution with its own, and copies a sum that has all contributions of its own. Returns
// false at the first send of which neither is true, because it would add a contribution twice, and at an
// own_only send; `moves` is then incomplete.
bool RoundsExchange(const Rounds& rounds, ChunkRange all, Moves& moves);

// Adds the moves of a broadcast from position 0 in two phases. First the root deals out one piece to each
// owner, which is a member index, down the tree of the rounds. Then `gather`, or RoundsAllgather if `gather`
// is unset, brings all pieces to all ranks.
using GatherPieces = std::function<void(const Blocks&, Moves&)>;
void DealAndGather(const Rounds& rounds, std::span<const int32_t> owners, ChunkRange all, Moves& moves,
                   const GatherPieces& gather = {});

// Returns the recipe for the request's collective. Stripe k carries one piece of member i's block: number (k
// + turn[i]) modulo the number of stripes. If `turn` is empty, turn[i] is i. Only allgathers and broadcasts
// use more than the first stripe. The cost of an allgather is `allgather_cost`, if that is given. Otherwise,
// and in an alltoall, the cost is measured for up to kMostMeasured ranks.
Recipe RoundsRecipe(std::vector<Rounds> stripes, const RankGraph& graph, const SynthesisRequest& request,
                    const std::optional<Cost>& allgather_cost = {}, const std::vector<int32_t>& turn = {});

// Returns moves with the loads of an allgather or alltoall: one move for each send, with a chunk for each
// block. Loads of an alltoall are exact if sends lead from each position to each other in only one way. Time:
// n / 64 operations a send.
Moves AllgatherLoads(std::span<const Rounds> stripes);
Moves AlltoallLoads(const Rounds& rounds);
// Sets recipe.cost and recipe.alltoall_hops from the loads of an alltoall among n ranks.
void SetAlltoallCost(const Moves& loads, int32_t n, const RankGraph& graph, Recipe& recipe);
// Returns the alpha-beta time of moves in the request's model. A chunk has `fraction` of the request's size.
double MovesTimePs(const Moves& moves, const RankGraph& graph, const SynthesisRequest& request,
                   double fraction);

// Sets recipe.exchange to RoundsExchange if that is faster than two allgathers, each of which takes
// recipe.cost. Does nothing unless the request is an allreduce, recipe.cost is set, all partners are
// neighbours, and RoundsExchange returns true. All ranks get the same bits, because in the callers' rounds
// every rank of a group exchanges with all others of the group.
void ExchangeIfFaster(const Rounds& rounds, const RankGraph& graph, const SynthesisRequest& request,
                      Recipe& recipe);

}  // namespace xccl
