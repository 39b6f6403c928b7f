// The copies of a problem in given steps and rounds as a question to Z3. No third-party type here.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/smt/instance.h"
#include "synth/smt/question.h"

namespace xccl::smt {

// How a question is put. Each is answered rightly, at different speed.
struct Style {
  // Only schedules that translations keep as they are: far fewer variables, and a refusal proves nothing
  // unless there are no translations.
  bool symmetric = false;
  // Interchangeable chunks leave their holder in order of their numbers.
  bool ordered = false;
  // Sums as sorting networks in place of Z3's own propagation.
  bool networks = false;
};

// `machine`, `problem` and `images` (a group that keeps the problem) outlive the question. Requires: steps <=
// rounds. With `named`, every constraint on a link, a rank's need or the rounds can be told in a Core;
// slower.
SolverQuestion CopyQuestion(const Machine& machine, const CopyProblem& problem,
                            const std::vector<Image>& images, int32_t steps, int32_t rounds, Style style,
                            bool named = false);

// Variables of the encoding without symmetry, to refuse what cannot end.
int64_t EncodingSize(const Machine& machine, const CopyProblem& problem, int32_t steps);

}  // namespace xccl::smt
