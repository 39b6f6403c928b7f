// The time of a call on GPUs: what the links of its routes take at the rates that they reach, what the
// threadblocks that move its rows take, and the launch and the messages at the ends of each stage. All
// figures are those of ir/machine_model.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "dispatch/plan.h"
#include "ir/machine_model.h"

namespace xccl::dispatch {

// The plan on the links that the model's machine reaches: bandwidths of NVLinks and NICs, and the host's time
// for a message that passes NICs, half at each.
ExpertPlan OnMachine(ExpertPlan plan, const MachineModel& model);

// The time of rows that go over the hops of such a plan; `blocks`: threadblocks of a rank that send; absent:
// so many that they never bound. The first message of a stage is polled for and its last is fenced, so a
// stage costs two messages of the simple protocol beside its bytes. Requires: the plan is one of OnMachine.
int64_t GpuTimePs(const ExpertPlan& plan, Call call, std::span<const int64_t> rows, const MachineModel& model,
                  std::optional<int32_t> blocks);

}  // namespace xccl::dispatch
