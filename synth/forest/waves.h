// Cuts a packing into more and more waves while that helps; every schedule is simulated and the fastest kept.
// Cost: the transfers of all schedules that are written.
#pragma once

#include <cstdint>
#include <optional>

#include "synth/common/step_limit.h"
#include "synth/common/synthesizer.h"
#include "synth/forest/packings.h"

namespace xccl::forest {

// Of the time may be lost to waves that are too long, in plans of not too many transfers.
inline constexpr double kFineAim = 0.0007;

struct Best {
  std::optional<Synthesis> synthesis;
  int64_t time_ps = 0;
  bool rough = false;  // is time_ps that of a rough simulation?

  // Is there a plan of at most so many times the bound?
  bool IsWithin(double times, const Bound& bound) const {
    return synthesis && static_cast<double>(time_ps) <= times * static_cast<double>(bound.bound_ps);
  }
};

// Is no further search worth it: good enough, out of time or out of work?
bool IsEnough(const Task& task, const Best& best, int64_t work);

// `work`: transfers that may still be written down; goes down by those that were. Once there is a best plan,
// schedules beyond it are not made. Those of more steps than `budget` allows are left out.
void TryWaves(const Task& task, const Candidate& candidate, StepBudget& budget, int64_t& work, Best& best);

}  // namespace xccl::forest
