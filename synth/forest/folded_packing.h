// Packs trees on a machine that is too large and too uneven for the linear program of
// synth/forest/packings.h. The trees are packed between hosts (synth/forest/folded_hosts.h), and then
// unfolded into the hosts (synth/forest/unfolder.h). Their rate is near the best rate if the cables of hosts,
// or the switches between hosts, are the bottleneck.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "synth/forest/packings.h"

namespace xccl::forest {

// Returns the rows of the linear program on the folded machine. Returns nullopt if PackFolded does not serve
// the request: "folded" is passed over, chunks are given, some rank is no member, the collective is a
// barrier, fewer than two hosts have GPUs, or there would be more than kMostRows rows.
std::optional<int64_t> FoldedRows(const SynthesisRequest& request);

// Packs trees at the best rate between hosts; for an allreduce, pairs of trees. Requires that FoldedRows
// returns a number, and a task without symmetry and twins. Errors: kLimit if the solver fails, the GPUs of a
// host do not reach each other inside the host, the cables of two hosts do not meet, or the plan would have
// too many transfers.
StatusOr<Candidate> PackFolded(const Task& task, const PackingAim& aim);

}  // namespace xccl::forest
