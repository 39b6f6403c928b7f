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

// A chunk of the part that is not always empty.
std::optional<ChunkId> SomeChunk(const Collective& collective, PartId part) {
  const ChunkId first = collective.FirstChunk(part);
  for (int32_t i = 0; i < collective.ChunksOf(part); ++i)
    if (!collective.AlwaysEmpty(ChunkId(first.value + i))) return ChunkId(first.value + i);
  return std::nullopt;
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

std::vector<Need> NeedsOf(const Collective& collective) {
  NeedMap map;
  const CollectiveSpec& spec = collective.spec();
  switch (spec.kind) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
      XCCL_CHECK(false);  // required: AllToAllOf handles these
      break;
    case CollectiveKind::kReduce:
      for (Rank r : spec.ranks) map[{r}].push_back(*spec.root);
      break;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kAlltoallv:
    case CollectiveKind::kSendrecv:
    case CollectiveKind::kCustom:
      for (int32_t p = 0; p < collective.num_parts(); ++p)
        if (const std::optional<ChunkId> chunk = SomeChunk(collective, PartId(p)))
          AddPart(collective, *chunk, map);
      break;
  }
  return Finish(map);
}

std::optional<AllToAll> AllToAllOf(const Collective& collective) {
  std::vector<Rank> all(collective.ranks().begin(), collective.ranks().end()), counted;
  for (size_t i = 0; i < all.size(); ++i) {
    const PartId part(static_cast<int64_t>(i));
    if (part.value < collective.num_parts() && SomeChunk(collective, part)) counted.push_back(all[i]);
  }
  std::sort(all.begin(), all.end());
  std::sort(counted.begin(), counted.end());
  switch (collective.kind()) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kAlltoall:
      return AllToAll{all, all};
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
      return AllToAll{std::move(counted), std::move(all)};
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
      return AllToAll{std::move(all), std::move(counted)};
    case CollectiveKind::kReduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kAlltoallv:
    case CollectiveKind::kSendrecv:
    case CollectiveKind::kCustom:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace xccl
