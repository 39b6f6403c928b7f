// A question to Z3: is there a schedule of a given number of steps and rounds? The interface is the same for
// all encodings. This header uses no type of Z3.
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

// Work is counted in Z3's resource units, which are reproducible. Z3 uses a few million units in a second.
// Most questions with a quick answer need less than kShortWork. Callers that count the making of an encoding
// as work add kWorkPerVariable units for each variable.
inline constexpr int64_t kShortWork = 400'000;
inline constexpr int64_t kWorkPerVariable = 25;

struct SolveLimits {
  int64_t work = 0;
  Deadline deadline = Deadline();  // on the wall clock; checked by another thread
};

// Names of constraints that no schedule meets together. A name consists of a family and the link or rank that
// the constraint is about. The family "rounds" has neither.
using Core = std::vector<std::string>;  // sorted, without duplicates
// Returns a text such as "load of 0->4, 1->5; needs of rank 4; rounds".
std::string Summary(const Core& core);

struct Answer {
  Verdict verdict = Verdict::kStopped;
  std::vector<Send> sends;  // if feasible; in order of steps, perhaps with sends that no rank needs
  int64_t work = 0;
  Core core = {};  // if infeasible; at most "rounds" if the question does not name its constraints
};

// An upper limit, `most`, on the sum of prices of all sends. prices[step][edge] is the price of one send.
struct Budget {
  const EdgePrices& prices;
  int64_t most;
};

class StepEncoding;  // step_encoding.h

class SolverQuestion {
 public:
  // Calls `make`, which makes the encoding. If `make` throws, Ask() answers as if the solver had failed.
  explicit SolverQuestion(const std::function<std::unique_ptr<StepEncoding>()>& make);
  SolverQuestion(SolverQuestion&&) noexcept;
  ~SolverQuestion();

  // Asks the solver. A second call continues the search, because the solver keeps what it has learned. If
  // memory or threads run out, the verdict is kStopped and the answer's work is all of the limit. Errors:
  // kBug with the solver's text for any other failure.
  StatusOr<Answer> Ask(const SolveLimits& limits, const std::optional<Budget>& budget = {});

 private:
  Status failure_;  // why the encoding could not be made; encoding_ is then null
  std::unique_ptr<StepEncoding> encoding_;
};

}  // namespace xccl::smt
