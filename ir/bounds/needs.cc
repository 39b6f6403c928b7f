#include "ir/bounds/needs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace xccl {
namespace {

using NeedMap = std::map<std::vector<Rank>, std::vector<Rank>>;

std::vector<Need> Finish(NeedMap& map) {
  std::vector<Need> needs;
  for (auto& entry : map) {
    const std::vector<Rank>& holders = entry.first;
    std::vector<Rank>& destinations = entry.second;
    std::sort(destinations.begin(), destinations.end());
    destinations.erase(std::unique(destinations.begin(), destinations.end()), destinations.end());
    std::erase_if(destinations,
                  [&](Rank r) { return std::binary_search(holders.begin(), holders.end(), r); });
    if (!destinations.empty()) needs.push_back({holders, std::move(destinations)});
  }
  return needs;
}

bool Covers(std::span<const Rank> set, std::span<const Rank> subset) {
  return std::includes(set.begin(), set.end(), subset.begin(), subset.end());
}

void AddPart(const Collective& collective, ChunkId chunk, NeedMap& map) {
  std::vector<Holding> before, after;
  collective.Before(chunk, before);
  collective.After(chunk, after);
  std::map<Rank, std::vector<Rank>*>
      holders_of;  // by contribution: the destinations of its need; null: it has no holder
  for (const Holding& wanted : after)
    for (Rank contribution : wanted.contributions) holders_of.emplace(contribution, nullptr);
  for (auto& [contribution, destinations] : holders_of) {
    std::vector<Rank> holders;
    for (const Holding& held : before)
      if (Covers(held.contributions, std::span(&contribution, 1))) holders.push_back(held.rank);
    std::sort(holders.begin(), holders.end());
    if (!holders.empty()) destinations = &map[std::move(holders)];
  }
  for (const Holding& wanted : after) {
    const auto own =
        std::find_if(before.begin(), before.end(), [&](const Holding& h) { return h.rank == wanted.rank; });
    if (own != before.end() && Covers(own->contributions, wanted.contributions)) continue;
    for (Rank contribution : wanted.contributions)
      if (std::vector<Rank>* const destinations = holders_of[contribution])
        destinations->push_back(wanted.rank);
  }
}

}  // namespace

std::optional<ChunkId> UsedChunk(const Collective& collective, PartId part) {
  const ChunkId first = collective.FirstChunk(part);
  for (int32_t i = 0; i < collective.ChunksOf(part); ++i)
    if (!collective.AlwaysEmpty(ChunkId(first.value + i))) return ChunkId(first.value + i);
  return std::nullopt;
}

std::vector<Need> NeedsOf(const Collective& collective) {
  NeedMap map;
  for (int32_t p = 0; p < collective.num_parts(); ++p)
    if (const std::optional<ChunkId> chunk = UsedChunk(collective, PartId(p)))
      AddPart(collective, *chunk, map);
  return Finish(map);
}

std::optional<AllToAll> AllToAllOf(const Collective& collective) {
  const KindTraits& traits = TraitsOf(collective.kind());
  const bool even_pairs = traits.parts == KindTraits::Parts::kPerPair && !traits.counted;
  const bool one_to_all = traits.parts == KindTraits::Parts::kPerMember && !IsRooted(collective.kind());
  if (!even_pairs && !one_to_all && !IsAllreduce(collective.kind())) return std::nullopt;
  AllToAll all{{collective.ranks().begin(), collective.ranks().end()}, {}};
  std::vector<Rank> counted;
  for (int32_t i = 0; one_to_all && i < collective.num_members(); ++i)
    if (UsedChunk(collective, PartId(i))) counted.push_back(collective.ranks()[i]);
  std::sort(all.holders.begin(), all.holders.end());
  std::sort(counted.begin(), counted.end());
  all.destinations = all.holders;
  if (one_to_all) (IsReduction(collective.kind()) ? all.destinations : all.holders) = std::move(counted);
  return all;
}

}  // namespace xccl
