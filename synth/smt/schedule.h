// From answers to schedules, and from schedules to the steps and rounds that they take.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/smt/instance.h"

namespace xccl::smt {

// Takes the parallel link that is least loaded in the step, by bandwidth. `sends` are in order of
// steps. The schedule is not normalized.
Schedule ScheduleOf(const Topology& topology, const Machine& machine, int32_t chunks,
                    const std::vector<Send>& sends);
// ScheduleOf for copies, without sends that nobody needs.
Schedule CopiesOf(const Topology& topology, const Machine& machine, const CopyProblem& problem,
                  const std::vector<Send>& sends);

// The steps and rounds of a schedule as a k-synchronous one.
struct StepsAndRounds {
  int32_t steps = 0;
  int64_t rounds = 0;
};
StepsAndRounds Take(const Schedule& schedule, const Topology& topology, const Machine& machine);

// Plans of these engines with `chunks` a part, in their order. The request's limit of steps is passed on.
// Divergent sums only where the request allows them.
struct Witness {
  Synthesis made;
  StepsAndRounds took;
};
std::vector<Witness> FindWitnesses(const SynthesisRequest& request, const Machine& machine, int32_t chunks,
                                   std::span<const Engine> engines);

}  // namespace xccl::smt
