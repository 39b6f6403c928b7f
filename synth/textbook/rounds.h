// Algorithms that are told by who sends to whom in which round: butterflies, groups that exchange, trees,
// rings of a grid. What is sent follows from it: in a gather whatever the receiver lacks. Bits of all pairs
// of positions are kept: n^2 / 4 bytes, n^2 / 64 steps of work a round.
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

// Requires, but for trees: what any position has reaches every other if in each round each sends on all it
// has.
struct Rounds {
  Positions positions;
  std::vector<Round> rounds;
  int32_t size() const { return positions.size(); }
};

// Position 0's tree of radix k: the parts of whoever has the data are cut into k, far parts first.
Rounds TreeRounds(const Positions& positions, int32_t k);
// Everyone sends to everyone else of its line: `size` of n positions that are `stride` apart.
Round LineRound(int32_t n, int32_t size, int32_t stride);

// Every send carries what its receiver lacks, of two senders in one round the first: every rank receives each
// block once.
void RoundsAllgather(const Rounds& rounds, const Blocks& blocks, Moves& moves);
// The tree of those sends that bring the root's data to whom lacks it.
void RoundsBroadcast(const Rounds& rounds, Rank root, ChunkRange all, Moves& moves);
// The same tree upwards, the last round first; messages grow.
void RoundsGather(const Rounds& rounds, Rank root, const Blocks& blocks, Moves& moves);
// A block waits until no later round would bring it on; in one round a pair's blocks are one message.
void RoundsAlltoall(const Rounds& rounds, const Pairs& pairs, Moves& moves);
// Whole vectors are exchanged in every round, with sums on all sides; who has all that its partner has gives
// it a copy. Returns whether every contribution comes once.
bool RoundsExchange(const Rounds& rounds, ChunkRange all, Moves& moves);

// A broadcast of position 0: the root deals pieces out to these members, in this order, down the tree of the
// rounds; then an allgather of the rounds, or `gather`, brings them to everyone.
using GatherPieces = std::function<void(const Blocks&, Moves&)>;
void DealAndGather(const Rounds& rounds, std::span<const int32_t> owners, ChunkRange all, Moves& moves,
                   const GatherPieces& gather = {});

// The recipe of the function that the request asks for. Stripes each take a piece of every block: those of
// member i's are dealt out from stripe turn[i], or stripe i, on. Only allgathers and broadcasts use more than
// the first. The cost of an allgather is measured where it is not given.
Recipe RoundsRecipe(std::vector<Rounds> stripes, const RankGraph& graph, const SynthesisRequest& request,
                    const std::optional<Cost>& allgather_cost = {}, const std::vector<int32_t>& turn = {});

// Loads are moves, one a send, of as many chunks as it carries blocks, for estimates: of an allgather, and of
// an alltoall (exact where only one path leads from each position to each other). Linear in sends.
Moves AllgatherLoads(std::span<const Rounds> stripes);
Moves AlltoallLoads(const Rounds& rounds);
// Ranks up to which costs are measured: on more, paths over relays take long to find, and auto does without.
inline constexpr int32_t kMostMeasured = 1024;
// Sets the recipe's cost and alltoall_hops.
void SetAlltoallCost(const Moves& loads, int32_t n, const RankGraph& graph, Recipe& recipe);
// Alpha-beta time of moves of chunks that are each this fraction of the request's size, in the request's
// model.
double MovesTimePs(const Moves& moves, const RankGraph& graph, const SynthesisRequest& request,
                   double fraction);

// Sets the recipe's exchange, by RoundsExchange: for an allreduce, where every contribution comes once,
// partners are next to each other, and it takes less time than two allgathers of the recipe's cost. Where
// those who exchange in a round exchange with all of their group, as in all rounds here, all get the same
// bits.
void ExchangeIfFaster(const Rounds& rounds, const RankGraph& graph, const SynthesisRequest& request,
                         Recipe& recipe);

}  // namespace xccl
