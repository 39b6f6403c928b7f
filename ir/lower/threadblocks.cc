// Pairs incoming with outgoing connections at every rank by a greedy matching; the pairs with the most
// forwarded moves come first. Paired connections form chains and rings, each of which has one channel. A
// chain takes no second path between two ranks that it already joins. The paths of a group are on one chain
// from the start. Channels are then given chain by chain.
#include "ir/lower/threadblocks.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/graph/union_find.h"

namespace xccl::lowering {
namespace {

// Two connections that may share a threadblock.
struct Pairing {
  int32_t in = 0, out = 0;  // connections
  int32_t moves = 0;        // the moves that are forwarded from `in` to `out`
};

std::vector<Pairing> ListPairings(const std::vector<Move>& moves) {
  std::vector<uint64_t> keys;
  for (const Move& move : moves)
    if (move.sends && move.feed != kNoIndex)
      keys.push_back(static_cast<uint64_t>(moves[move.feed].path) << 32 | static_cast<uint64_t>(move.path));
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

// Chains of connections, as a union-find. Each chain has the sorted `shared_ends` of its connections: two
// chains that have a shared end in common need different channels.
class Chains {
 public:
  explicit Chains(const std::vector<std::vector<int32_t>>& shared_ends)
      : sets_(shared_ends.size()), ends_(shared_ends) {}
  int32_t Find(int32_t c) { return sets_.Find(c); }
  // Makes the chains of a and b one. Returns false, and changes nothing, if they have a shared end in common.
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
    sets_.Join(b, a);
    return true;
  }

 private:
  UnionFind sets_;
  std::vector<std::vector<int32_t>> ends_;
};

// Returns, by key, the index of the first equal key; kNoIndex if no other key is equal.
template <typename Key>
std::vector<int32_t> FirstOfEqual(const std::vector<Key>& keys) {
  std::vector<std::pair<Key, int32_t>> sorted;
  for (const Key& key : keys) sorted.emplace_back(key, static_cast<int32_t>(sorted.size()));
  std::sort(sorted.begin(), sorted.end());
  std::vector<int32_t> shared(keys.size(), kNoIndex);
  for (size_t i = 1, first = 0; i < sorted.size(); ++i) {
    if (sorted[i].first != sorted[first].first)
      first = i;
    else
      shared[sorted[i].second] = shared[sorted[first].second] = sorted[first].second;
  }
  return shared;
}

// Returns, by path, its shared ends. Paths with the same (src, dst) share an end, and so do the first paths
// of groups with the same (kind, root). A shared end is a number; an end that no other path has is left out.
std::vector<std::vector<int32_t>> SharedEnds(const Paths& paths) {
  std::vector<std::vector<int32_t>> shared(paths.paths.size());
  std::vector<std::pair<Rank, Rank>> ends;
  for (const Path& path : paths.paths) ends.emplace_back(path.src, path.dst);
  const std::vector<int32_t> first = FirstOfEqual(ends);
  for (size_t c = 0; c < first.size(); ++c)
    if (first[c] != kNoIndex) shared[c].push_back(first[c]);
  std::vector<std::pair<Group::Kind, Rank>> roots;
  for (const PathGroup& group : paths.groups) roots.emplace_back(group.kind, group.root);
  const std::vector<int32_t> first_group = FirstOfEqual(roots);
  for (size_t g = 0; g < first_group.size(); ++g)
    if (first_group[g] != kNoIndex) shared[paths.groups[g].first].push_back(paths.size() + first_group[g]);
  return shared;
}

void PairConnections(const std::vector<Move>& moves, Chains& chains, Assignment& assignment) {
  std::vector<bool> taken(assignment.channel.size(), false);
  std::vector<int32_t> total(assignment.channel.size(), 0);
  for (const Move& move : moves) ++total[move.path];
  for (const Pairing& pairing : ListPairings(moves)) {
    // A send that waits behind a receive which does not feed it loses more than fusing saves.
    if (2 * pairing.moves < std::max(total[pairing.in], total[pairing.out])) continue;
    if (assignment.forwards_to[pairing.in] != kNoIndex || taken[pairing.out]) continue;
    if (!chains.Join(pairing.in, pairing.out)) continue;
    assignment.forwards_to[pairing.in] = pairing.out;
    taken[pairing.out] = true;
  }
}

void GiveChannels(const std::vector<std::vector<int32_t>>& shared_ends, size_t num_groups, Chains& chains,
                  Assignment& assignment) {
  const int32_t count = static_cast<int32_t>(shared_ends.size());
  // By chain: its shared ends. A chain without shared ends gets channel 0.
  std::vector<std::vector<int32_t>> ends_of_chain(static_cast<size_t>(count));
  for (int32_t c = 0; c < count; ++c)
    for (int32_t end : shared_ends[c]) ends_of_chain[chains.Find(c)].push_back(end);
  std::vector<int32_t> chain_channel(static_cast<size_t>(count), kNoIndex);
  std::vector<std::vector<bool>> used(static_cast<size_t>(count) + num_groups);
  for (int32_t c = 0; c < count; ++c) {
    int32_t& channel = chain_channel[chains.Find(c)];
    if (channel == kNoIndex) {
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

void SendOn(const Paths& paths, int32_t path, Threadblock& block) {
  if (const int32_t group = paths.paths[path].group;
      group != kNoIndex && paths.groups[group].kind == Group::Kind::kMulticast)
    block.send_group = group;
  else
    block.send_peer = paths.paths[path].dst;
}
void ReceiveOn(const Paths& paths, int32_t path, Threadblock& block) {
  if (const int32_t group = paths.paths[path].group;
      group != kNoIndex && paths.groups[group].kind != Group::Kind::kMulticast)
    block.recv_group = group;
  else
    block.recv_peer = paths.paths[path].src;
}

}  // namespace

// Paired connections share a threadblock, and so do the connections of a group at the group's root.
void MakeBlocks(const Paths& paths, Assignment& assignment) {
  struct Serving {
    Threadblock block;
    int32_t in, out;  // the connections that it serves, or kNoIndex
  };
  IdVector<Rank, std::vector<Serving>> serving(static_cast<size_t>(assignment.blocks.size()));
  std::vector<bool> has_sender(paths.paths.size(), false);
  for (int32_t c = 0; c < paths.size(); ++c) {
    if (paths.RecvUnit(c) != c) continue;
    Serving block{{}, c, assignment.forwards_to[c]};
    ReceiveOn(paths, c, block.block);
    block.block.channel = assignment.channel[c];
    if (block.out != kNoIndex) {
      SendOn(paths, block.out, block.block);
      has_sender[block.out] = true;
    }
    serving[paths.paths[c].dst].push_back(std::move(block));
  }
  for (int32_t c = 0; c < paths.size(); ++c) {
    if (has_sender[c] || paths.SendUnit(c) != c) continue;
    Serving block{{}, kNoIndex, c};
    SendOn(paths, c, block.block);
    block.block.channel = assignment.channel[c];
    serving[paths.paths[c].src].push_back(std::move(block));
  }
  for (Rank r(0); r.value < serving.size(); ++r.value) {
    std::sort(serving[r].begin(), serving[r].end(), [](const Serving& a, const Serving& b) {
      const auto key = [](const Threadblock& block) {
        return std::tuple(block.channel, block.recv_peer, block.send_peer, block.recv_group,
                          block.send_group);
      };
      return key(a.block) < key(b.block);
    });
    for (size_t i = 0; i < serving[r].size(); ++i) {
      if (serving[r][i].in != kNoIndex) assignment.recv_block[serving[r][i].in] = static_cast<int32_t>(i);
      if (serving[r][i].out != kNoIndex) assignment.send_block[serving[r][i].out] = static_cast<int32_t>(i);
      assignment.blocks[r].push_back(std::move(serving[r][i].block));
    }
  }
  for (int32_t c = 0; c < paths.size(); ++c) {
    assignment.recv_block[c] = assignment.recv_block[paths.RecvUnit(c)];
    assignment.send_block[c] = assignment.send_block[paths.SendUnit(c)];
  }
}

Status CheckConnections(const Paths& paths, int32_t num_ranks) {
  std::vector<int32_t> sends(static_cast<size_t>(num_ranks), 0), receives = sends;
  for (int32_t p = 0; p < paths.size(); ++p) {
    if (paths.SendUnit(p) == p) ++sends[paths.paths[p].src.index()];
    if (paths.RecvUnit(p) == p) ++receives[paths.paths[p].dst.index()];
  }
  int32_t most = 0;
  for (size_t r = 0; r < sends.size(); ++r) most = std::max({most, sends[r], receives[r]});
  if (most <= kMostBlocks) return OkStatus();
  return InvalidInput(
      fmt::format("lower: {} connections into or out of a rank, each with a threadblock; "
                  "expected at most {}; hint: --max-ctas={}",
                  most, kMostBlocks, 2 * most));
}

Assignment AssignThreadblocks(const std::vector<Move>& moves, const Paths& paths, int32_t num_ranks,
                              bool pair) {
  const size_t count = paths.paths.size();
  const std::vector<std::vector<int32_t>> shared_ends = SharedEnds(paths);
  Assignment assignment;
  assignment.channel.assign(count, 0);
  assignment.send_block.assign(count, 0);
  assignment.recv_block.assign(count, 0);
  assignment.forwards_to.assign(count, kNoIndex);
  assignment.blocks.resize(static_cast<size_t>(num_ranks));
  Chains chains(shared_ends);
  for (const PathGroup& group : paths.groups)
    for (int32_t i = 1; i < group.count; ++i) XCCL_CHECK(chains.Join(group.first, group.first + i));
  if (pair) PairConnections(moves, chains, assignment);
  GiveChannels(shared_ends, paths.groups.size(), chains, assignment);
  MakeBlocks(paths, assignment);
  return assignment;
}

}  // namespace xccl::lowering
