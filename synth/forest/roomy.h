// The machine with less bandwidth on links that the best rate does not need in full. A linear program of
// trees that only looks at the busiest link fills others for no reason, and what passes many full links waits
// at each of them. Trees that are packed on this machine leave such links some time.
#pragma once

#include <optional>

#include "synth/common/synthesizer.h"
#include "topologies/topology.h"

namespace xccl::forest {

// Links that join the same kinds of nodes and are as fast are relieved together, where the bound for the
// request's bandwidth stays as it is. They keep the part `kept` of their own, from 0.5 to 1. Node and link
// ids are those of the request's machine. Absent where no links can be relieved. Cost: a fast bound for each
// kind of links.
std::optional<Topology> RoomyMachine(const SynthesisRequest& request, double kept);

}  // namespace xccl::forest
