// Two tables of bits: held, whose data a position has before a round, and reach, whom a position's data can
// still get to from a round on.
#include "synth/textbook/rounds.h"

#include <algorithm>
#include <bit>
#include <set>

#include "ir/time_model.h"

namespace xccl {
namespace {

// n rows of n bits.
class BitTable {
 public:
  explicit BitTable(int32_t n)
      : words_((static_cast<size_t>(n) + 63) / 64), bits_(static_cast<size_t>(n) * words_) {}
  std::span<uint64_t> Row(int32_t r) {
    return std::span(bits_).subspan(static_cast<size_t>(r) * words_, words_);
  }
  std::span<const uint64_t> Row(int32_t r) const {
    return std::span(bits_).subspan(static_cast<size_t>(r) * words_, words_);
  }
  bool Has(int32_t r, int32_t bit) const { return (Row(r)[static_cast<size_t>(bit) / 64] >> (bit % 64)) & 1; }
  void Set(int32_t r, int32_t bit) { Row(r)[static_cast<size_t>(bit) / 64] |= uint64_t{1} << (bit % 64); }
  int32_t Count(int32_t r) const {
    int32_t count = 0;
    for (uint64_t word : Row(r)) count += std::popcount(word);
    return count;
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

BitTable Diagonal(int32_t n) {
  BitTable table(n);
  for (int32_t p = 0; p < n; ++p) table.Set(p, p);
  return table;
}

// f(send, round, sent): `sent` has the bits of the positions whose blocks go, never empty.
template <typename F>
void ForGathers(const Rounds& rounds, F f) {
  BitTable held = Diagonal(rounds.size()), next = held;
  std::vector<uint64_t> sent(held.Row(0).size());
  for (size_t round = 0; round < rounds.rounds.size(); ++round) {
    for (const RoundSend& send : rounds.rounds[round]) {
      const std::span<const uint64_t> from = held.Row(send.from);
      const std::span<uint64_t> to = next.Row(send.to);
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

// By round, and one more: the positions that a position's data can get to from that round on.
std::vector<BitTable> ReachOf(const Rounds& rounds) {
  std::vector<BitTable> reach(rounds.rounds.size() + 1, Diagonal(rounds.size()));
  for (size_t round = rounds.rounds.size(); round-- > 0;) {
    reach[round] = reach[round + 1];
    for (const RoundSend& send : rounds.rounds[round]) {
      if (send.own_only) continue;
      const std::span<const uint64_t> through = reach[round + 1].Row(send.to);
      const std::span<uint64_t> row = reach[round].Row(send.from);
      for (size_t w = 0; w < row.size(); ++w) row[w] |= through[w];
    }
  }
  return reach;
}

// Does nobody get a contribution twice when everyone sends all that it has?
bool AddsOnce(const Rounds& rounds) {
  BitTable held = Diagonal(rounds.size()), next = held;
  for (const std::vector<RoundSend>& round : rounds.rounds) {
    for (const RoundSend& send : round) {
      const std::span<const uint64_t> from = held.Row(send.from);
      const std::span<uint64_t> to = next.Row(send.to);
      for (size_t w = 0; w < to.size(); ++w) {
        if ((from[w] & to[w]) != 0) return false;
        to[w] |= from[w];
      }
      if (send.own_only) return false;
    }
    held = next;
  }
  return true;
}

Move MoveOf(const Rounds& rounds, const RoundSend& send, ChunkRange chunks, int32_t step) {
  return {
      chunks,      rounds.positions.rank[send.from], rounds.positions.rank[send.to], step, TransferOp::kCopy,
      std::nullopt};
}

// Edges of the tree in order of their rounds.
struct TreeEdge {
  RoundSend send;
  int32_t round = 0;
};
std::vector<TreeEdge> TreeFrom(const Rounds& rounds, int32_t root) {
  std::vector<int32_t> has(static_cast<size_t>(rounds.size()), -1);  // the round it came in
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

// f(edge, members at or below its lower end), leaves first; f may sort them.
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

void RoundsAllgatherInLanes(std::span<const Rounds> lanes, const Blocks& blocks, Moves& moves) {
  const int32_t count = static_cast<int32_t>(lanes.size());
  for (int32_t k = 0; k < count; ++k) {
    Blocks pieces;
    for (size_t i = 0; i < blocks.size(); ++i)
      pieces.push_back(Share(blocks[i], k, count, static_cast<int32_t>(i)));
    RoundsAllgather(lanes[static_cast<size_t>(k)], pieces, moves);
  }
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

void RoundsScatter(const Rounds& rounds, Rank root, const Blocks& blocks, Moves& moves) {
  ForBranches(rounds, root, [&](const TreeEdge& edge, std::vector<int32_t>& below) {
    SendBlocks(blocks, below, rounds.positions.rank[edge.send.from], rounds.positions.rank[edge.send.to],
               edge.round, moves);
  });
}

void RoundsAlltoall(const Rounds& rounds, const Pairs& pairs, Moves& moves) {
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
        if (later.Has(at, b)) continue;
        for (int32_t next : to[round][at]) {
          if (!later.Has(next, b)) continue;
          moves.Add(MoveOf(rounds, {at, next}, block(a, b), static_cast<int32_t>(round)));
          at = next;
          break;
        }
      }
      XCCL_CHECK(at == b);
    }
  }
}

void AddRoundsAllgatherLoads(const Rounds& rounds, Moves& moves) {
  ForGathers(rounds, [&](const RoundSend& send, int32_t round, std::span<const uint64_t> sent) {
    int32_t blocks = 0;
    for (uint64_t word : sent) blocks += std::popcount(word);
    moves.Add(MoveOf(rounds, send, {0, blocks}, round));
  });
}

void AddRoundsAlltoallLoads(const Rounds& rounds, Moves& moves) {
  const std::vector<BitTable> reach = ReachOf(rounds);
  BitTable held = Diagonal(rounds.size()), next = held;
  for (size_t round = 0; round < rounds.rounds.size(); ++round) {
    for (const RoundSend& send : rounds.rounds[round]) {
      const int32_t blocks = send.own_only ? 1 : held.Count(send.from) * reach[round + 1].Count(send.to);
      moves.Add(MoveOf(rounds, send, {0, blocks}, static_cast<int32_t>(round)));
      if (send.own_only) continue;
      const std::span<const uint64_t> from = held.Row(send.from);
      const std::span<uint64_t> to = next.Row(send.to);
      for (size_t w = 0; w < to.size(); ++w) to[w] |= from[w];
    }
    held = next;
  }
}

std::optional<Cost> RoundsAllgatherCost(std::span<const Rounds> lanes, const RankGraph& graph) {
  if (lanes[0].size() > kMostMeasured) return std::nullopt;
  Moves moves;
  for (const Rounds& rounds : lanes) AddRoundsAllgatherLoads(rounds, moves);
  const double blocks = static_cast<double>(lanes.size()) * lanes[0].size();
  return MeasureMoves(moves, graph, 1 / blocks, false);
}

void SetRoundsAlltoallCost(const Rounds& rounds, const RankGraph& graph, Recipe& recipe) {
  const double n = rounds.size();
  recipe.alltoall_hops = static_cast<double>(rounds.rounds.size());
  if (rounds.size() > kMostMeasured) return;
  Moves moves;
  AddRoundsAlltoallLoads(rounds, moves);
  Router router(graph);
  double hops = 0;
  for (const Move& move : moves.items())
    hops += static_cast<double>(move.chunks.count) * router.Distance(move.src, move.dst).value_or(1);
  recipe.alltoall_cost = MeasureMoves(moves, graph, 1 / n, false);
  recipe.alltoall_hops = std::max(1.0, hops / (n * n));
}

double MovesTimePs(const Moves& moves, const RankGraph& graph, const SynthesisRequest& request,
                   double fraction) {
  const double bytes =
      request.collective->kind() == CollectiveKind::kBarrier ? 0 : static_cast<double>(request.size_bytes);
  const Cost cost = MeasureMoves(moves, graph, fraction, false);
  double occupied = 0;  // of the busiest link by messages, step after step
  std::vector<double> load(static_cast<size_t>(graph.topology().num_links()), 0);
  std::vector<LinkId> touched;
  const Move* before = nullptr;
  double busiest = 0;
  for (const Move& move : moves.items()) {
    if (before != nullptr && before->step != move.step) {
      occupied += busiest;
      busiest = 0;
      for (LinkId l : touched) load[l.index()] = 0;
      touched.clear();
    }
    before = &move;
    const std::optional<HopId> hop = move.hop ? move.hop : graph.Find(move.src, move.dst);
    if (!hop) continue;
    for (LinkId l : graph.Links(*hop)) {
      const Link& link = graph.topology().link(l);
      if (load[l.index()] == 0) touched.push_back(l);
      load[l.index()] += static_cast<double>(link.overhead_ps);
      if (request.model == TimeModel::kBlocking) load[l.index()] += static_cast<double>(link.latency_ps);
      busiest = std::max(busiest, load[l.index()]);
    }
  }
  return cost.fixed_ps + cost.ps_per_byte * bytes + occupied + busiest;
}

void ExchangeWhereFaster(const Rounds& rounds, const RankGraph& graph, const SynthesisRequest& request,
                         Recipe& recipe) {
  if (request.collective->kind() != CollectiveKind::kAllreduce || !request.allow_divergent) return;
  if (!recipe.allgather_cost || !AddsOnce(rounds)) return;
  Moves moves;
  for (size_t round = 0; round < rounds.rounds.size(); ++round) {
    for (const RoundSend& send : rounds.rounds[round]) {
      if (!graph.Find(rounds.positions.rank[send.from], rounds.positions.rank[send.to])) return;
      moves.Add(MoveOf(rounds, send, {0, 1}, static_cast<int32_t>(round)));
    }
  }
  const Cost once = MeasureMoves(moves, graph, 1, false);
  const double bytes = static_cast<double>(request.size_bytes);
  const double gather_ps = recipe.allgather_cost->fixed_ps + recipe.allgather_cost->ps_per_byte * bytes;
  if (once.fixed_ps + once.ps_per_byte * bytes >= 2 * gather_ps) return;
  recipe.allreduce_cost = once;
  recipe.allreduce = [rounds](ChunkRange all, Moves& sums) {
    for (size_t round = 0; round < rounds.rounds.size(); ++round) {
      for (const RoundSend& send : rounds.rounds[round]) {
        Move move = MoveOf(rounds, send, all, static_cast<int32_t>(round));
        move.op = TransferOp::kReduce;
        sums.Add(move);
      }
    }
  };
}

}  // namespace xccl
