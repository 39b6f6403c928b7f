// Schedule → Program: the passes, in the one list that lower.cc runs. Each pass is a header of its own under
// ir/lowering/, which says what it guarantees.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

struct LowerOptions {
  int64_t size_bytes = 64LL << 20;  // the size that segments are chosen for
  int32_t slots = 2;                // of every connection, at least; more where a step cannot do with so few
  bool fuse = true;                 // join a receive and the send that forwards it
  int32_t merge = 16;               // most neighbouring chunks that one instruction moves
};

// At most so many transfers of a compressed schedule's plain form are lowered.
inline constexpr int64_t kMostLoweredTransfers = 16'000'000;

// Requires: a normalized schedule that verifies. Errors: kLimit beyond kMostLoweredTransfers; kInvalidInput
// for what a Program cannot say, naming it. Multicasts and in-switch reductions are sent to, and received
// from, one rank after the other. The result verifies.
StatusOr<Program> Lower(const Schedule& schedule, const Collective& collective, const Topology& topology,
                        const LowerOptions& options = {});

}  // namespace xccl
