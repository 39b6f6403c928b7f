// Packs trees on a machine that is too large and too uneven for the linear program of
// synth/forest/packings.h. The trees are packed between hosts (synth/forest/folded_hosts.h), and then
// unfolded into the hosts (synth/forest/unfolder.h). Their rate is near the best one if the hosts' cables, or
// the switches between hosts, are the narrow part.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "synth/forest/packings.h"

namespace xccl::forest {

// Returns the rows of the linear program on the folded machine, or nullopt if some ranks take no part, there
// is one host, or there would be more than kMostRows rows.
std::optional<int64_t> FoldedRows(const SynthesisRequest& request);

// Packs trees at the best rate between hosts. For an allreduce they are pairs. Requires FoldedRows, and a
// task without symmetry and twins. Errors: kLimit if the solver fails, the GPUs of a host do not reach each
// other inside the host, or the plan would have too many transfers.
StatusOr<Candidate> PackFolded(const Task& task, const PackingAim& aim);

}  // namespace xccl::forest
