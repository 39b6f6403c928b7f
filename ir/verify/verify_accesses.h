// Rule P6 of ir/verify/verify_program.h.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/analysis/program_index.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/verify/verify_schedule.h"

namespace xccl {

// Appends a violation for every slot that two instructions access without an order between them, if one of
// them writes it. Messages give an order in protocol simple only. `order` is topological. Orders within the
// rank (threadblocks and dependencies) are found with vector clocks in linear time. Orders through other
// ranks are found by a search with a limit.
void CheckAccesses(const Program& program, const Collective& collective, const ProgramIndex& index,
                   const std::vector<int32_t>& order, bool in_place, std::vector<Violation>& violations);

}  // namespace xccl
