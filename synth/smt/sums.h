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

// Which schedules are asked for. A refusal of any but kAll proves nothing.
enum class Shape : uint8_t {
  kAll,
  kSymmetric,   // every chunk's sends are kept by the group
  kTranslated,  // chunks come in runs of one for each element of the group, each the image of the first
};

// All arguments outlive the question. `images`: a group under which contribution q is that of rank q and all
// chunks are alike; used unless the shape is kAll. kTranslated: it divides the number of chunks. `rounds`
// absent: one chunk alone, and links carry whatever it takes.
SolverQuestion SumQuestion(const Machine& machine, const SumProblem& problem,
                           const std::vector<Image>& images, Shape shape, int32_t steps,
                           std::optional<int32_t> rounds);

}  // namespace xccl::smt
