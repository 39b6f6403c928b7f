// Searches on one CopyProblem (synth/common/problem.h): by floods within a budget of work, or by trees.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

struct SearchOptions {
  uint64_t seed = 0;
  double depth_weight = 0;        // see ChooseTrees in trees.h
  int64_t batch_bytes = 0;        // largest message of several chunks; 0: one chunk a message
  int64_t work = 0;               // no further run starts after this work: table words and links looked at
  int64_t run_work = INT64_MAX;   // a flood gives up after this work
  bool one_round = false;         // each policy runs at most once
  int64_t improve_work = 0;       // budget of local search (improve.h) on the best flood
  std::function<bool()> stopped;  // true if wall-clock time is over; asked between runs
};

struct SearchResult {
  Schedule copies;     // perhaps not normalized; a chunk arrives before it is passed on
  bool tight = false;  // no schedule that sends single chunks is faster
};

// Returns the best of several floods (flood.h), perhaps improved by local search. Returns nullopt if the
// first flood does not deliver everything: a chunk is not passed through ranks that do not need it, and a
// flood may give up. Adds the work of the floods, not of local search, to `work` in both cases.
std::optional<SearchResult> FindFlood(const CopyProblem& problem, const SearchOptions& options,
                                      int64_t& work);

// Chooses trees (trees.h), orders their transfers by list scheduling (list.h), and returns the schedule.
// Returns nullopt if the trees miss a rank that needs a chunk. Adds the work done to `work`. Uses seed,
// depth_weight and batch_bytes.
std::optional<SearchResult> FindTrees(const CopyProblem& problem, const SearchOptions& options,
                                      int64_t& work);

// Returns whether flooding is worth a try, because most chunks go to most ranks.
bool Floods(const CopyProblem& problem);

}  // namespace xccl::greedy
