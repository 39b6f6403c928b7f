// A time that no dispatch or combine of the given choices can beat on the machine, whatever its routes.
#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/domains.h"
#include "dispatch/plan.h"
#include "dispatch/routing.h"
#include "topologies/topology.h"

namespace xccl::dispatch {

// Takes sets of ranks: single ones, domains, and ranks that are joined with less latency than the rest, such
// as those under one PCIe switch or one leaf switch. A row that some rank outside a set needs must leave the
// set once, and a row that a rank inside needs must enter it once; the links between carry no more than a
// maximum flow. The last row also spends the least latency across. combine turns all of that around, since
// partial sums may be taken anywhere.
class Bound {
 public:
  // Cost: a maximum flow for each set and direction.
  Bound(const Topology& topology, const Domains& domains, const Sizes& sizes, Call call);

  // The bound of a routing with these needs; 0 if no row leaves its rank. Cost: tokens × top_k × levels.
  int64_t TimePs(const Needs& needs) const;

 private:
  struct Set {
    int64_t out_bytes_per_s = 0, in_bytes_per_s = 0;  // 0: no way
    int64_t out_latency_ps = 0, in_latency_ps = 0;    // the least to or from a rank outside
  };
  struct Level {
    std::vector<int32_t> set_of_rank;
    std::vector<Set> sets;
  };

  Level MakeLevel(const Topology& topology, std::vector<int32_t> set_of_rank) const;

  Sizes sizes_;
  Call call_;
  std::vector<std::vector<int64_t>> latency_ps_;  // by rank and rank, the least
  std::vector<Level> levels_;
};

}  // namespace xccl::dispatch
