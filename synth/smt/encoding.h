// The copies of a problem in a given number of steps as a question to Z3, which may be asked again for other
// numbers of rounds. No third-party type here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "synth/smt/instance.h"

namespace xccl::smt {

enum class Verdict : uint8_t { kFeasible, kInfeasible, kStopped };

struct SolveLimits {
  int64_t work = 0;                    // Z3's resource units, reproducible
  std::optional<double> time_limit_s;  // wall clock
  std::function<bool()> stopped = {};  // ends the search from outside; asked from another thread
};

struct Answer {
  Verdict verdict = Verdict::kStopped;
  std::vector<Send> sends;  // where feasible, steps in order; may hold some that nobody needs
  int64_t work = 0;
};

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

// What in a question cannot be had together, when it was asked to say: families of constraints and the
// links and ranks they are about.
struct Core {
  std::vector<std::string> names;  // sorted, each once
};
// "load of 0->4, 1->5 and 2 more, needs of rank 4, rounds"
std::string Summary(const Core& core);

class CopyQuestion {
 public:
  // `machine`, `problem` and `images` (a group that keeps the problem) outlive the question. Nothing is
  // asked with more than `most_rounds` >= steps. With `named`, every constraint on a link, a rank's need or
  // the rounds can be told in a Core; slower.
  CopyQuestion(const Machine& machine, const greedy::CopyProblem& problem, const std::vector<Image>& images,
               int32_t steps, int32_t most_rounds, Style style, bool named = false);
  ~CopyQuestion();
  CopyQuestion(const CopyQuestion&) = delete;
  CopyQuestion& operator=(const CopyQuestion&) = delete;

  // Requires: steps <= rounds <= most_rounds. What earlier calls learned is kept. Errors: kBug with the
  // solver's text when it fails.
  StatusOr<Answer> Ask(int32_t rounds, const SolveLimits& limits);
  // Of the last infeasible answer. Requires: named.
  Core LastCore() const;

 private:
  class Encoding;
  Status failure_;  // of making the encoding; it is absent then
  std::unique_ptr<Encoding> encoding_;
};

// Variables of the encoding without symmetry, to refuse what cannot end.
int64_t EncodingSize(const Machine& machine, const greedy::CopyProblem& problem, int32_t steps);

}  // namespace xccl::smt
