// Rules P7 to P9 of ir/verify/verify_program.h.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/analysis/program_index.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/verify/verify_program.h"

namespace xccl {

// Runs the program on symbolic values (a chunk and the set of ranks whose contributions it includes) and
// compares the output buffers with the postcondition. Requires: P1 to P6 hold, so that any topological
// order gives the same values. Cost: linear in chunks moved, times ranks ÷ 64 for sums. Fills `record`, where
// it is given.
void CheckValues(const Program& program, const Collective& collective, const ProgramIndex& index,
                 const std::vector<int32_t>& order, bool in_place, std::vector<Violation>& violations,
                 ProgramRecord* record = nullptr);

}  // namespace xccl
