// Each group is moved by the translation that takes its first member to the representative of that member's
// orbit. Groups are alike if they are equal after these moves. No other translation can take one group to the
// other, because only the identity keeps a rank in place.
#include "synth/groups/alike.h"

#include <map>
#include <utility>

namespace xccl {
namespace {

// Returns a key that groups share if and only if they are alike.
std::vector<int64_t> KeyOf(const ProcessGroup& group, const SymmetryGroup& translations) {
  const CollectiveSpec& spec = group.collective.spec();
  const int64_t back = translations.Inverse(translations.ElementOf(spec.ranks[0]));
  const auto moved = [&](Rank r) { return translations.Image(back, r).value; };
  std::vector<int64_t> key = {static_cast<int64_t>(spec.kind), group.size_bytes,
                              static_cast<int64_t>(spec.ranks.size()), spec.root ? moved(*spec.root) : -1};
  for (Rank r : spec.ranks) key.push_back(moved(r));
  key.insert(key.end(), spec.counts.begin(), spec.counts.end());
  for (const auto& [from, to] : spec.pairs) key.insert(key.end(), {moved(from), moved(to)});
  return key;
}

}  // namespace

AlikeGroups::AlikeGroups(const Topology& topology, const std::vector<ProcessGroup>& groups)
    : translations_(groups.size() > 1 ? FindTranslations(topology) : SymmetryGroup(topology)) {
  std::map<std::vector<int64_t>, size_t> kind_of;
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto [found, is_new] = kind_of.emplace(KeyOf(groups[g], translations_), first_.size());
    if (is_new) first_.push_back(g);
    kind_.push_back(found->second);
    const auto element = [&](size_t group) {
      return translations_.ElementOf(groups[group].collective.spec().ranks[0]);
    };
    element_.push_back(
        translations_.Compose(element(g), translations_.Inverse(element(first_[found->second]))));
  }
}

}  // namespace xccl
