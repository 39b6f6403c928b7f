// Chooses a tree of links for every chunk, from its holders to its needers, one tree after the other, so that
// no link is loaded much more than the rest. For collectives in which ranks pass on chunks that they do not
// need: gather, scatter, alltoall, sendrecv, collectives of some ranks; and as an alternative to floods.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

// One chunk from one GPU to the next. A transfer comes after the transfer that brings its chunk.
struct RoutedTransfer {
  int32_t chunk = 0;
  int32_t path = 0;     // id in Routes::paths
  int32_t parent = -1;  // the transfer that brings the chunk to the source; -1: held from the start
};

struct Routes {
  PathTable paths;  // path i is link i alone; then longer paths
  std::vector<RoutedTransfer> transfers;
  bool complete = true;  // every needer was reached
  int64_t work = 0;      // links looked at
};

// depth_weight: from 1, every needer by its shortest path, to 0, as little load as possible. Cost: two
// shortest-path searches for each source and share of its chunks, or for each chunk with several needers.
Routes ChooseTrees(const CopyProblem& problem, double depth_weight, uint64_t seed);

}  // namespace xccl::greedy
