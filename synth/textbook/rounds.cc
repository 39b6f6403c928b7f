// Two kinds of bit tables answer which blocks a send carries. `held` says whose data a position has before a
// round. `reach` says which positions the data at a position can still get to in a round or later.
// Allgather: a send carries all blocks of the sender's row of `held` that are not in the receiver's row.
// Broadcast and gather: TreeFrom keeps the first send that can bring the root's data to each position.
// Alltoall: a block moves only in a round after which its position can no longer reach the destination. The
// block then goes to a receiver that can.
// Exchange: if the rows of `held` of sender and receiver are disjoint, the receiver adds. If the sender's row
// contains the receiver's, the receiver copies.
#include "synth/textbook/rounds.h"

#include <algorithm>
#include <bit>
#include <set>

#include "synth/common/bit_table.h"

namespace xccl {
namespace {

BitTable Diagonal(int32_t n) {
  BitTable table(n, n);
  for (int32_t p = 0; p < n; ++p) table.Set(p, p);
  return table;
}

// Adds the bits of row q of `b` to row p of `a`.
void Unite(BitTable& a, int32_t p, const BitTable& b, int32_t q) {
  for (int32_t w = 0; w < a.words(); ++w) a.Row(p)[w] |= b.Row(q)[w];
}

int32_t Count(std::span<const uint64_t> row) {
  int32_t count = 0;
  for (uint64_t word : row) count += std::popcount(word);
  return count;
}

// Calls f(send, round, sent) for every send of an allgather that carries blocks. `sent` has the bits of the
// positions whose blocks the send carries.
template <typename F>
void ForGathers(const Rounds& rounds, F f) {
  BitTable held = Diagonal(rounds.size()), next = held;
  std::vector<uint64_t> sent(static_cast<size_t>(held.words()));
  for (size_t round = 0; round < rounds.rounds.size(); ++round) {
    for (const RoundSend& send : rounds.rounds[round]) {
      const uint64_t* const from = held.Row(send.from);
      uint64_t* const to = next.Row(send.to);
      bool any = false;
      for (size_t w = 0; w < sent.size(); ++w) {
        sent[w] = from[w] & ~to[w];
        if (send.own_only)
          sent[w] &= w == static_cast<size_t>(send.from) / 64 ? uint64_t{1} << (send.from % 64) : 0;
        to[w] |= sent[w];
        any |= sent[w] != 0;
      }
      if (any) f(send, static_cast<int32_t>(round), std::span<const uint64_t>(sent));
    }
    held = next;
  }
}

// Returns one table for each round and one for the end. Row p has the positions that data at p can get to in
// that round or later. Sends with own_only do not count.
std::vector<BitTable> ReachOf(const Rounds& rounds) {
  std::vector<BitTable> reach(rounds.rounds.size() + 1, Diagonal(rounds.size()));
  for (size_t round = rounds.rounds.size(); round-- > 0;) {
    reach[round] = reach[round + 1];
    for (const RoundSend& send : rounds.rounds[round]) {
      if (!send.own_only) Unite(reach[round], send.from, reach[round + 1], send.to);
    }
  }
  return reach;
}

Move MoveOf(const Rounds& rounds, const RoundSend& send, ChunkRange chunks, int32_t step) {
  return {chunks, rounds.positions.rank[send.from], rounds.positions.rank[send.to], step};
}

// A send of a broadcast tree.
struct TreeEdge {
  RoundSend send;
  int32_t round = 0;
};
// Returns the edges of the tree of first sends from `root`, in the order of their rounds.
std::vector<TreeEdge> TreeFrom(const Rounds& rounds, int32_t root) {
  std::vector<int32_t> has(static_cast<size_t>(rounds.size()), -1);  // rounds until it has data; -1: never
  std::vector<TreeEdge> edges;
  has[root] = 0;
  for (size_t round = 0; round < rounds.rounds.size(); ++round) {
    for (const RoundSend& send : rounds.rounds[round]) {
      const int32_t now = static_cast<int32_t>(round) + 1;
      if (has[send.from] < 0 || has[send.from] == now || has[send.to] >= 0) continue;
      if (send.own_only && send.from != root) continue;
      has[send.to] = now;
      edges.push_back({send, static_cast<int32_t>(round)});
    }
  }
  return edges;
}

// Calls f(edge, branch) for every edge of the tree, leaves first. `branch` lists the members at and below the
// lower end of the edge; f may sort them.
template <typename F>
void ForBranches(const Rounds& rounds, Rank root, F f) {
  const std::vector<TreeEdge> edges = TreeFrom(rounds, rounds.positions.Of(root));
  std::vector<std::vector<int32_t>> below;
  for (int32_t member : rounds.positions.member) below.push_back({member});
  for (size_t e = edges.size(); e-- > 0;) {
    std::vector<int32_t>& branch = below[edges[e].send.to];
    f(edges[e], branch);
    std::vector<int32_t>& parent = below[edges[e].send.from];
    parent.insert(parent.end(), branch.begin(), branch.end());
  }
}

}  // namespace

Rounds TreeRounds(const Positions& positions, int32_t k) {
  const int64_t n = positions.size();
  Rounds tree{positions, {}};
  for (int64_t distance = 1; distance < n; distance *= k) {
    Round& round = tree.rounds.emplace_back();
    for (int64_t p = 0; p < n; p += distance * k)
      for (int64_t child = p + distance; child < std::min(n, p + distance * k); child += distance)
        round.push_back({static_cast<int32_t>(p), static_cast<int32_t>(child)});
  }
  std::ranges::reverse(tree.rounds);
  return tree;
}

Round LineRound(int32_t n, int32_t size, int32_t stride) {
  Round round;
  for (int32_t turn = 1; turn < size; ++turn) {
    for (int32_t p = 0; p < n; ++p) {
      const int32_t x = p / stride % size;
      round.push_back({p, p + ((x + turn) % size - x) * stride});
    }
  }
  return round;
}

void RoundsAllgather(const Rounds& rounds, const Blocks& blocks, Moves& moves) {
  std::vector<int32_t> members;
  ForGathers(rounds, [&](const RoundSend& send, int32_t round, std::span<const uint64_t> sent) {
    members.clear();
    for (size_t w = 0; w < sent.size(); ++w)
      for (uint64_t left = sent[w]; left != 0; left &= left - 1)
        members.push_back(rounds.positions.member[w * 64 + static_cast<size_t>(std::countr_zero(left))]);
    SendBlocks(blocks, members, rounds.positions.rank[send.from], rounds.positions.rank[send.to], round,
               moves);
  });
}

void RoundsBroadcast(const Rounds& rounds, Rank root, ChunkRange all, Moves& moves) {
  for (const TreeEdge& edge : TreeFrom(rounds, rounds.positions.Of(root)))
    moves.Add(MoveOf(rounds, edge.send, all, edge.round));
}

void RoundsGather(const Rounds& rounds, Rank root, const Blocks& blocks, Moves& moves) {
  const int32_t last = static_cast<int32_t>(rounds.rounds.size()) - 1;
  ForBranches(rounds, root, [&](const TreeEdge& edge, std::vector<int32_t>& below) {
    SendBlocks(blocks, below, rounds.positions.rank[edge.send.to], rounds.positions.rank[edge.send.from],
               last - edge.round, moves);
  });
}

void DealAndGather(const Rounds& rounds, std::span<const int32_t> owners, ChunkRange all, Moves& moves,
                   const GatherPieces& gather) {
  const std::vector<Rank>& rank = rounds.positions.rank;
  const Blocks blocks = EqualBlocks(all, rounds.size(), owners);
  ForBranches(rounds, rank[0], [&](const TreeEdge& edge, std::vector<int32_t>& below) {
    SendBlocks(blocks, below, rank[edge.send.from], rank[edge.send.to], edge.round, moves);
  });
  Moves later;
  gather ? gather(blocks, later) : RoundsAllgather(rounds, blocks, later);
  for (Move move : later.items()) {
    move.step += static_cast<int32_t>(rounds.rounds.size());
    moves.Add(move);
  }
}

void RoundsAlltoall(const Rounds& rounds, const PairBlocks& pairs, Moves& moves) {
  const int32_t n = rounds.size();
  const std::vector<BitTable> reach = ReachOf(rounds);
  std::vector<std::vector<std::vector<int32_t>>> to(rounds.rounds.size());  // by round and sender
  std::set<std::pair<int32_t, int32_t>> direct;
  const auto block = [&](int32_t a, int32_t b) {
    return pairs.Of(rounds.positions.member[a], rounds.positions.member[b]);
  };
  for (size_t round = 0; round < rounds.rounds.size(); ++round) {
    to[round].resize(static_cast<size_t>(n));
    for (const RoundSend& send : rounds.rounds[round]) {
      if (!send.own_only) {
        to[round][send.from].push_back(send.to);
      } else if (direct.insert({send.from, send.to}).second) {
        moves.Add(MoveOf(rounds, send, block(send.from, send.to), static_cast<int32_t>(round)));
      }
    }
  }
  for (int32_t a = 0; a < n; ++a) {
    for (int32_t b = 0; b < n; ++b) {
      if (a == b || direct.contains({a, b})) continue;
      int32_t at = a;
      for (size_t round = 0; round < rounds.rounds.size(); ++round) {
        const BitTable& later = reach[round + 1];
        if (later.Get(at, b)) continue;
        for (int32_t next : to[round][at]) {
          if (!later.Get(next, b)) continue;
          moves.Add(MoveOf(rounds, {at, next}, block(a, b), static_cast<int32_t>(round)));
          at = next;
          break;
        }
      }
      XCCL_CHECK(at == b);
    }
  }
}

bool RoundsExchange(const Rounds& rounds, ChunkRange all, Moves& moves) {
  BitTable held = Diagonal(rounds.size()), next = held;
  for (size_t round = 0; round < rounds.rounds.size(); ++round) {
    for (const RoundSend& send : rounds.rounds[round]) {
      const uint64_t *const from = held.Row(send.from), *const before = held.Row(send.to);
      uint64_t* const to = next.Row(send.to);
      bool disjoint = true, covers = true;
      for (int32_t w = 0; w < held.words(); ++w) {
        disjoint &= (from[w] & to[w]) == 0;
        covers &= to[w] == before[w] && (to[w] & ~from[w]) == 0;
        to[w] |= from[w];
      }
      if (send.own_only || !(disjoint || covers)) return false;
      Move move = MoveOf(rounds, send, all, static_cast<int32_t>(round));
      if (disjoint) move.op = TransferOp::kReduce;
      moves.Add(move);
    }
    held = next;
  }
  return true;
}

Moves AllgatherLoads(std::span<const Rounds> stripes) {
  Moves loads;
  for (const Rounds& rounds : stripes) {
    ForGathers(rounds, [&](const RoundSend& send, int32_t round, std::span<const uint64_t> sent) {
      loads.Add(MoveOf(rounds, send, {0, Count(sent)}, round));
    });
  }
  return loads;
}

Moves AlltoallLoads(const Rounds& rounds) {
  Moves loads;
  const std::vector<BitTable> reach = ReachOf(rounds);
  BitTable held = Diagonal(rounds.size()), next = held;
  const auto count = [](const BitTable& table, int32_t r) {
    return Count({table.Row(r), static_cast<size_t>(table.words())});
  };
  for (size_t round = 0; round < rounds.rounds.size(); ++round) {
    for (const RoundSend& send : rounds.rounds[round]) {
      const int32_t blocks = send.own_only ? 1 : count(held, send.from) * count(reach[round + 1], send.to);
      loads.Add(MoveOf(rounds, send, {0, blocks}, static_cast<int32_t>(round)));
      if (!send.own_only) Unite(next, send.to, held, send.from);
    }
    held = next;
  }
  return loads;
}

void SetAlltoallCost(const Moves& loads, int32_t n, const RankGraph& graph, Recipe& recipe) {
  double hops = 0;
  for (const Move& move : loads.items())
    hops += static_cast<double>(move.chunks.count) * graph.Distance(move.src, move.dst).value_or(1);
  recipe.cost = MeasureMoves(loads, graph, 1.0 / n);
  recipe.alltoall_hops = std::max(1.0, hops / n / n);
}

double MovesTimePs(const Moves& moves, const RankGraph& graph, const SynthesisRequest& request,
                   double fraction) {
  return MeasureMoves(moves, graph, fraction, false, request.model).Ps(request);
}

Recipe RoundsRecipe(std::vector<Rounds> stripes, const RankGraph& graph, const SynthesisRequest& request,
                    const std::optional<Cost>& allgather_cost, const std::vector<int32_t>& turn) {
  const int32_t n = stripes[0].size(), count = static_cast<int32_t>(stripes.size());
  const Base base = BaseOf(request.collective->kind());
  Recipe recipe;
  recipe.root = stripes[0].positions.rank[0];
  recipe.pieces = count;
  if (base == Base::kBroadcast) {
    recipe.broadcast = [stripes, count](Rank root, ChunkRange all, Moves& moves) {
      for (int32_t k = 0; k < count; ++k) RoundsBroadcast(stripes[k], root, Piece(all, k, count), moves);
    };
  } else if (base == Base::kGather) {
    recipe.gather = [rounds = stripes[0]](Rank root, const Blocks& blocks, Moves& moves) {
      RoundsGather(rounds, root, blocks, moves);
    };
  } else if (base == Base::kAlltoall) {
    recipe.alltoall_hops = static_cast<double>(stripes[0].rounds.size());
    if (n <= kMostMeasured) SetAlltoallCost(AlltoallLoads(stripes[0]), n, graph, recipe);
    recipe.alltoall = [rounds = stripes[0]](const PairBlocks& pairs, Moves& moves) {
      RoundsAlltoall(rounds, pairs, moves);
    };
  } else {
    recipe.cost = allgather_cost;
    if (!recipe.cost && n <= kMostMeasured)
      recipe.cost = MeasureMoves(AllgatherLoads(stripes), graph, 1.0 / (count * n));
    recipe.allgather = [stripes, turn, count](const Blocks& blocks, Moves& moves) {
      for (int32_t k = 0; k < count; ++k) {
        Blocks pieces;
        for (size_t i = 0; i < blocks.size(); ++i)
          pieces.push_back(Share(blocks[i], k, count, turn.empty() ? static_cast<int32_t>(i) : turn[i]));
        RoundsAllgather(stripes[k], pieces, moves);
      }
    };
  }
  return recipe;
}

void ExchangeIfFaster(const Rounds& rounds, const RankGraph& graph, const SynthesisRequest& request,
                      Recipe& recipe) {
  Moves moves;
  if (!IsAllreduce(request.collective->kind()) || !recipe.cost || !RoundsExchange(rounds, {0, 1}, moves))
    return;
  for (const Move& move : moves.items())
    if (!graph.Find(move.src, move.dst)) return;
  const Cost once = MeasureMoves(moves, graph, 1);
  if (once.Ps(request) >= 2 * recipe.cost->Ps(request)) return;
  recipe.exchange = {once,
                     [rounds](ChunkRange all, Moves& exchanged) { RoundsExchange(rounds, all, exchanged); }};
}

}  // namespace xccl
