// Values that callers of every kind check and look up alike: sizes, machines, and ranks that carry nothing.
// Errors are without a place; the caller puts its name of the argument in front.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/machine_model.h"
#include "topologies/topology.h"

namespace xccl {

// The largest size: the times of larger ones may not fit into 64 bits of picoseconds.
inline constexpr int64_t kMaxSizeBytes = int64_t{1} << 50;

// Errors: kUsage for more than kMaxSizeBytes.
Status CheckSize(int64_t size_bytes);
// A size that is rounded down to nothing is kUsage, with the least that is not; a size of 0 is meant so.
Status CheckNotEmpty(int64_t size_bytes, const Collective& collective);

// The model of a known machine, of a machine.json or of a plan book; absent for "none", where only links take
// time. Errors: kUsage with "did you mean"; those of reading it.
StatusOr<std::optional<MachineModel>> FindMachine(const std::string& name);

// The machine without the links of ranks that take no part. Errors: kInvalidInput where only idle ranks join
// the members.
StatusOr<Topology> WithoutIdleRanks(Topology whole, const Collective& collective);

}  // namespace xccl
