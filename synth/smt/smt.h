// k-synchronous schedules by satisfiability, after SCCL (Cai et al., 2021): S steps, R rounds, C chunks a
// part; within a step of r rounds a link carries r × its bandwidth ÷ the greatest common divisor of all
// bandwidths chunks. Decides small machines; docs/synthesis.md, smt.
#pragma once

#include <memory>

#include "synth/synthesizer.h"

namespace xccl {

std::unique_ptr<Synthesizer> MakeSmt();

}  // namespace xccl
