// Rule P6 of ir/verify/verify_program.h.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/collective.h"
#include "ir/program.h"
#include "ir/program_index.h"
#include "ir/verify/verify_schedule.h"

namespace xccl {

// Appends a violation for every slot that two instructions touch, one of them writing it, with no order
// between them. `order` is topological. An order within the rank (threadblocks and dependencies) is found
// with vector clocks, in linear time; one that leads through other ranks is searched for, within a limit.
void CheckAccesses(const Program& program, const Collective& collective, const ProgramIndex& index,
                   const std::vector<int32_t>& order, bool in_place, std::vector<Violation>& violations);

}  // namespace xccl
