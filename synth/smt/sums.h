// Asks Z3 about sums as sets of contributions. Serves collectives whose partial sums may spread before they
// are complete: an allreduce in one phase, and user-defined tables. This header uses no type of Z3.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "synth/smt/instance.h"
#include "synth/smt/question.h"

namespace xccl::smt {

// The contributions of each chunk that ranks hold before, and must hold after the collective, with one bit
// for each contribution.
struct SumProblem {
  struct Chunk {
    int32_t contributions = 0;
    std::vector<uint64_t> before, after;  // by rank; after[r] = 0: rank r needs nothing
    bool operator==(const Chunk&) const = default;
  };
  std::vector<Chunk> chunks;
};
// Returns the problem of a collective; nullopt if a chunk has more than 64 contributions.
std::optional<SumProblem> SumsOf(const Collective& collective, int32_t ranks);

// Returns the size of the question without symmetry: its variables, and the pairs of an edge and a
// contribution in each step. Callers refuse questions that are too large.
int64_t SumSize(const Machine& machine, const SumProblem& problem, int32_t steps);

// Makes the question. All arguments must outlive the question. If `rounds` is absent, the problem must have
// one chunk, and links carry any number of sends. `images` is one of two:
// - the identity alone, for a question about all schedules;
// - a group of symmetries, if contribution q is that of rank q and all chunks are alike. Chunks then come in
//   runs: one chunk for each element of the group, each the image of the first. A refusal proves nothing.
SolverQuestion ReductionQuestion(const Machine& machine, const SumProblem& problem,
                                 const std::vector<Image>& images, int32_t steps,
                                 std::optional<int32_t> rounds);

}  // namespace xccl::smt
