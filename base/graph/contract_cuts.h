// Makes a search for the worst cut smaller: joins nodes that no cut need part.
#pragma once

#include <cstdint>
#include <optional>

#include "base/graph/ratio_cut.h"

namespace xccl {

struct ContractedCuts {
  RatioCutProblem left;  // one node for every set of nodes that stay together; nothing is alike
  RatioCut worst;        // the worst cut around a single node, at any stage
};

// The worst cut of the problem is `worst` or the worst of `left`. Trees become single
// nodes, and so do rings whose cables are as wide in both directions.
// nullopt: a sink cannot be reached from a supply. Requires: supplies and capacities each sum to less than
// 2^62. Cost: near linear.
std::optional<ContractedCuts> ContractCuts(const RatioCutProblem& problem);

}  // namespace xccl
