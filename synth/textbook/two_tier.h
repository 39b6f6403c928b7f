// Plans alltoall(v) on hosts of equal size with fast links inside, however uneven the data is (after FAST,
// NSDI 2026). Rail j joins the j-th GPUs of all hosts. The data from one host to another is dealt out evenly
// to the rails. A GPU with more than its share first hands the surplus to other GPUs of its host. Then the
// data crosses along the rails, and GPUs of the destination host pass it on to its destination. Hosts send to
// each other in Birkhoff's stages (synth/textbook/birkhoff.h), so that no receiver is crowded. If the links
// inside hosts are fast enough, the plan takes about as long as the fullest host sends or receives over all
// its NICs. No plan takes less time than that.
#pragma once

#include "base/status.h"
#include "synth/common/rank_graph.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Requires an alltoall or alltoallv whose parts are not cut into chunks. Time: linear in the number of
// pieces, plus BirkhoffStages. The number of pieces is at most parts + hosts^2 x GPUs of a host, plus the
// cuts at ends of stages. Errors: kInvalidInput "hierarchical-alltoall: ..." if there is only one host, if
// hosts have unequal sizes, or if two GPUs of a host or of a rail are not neighbours.
StatusOr<Synthesis> PlanTwoTier(const RankGraph& graph, const Collective& collective);

}  // namespace xccl
