// Checks and look-ups of arguments that all callers of the pipeline share: sizes, machine models, idle ranks.
// Messages about sizes and unknown models do not name the argument; the caller puts its name in front.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/machine_model.h"
#include "topologies/topology.h"

namespace xccl {

// Returns kUsage if the size is larger than kMaxSizeBytes.
Status CheckSize(int64_t size_bytes);
// Returns kUsage if the collective rounds a positive size down to 0 bytes. The message names the least size
// that is not rounded down to 0. A size of 0 is accepted. So is every size of a collective that never moves
// bytes, such as a barrier.
Status CheckNotEmpty(int64_t size_bytes, const Collective& collective);

// Returns the machine model that `name` stands for: a known model, a machine.json, or a plan book, whose
// machine.json is read. Returns nullopt for "none"; then only links take time. Errors: kUsage with "did you
// mean" for an unknown name; errors of reading.
StatusOr<std::optional<MachineModel>> FindMachine(const std::string& name);

// Returns the machine without the links of ranks that are not members. Errors: kInfeasible if the members
// reach each other only through ranks that are not members.
StatusOr<Topology> WithoutIdleRanks(Topology whole, const Collective& collective);

}  // namespace xccl
