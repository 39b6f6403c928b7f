// The trees of an expert plan, in each of the ways that the planner compares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "dispatch/domains.h"
#include "dispatch/plan.h"

namespace xccl::dispatch {

// How rows go to another domain. Inside a domain they go straight, or through its ranks where no path joins
// two.
enum class Way : uint8_t {
  kDirect,  // from the home straight to each rank: once per rank
  kRail,  // to the rank of the other domain that is cheapest to reach, which passes them on: once per domain
  kHomeRail,  // through the rank of the home's domain that reaches the destination at least cost (NCCL's PXN)
  kSpread,  // first to another rank of the home's domain, a different one for each lane, then as kRail: every
            // rank's rows use all NICs of its host alike, however uneven the ranks' counts are
  kSameIndex,  // to the rank with the home's own place in the other domain, cheapest or not (DeepEP)
};

struct Route {
  std::string name;
  Way way = Way::kRail;
  Entry entry = Entry::kFixed;
  int32_t lanes = 1;
  bool by_nic = false;  // Entry::kNeeded: rows come in by the NIC of the rank that the tree says
};

// A plan without hops: lanes, domains, trees and stages. Errors: kInfeasible if some rank cannot reach
// another.
StatusOr<ExpertPlan> PlantTrees(const Topology& topology, const Domains& domains, const Paths& paths,
                                const Sizes& sizes, const Route& route);

}  // namespace xccl::dispatch
