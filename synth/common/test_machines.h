// Small machines for the engines' tests, made without the topology readers. All links have 10 GB/s and 1 us
// unless a comment says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "topologies/topology.h"

namespace xccl::testing {

Topology MakeGrid(const std::vector<int32_t>& dims, bool wrap);
Topology MakeRing(int32_t ranks);
Topology MakeFullMesh(int32_t ranks);
Topology MakeSwitch(int32_t ranks);
Topology MakeHypercube(int32_t dim);
// A DGX-1 with 8 GPUs. A cable of 25 or 50 GB/s joins each pair of neighbours; links have 0.7 us.
Topology MakeDgx1();
// A cluster. Each host has a 100 GB/s switch for its GPUs. Each GPU has a NIC to the fabric switch.
Topology MakeCluster(int32_t hosts, int32_t gpus);
// A machine of one cable (two links) for each pair of ranks in `cables`.
Topology MakeGraph(int32_t ranks, const std::vector<std::pair<int32_t, int32_t>>& cables);
// A line of nodes. Node n has one link, to node n + 1, with bandwidths_gb_per_s[n] and 1 ps. `switches` lists
// the nodes that are switches.
Topology MakeLine(const std::vector<int64_t>& bandwidths_gb_per_s, const std::vector<int32_t>& switches);
// A machine of one link for each pair of ranks in `links`, from the first rank to the second.
Topology MakeDigraph(int32_t ranks, const std::vector<std::pair<int32_t, int32_t>>& links);

struct Machine {
  std::string name;
  Topology topology;
};

// Returns machines of many shapes, with 1 to 16 ranks.
std::vector<Machine> Machines();
// Returns a collective over the ranks. Depending on the kind, it has a root in the middle of the list, uneven
// counts, or pairs half a circle apart.
CollectiveSpec SpecOf(CollectiveKind kind, std::vector<Rank> ranks);
// Returns the list of all ranks and, if there are at least six ranks, two subsets in unsorted order.
std::vector<std::vector<Rank>> MemberLists(int32_t ranks);

}  // namespace xccl::testing
