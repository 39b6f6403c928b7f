// Turns of the search in portfolio.cc. A turn is a plan that may be made, with the time that it promises and
// the work that it costs. An engine's own plan is a turn, and so is every variation of a plan: finer,
// coarser, reordered, delayed, mirrored.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/bounds/bound.h"
#include "synth/common/synthesizer.h"
#include "synth/portfolio/preference.h"

namespace xccl {

inline constexpr std::string_view kOwn;  // Turn::variation of an engine's own plan: none

struct Turn {
  const Engine* engine = nullptr;
  std::string_view variation = kOwn;
  double promised_ps = 0;  // estimated time of the plan; may be below the bound
  // Time of the plan that is varied, if the variation applies again while it gains; otherwise infinite.
  double from_ps = std::numeric_limits<double>::infinity();
  int64_t work = 0;           // in moves of a chunk, including the simulation
  int64_t bytes = 0;          // as in Offer
  bool fills_budget = false;  // as in Offer
  // True if the turn brings another kind of plan, which may have a faster program or fewer messages.
  bool is_of_another_kind = true;
  // Set if the variation is a new plan of the engine, the same for all plans of one turn: the chunks of a
  // part for which the engine is asked; 0: its own number.
  std::optional<int64_t> asked_chunks = {};
  // Makes the plan. A search makes at most `most_work` moves.
  std::function<StatusOr<Synthesis>(int64_t most_work)> make;
};

// A plan that the search made and simulated.
struct Made {
  Turn turn;  // turn that made the plan
  Synthesis synthesis;
  PlanCosts costs;
  double Ps() const { return static_cast<double>(synthesis.simulation->time_ps); }
};

// Returns the turn of the engine's own plan. Errors: those of Engine::Offered. Requires: the request and the
// engine outlive the turn.
StatusOr<Turn> TurnOf(const Engine& engine, const SynthesisRequest& request);

// Returns a turn for every variation that applies to the plan and that the request does not pass over.
// best_ps is the least time of all plans. `finer` promises the time of the plan's fullest link. Other
// variations promise the plan's time less the gap between best_ps and the bound. Requires: the request
// outlives the turns.
std::vector<Turn> VariationsOf(const Made& plan, const SynthesisRequest& request, const Bound& bound,
                               double best_ps);

}  // namespace xccl
