// alltoall(v) on hosts of equal size with fast links inside, after FAST (NSDI 2026), however skewed. What
// goes from host to host is dealt out evenly to the rails (the j-th GPU of every host): a GPU with more than
// its share hands the rest to others of its host, rails cross, and the destination's host hands on. Hosts
// meet in Birkhoff's stages (synth/textbook/birkhoff.h), so that no receiver is crowded. Where links inside
// are fast enough that takes what the fullest host sends or receives, over all its NICs: the least there is.
#pragma once

#include "base/status.h"
#include "synth/common/rank_graph.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Requires: an alltoall or alltoallv, parts whole. Linear in pieces, at most parts + hosts^2 x 2 GPUs of a
// host, but for the stages: about a microsecond for every 30 pieces. Errors: kInvalidInput
// "hierarchical-alltoall: ..." on one host, on hosts of unequal size, and where GPUs of a host or of a rail
// are not next to each other.
StatusOr<Synthesis> PlanTwoTier(const RankGraph& graph, const Collective& collective);

}  // namespace xccl
