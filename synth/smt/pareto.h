// Finds the front between fewest steps and fewest rounds per chunk. R/C is the number of rounds ÷ the number
// of chunks per part. For every number of steps that lowers R/C, the front has the schedule with the least
// R/C that was found, and mostly a proof that no schedule has less.
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
  RoundsBound bound;                        // lower bound on R/C in `steps` steps
  ProvedBy proved_by = ProvedBy::kNothing;  // proof that R/C is the least in `steps` steps; kNothing: open
  int32_t proved_chunks = 0;                // the proof holds up to this number of chunks per part; 0: any
  std::string found_by;                     // an engine's name, or "z3"
  double seconds = 0;
  Synthesis made;
};

struct Front {
  int32_t least_steps = 0;  // fewer steps are impossible
  ProvedBy steps_by = ProvedBy::kDistance;
  RoundsBound least_rounds;  // lower bound on R/C for any number of steps
  ProvedBy least_by = ProvedBy::kNothing;
  // In order of steps. Each point takes fewer rounds per chunk than the point before it.
  std::vector<FrontPoint> points;
  bool complete = false;  // every number of steps is decided, and the last point reaches least_rounds
  std::string stopped;    // why the front is not complete: the limit that ended the search, "--steps=6"
};

// Finds the front. Plans of the witnesses among `engines` are tried before the solver. limits.chunks is the
// largest number of chunks per part to try, and limits.steps the largest number of steps. Errors: as for
// Engine::Synthesize; kLimit if work or time ran out before a point was found.
StatusOr<Front> FindFront(const SynthesisRequest& request, std::span<const Engine> engines);

}  // namespace xccl::smt
