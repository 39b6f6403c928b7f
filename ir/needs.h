// Who needs whose data, without how much: what distances and reachability are about.
#pragma once

#include <vector>

#include "base/ids.h"
#include "ir/collective.h"

namespace xccl {

// Every destination must get something that, before, only the holders have.
struct Need {
  std::vector<Rank> holders;       // sorted, not empty
  std::vector<Rank> destinations;  // sorted; none of them a holder
  bool operator==(const Need&) const = default;
};

// One need a set of holders, ordered by holders; chunks that are always empty are left out. A sum needs each
// of its contributions from some rank that holds it. Contributions that nobody holds are left out: the
// collective cannot be met, which verification says.
// Cost: members² for kinds in which everyone needs everyone, else linear in the conditions.
std::vector<Need> NeedsOf(const Collective& collective);

}  // namespace xccl
