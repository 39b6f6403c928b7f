// Collectives whose sums need not be gathered before they spread (allreduce in one go, user-defined tables),
// as a question to Z3 about sets of contributions. No third-party type here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "synth/smt_encoding.h"
#include "synth/smt_instance.h"

namespace xccl::smt {

// Which contributions of each chunk ranks hold before and must hold after: a bit a contribution.
struct SumProblem {
  struct Chunk {
    int32_t contributions = 0;
    std::vector<uint64_t> before, after;  // by rank; after 0: nothing is needed
    bool operator==(const Chunk&) const = default;
  };
  std::vector<Chunk> chunks;
};
// nullopt where a chunk has more than 64 contributions.
std::optional<SumProblem> SumsOf(const Collective& collective, int32_t ranks);

// Variables of the question, to refuse what cannot end.
int64_t SumSize(const Machine& machine, const SumProblem& problem, int32_t steps);

// A copy takes the place of what the receiver held.
struct SumSend {
  Send send;
  bool adds = false;
};

struct SumAnswer {
  Verdict verdict = Verdict::kStopped;
  std::vector<SumSend> sends;
  int64_t work = 0;
};

// Sends of one chunk may not cost more than this in all: what a search over trees is for copies.
struct Budget {
  std::vector<std::vector<int64_t>> price;  // [step][edge]
  int64_t most = 0;
};

class SumQuestion {
 public:
  // All arguments outlive the question. `images`: where not empty, only schedules that this group keeps are
  // asked for, contribution q being that of rank q. `budget`: one chunk alone, loads do not matter. Requires:
  // every rank that is sent to or from holds something, or may be copied to.
  SumQuestion(const Machine& machine, const SumProblem& problem, const std::vector<Image>& images,
              int32_t steps, int32_t most_rounds, const Budget* budget = nullptr);
  ~SumQuestion();
  SumQuestion(const SumQuestion&) = delete;
  SumQuestion& operator=(const SumQuestion&) = delete;

  StatusOr<SumAnswer> Ask(int32_t rounds, const SolveLimits& limits);
  // With a budget: no more than this.
  StatusOr<SumAnswer> AskBelow(int64_t most, const SolveLimits& limits);

 private:
  class Encoding;
  std::unique_ptr<Encoding> encoding_;
};

}  // namespace xccl::smt
