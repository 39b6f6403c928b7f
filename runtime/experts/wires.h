// The connections of an expert plan as transports know them: every hop has one for dispatch and one back for
// combine. All ranks compute the same from the same plan.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "dispatch/plan.h"
#include "runtime/transport/wiring.h"

namespace xccl::dispatch {

struct ExpertWires {
  const ExpertPlan* plan = nullptr;
  HopIndex index;
  Wiring wiring;
  std::vector<int32_t> there, back;  // by hop: the connections of dispatch and of combine
  bool lend = true;                  // as WireOptions
};

struct WireOptions {
  int64_t memory_limit = int64_t{1} << 28;  // of a host's slots
  // Of a plan for throughput: the slots of a connection hold so much, or all rows that there can be. A plan
  // has the slots that links need. Ranks that share cores wait for their turn as well, and run longer before
  // that where there is more room.
  int64_t connection_bytes = int64_t{1} << 20;
  // Ranks of one host may copy rows that do not fit the slots out of each other's memory.
  bool lend = true;
};

// A slot holds a message of the plan's rows, or a quarter of `connection_bytes` where that is more and fits:
// a network's messages cost system calls. Where no slot of a message for each connection fits `memory_limit`
// it holds fewer rows, or a part of one. Connections have slots for as many bytes as the plan's widest hop or
// as `connection_bytes`, whichever is more, or as many as fit: the order of stages alone keeps ranks from
// waiting in a ring (rule D6). Requires: the plan is proved and outlives the wires. Errors: kInvalidInput for
// stages that do not rise with the depth of the sender, and where slots of 16 bytes of a row do not fit.
StatusOr<ExpertWires> WireExperts(const ExpertPlan& plan, const WireOptions& options = {});

}  // namespace xccl::dispatch
