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
Topology MakeDgx1();
// Hosts with a fast switch (100 GB/s) inside and a NIC a GPU to one fabric switch.
Topology MakeCluster(int32_t hosts, int32_t gpus);
// One cable each, both ways.
Topology MakeGraph(int32_t ranks, const std::vector<std::pair<int32_t, int32_t>>& cables);
// One-way links.
Topology MakeDigraph(int32_t ranks, const std::vector<std::pair<int32_t, int32_t>>& links);

struct Machine {
  std::string name;
  Topology topology;
};

// One of every shape, 1 to 16 ranks.
std::vector<Machine> Machines();
// A collective with a root that is not first, uneven counts, pairs half a circle apart.
CollectiveSpec SpecOf(CollectiveKind kind, std::vector<Rank> ranks);
// All ranks, and where there are six or more, two subsets in odd orders.
std::vector<std::vector<Rank>> MemberLists(int32_t ranks);

}  // namespace xccl::testing
