// The whole front between fewest steps and fewest rounds a chunk: for every number of steps the fewest rounds
// a chunk of each part (R/C), with a schedule that takes no more and a proof that none takes less.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "synth/common/synthesizer.h"
#include "synth/smt/bounds.h"

namespace xccl::smt {

struct FrontPoint {
  int32_t chunks = 0, steps = 0;
  int64_t rounds = 0;
  RoundsBound bound;                        // R/C in so many steps is at least this
  ProvedBy proved_by = ProvedBy::kNothing;  // that nothing better takes so few steps; kNothing: open
  int32_t proved_chunks = 0;                // the proof holds up to so many chunks a part; 0: any number
  std::string found_by;                     // an engine's name, or "z3"
  double seconds = 0;
  Synthesis made;
};

struct Front {
  int32_t least_steps = 0;  // fewer are forbidden
  ProvedBy steps_by = ProvedBy::kDistance;
  RoundsBound least_rounds;  // R/C of any number of steps
  ProvedBy least_by = ProvedBy::kNothing;
  // Fewer steps and more rounds first; each takes fewer rounds a chunk than those before it.
  std::vector<FrontPoint> points;
  bool complete = false;  // every point is proved, and the last one reaches least_rounds
  std::string stopped;    // why it is not complete: "--steps=6", "work", "time", "interrupted"
};

// Finds the front. Plans that `engines` make are tried before the solver. limits.chunks is the largest number
// of chunks a part to try, limits.steps the largest number of steps. Errors: those of Engine::Synthesize;
// kLimit if no point was found.
StatusOr<Front> FindFront(const SynthesisRequest& request, std::span<const Engine> engines);

}  // namespace xccl::smt
