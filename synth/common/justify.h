// A schedule says in which order a link serves what waits. The order that an engine gives looks forward from
// the sources; this one looks back from the end. The schedule is simulated, played backwards in the order in
// which its transfers arrived, simulated, and played backwards again. What the end needs first then goes
// first, and waits that no link and no rank imposes are gone. In project scheduling that is double
// justification (Valls, Ballestín and Quintanilla, 2005).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/common/synthesizer.h"
#include "topologies/topology.h"

namespace xccl {

// The schedule's transfers in other steps: every link serves them by ascending key, but what a transfer reads
// and overwrites is as before. Keys from 0 to the largest fall into so many bins; in one bin the order is
// free, so that messages are not torn. key: by transfer, then chunk, >= 0. Requires: a normalized, plain
// schedule that verifies, of chains. Cost: transfers × chunks each moves × links of a path; memory: ranks ×
// chunks.
Schedule InOrderOf(const Schedule& schedule, std::span<const int64_t> key, int32_t bins,
                   const Topology& topology);

// In the order in which its transfers arrive in a simulation. Absent where the schedule is compressed, where
// a path is a tree, or where it is too much work. Requires: a normalized schedule that verifies.
std::optional<Schedule> InOrderOfArrival(const Schedule& schedule, const Collective& collective,
                                         const Topology& topology, int64_t size_bytes);

// The plan after double justifications, as many as gain, simulated. `work`: hops of chunks
// that may still be simulated, about 0.3 us each; goes down by those that were. Absent where it is not
// faster, where a path is a tree, or where it is too much work. Requires: a simulated plan of a pipelined
// request.
std::optional<Synthesis> Justified(const Synthesis& plan, const SynthesisRequest& request, int64_t& work);

}  // namespace xccl
