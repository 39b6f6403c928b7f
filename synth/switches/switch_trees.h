// Plans in which switches multicast and reduce. Data goes down trees that branch at switches, sums come up
// trees that switches add up, and each link of a tree carries a byte once. Two engines: `multicast` (NVLS),
// whose trees pass one switch, and `in-network` (SHARP), whose trees pass any number of switches.
//
// In: a request. Out: one tree for every share of a part or, for an allreduce, of the buffer, and their
// schedule. The root of each share of an allreduce receives its sum and sends it down again, so all ranks get
// copies of one sum. Cost: trees × links × log, and for an allreduce one simulation for each number of waves.
// Errors: kInvalidInput for a kind that neither multicasts nor reduces, for a machine whose switches cannot,
// and where only ranks that are no members join the members.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine MulticastEngine();
Engine InNetworkEngine();

}  // namespace xccl
