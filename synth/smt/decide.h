// One copy question after all arithmetic: a portfolio of encodings on two threads, whose answer does not
// depend on which of them is faster.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "synth/smt/instance.h"
#include "synth/smt/question.h"

namespace xccl::smt {

// `limits.work` is that of all encodings together. It is split into slices that double; in a slice every
// encoding gets as much, and making one counts as work too. The answer is that of the first encoding, in
// their order, of the first slice that has one. Requires: `images` keep the problem, steps <= rounds, every
// need within reach in the steps.
StatusOr<Answer> DecideCopies(const Machine& machine, const CopyProblem& problem,
                              const std::vector<Image>& images, int32_t steps, int32_t rounds,
                              const SolveLimits& limits);

}  // namespace xccl::smt
