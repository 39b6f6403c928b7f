// From answers to schedules, and from schedules to the steps and rounds that they take.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/smt_instance.h"
#include "synth/smt_sums.h"
#include "synth/synthesizer.h"

namespace xccl::smt {

// Copies of the sends that somebody needs, not normalized. Of parallel links those that are least loaded in
// the step are taken. `sends` in order of steps.
Schedule CopiesOf(const Topology& topology, const Machine& machine, const greedy::CopyProblem& problem,
                  const std::vector<Send>& sends);
Schedule ScheduleOf(const Topology& topology, const Machine& machine, int32_t chunks,
                    const std::vector<SumSend>& sends);

// What a schedule takes as a k-synchronous one.
struct StepsAndRounds {
  int32_t steps = 0;
  int64_t rounds = 0;
};
StepsAndRounds Take(const Schedule& schedule, const Topology& topology, const Machine& machine);

// The plan of another engine, a textbook's, bfb's, flow's or greedy's, that takes at most so many steps and
// rounds with `chunks` a part: the first of a fixed list. Divergent sums only where the request allows them.
std::optional<Synthesis> FindWitness(const SynthesisRequest& request, const Machine& machine, int32_t chunks,
                                     const StepsAndRounds& most);

}  // namespace xccl::smt
