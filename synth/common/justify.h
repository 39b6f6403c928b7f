// Double justification, a method of project scheduling (Valls, Ballestín and Quintanilla, 2005). It improves
// the order in which links serve waiting transfers. The schedule's transfers are put in the order in which
// they arrive in a simulation, and the schedule is reversed. Doing this a second time, on the reversed
// machine, turns the schedule forwards again. Transfers on which the longest chains of transfers depend then
// go first, and waits that no link and no rank causes disappear.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/common/synthesizer.h"
#include "topologies/topology.h"

namespace xccl {

// Returns the schedule's transfers in other steps. Every link serves its transfers by ascending key, except
// that each transfer still reads and overwrites the same data. The range of keys is divided into `bins` bins.
// Within a bin the order is free, so that messages stay whole. `key` has an entry >= 0 for each chunk of each
// transfer, in order. Requires a normalized, plain schedule that verifies, is not empty, and has only chains
// as paths. Cost: transfers × chunks per transfer × links of a path. Memory: ranks × chunks.
Schedule InOrderOf(const Schedule& schedule, std::span<const int64_t> key, int32_t bins,
                   const Topology& topology);

// Returns the schedule with its transfers in the order in which they arrive in a simulation. Returns nullopt
// if the schedule is empty, compressed or too large, or if a path is a tree. Requires a normalized schedule
// that verifies.
std::optional<Schedule> InOrderOfArrival(const Schedule& schedule, const Collective& collective,
                                         const Topology& topology, int64_t size_bytes);

// Repeats double justification while the plan gets faster and the work and the deadline allow. Returns the
// best plan, in plain form, with its simulation. Returns nullopt if no plan is faster, if the plan is empty
// or too large, or if a path is a tree. `work` is the number of hops of chunks that may still be simulated,
// at about 0.3 us each. The function subtracts the hops of the orders that it tries. Requires a simulated
// plan, and a request with the pipelined time model.
std::optional<Synthesis> Justified(const Synthesis& plan, const SynthesisRequest& request, int64_t& work);

}  // namespace xccl
