// A tree of links for every chunk, from its holders to its needers through whatever lies between, chosen one
// after the other so that no link is loaded much more than the rest. For collectives where ranks pass on what
// they do not keep: gather, scatter, alltoall, sendrecv, subsets; and as an alternative to the flood.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

struct TreePolicy {
  uint64_t seed = 0;
  int32_t passes = 2;       // each pass routes all chunks again, knowing the load of the one before
  double depth_weight = 1;  // 1: every needer by its shortest way; 0: as little load as possible
  bool balance = true;      // loaded links cost more
};

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

// Cost: a shortest-path search per source and share of its chunks, or per chunk where it has several needers.
Routes ChooseTrees(const CopyProblem& problem, const TreePolicy& policy);

}  // namespace xccl::greedy
