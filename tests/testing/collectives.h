// Collectives for tests that cover all kinds.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/collective.h"

namespace xccl::testing {

// At least one of every kind on ranks 0..ranks-1, including a user-defined one: rooted kinds with the first
// and the last rank as root, uneven and zero counts, pairs that share ends.
std::vector<Collective> AllCollectives(int32_t ranks);
// Collectives of every kind on the given ranks, in their order.
std::vector<Collective> SubsetCollectives(const std::vector<Rank>& ranks);
// "broadcast root 1", for failure messages.
std::string Describe(const Collective& collective);

}  // namespace xccl::testing
