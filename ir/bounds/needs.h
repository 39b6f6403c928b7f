// Which ranks need whose data, without amounts: the input of distances and reachability.
#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"

namespace xccl {

// A chunk of the part that is not always empty.
std::optional<ChunkId> UsedChunk(const Collective& collective, PartId part);

// Every destination must get something that at first only the holders have.
struct Need {
  std::vector<Rank> holders;       // sorted, not empty
  std::vector<Rank> destinations;  // sorted; none of them a holder
  bool operator==(const Need&) const = default;
};

// One need per set of holders, ordered by holders; chunks that are always empty are left out. A sum needs
// each of its contributions from some rank that holds it. Contributions that nobody holds are left out: the
// collective is then impossible, which verification reports.
// Cost: for each part, contributions needed × holders.
std::vector<Need> NeedsOf(const Collective& collective);

// Kinds in which each destination needs something from every other member: too many pairs to list.
struct AllToAll {
  std::vector<Rank> holders;       // sorted; each one's data must reach every destination but itself
  std::vector<Rank> destinations;  // sorted
};
std::optional<AllToAll> AllToAllOf(const Collective& collective);

}  // namespace xccl
