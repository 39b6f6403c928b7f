// The searches that greedy makes on one copy problem, within a budget of work.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

struct SearchOptions {
  uint64_t seed = 0;
  double depth_weight = 0;        // as in trees.h
  int64_t batch_bytes = 0;        // largest message of several chunks; 0: one chunk a message
  int64_t work = 0;               // after which no further run starts
  int64_t run_work = INT64_MAX;   // after which a flood is given up
  bool one_round = false;         // no policy runs twice
  int64_t improve_work = 0;       // for local search (improve.h) on the best flood
  std::function<bool()> stopped;  // has wall-clock time run out? Asked between runs
};

struct SearchResult {
  Schedule copies;     // not normalized, steps in order
  bool tight = false;  // no schedule of single chunks is faster
};

// The best of several floods (flood.h). Absent if the first does not deliver everything: floods do not pass
// ranks that need nothing, or it was given up. Adds the work done to `work` in either case.
std::optional<SearchResult> FindFlood(const CopyProblem& problem, const SearchOptions& options,
                                      int64_t& work);

// Trees (trees.h), ordered by list scheduling (list.h). Absent if they do not reach every needer. Adds to
// `work`. Uses seed, depth_weight and batch_bytes.
std::optional<SearchResult> FindTrees(const CopyProblem& problem, const SearchOptions& options,
                                      int64_t& work);

// Is flooding worth a try: do most chunks go to most ranks?
bool Floods(const CopyProblem& problem);

}  // namespace xccl::greedy
