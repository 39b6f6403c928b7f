// Asks Z3 whether the copies of a problem fit into given steps and rounds. This header uses no type of Z3.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/smt/instance.h"
#include "synth/smt/question.h"

namespace xccl::smt {

// Makes the question. `images` is a group of symmetries that map the problem to itself, the identity first.
// `machine`, `problem` and `images` must outlive the question. Requires: steps <= rounds. With `symmetric`,
// the question is only about schedules that the images map to themselves. It has far fewer variables, but a
// refusal proves nothing. With `named`, a Core can name every constraint on a link, on a rank's need or on
// the rounds. The solver is then slower.
SolverQuestion CopyQuestion(const Machine& machine, const CopyProblem& problem,
                            const std::vector<Image>& images, int32_t steps, int32_t rounds, bool symmetric,
                            bool named = false);

// Returns about the number of variables of the encoding without symmetry: one for each chunk, step, and edge
// or rank. Callers refuse questions that are too large.
int64_t EncodingSize(const Machine& machine, const CopyProblem& problem, int32_t steps);

// Asks for symmetric schedules and for all schedules alternately, with twice as much work each time. Making a
// question counts as work too. Requires that the steps reach every needer.
StatusOr<Answer> DecideCopies(const Machine& machine, const CopyProblem& problem,
                              const std::vector<Image>& images, int32_t steps, int32_t rounds,
                              const SolveLimits& limits);

}  // namespace xccl::smt
