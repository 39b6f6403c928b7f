// Schedule → Program: the passes, in the one list that lower.cc runs. Each pass is a header of its own under
// ir/lowering/, which says what it guarantees.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl {

struct LowerOptions {
  int64_t size_bytes = 64LL << 20;  // the size and the model that the program is made fast for
  TimeModel model = TimeModel::kPipelined;
  // Given, the protocol is chosen by what it says, too; else it is simple. Must outlive the call.
  const MachineModel* machine = nullptr;
  std::optional<int32_t> max_blocks = {};  // threadblocks of one rank, all instances
  int32_t merge = 16;                      // most neighbouring chunks that one instruction moves
  bool groups = true;                      // false: trees are sent, and received, one rank after the other
  // What is not given is chosen by simulation: the plainest program that keeps the schedule's time.
  std::optional<int32_t> slots =
      {};                         // of every connection, at least; more where a step cannot do with so few
  std::optional<bool> fuse = {};  // join a receive and the send that forwards it
  std::optional<bool> pace = {};  // threadblocks that share a link send in order
};

// At most so many transfers of a compressed schedule's plain form are lowered.
inline constexpr int64_t kMostLoweredTransfers = 16'000'000;

// Requires: a normalized schedule that verifies. Errors: kLimit beyond kMostLoweredTransfers; kInvalidInput
// for what a Program cannot say, naming it. Multicasts and in-switch reductions become groups, unless they
// are faster as one rank after the other. The result verifies.
StatusOr<Program> Lower(const Schedule& schedule, const Collective& collective, const Topology& topology,
                        const LowerOptions& options = {});

// What a plan keeps: waves of neighbouring chunks that take the same ways are folded into passes over one
// chunk, a program of far fewer instructions, where that keeps the schedule's time or is the faster.
// Requirements and errors are Lower's.
StatusOr<LoweredProgram> LowerFolded(const Schedule& schedule, const Collective& collective,
                                     const Topology& topology, const LowerOptions& options = {});

}  // namespace xccl
