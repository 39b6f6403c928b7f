// An allreduce whose chunks are each summed up along a tree to one rank, its owner, and given out along
// another, as a question to Z3: all chunks share the steps, each turns round when its sum is there. Every
// rank ends with the same bits. No third-party type here.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/smt/instance.h"
#include "synth/smt/question.h"

namespace xccl::smt {

// Chunks come in `runs` runs of one for each image, as in step_encoding.h. All ranks take part. A refusal
// proves nothing of other allreduces. Arguments outlive the question.
SolverQuestion OwnerTreesQuestion(const Machine& machine, const std::vector<Image>& images, int32_t runs,
                                  int32_t steps, int32_t rounds);

// The fewest steps in which some owner is reached from all ranks and then reaches all ranks.
int32_t LeastOwnerTreesSteps(const Machine& machine);

}  // namespace xccl::smt
