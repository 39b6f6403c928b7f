// Plans over switches that work: data goes down trees that switches multicast, sums come up trees that
// switches add up, and every link of a tree carries a byte once. Two engines: `multicast` (NVLS), whose trees
// pass one switch, and `in-network` (SHARP), whose trees pass any number and are joined by GPUs where no
// switch joins them.
//
// In: a request; out: trees, one for every share of a part or, for an allreduce, of the buffer, and their
// schedule. An allreduce sums its shares up at their roots, which send them down again; all ranks get copies
// of one sum. Cost: trees × links × log, and simulations of an allreduce in a few numbers of waves.
// Errors: kInvalidInput for a kind that has nothing to multicast or to add up, for a machine whose switches
// cannot, saying which, and where members are joined by other ranks alone.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine MulticastEngine();
Engine InNetworkEngine();

}  // namespace xccl
