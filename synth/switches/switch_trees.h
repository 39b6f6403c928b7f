// Engines whose plans let switches multicast and reduce. Data goes down trees that branch at switches. Sums
// come up trees whose switches add. Each link of a tree carries each byte once. `multicast` (NVLS) makes
// trees that pass one switch, and `in-network` (SHARP) makes trees that pass any number of switches.
//
// In: a request. Out: one tree for each share of a part, and their schedule. In an allreduce, each share of
// the buffer has a tree of sums and a tree of copies. Their root receives the sum and sends it down again, so
// that all ranks get copies of one sum. Time: trees × links × log(links); an allreduce adds a simulation for
// each number of waves. Errors: kInvalidInput for a kind that neither multicasts nor reduces, if the switches
// cannot do what the kind needs, or if only other ranks join the members; kLimit for too many steps.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine MulticastEngine();
Engine InNetworkEngine();

}  // namespace xccl
