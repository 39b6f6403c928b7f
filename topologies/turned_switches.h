// Lets the translations of a machine move switches that look alike. FindTranslations moves ranks, and may
// leave the spines above a set of leaves in their places. All translates of a path then pass one spine. After
// TurnSwitches a translation also takes each spine to the next one, so that translates of a path use all
// spines evenly.
#pragma once

#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// Returns a group that moves ranks as `group` does and has at most as many orbits of links. Alike are parts
// of the network that have no GPU and are joined in the same way to the same other nodes: single spines, or
// an aggregation switch of every pod with the core switches that join them. Deterministic. Cost: near linear
// in (nodes + links) × (generators + tiers of switches).
SymmetryGroup TurnSwitches(const Topology& topology, const SymmetryGroup& group);

}  // namespace xccl
