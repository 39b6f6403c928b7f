// The runs that greedy makes on one copy problem, within a budget of work.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

enum class Method : uint8_t {
  kFlood,           // flood.h
  kShortTrees,      // trees.h, every needer by its shortest way
  kLightTrees,      // trees.h, as little load as possible
  kCompromiseTrees  // between the two
};

struct SearchOptions {
  Method method = Method::kFlood;
  uint64_t seed = 0;
  int64_t batch_bytes = 0;        // largest message of several chunks; 0: one chunk a message
  int64_t work = 0;               // after which no further run starts; the first always runs to its end
  bool one_round = false;         // no policy runs twice
  int64_t improve_work = 0;       // of improve.h on the best flood
  std::function<bool()> stopped;  // asked between runs: has wall-clock time run out?
};

struct SearchResult {
  int64_t time_ps = 0;  // by the search's own clock
  Schedule copies;      // not normalized, steps in order
  bool tight = false;   // no order of single chunks brings some rank what it needs sooner
};

// The best of the runs. Absent: the method does not deliver everything (a flood does not pass ranks that have
// no need). What was done is added to `work` in any case.
std::optional<SearchResult> FindCopies(const CopyProblem& problem, const SearchOptions& options,
                                       int64_t& work);

// Is flooding worth a try: do most chunks go to most ranks?
bool Floods(const CopyProblem& problem);

}  // namespace xccl::greedy
