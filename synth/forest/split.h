// Takes switches, NICs, CPUs and ranks that take no part out of a network, without loss of rate: a node's
// capacity in and out is joined pair by pair (splitting off) so that no cut falls below what it must carry.
// Mader 1978; Bang-Jensen, Frank and Jackson 1995: in Eulerian networks all of it can be.
#pragma once

#include "base/status.h"
#include "synth/forest/graph.h"
#include "synth/forest/network.h"

namespace xccl::forest {

// Afterwards all capacity is between members, and the demands can still be met. Requires: they can.
// Errors: kInvalidInput naming a node that cannot be taken out at this rate (it is not Eulerian); kLimit when
// `work`, counted down, is used up. Cost: a few cut searches (one flow a member) a node where ports are
// alike.
Status RemoveRelays(const Topology& topology, Network& network, int64_t& work);

}  // namespace xccl::forest
