#include "ir/bounds/orbits.h"

#include "ir/translated.h"

namespace xccl {

const SymmetryGroup& Orbits::OfMachine() {
  if (!of_machine_) of_machine_ = FindTranslations(*topology_);
  return *of_machine_;
}

const SymmetryGroup& Orbits::OfCollective(const Collective& collective, const CollectiveSizes& sizes) {
  if (!of_collective_) of_collective_ = TranslationsFor(collective, *topology_, &sizes);
  return *of_collective_;
}

std::vector<Rank> Orbits::OneOfEach(const Collective& collective, const CollectiveSizes& sizes) {
  std::vector<Rank> kept(collective.ranks().begin(), collective.ranks().end());
  if (topology_->num_ranks() < kManyRanks) return kept;
  const bool sum_of_all =
      IsAllreduce(collective.kind()) && collective.num_members() == topology_->num_ranks();
  const SymmetryGroup& group = sum_of_all ? OfMachine() : OfCollective(collective, sizes);
  std::erase_if(kept, [&](Rank r) { return group.Representative(group.OrbitOf(r)) != r; });
  return kept;
}

}  // namespace xccl
