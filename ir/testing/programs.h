// Small machines, hand-written schedules, and an oracle that computes a collective's outputs without a
// schedule.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "ir/collective.h"
#include "ir/interpret/interpret.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// Every two ranks joined by a link in each direction. Link a -> b has id a * (ranks - 1) + (b < a ? b : b -
// 1).
Topology FullMesh(int32_t ranks);
// One switch in the middle: link 2r leads from rank r to it, 2r + 1 back.
Topology OneSwitch(int32_t ranks);
// Rank r's cable to rank r + 1 is link 2r there and 2r + 1 back. Two ranks share one cable.
Topology RingOf(int32_t ranks);

// On a full mesh: `kind` over all ranks, root ranks / 2, pairs (r, r + 1), counts 1, 2, 0, 3, 1, 2, 0, 3 ...
Collective MakeCollective(CollectiveKind kind, int32_t ranks);

using Path = std::vector<LinkId>;
Path LinkBetween(const Topology& topology, Rank src,
                 Rank dst);  // the single link; a switch between is passed

// Hand-written algorithms for every kind, over all ranks of a topology that joins any two of them.
enum class Algorithm { kDirect, kRing, kTree };
std::string_view ToString(Algorithm algorithm);
// Absent if the algorithm does not support the kind.
std::optional<Schedule> HandSchedule(Algorithm algorithm, const Collective& collective,
                                     const Topology& topology);

// Inputs that differ by rank and element, and whose sums and products are exact in `type` in every order.
std::vector<std::vector<std::byte>> ExactInputs(const Program& program, const Collective& collective,
                                                const InterpretOptions& options);
// The output buffers that the postcondition requires. Elements that no rank needs are 0xCB bytes.
std::vector<std::vector<std::byte>> ExpectedOutputs(const Program& program, const Collective& collective,
                                                    const std::vector<std::vector<std::byte>>& inputs,
                                                    const InterpretOptions& options);

}  // namespace xccl
