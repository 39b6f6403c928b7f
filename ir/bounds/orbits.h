// The translations of one machine, found when a bound first asks for them and kept for the other bounds.
#pragma once

#include <optional>
#include <vector>

#include "ir/collective.h"
#include "ir/sizes.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// Not safe for use by several threads. Requires: the topology outlives it.
class Orbits {
 public:
  explicit Orbits(const Topology& topology) : topology_(&topology) {}

  // Returns FindTranslations() of the machine.
  const SymmetryGroup& OfMachine();
  // Returns TranslationsFor() of the collective. Requires: every call is for the same collective and sizes.
  const SymmetryGroup& OfCollective(const Collective& collective, const CollectiveSizes& sizes);
  // Returns one member of each orbit, if the translations keep the collective; otherwise, and on few ranks,
  // returns all members. An allreduce of all ranks is kept even if parts do not map to parts. Requires: as
  // OfCollective.
  std::vector<Rank> OneOfEach(const Collective& collective, const CollectiveSizes& sizes);

 private:
  const Topology* topology_;
  std::optional<SymmetryGroup> of_machine_, of_collective_;
};

}  // namespace xccl
