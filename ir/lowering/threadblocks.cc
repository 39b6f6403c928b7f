// Pairing is a greedy matching of incoming with outgoing connections at every rank, the pairs with most
// forwarded moves first. Paired connections form chains and rings that must share a channel; a chain never
// takes in a second path between two ranks that it already joins. Channels are then given chain by chain.
#include "ir/lowering/threadblocks.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

namespace xccl::lowering {
namespace {

struct Pairing {
  int32_t in = 0, out = 0;  // connections
  int32_t moves = 0;        // forwarded from one to the other
};

std::vector<Pairing> ListPairings(const std::vector<Move>& moves) {
  std::vector<uint64_t> keys;
  for (const Move& move : moves)
    if (move.feed != kNoMove)
      keys.push_back(static_cast<uint64_t>(moves[static_cast<size_t>(move.feed)].path.index()) << 32 |
                     move.path.index());
  std::sort(keys.begin(), keys.end());
  std::vector<Pairing> pairings;
  for (size_t i = 0; i < keys.size();) {
    size_t end = i;
    while (end < keys.size() && keys[end] == keys[i]) ++end;
    pairings.push_back(
        {static_cast<int32_t>(keys[i] >> 32), static_cast<int32_t>(keys[i]), static_cast<int32_t>(end - i)});
    i = end;
  }
  std::stable_sort(pairings.begin(), pairings.end(),
                   [](const Pairing& a, const Pairing& b) { return a.moves > b.moves; });
  return pairings;
}

// Chains of connections as a union-find, each with the (src, dst) pairs that have several paths.
class Chains {
 public:
  explicit Chains(const std::vector<int32_t>& shared_ends)
      : parent_(shared_ends.size()), ends_(parent_.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (size_t c = 0; c < shared_ends.size(); ++c)
      if (shared_ends[c] != kNoMove) ends_[c] = {shared_ends[c]};
  }
  int32_t Find(int32_t c) {
    while (parent_[c] != c) c = parent_[c] = parent_[parent_[c]];
    return c;
  }
  // False where the two would then join two ranks by two paths.
  bool Join(int32_t a, int32_t b) {
    a = Find(a), b = Find(b);
    if (a == b) return true;
    if (ends_[a].size() < ends_[b].size()) std::swap(a, b);
    for (int32_t e : ends_[b])
      if (std::binary_search(ends_[a].begin(), ends_[a].end(), e)) return false;
    std::vector<int32_t> both;
    std::merge(ends_[a].begin(), ends_[a].end(), ends_[b].begin(), ends_[b].end(), std::back_inserter(both));
    ends_[a] = std::move(both);
    ends_[b].clear();
    parent_[b] = a;
    return true;
  }

 private:
  std::vector<int32_t> parent_;
  std::vector<std::vector<int32_t>> ends_;
};

// For every connection the index of its (src, dst), or kNoMove where it is the only one of that pair.
std::vector<int32_t> SharedEnds(const std::vector<std::pair<Rank, Rank>>& ends) {
  std::vector<int32_t> order(ends.size()), shared(ends.size(), kNoMove);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return std::tuple(ends[a], a) < std::tuple(ends[b], b); });
  for (size_t i = 0; i < order.size(); ++i) {
    const bool like_last = i > 0 && ends[order[i]] == ends[order[i - 1]];
    const bool like_next = i + 1 < order.size() && ends[order[i]] == ends[order[i + 1]];
    if (like_last) shared[order[i]] = shared[order[i - 1]];
    if (!like_last && like_next) shared[order[i]] = order[i];
  }
  return shared;
}

void PairConnections(const std::vector<Move>& moves, const std::vector<int32_t>& shared_ends, Chains& chains,
                     Assignment& assignment) {
  std::vector<bool> taken(shared_ends.size(), false);
  std::vector<int32_t> total(shared_ends.size(), 0);
  for (const Move& move : moves) ++total[move.path.index()];
  for (const Pairing& pairing : ListPairings(moves)) {
    // A send that waits behind a receive which does not feed it loses more than fusing saves.
    if (2 * pairing.moves < std::max(total[pairing.in], total[pairing.out])) continue;
    if (assignment.forwards_to[pairing.in] != kNoMove || taken[pairing.out]) continue;
    if (!chains.Join(pairing.in, pairing.out)) continue;
    assignment.forwards_to[pairing.in] = pairing.out;
    taken[pairing.out] = true;
  }
}

