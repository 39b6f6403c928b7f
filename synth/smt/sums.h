// Collectives whose sums need not be gathered before they spread (allreduce in one go, user-defined tables),
// as a question to Z3 about sets of contributions. No third-party type here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "synth/smt/encoding.h"
#include "synth/smt/instance.h"
#include "synth/smt/prices.h"

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

// Which schedules are asked for. A refusal of any but kAll proves nothing.
enum class Shape : uint8_t {
  kAll,
  kSymmetric,   // every chunk's sends are kept by the group
  kTranslated,  // chunks come in runs of one for each element of the group, each the image of the first
};

class SumQuestion {
 public:
  // All arguments outlive the question. `images`: a group under which contribution q is that of rank q and
  // all chunks are alike; used unless the shape is kAll. kTranslated: it divides the number of chunks.
  // `most_rounds` absent: one chunk alone, and links carry whatever it takes (AskBelow).
  SumQuestion(const Machine& machine, const SumProblem& problem, const std::vector<Image>& images,
              Shape shape, int32_t steps, std::optional<int32_t> most_rounds);
  ~SumQuestion();
  SumQuestion(const SumQuestion&) = delete;
  SumQuestion& operator=(const SumQuestion&) = delete;

  StatusOr<SumAnswer> Ask(int32_t rounds, const SolveLimits& limits);
  // All sends together cost at most so much, at these prices for an edge in a step. Requires: no rounds.
  StatusOr<SumAnswer> AskBelow(const EdgePrices& prices, int64_t most, const SolveLimits& limits);

 private:
  class Encoding;
  Status failure_;  // of making the encoding; it is absent then
  std::unique_ptr<Encoding> encoding_;
};

}  // namespace xccl::smt
