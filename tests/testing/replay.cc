#include "tests/testing/replay.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace xccl::testing {
namespace {

using Contributions = std::set<Rank>;
using State = std::map<std::pair<Rank, ChunkId>, Contributions>;

struct Ends {
  std::vector<Rank> from, to;
};

// Follows links from one node outwards: every link must continue what was reached, nothing may be reached
// twice, and only nodes that may branch do. For reductions, `tail` and `head` are swapped.
template <typename Tail, typename Head, typename MayBranch>
std::optional<std::vector<Rank>> Leaves(const std::vector<LinkId>& links, const Topology& topology, Tail tail,
                                        Head head, MayBranch may_branch) {
  std::map<NodeId, int> branches;
  branches[tail(links[0])] = 0;
  for (LinkId l : links) {
    if (!branches.contains(tail(l)) || branches.contains(head(l))) return std::nullopt;
    const bool first = branches[tail(l)]++ == 0;
    if (!first && !may_branch(topology.node(tail(l)))) return std::nullopt;
    if (topology.IsGpu(tail(l)) && tail(l) != tail(links[0])) return std::nullopt;
    branches[head(l)] = 0;
  }
  std::vector<Rank> leaves;
  for (LinkId l : links) {
    if (branches[head(l)] > 0) continue;
    if (!topology.IsGpu(head(l))) return std::nullopt;
    leaves.push_back(*topology.RankOf(head(l)));
  }
  return topology.IsGpu(tail(links[0])) ? std::optional(leaves) : std::nullopt;
}

std::optional<Ends> EndsOf(std::span<const LinkId> path, const Topology& topology) {
  if (path.empty()) return std::nullopt;
  const auto from = [&](LinkId l) { return topology.link(l).from; };
  const auto to = [&](LinkId l) { return topology.link(l).to; };
  const std::vector<LinkId> links(path.begin(), path.end());
  if (const auto leaves = Leaves(links, topology, from, to, [](const Node& n) { return n.multicast; }))
    return Ends{{*topology.RankOf(from(links[0]))}, *leaves};
  const std::vector<LinkId> backwards(path.rbegin(), path.rend());
  if (auto leaves = Leaves(backwards, topology, to, from, [](const Node& n) { return n.reduce; })) {
    std::reverse(leaves->begin(), leaves->end());
    return Ends{*leaves, {*topology.RankOf(to(backwards[0]))}};
  }
  return std::nullopt;
}

// Adds `more` to `sum`. Returns false if they overlap.
bool AddTo(Contributions& sum, const Contributions& more) {
  for (Rank r : more)
    if (!sum.insert(r).second) return false;
  return true;
}

bool PlayStep(const Schedule& s, const std::vector<int64_t>& transfers, const std::vector<Ends>& ends,
              State& state) {
  const State before = state;
  std::map<std::pair<Rank, ChunkId>, bool> written;  // true if all writes are reductions
  for (int64_t t : transfers) {
    for (int32_t i = 0; i < s.count[t]; ++i) {
      const ChunkId chunk(s.first[t].value + i);
      Contributions carried;
      for (Rank from : ends[t].from) {
        const auto held = before.find({from, chunk});
        if (held == before.end() || !AddTo(carried, held->second)) return false;
      }
      for (Rank to : ends[t].to) {
        const bool reduce = s.op[t] == TransferOp::kReduce;
        const auto [write, first] = written.try_emplace({to, chunk}, reduce);
        if (!first && !(write->second && reduce)) return false;
        if (reduce && !before.contains({to, chunk})) return false;
        if (!reduce) state[{to, chunk}].clear();
        if (!AddTo(state[{to, chunk}], carried)) return false;
      }
    }
  }
  return true;
}

}  // namespace

bool Replay(const Schedule& s, const Collective& collective, const Topology& topology) {
  State state;
  std::vector<Holding> holdings;
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    collective.Before(ChunkId(c), holdings);
    for (const Holding& h : holdings)
      state[{h.rank, ChunkId(c)}] = Contributions(h.contributions.begin(), h.contributions.end());
  }
  std::vector<Ends> ends;
  for (int64_t t = 0; t < s.size(); ++t) {
    const std::optional<Ends> found = EndsOf(s.paths[s.path[t]], topology);
    if (!found || found->from[0] != s.src[t] || found->to[0] != s.dst[t]) return false;
    ends.push_back(*found);
    if (s.step[t] < (t > 0 ? s.step[t - 1] : 0) || (t == 0 && s.step[t] != 0)) return false;
  }
  for (int64_t t = 0; t < s.size();) {
    std::vector<int64_t> step;
    const int64_t begin = t;
    for (; t < s.size() && s.step[t] == s.step[begin]; ++t) step.push_back(t);
    if (!PlayStep(s, step, ends, state)) return false;
  }
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    collective.After(ChunkId(c), holdings);
    for (const Holding& h : holdings) {
      const auto held = state.find({h.rank, ChunkId(c)});
      if (held == state.end() || !std::equal(held->second.begin(), held->second.end(),
                                             h.contributions.begin(), h.contributions.end()))
        return false;
    }
  }
  return true;
}

}  // namespace xccl::testing
