// plan --pareto: the front between steps and rounds a chunk, as a table or as JSON rows.
#pragma once

#include <string>
#include <vector>

#include "cli/row.h"
#include "synth/smt/pareto.h"

namespace xccl {

// One object a point: chunks, steps, rounds, cost (R/C as text), cost_value, bound, proved_by,
// proved_chunks (null: for any number), found_by, seconds, front_complete.
std::vector<Row> FrontRows(const smt::Front& front);
std::string FrontText(const smt::Front& front);

}  // namespace xccl
