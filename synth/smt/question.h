// A question to Z3 about schedules of a given number of steps and rounds, whatever its encoding. No
// third-party type here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "synth/smt/instance.h"
#include "synth/smt/prices.h"

namespace xccl::smt {

enum class Verdict : uint8_t { kFeasible, kInfeasible, kStopped };

// Work is counted in Z3's resource units, which are reproducible; a second has a few millions of them. Most
// questions that have a quick answer need less than kShortWork. A question's encoding costs kWorkPerVariable
// for each of its variables.
inline constexpr int64_t kShortWork = 400'000;
inline constexpr int64_t kWorkPerVariable = 25;

struct SolveLimits {
  int64_t work = 0;
  Deadline deadline = Deadline();  // by the wall clock; asked from another thread
};

// Names of constraints that no schedule meets together: a family, and the link or rank that it is about.
using Core = std::vector<std::string>;  // sorted, each once
// "load of 0->4, 1->5 and 2 more, needs of rank 4, rounds"
std::string Summary(const Core& core);

struct Answer {
  Verdict verdict = Verdict::kStopped;
  std::vector<Send> sends;  // where feasible, steps in order; may hold some that nobody needs
  int64_t work = 0;
  Core core = {};  // where infeasible, of a question that names its constraints
};

// A limit on the cost of all sends together, at given prices of an edge in a step.
struct Budget {
  const EdgePrices& prices;
  int64_t most;
};

class StepEncoding;  // step_encoding.h

class SolverQuestion {
 public:
  // Ask returns what `make` throws.
  explicit SolverQuestion(const std::function<std::unique_ptr<StepEncoding>()>& make);
  SolverQuestion(SolverQuestion&&) noexcept;
  ~SolverQuestion();

  // May be asked again with more work: the solver keeps what it has learned. Without memory or threads the
  // question stays undecided and uses up all of its work. Errors: kBug with the solver's text for any other
  // failure.
  StatusOr<Answer> Ask(const SolveLimits& limits, const std::optional<Budget>& budget = {});

 private:
  Status failure_;  // of making the encoding; it is absent then
  std::unique_ptr<StepEncoding> encoding_;
};

}  // namespace xccl::smt
