// An allreduce whose chunks are each summed up along a tree to one rank, its owner, and given out along
// another, as a question to Z3: all chunks share the steps, each turns round when its sum is there. Every
// rank ends with the same bits. No third-party type here.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/smt/instance.h"
#include "synth/smt/question.h"

namespace xccl::smt {

// Chunks come in `runs` runs of one for each image, as in Shape::kTranslated. All ranks take part. A refusal
// proves nothing of other allreduces. Arguments outlive the question.
SolverQuestion InOutQuestion(const Machine& machine, const std::vector<Image>& images, int32_t runs,
                             int32_t steps, int32_t rounds);

// No owner can be reached from all ranks and then reach all in fewer.
int32_t LeastInOutSteps(const Machine& machine);

}  // namespace xccl::smt
