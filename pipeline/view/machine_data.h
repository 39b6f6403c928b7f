// The machine's part of the page: its nodes and links, and how it is drawn. view/src/view/data.ts:
// TopologyData, DrawingData.
#pragma once

#include "base/json/json_writer.h"
#include "topologies/topology.h"

namespace xccl::view {

// Writes the members "topology" and "drawing".
void WriteMachine(const Topology& topology, JsonWriter& json);

}  // namespace xccl::view