void GiveChannels(const std::vector<int32_t>& shared_ends, Chains& chains, Assignment& assignment) {
  const int32_t count = static_cast<int32_t>(shared_ends.size());
  // The (src, dst) of each chain that have several paths; a chain without any gets channel 0.
  std::vector<std::vector<int32_t>> ends_of_chain(static_cast<size_t>(count));
  for (int32_t c = 0; c < count; ++c)
    if (shared_ends[c] != kNoMove) ends_of_chain[chains.Find(c)].push_back(shared_ends[c]);
  std::vector<int32_t> chain_channel(static_cast<size_t>(count), kNoMove);
  std::vector<std::vector<bool>> used(static_cast<size_t>(count));
  for (int32_t c = 0; c < count; ++c) {
    int32_t& channel = chain_channel[chains.Find(c)];
    if (channel == kNoMove) {
      const auto is_used = [&](int32_t end) {
        return static_cast<size_t>(channel) < used[end].size() && used[end][channel];
      };
      const std::vector<int32_t>& ends = ends_of_chain[chains.Find(c)];
      channel = 0;
      while (std::any_of(ends.begin(), ends.end(), is_used)) ++channel;
      for (int32_t end : ends) {
        if (used[end].size() <= static_cast<size_t>(channel)) used[end].resize(channel + 1, false);
        used[end][channel] = true;
      }
    }
    assignment.channel[c] = channel;
  }
}

// One threadblock for every connection at its sender and one at its receiver, joined where paired.
void MakeBlocks(const std::vector<std::pair<Rank, Rank>>& ends, Assignment& assignment) {
  struct Made {
    Threadblock block;
    int32_t in, out;  // connections, or kNoMove
  };
  IdVector<Rank, std::vector<Made>> made(static_cast<size_t>(assignment.blocks.size()));
  std::vector<bool> has_sender(ends.size(), false);
  for (size_t c = 0; c < ends.size(); ++c) {
    Made block{{}, static_cast<int32_t>(c), assignment.forwards_to[c]};
    block.block.recv_peer = ends[c].first;
    block.block.channel = assignment.channel[c];
    if (block.out != kNoMove) {
      block.block.send_peer = ends[block.out].second;
      has_sender[block.out] = true;
    }
    made[ends[c].second].push_back(std::move(block));
  }
  for (size_t c = 0; c < ends.size(); ++c) {
    if (has_sender[c]) continue;
    Made block{{}, kNoMove, static_cast<int32_t>(c)};
    block.block.send_peer = ends[c].second;
    block.block.channel = assignment.channel[c];
    made[ends[c].first].push_back(std::move(block));
  }
  for (Rank r(0); r.value < made.size(); ++r.value) {
    std::sort(made[r].begin(), made[r].end(), [](const Made& a, const Made& b) {
      return std::tuple(a.block.channel, a.block.recv_peer, a.block.send_peer) <
             std::tuple(b.block.channel, b.block.recv_peer, b.block.send_peer);
    });
    for (size_t i = 0; i < made[r].size(); ++i) {
      if (made[r][i].in != kNoMove) assignment.recv_block[made[r][i].in] = static_cast<int32_t>(i);
      if (made[r][i].out != kNoMove) assignment.send_block[made[r][i].out] = static_cast<int32_t>(i);
      assignment.blocks[r].push_back(std::move(made[r][i].block));
    }
  }
}

}  // namespace

Assignment AssignThreadblocks(const std::vector<Move>& moves, int32_t num_ranks, int32_t num_connections,
                              bool pair) {
  const size_t count = static_cast<size_t>(num_connections);
  std::vector<std::pair<Rank, Rank>> ends(count);
  for (const Move& move : moves) ends[move.path.index()] = {move.src, move.dst};
  const std::vector<int32_t> shared_ends = SharedEnds(ends);

  Assignment assignment;
  assignment.channel.assign(count, 0);
  assignment.send_block.assign(count, 0);
  assignment.recv_block.assign(count, 0);
  assignment.forwards_to.assign(count, kNoMove);
  assignment.blocks.resize(static_cast<size_t>(num_ranks));
  Chains chains(shared_ends);
  if (pair) PairConnections(moves, shared_ends, chains, assignment);
  GiveChannels(shared_ends, chains, assignment);
  MakeBlocks(ends, assignment);
  return assignment;
}

}  // namespace xccl::lowering
