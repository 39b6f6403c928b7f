// The data that must move: contributions, with the ranks that hold them and the ranks that need them.
#pragma once

#include <compare>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"

namespace xccl {

// Returns a chunk of the part that is not always empty; nullopt if there is no such chunk.
std::optional<ChunkId> UsedChunk(const Collective& collective, PartId part);

// One or more contributions to a part that have the same holders and the same needers.
struct Fact {
  std::vector<Rank> holders, needers;  // sorted, not empty; some needer is not a holder
  auto operator<=>(const Fact&) const = default;
};
// Returns the facts of a part. Leaves out contributions that no rank holds; verification reports that the
// collective is then impossible. Cost: near linear in the holdings of a chunk before and after.
std::set<Fact> FactsOf(const Collective& collective, PartId part);

// Data that only the holders have at the start and that every destination must get.
struct Need {
  std::vector<Rank> holders;       // sorted; not empty unless `each`
  std::vector<Rank> destinations;  // sorted, not empty and without holders unless `each`
  // Whether each holder has data of its own that all other destinations must get.
  bool each = false;
};
// Returns one need per set of holders, ordered by holders. If the kind of the collective makes every
// destination need data of every other member, returns a single need with `each`. Leaves out chunks that are
// always empty.
std::vector<Need> NeedsOf(const Collective& collective);

}  // namespace xccl
