// A tree of links for every chunk, from its holders to its needers through whatever lies between, chosen one
// after the other so that no link is loaded much more than the rest. For collectives where ranks pass on what
// they do not keep: gather, scatter, alltoall, sendrecv, subsets; and as an alternative to the flood.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

// One chunk from one GPU to the next GPU. Transfers of a chunk come after the one that brings it.
struct RoutedTransfer {
  int32_t chunk = 0;
  int32_t path = 0;     // in Routes::paths
  int32_t parent = -1;  // the transfer that brings the chunk to the source; -1: held from the start
};

struct Routes {
  PathTable paths;  // links' own paths first, id for id
  std::vector<RoutedTransfer> transfers;
  bool complete = true;  // every needer was reached
  int64_t work = 0;      // links looked at
};

// Two shortest-path searches per source and share of its chunks, or per chunk where it has several needers.
// `depth_weight` is between 1, every needer by its shortest path, and 0, as little load as possible.
Routes ChooseTrees(const CopyProblem& problem, double depth_weight, uint64_t seed);

}  // namespace xccl::greedy
