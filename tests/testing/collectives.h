// Collectives for tests that run over all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/collective.h"

namespace xccl::testing {

// One of every kind on ranks 0..ranks-1, a user-defined one among them: rooted kinds with the first and with
// the last rank as root, uneven and zero counts, pairs that share ends.
std::vector<Collective> AllCollectives(int32_t ranks);
// The same on the ranks given, in their order.
std::vector<Collective> SubsetCollectives(const std::vector<Rank>& ranks);
// "broadcast root 1", for failure messages.
std::string Describe(const Collective& collective);

}  // namespace xccl::testing
