// The topologies that have a name: grids, switches, trees. Parameters come from an XML element or a short
// form (docs/topologies.md lists both). Expanding a family adds its nodes and links to a TopologySpec; cost
// linear in them.
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

enum class FamilyKind { kNvswitch, kFullMesh, kGrid, kHypercube, kNetwork };  // a grid: ring, mesh, torus

struct Family {
  FamilyKind kind = FamilyKind::kGrid;
  // The extents of a grid, the number of ranks of an nvswitch or full-mesh, or the dimension of a hypercube.
  std::vector<int64_t> dims;
  std::vector<LinkNumbers> links;  // one entry; mesh and torus: one per dimension
  bool wraps = true;               // for kGrid: false for a mesh
  bool multicast = false;          // kNvswitch: its switch multicasts
  bool reduce = false;
  std::string id = "nvswitch";
  Network network;            // for kNetwork; its end points are GPUs
  int64_t hosts = 0;          // for kNetwork
  int64_t gpus_per_host = 1;  // for kNetwork; more than one with rails
};

// nvswitch, full-mesh, ring, mesh, torus, hypercube, fat-tree, leaf-spine, dragonfly
std::span<const std::string_view> FamilyNames();
// Reads the attributes of the family named reader.element() and checks its size; the reader keeps the errors.
Family ReadFamily(AttributeReader& reader);
// Numbers GPUs from place.first_gpu. If the place has no host, a network's hosts are added, and hosts of
// several GPUs number their own from 0.
// Requires: the family's size was checked.
void AddFamily(const Family& family, const Place& place, TopologySpec& spec);
// The nodes and links that AddFamily adds; saturates at 2^62.
TopologySize SizeOf(const Family& family);

}  // namespace xccl
