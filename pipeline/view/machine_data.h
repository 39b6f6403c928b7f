// Writes the machine's part of the page: its nodes and links, and its drawing. The page describes the data as
// TopologyData and DrawingData (view/src/view/data.ts).
#pragma once

#include "base/json/json_writer.h"
#include "topologies/topology.h"

namespace xccl::view {

// Writes the members "topology" and "drawing".
void WriteMachine(const Topology& topology, JsonWriter& json);

}  // namespace xccl::view
