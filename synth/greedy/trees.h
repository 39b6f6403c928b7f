// Chooses a tree of links for every chunk, from its holders to its needers. Trees are chosen one after the
// other, so that no link is loaded much more than the rest. Serves collectives in which ranks pass on chunks
// that they do not need (gather, scatter, alltoall, sendrecv, collectives of some ranks), and is an
// alternative to floods.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

// One chunk from one GPU to the next. A transfer stands in the list after the transfer that brings its chunk.
struct RoutedTransfer {
  int32_t chunk = 0;
  int32_t path = 0;     // id in Routes::paths
  int32_t parent = -1;  // transfer that brings the chunk to the source; -1: held from the start
};

struct Routes {
  PathTable paths;  // path i is link i alone; longer paths follow
  std::vector<RoutedTransfer> transfers;
  bool complete = true;  // true if the trees reach every needer
  int64_t work = 0;      // links looked at
};

// Returns the transfers of all trees. depth_weight goes from 1 (every needer is reached by its cheapest path)
// to 0 (the path of every needer adds as little cost as possible to its tree). Cost: two shortest-path
// searches for each source and share of its chunks, or for each chunk with several needers.
Routes ChooseTrees(const CopyProblem& problem, double depth_weight, uint64_t seed);

}  // namespace xccl::greedy
