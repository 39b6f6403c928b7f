// Turns of the search: plans that may be made, with the time that each promises and the work that it costs.
// An engine's own plan is a turn, and so is every variation of a plan: finer, coarser, reordered, mirrored.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/bounds/bound.h"
#include "synth/common/synthesizer.h"
#include "synth/portfolio/preference.h"

namespace xccl {

inline constexpr std::string_view kOwn = "";  // the variation of an engine's own plan

struct Turn {
  const Engine* engine = nullptr;
  std::string_view variation = kOwn;
  double promised_ps = 0;  // no plan takes less than the bound
  // The time of the plan that this is a variation of.
  double from_ps = std::numeric_limits<double>::infinity();
  int64_t work = 0;           // in moves of a chunk, with the simulation
  bool fills_budget = false;  // as in Offer
  // Does it bring another kind of plan, which may have the faster program, or fewer messages?
  bool is_of_another_kind = true;
  // Makes the plan, searching for so many moves at most.
  std::function<StatusOr<Synthesis>(int64_t most_work)> make;
};

// A plan of the search, simulated.
struct Made {
  Turn turn;  // that made it
  Synthesis synthesis;
  PlanCosts costs;
  double Ps() const { return static_cast<double>(synthesis.simulation->time_ps); }
};

// The engine's turn for the request. Errors: those of Engine::Offered. The request and the engine outlive it.
StatusOr<Turn> TurnOf(const Engine& engine, const SynthesisRequest& request);

// The turns that the plan leads to: every variation that applies to it and whose name is not passed over.
// best_ps is the least time of all plans. A variation promises to take off its plan's time as much as the
// best plan lacks to the bound. The request outlives the turns.
std::vector<Turn> VariationsOf(const Made& plan, const SynthesisRequest& request, const Bound& bound,
                               double best_ps);

}  // namespace xccl
