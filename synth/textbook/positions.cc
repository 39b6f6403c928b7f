#include "synth/textbook/positions.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "synth/textbook/grid.h"

namespace xccl {
namespace {

// Returns positions in which position p has the rank and member of the old position at(p).
template <typename F>
Positions Permuted(const Positions& positions, F at) {
  Positions permuted;
  for (int32_t p = 0; p < positions.size(); ++p) {
    permuted.rank.push_back(positions.rank[at(p)]);
    permuted.member.push_back(positions.member[at(p)]);
  }
  return permuted;
}

}  // namespace

int32_t Positions::Of(Rank r) const {
  return static_cast<int32_t>(std::ranges::find(rank, r) - rank.begin());
}

Positions DomainPositions(const RankGraph& graph, std::span<const Rank> members) {
  std::vector<int32_t> first(static_cast<size_t>(graph.num_domains()), -1);
  Positions positions{{}, std::vector<int32_t>(members.size())};
  std::iota(positions.member.begin(), positions.member.end(), 0);
  const auto first_of_domain = [&](int32_t m) -> int32_t& { return first[graph.Domain(members[m])]; };
  for (int32_t m : positions.member)
    if (first_of_domain(m) < 0) first_of_domain(m) = m;
  std::ranges::stable_sort(positions.member, {}, first_of_domain);
  for (int32_t m : positions.member) positions.rank.push_back(members[m]);
  return positions;
}

Positions RankPositions(std::span<const Rank> members) {
  Positions positions{{members.begin(), members.end()}, std::vector<int32_t>(members.size())};
  for (size_t m = 0; m < members.size(); ++m) {
    positions.rank[members[m].index()] = members[m];
    positions.member[members[m].index()] = static_cast<int32_t>(m);
  }
  return positions;
}

Positions CubePositions(const RankGraph& graph, std::span<const Rank> members) {
  const int32_t n = static_cast<int32_t>(members.size());
  if (n != graph.num_ranks() || !IsPowerOf2(n)) return DomainPositions(graph, members);
  const std::optional<Grid> grid = DetectGrid(graph);
  if (!grid) return DomainPositions(graph, members);
  return Permuted(RankPositions(members), [&](int32_t p) {
    int32_t rank = 0;
    for (size_t i = 0; i < grid->dims.size(); ++i) {
      int32_t x = p / grid->Stride(i) % grid->dims[i];
      if (grid->dims[i] == 4 && grid->wraps[i]) x ^= x >> 1;
      rank += x * grid->Stride(i);
    }
    return rank;
  });
}

Positions StartingAt(const Positions& positions, Rank root, bool xor_turn) {
  const int32_t start = positions.Of(root);
  return Permuted(positions,
                  [&](int32_t p) { return xor_turn ? p ^ start : (p + start) % positions.size(); });
}

StatusOr<Hosts> EqualHosts(const RankGraph& graph, std::span<const Rank> members, std::string_view engine,
                           std::string_view hint) {
  Hosts made{DomainPositions(graph, members)};
  std::vector<int32_t> sizes;
  for (size_t p = 0; p < members.size(); ++p) {
    const std::vector<Rank>& rank = made.positions.rank;
    if (p == 0 || graph.Domain(rank[p]) != graph.Domain(rank[p - 1])) sizes.push_back(0);
    ++sizes.back();
  }
  if (sizes.size() == 1)
    return InvalidInput(fmt::format("{}: all {} ranks are on one host; expected several; hint: --engine={}",
                                    engine, members.size(), hint));
  for (int32_t size : sizes)
    if (size != sizes[0])
      return InvalidInput(
          fmt::format("{}: {} ranks on one host and {} on another; expected equal numbers; "
                      "hint: --engine={}",
                      engine, sizes[0], size, hint));
  made.hosts = static_cast<int32_t>(sizes.size());
  made.gpus = sizes[0];
  return made;
}

void SendBlocks(const Blocks& blocks, std::vector<int32_t>& members, Rank src, Rank dst, int32_t step,
                Moves& moves) {
  std::sort(members.begin(), members.end());
  ChunkRange run;
  for (int32_t m : members) {
    const ChunkRange& block = blocks[m];
    if (block.count == 0) continue;
    if (run.count > 0 && run.first + run.count == block.first) {
      run.count += block.count;
      continue;
    }
    moves.Add({run, src, dst, step});
    run = block;
  }
  moves.Add({run, src, dst, step});
}

}  // namespace xccl
