// Small changes to a schedule, to test that the verifier rejects wrong ones.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/random.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::testing {

struct Mutation {
  std::string_view name;
  // Changes one or two transfers, chosen by `random`; ids stay in range. Requires: at least one transfer.
  void (*apply)(Schedule& schedule, const Topology& topology, Random& random);
};
std::span<const Mutation> AllMutations();

}  // namespace xccl::testing
