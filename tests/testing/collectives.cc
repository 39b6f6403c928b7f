#include "tests/testing/collectives.h"

#include <fmt/core.h>

#include <algorithm>

namespace xccl::testing {
namespace {

// Every rank passes its part on; the first rank also gets the sum of a part that all hold.
Collective ShiftAndSum(int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kCustom;
  spec.custom_name = "shift-and-sum";
  const std::vector<Rank> all = AllRanks(ranks);
  for (int32_t r = 0; r < ranks; ++r) {
    const Rank rank(r);
    spec.custom_weights.push_back(1 + r % 3);
    spec.pre.push_back({rank, PartId(r), {rank}});
    spec.post.push_back({Rank((r + 1) % ranks), PartId(r), {rank}});
  }
  spec.ranks = all;
  spec.custom_weights.push_back(2);
  for (Rank r : all) spec.pre.push_back({r, PartId(ranks), {r}});
  spec.post.push_back({Rank(0), PartId(ranks), all});
  return Collective::Create(spec).value();
}

}  // namespace

std::vector<Collective> AllCollectives(int32_t ranks) {
  std::vector<Collective> collectives;
  for (CollectiveKind kind : AllNamedCollectives()) {
    CollectiveSpec spec;
    spec.kind = kind;
    spec.ranks = AllRanks(ranks);
    if (kind == CollectiveKind::kAllgatherv || kind == CollectiveKind::kReduceScatterv)
      for (int32_t r = 0; r < ranks; ++r) spec.counts.push_back(r == 1 ? 0 : 3 + 2 * r);
    if (kind == CollectiveKind::kAlltoallv)
      for (int32_t i = 0; i < ranks * ranks; ++i) spec.counts.push_back(i % 4);
    if (kind == CollectiveKind::kSendrecv)
      for (int32_t r = 0; r < ranks; ++r) {
        spec.pairs.emplace_back(Rank(r), Rank((r + 1) % ranks));
        if (r > 1) spec.pairs.emplace_back(Rank(0), Rank(r));
      }
    if (IsRooted(kind)) spec.root = Rank(0);
    collectives.push_back(Collective::Create(spec).value());
    if (IsRooted(kind) && ranks > 1) {
      spec.root = Rank(ranks - 1);
      collectives.push_back(Collective::Create(spec).value());
    }
  }
  collectives.push_back(ShiftAndSum(ranks));
  return collectives;
}

std::vector<Collective> SubsetCollectives(const std::vector<Rank>& ranks) {
  std::vector<Collective> collectives;
  for (const Collective& collective : AllCollectives(static_cast<int32_t>(ranks.size()))) {
    CollectiveSpec spec = collective.spec();
    const auto rename = [&](Rank& r) { r = ranks[r.index()]; };
    for (Rank& r : spec.ranks) rename(r);
    if (spec.root) rename(*spec.root);
    for (auto& [from, to] : spec.pairs) {
      rename(from);
      rename(to);
    }
    for (std::vector<TableEntry>* const table : {&spec.pre, &spec.post}) {
      for (TableEntry& entry : *table) {
        rename(entry.rank);
        for (Rank& r : entry.contributions) rename(r);
        std::ranges::sort(entry.contributions);
      }
    }
    collectives.push_back(Collective::Create(spec).value());
  }
  return collectives;
}

std::string Describe(const Collective& collective) {
  std::string text = collective.name();
  if (collective.spec().root) text += fmt::format(" root {}", collective.spec().root->value);
  return text + fmt::format(" on {} ranks", collective.num_members());
}

}  // namespace xccl::testing
