// Asks Z3 about an allreduce by owner trees. Each chunk is summed along a tree to one rank, its owner, and
// distributed along another tree. All chunks share the steps. The owner distributes a chunk as soon as its
// sum is complete. Every rank ends with the same bits. This header uses no type of Z3.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/smt/instance.h"
#include "synth/smt/question.h"

namespace xccl::smt {

// Makes the question for `runs` runs of chunks; a run has one chunk for each image (step_encoding.h). All
// ranks take part. A refusal proves nothing about other schedules. All arguments must outlive the question.
SolverQuestion OwnerTreesQuestion(const Machine& machine, const std::vector<Image>& images, int32_t runs,
                                  int32_t steps, int32_t rounds);

// Returns the fewest steps in which data from all ranks reaches some owner and then goes on to all ranks.
int32_t LeastOwnerTreesSteps(const Machine& machine);

}  // namespace xccl::smt
