// k-synchronous schedules by satisfiability, after SCCL (Cai et al., 2021): S steps, R rounds, C chunks a
// part; within a step of r rounds a link carries r × its bandwidth ÷ the greatest common divisor of all
// bandwidths chunks. Decides small machines; docs/engines/smt.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

// Plans of the table's witnesses answer what they can before the solver is asked.
Engine SmtEngine(EngineTable table);

}  // namespace xccl
