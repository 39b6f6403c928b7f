// The copies of a problem in given steps and rounds as a question to Z3. No third-party type here.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/smt/instance.h"
#include "synth/smt/question.h"

namespace xccl::smt {

// `machine`, `problem` and `images` (a group that keeps the problem) outlive the question. Requires: steps <=
// rounds. With `symmetric` only schedules that the images keep as they are: far fewer variables, and a
// refusal proves nothing. With `named`, every constraint on a link, a rank's need or the rounds can be told
// in a Core; slower.
SolverQuestion CopyQuestion(const Machine& machine, const CopyProblem& problem,
                            const std::vector<Image>& images, int32_t steps, int32_t rounds, bool symmetric,
                            bool named = false);

// Variables of the encoding without symmetry, to refuse what cannot end.
int64_t EncodingSize(const Machine& machine, const CopyProblem& problem, int32_t steps);

// Asks for symmetric schedules and for all schedules in turn, in slices of work that double; making a
// question counts as work too. Requires: the steps reach every needer.
StatusOr<Answer> DecideCopies(const Machine& machine, const CopyProblem& problem,
                              const std::vector<Image>& images, int32_t steps, int32_t rounds,
                              const SolveLimits& limits);

}  // namespace xccl::smt
