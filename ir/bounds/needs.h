// The data that must move: contributions, by the ranks that hold them and the ranks that need them.
#pragma once

#include <compare>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"

namespace xccl {

// A chunk of the part that is not always empty.
std::optional<ChunkId> UsedChunk(const Collective& collective, PartId part);

// A contribution to a part, or several with the same holders and the same needers.
struct Fact {
  std::vector<Rank> holders, needers;  // sorted, not empty; some needer is no holder
  auto operator<=>(const Fact&) const = default;
};
// Contributions that nobody holds are left out: the collective is then impossible, which verification
// reports. Cost: near linear in the conditions of a chunk.
std::set<Fact> FactsOf(const Collective& collective, PartId part);

// Every destination must get something that at first only the holders have.
struct Need {
  std::vector<Rank> holders;       // sorted; not empty unless `each`
  std::vector<Rank> destinations;  // the same; without the holders unless `each`
  // Each holder by itself has something that all destinations but itself must get: too many pairs to list.
  bool each = false;
};
// One need per set of holders, ordered by holders; or one for all in kinds where each destination needs
// something from every other member. Chunks that are always empty are left out.
std::vector<Need> NeedsOf(const Collective& collective);

}  // namespace xccl
