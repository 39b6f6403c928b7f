#include "synth/textbook/positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "synth/textbook/grid.h"

namespace xccl {
namespace {

Positions FromMembers(std::span<const Rank> members, std::vector<int32_t> order) {
  Positions positions;
  for (int32_t m : order) positions.rank.push_back(members[static_cast<size_t>(m)]);
  positions.member = std::move(order);
  return positions;
}

}  // namespace

int32_t Positions::Of(Rank r) const {
  return static_cast<int32_t>(std::find(rank.begin(), rank.end(), r) - rank.begin());
}

Positions DomainPositions(const RankGraph& graph, std::span<const Rank> members) {
  std::vector<int32_t> first(static_cast<size_t>(graph.num_domains()), -1), order(members.size());
  std::iota(order.begin(), order.end(), 0);
  for (int32_t m : order) {
    int32_t& f = first[graph.Domain(members[m])];
    if (f < 0) f = m;
  }
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return first[graph.Domain(members[a])] < first[graph.Domain(members[b])];
  });
  return FromMembers(members, std::move(order));
}

StatusOr<std::vector<std::vector<Rank>>> EqualDomains(const RankGraph& graph, std::span<const Rank> members,
                                                      std::string_view engine, std::string_view hint) {
  std::vector<std::vector<Rank>> hosts;
  std::vector<int32_t> host_of(static_cast<size_t>(graph.num_domains()), -1);
  for (const Rank member : members) {
    int32_t& h = host_of[graph.Domain(member)];
    if (h < 0) h = static_cast<int32_t>(hosts.size()), hosts.emplace_back();
    hosts[static_cast<size_t>(h)].push_back(member);
  }
  if (hosts.size() == 1)
    return InvalidInput(fmt::format("{}: all {} ranks are on one host; expected several; hint: --engine={}",
                                    engine, members.size(), hint));
  for (const std::vector<Rank>& host : hosts)
    if (host.size() != hosts[0].size())
      return InvalidInput(
          fmt::format("{}: {} ranks on one host and {} on another; expected equal numbers; "
                      "hint: --engine={}",
                      engine, hosts[0].size(), host.size(), hint));
  return hosts;
}

Positions CubePositions(const RankGraph& graph, std::span<const Rank> members) {
  const int32_t n = static_cast<int32_t>(members.size());
  if (n == graph.num_ranks() && n == PowerBelow(n)) {
    if (const std::optional<Grid> grid = DetectGrid(graph)) {
      std::vector<int32_t> member_of(static_cast<size_t>(n)), order(static_cast<size_t>(n));
      for (int32_t m = 0; m < n; ++m) member_of[members[m].index()] = m;
      for (int32_t p = 0; p < n; ++p) {
        int32_t rank = 0;
        for (size_t i = 0; i < grid->dims.size(); ++i) {
          int32_t x = p / grid->Stride(i) % grid->dims[i];
          if (grid->dims[i] == 4 && grid->wraps[i]) x ^= x >> 1;
          rank += x * grid->Stride(i);
        }
        order[p] = member_of[rank];
      }
      return FromMembers(members, std::move(order));
    }
  }
  return DomainPositions(graph, members);
}

Positions StartingAt(const Positions& positions, Rank root, bool xor_turn) {
  const int32_t n = positions.size(), start = positions.Of(root);
  Positions turned;
  for (int32_t p = 0; p < n; ++p) {
    const int32_t from = xor_turn ? p ^ start : (p + start) % n;
    turned.rank.push_back(positions.rank[from]);
    turned.member.push_back(positions.member[from]);
  }
  return turned;
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
    moves.Add({run, src, dst, step, TransferOp::kCopy, std::nullopt});
    run = block;
  }
  moves.Add({run, src, dst, step, TransferOp::kCopy, std::nullopt});
}

int32_t PowerBelow(int32_t n) {
  int32_t power = 1;
  while (power <= n / 2) power *= 2;
  return power;
}

int32_t CeilLog2(int32_t n) {
  int32_t s = 0;
  while ((int64_t{1} << s) < n) ++s;
  return s;
}

}  // namespace xccl
