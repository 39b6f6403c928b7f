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

struct SolveLimits {
  int64_t work = 0;                // Z3's resource units, reproducible
  Deadline deadline = Deadline();  // by the wall clock; asked from another thread
};

// Families of constraints, and the links and ranks they are about, that cannot be had together.
using Core = std::vector<std::string>;  // sorted, each once
// "load of 0->4, 1->5 and 2 more, needs of rank 4, rounds"
std::string Summary(const Core& core);

struct Answer {
  Verdict verdict = Verdict::kStopped;
  std::vector<Send> sends;  // where feasible, steps in order; may hold some that nobody needs
  int64_t work = 0;
  Core core = {};  // where infeasible, of a question that names its constraints
};

// All sends together cost at most so much, at these prices for an edge in a step.
struct Budget {
  const EdgePrices& prices;
  int64_t most;
};

class StepEncoding;  // step_encoding.h

class SolverQuestion {
 public:
  // What `make` throws is told when the question is asked.
  explicit SolverQuestion(const std::function<std::unique_ptr<StepEncoding>()>& make);
  SolverQuestion(SolverQuestion&&) noexcept;
  ~SolverQuestion();

  // May be asked again with more work: what was learned is kept. Without memory or threads the question is
  // undecided, and has used up what it was given. Errors: kBug with the solver's text for any other failure.
  StatusOr<Answer> Ask(const SolveLimits& limits, const std::optional<Budget>& budget = {});

 private:
  Status failure_;  // of making the encoding; it is absent then
  std::unique_ptr<StepEncoding> encoding_;
};

}  // namespace xccl::smt
