#include "ir/bounds/needs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace xccl {

std::optional<ChunkId> UsedChunk(const Collective& collective, PartId part) {
  const ChunkId first = collective.FirstChunk(part);
  for (int32_t i = 0; i < collective.ChunksOf(part); ++i)
    if (!collective.AlwaysEmpty(ChunkId(first.value + i))) return ChunkId(first.value + i);
  return std::nullopt;
}

std::set<Fact> FactsOf(const Collective& collective, PartId part) {
  std::set<Fact> facts;
  const std::optional<ChunkId> chunk = UsedChunk(collective, part);
  if (!chunk) return facts;
  std::vector<Holding> before, after;
  collective.Before(*chunk, before);
  collective.After(*chunk, after);
  std::map<Rank, Fact> of;  // by contribution
  for (const Holding& held : before)
    for (Rank c : held.contributions) of[c].holders.push_back(held.rank);
  for (const Holding& wanted : after) {
    for (Rank c : wanted.contributions)
      if (const auto found = of.find(c); found != of.end()) found->second.needers.push_back(wanted.rank);
  }
  for (auto& [c, fact] : of) {
    std::ranges::sort(fact.holders);
    std::ranges::sort(fact.needers);
    if (!std::ranges::includes(fact.holders, fact.needers)) facts.insert(std::move(fact));
  }
  return facts;
}

std::vector<Need> NeedsOf(const Collective& collective) {
  const KindTraits& traits = TraitsOf(collective.kind());
  const bool even_pairs = traits.parts == KindTraits::Parts::kPerPair && !traits.counted;
  const bool one_to_all = traits.parts == KindTraits::Parts::kPerMember && !IsRooted(collective.kind());
  if (even_pairs || one_to_all || IsAllreduce(collective.kind())) {
    Need all{{collective.ranks().begin(), collective.ranks().end()}, {}, true};
    std::vector<Rank> counted;
    for (int32_t i = 0; one_to_all && i < collective.num_members(); ++i)
      if (UsedChunk(collective, PartId(i))) counted.push_back(collective.ranks()[i]);
    std::ranges::sort(all.holders);
    std::ranges::sort(counted);
    all.destinations = all.holders;
    if (one_to_all) (IsReduction(collective.kind()) ? all.destinations : all.holders) = std::move(counted);
    return {std::move(all)};
  }
  std::map<std::vector<Rank>, std::set<Rank>> destinations;  // by holders
  for (int32_t p = 0; p < collective.num_parts(); ++p) {
    for (const Fact& fact : FactsOf(collective, PartId(p))) {
      std::set<Rank>& own = destinations[fact.holders];
      std::ranges::set_difference(fact.needers, fact.holders, std::inserter(own, own.end()));
    }
  }
  std::vector<Need> needs;
  for (const auto& [holders, own] : destinations) needs.push_back({holders, {own.begin(), own.end()}});
  return needs;
}

}  // namespace xccl
