// Makes schedules of the solver's sends, counts the steps and rounds of schedules, and collects other
// engines' plans.
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

// Makes a schedule of `sends`, which are in order of steps. Among parallel links, each send takes the link
// with the least chunks ÷ bandwidth in the step, its own chunk included. The schedule is not normalized.
Schedule ScheduleOf(const Topology& topology, const Machine& machine, int32_t chunks,
                    const std::vector<Send>& sends);
// Makes a schedule of copies, without sends that no rank needs.
Schedule CopiesOf(const Topology& topology, const Machine& machine, const CopyProblem& problem,
                  const std::vector<Send>& sends);

// The steps and rounds that a schedule takes as a k-synchronous schedule.
struct StepsAndRounds {
  int32_t steps = 0;
  int64_t rounds = 0;
};
StepsAndRounds Take(const Schedule& schedule, const Topology& topology, const Machine& machine);

// A plan of another engine, which may answer a question without the solver.
struct Witness {
  Synthesis made;
  StepsAndRounds took;
};
// Returns the plans of the witness engines among `engines`, in their order, with `chunks` chunks per part.
// Each engine gets the request's limit of steps, its deadline, and a small limit of work. Leaves out plans
// with another number of chunks, and plans that give ranks different roundings of a sum, unless the request
// allows them.
std::vector<Witness> FindWitnesses(const SynthesisRequest& request, const Machine& machine, int32_t chunks,
                                   std::span<const Engine> engines);

}  // namespace xccl::smt
