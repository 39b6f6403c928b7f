// One copy question after all arithmetic: a portfolio of encodings on two threads, whose answer does not
// depend on which of them is faster.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "synth/smt/encoding.h"
#include "synth/smt/instance.h"

namespace xccl::smt {

struct DecideLimits {
  int64_t work = 0;                           // Z3's resource units, of all encodings together
  std::function<double()> seconds_left = {};  // wall clock; empty: no limit
  std::function<bool()> stopped = {};         // asked between slices
};

class CopyDecider {
 public:
  // `machine`, `problem` and `images` (that keep the problem) outlive it. Requires: steps <= rounds, every
  // need within reach in the steps.
  CopyDecider(const Machine& machine, const greedy::CopyProblem& problem, const std::vector<Image>& images,
              int32_t steps, int32_t rounds);

  // The work is split into slices that double; in a slice every encoding gets as much, and making one counts
  // as work too. The answer is that of the first encoding, in their order, of the first slice that has one.
  StatusOr<Answer> Decide(const DecideLimits& limits);

 private:
  struct Entrant {
    Style style;
    std::unique_ptr<CopyQuestion> question;
    int64_t making = 0;    // what making it costs
    bool refuted = false;  // its own, narrower question
    StatusOr<Answer> answer = Answer{};
  };
  void RunSlice(int64_t work, const DecideLimits& limits, size_t entrants);

  const Machine& machine_;
  const greedy::CopyProblem& problem_;
  const std::vector<Image>& images_;
  const int32_t steps_, rounds_;
  std::vector<Entrant> entrants_;
};

}  // namespace xccl::smt
