// An allreduce whose chunks are each summed up along a tree to one rank, its owner, and given out along
// another, as a question to Z3: all chunks share the steps, each turns round when its sum is there. Every
// rank ends with the same bits. No third-party type here.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "synth/smt/encoding.h"
#include "synth/smt/instance.h"
#include "synth/smt/sums.h"

namespace xccl::smt {

class InOutQuestion {
 public:
  // Chunks come in `runs` runs of one for each image, as in Shape::kTranslated. All ranks take part.
  // Arguments outlive the question.
  InOutQuestion(const Machine& machine, const std::vector<Image>& images, int32_t runs, int32_t steps,
                int32_t rounds);
  ~InOutQuestion();
  InOutQuestion(const InOutQuestion&) = delete;
  InOutQuestion& operator=(const InOutQuestion&) = delete;

  // A refusal proves nothing of other allreduces.
  StatusOr<SumAnswer> Ask(const SolveLimits& limits);

 private:
  class Encoding;
  Status failure_;  // of making the encoding; it is absent then
  std::unique_ptr<Encoding> encoding_;
};

// No owner can be reached from all ranks and then reach all in fewer.
int32_t LeastInOutSteps(const Machine& machine);

}  // namespace xccl::smt
