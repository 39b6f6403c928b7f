// Finds groups that are alike: a translation of the machine (topologies/symmetry.h) takes the members, root
// and pairs of one group to those of the other, in their order, and both have the same collective, size and
// counts. Groups that are alike are of one kind. A plan or a bound of one group, translated, holds for all
// groups of its kind, so each kind is planned and bounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "synth/groups/groups.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

class AlikeGroups {
 public:
  // Cost: FindTranslations, and generators × members of all groups.
  AlikeGroups(const Topology& topology, const std::vector<ProcessGroup>& groups);

  // Kinds are numbered in the order of their first groups.
  size_t num_kinds() const { return first_.size(); }
  size_t KindOf(size_t group) const { return kind_[group]; }
  size_t FirstOf(size_t kind) const { return first_[kind]; }
  // The translation that takes the first group of the kind to this group; 0 for the first group itself.
  int64_t ElementOf(size_t group) const { return element_[group]; }
  const SymmetryGroup& translations() const { return translations_; }

 private:
  SymmetryGroup translations_;
  std::vector<size_t> kind_, first_;
  std::vector<int64_t> element_;
};

}  // namespace xccl
