// Pictures of machines and of schedules: SVG, and Graphviz dot with the places of a layout. Each is a whole
// document that needs nothing else; the same value gives the same bytes. docs/interchange.md.
#pragma once

#include <cstdint>
#include <string>

#include "draw/layout/layout.h"
#include "ir/simulate/trace.h"
#include "topologies/topology.h"

namespace xccl {

// The machine as draw/layout places it. Lines are as wide as their cables are fast (on a logarithmic
// scale) and have one colour for each kind of link; the legend says which.
std::string TopologySvg(const Topology& topology, const MachineLayout& layout);
// The machine as Graphviz text for `neato -n` or `dot -Kneato -n`: every node has a pos, so Graphviz moves
// nothing.
std::string TopologyDot(const Topology& topology, const MachineLayout& layout);

struct ScheduleDrawing {
  std::string title;     // "allreduce of 64MiB on dgx1, by forest"
  std::string model;     // "pipelined"
  int64_t bound_ps = 0;  // 0: not drawn
};
// Draws the schedule twice: step by step on the machine, if there are few steps and items; and as a timeline
// of its links, messages coloured by step, the critical path outlined. The timeline has a limited number of
// rows: where more links are used, it shows the busiest.
std::string ScheduleSvg(const Topology& topology, const MachineLayout& layout, const ScheduleTrace& trace,
                        const ScheduleDrawing& drawing);

}  // namespace xccl
