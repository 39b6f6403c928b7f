// Collectives whose sums need not be gathered before they spread (allreduce in one go, user-defined tables),
// as a question to Z3 about sets of contributions. No third-party type here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "synth/smt/instance.h"
#include "synth/smt/question.h"

namespace xccl::smt {

// The contributions of each chunk that ranks hold before, and must hold after: a bit for each contribution.
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

// All arguments outlive the question. `images`: the identity alone, for all schedules; or a group under which
// contribution q is that of rank q and all chunks are alike, for schedules whose chunks come in runs of one
// for each element, each the image of the first: a refusal of these proves nothing. `rounds` absent: one
// chunk alone, and links carry whatever it takes.
SolverQuestion ReductionQuestion(const Machine& machine, const SumProblem& problem,
                                 const std::vector<Image>& images, int32_t steps,
                                 std::optional<int32_t> rounds);

}  // namespace xccl::smt
