// Runs one rank's part of a Program. One thread drives all threadblocks of its rank in turn. Each is a list
// with a position; an instruction runs when its dependencies are done, its message has come and a slot is
// free. An instruction moves one slot-sized message, so none is ever half done. Threadblocks cost no threads:
// 64 ranks of 63 threadblocks run on two cores. The rank's buffers are memory of the host, and the thread
// computes on them itself; messages go through an Endpoint.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/status.h"
#include "ir/numbers.h"
#include "runtime/endpoint.h"
#include "runtime/rank_work.h"
#include "runtime/transport/call_signature.h"

namespace xccl {

struct ExecuteOptions {
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  // The operation fails as stuck when no rank of it has moved for this long.
  std::chrono::nanoseconds time_limit = std::chrono::seconds(30);
  CallSignature call = {};  // equal on all ranks, else the call fails on all ranks
};

struct RankBuffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;  // work.scratch_bytes
};

// Returns when the rank's output is complete and its input may change. Errors: the reason why the operation
// failed, on whichever rank; kLimit "rank 3: threadblock 2, instruction 5 (recv): ..." when it is stuck.
// Requires: in place, input and output overlap as Collective::InPlaceOf says.
Status ExecuteRank(const RankWork& work, const ExecuteOptions& options, const RankBuffers& buffers,
                   Endpoint& endpoint);

}  // namespace xccl
