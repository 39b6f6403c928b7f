// A message over held links (synth/common/blocked_links.h) arrives while the next ones of its wave wait, and
// what depends on it comes late, too. Its successors, a wave's steps later, are then ahead of what waits for
// it elsewhere. With a lag the schedule says so: links serve first what is there in time.
#pragma once

#include <cstdint>

#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// The schedule's transfers, where transfers over chains with blocked links come `lag` steps later, and what
// depends on them comes as much later, too. Requires: a normalized schedule in which a rank does not read a
// chunk in the step in which it is written there. Linear in the transfers of chunks.
Schedule WithLag(const Schedule& schedule, const Topology& topology, int32_t lag);

}  // namespace xccl
