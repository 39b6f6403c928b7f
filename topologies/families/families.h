// The shapes that have a name: grids, switches, trees. Parameters come from an XML element or a short form
// (docs/topologies.md lists both); expanding adds nodes and links to a description, linear in their number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topologies/families/attributes.h"
#include "topologies/families/networks.h"
#include "topologies/topology.h"

namespace xccl {

enum class FamilyKind { kNvswitch, kFullMesh, kRing, kMesh, kTorus, kHypercube, kNetwork };

struct Family {
  FamilyKind kind = FamilyKind::kRing;
  // Extents of a mesh or torus; the number of ranks of nvswitch, full-mesh, ring; the dimension of a
  // hypercube.
  std::vector<int64_t> dims;
  std::vector<LinkNumbers> links;  // one; mesh and torus: one a dimension
  bool multicast = false;          // of the nvswitch
  bool reduce = false;
  std::string id = "nvswitch";
  Network network;            // of a kNetwork, whose end points are GPUs
  int64_t hosts = 0;          // hosts of a kNetwork
  int64_t gpus_per_host = 1;  // more than one with rails
};

// nvswitch, full-mesh, ring, mesh, torus, hypercube, fat-tree, leaf-spine, dragonfly
std::span<const std::string_view> FamilyNames();
// Reads the attributes of the family named reader.element() and checks its size; the errors stay in the
// reader.
Family ReadFamily(AttributeReader& reader);
// GPUs are numbered from place.first_gpu; those of a network get a host each where the place has none.
// Requires: the family's size was checked.
void AddFamily(const Family& family, const Place& place, TopologySpec& spec);
// Nodes and links that AddFamily adds; saturates at 2^62.
TopologySize SizeOf(const Family& family);

}  // namespace xccl
