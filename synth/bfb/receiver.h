// Plans the blocks that one rank, the receiver, gets over each of its hops. A block is the data of one
// source. Input: the distances from all sources to the receiver and to its neighbours. Output: pieces of
// blocks, each with its hop. A block may arrive over any hop from a neighbour that is one hop nearer to the
// block's source. Blocks are distributed over the receiver's ports. The receivers of a breadth-first
// broadcast are planned one by one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "synth/bfb/network.h"
#include "synth/common/moves.h"

namespace xccl {

// A rank, the block of chunks that the rank starts with, and the weight of each chunk in units (>= 1).
struct BfbSource {
  Rank rank;
  ChunkRange block;
  int64_t weight = 1;
};

// The network around one receiver. Must not be copied, because `via` may point into `rows`.
struct ReceiverView {
  std::span<const InHop> hops;
  std::span<const double> speeds;  // by port
  // By source: the number of hops to the receiver, which is also the level of the source's block; 0 if the
  // source is the receiver; -1 if there is no path.
  std::span<const int32_t> distance;
  // By hop, then by source: the source's distance to the rank that the hop comes from.
  std::vector<std::span<const int32_t>> via = {};
  std::vector<int32_t> order = {};  // all sources, in the order in which their blocks are planned
  // By hop: a class number. Hops of one class leave their sender over the same link or over alike links.
  std::vector<int32_t> sender_class = {};
  std::vector<std::vector<int32_t>> rows = {};  // memory for `via`; empty if `via` points elsewhere
};

struct BfbPiece {
  int32_t source = 0;
  ChunkRange chunks;
  int32_t hop = 0;  // index into ReceiverView::hops
};

// Appends the receiver's pieces to `pieces`. A level is the set of sources at one distance. With
// `level_by_level` the load of each level alone is as even as possible, as the blocking model needs.
// Otherwise the total load of the levels so far is as even as possible. `sent` holds the units that each
// sender class sends to all receivers planned so far, and is updated. Returns a time in units ÷ (bytes per
// second). With `level_by_level` it is the sum of the times of each level's fullest port, otherwise the time
// of the port that is fullest in total. Cost: sources × hops, and one Balance for each level.
double PlanReceiver(std::span<const BfbSource> sources, const ReceiverView& view, bool level_by_level,
                    std::vector<int64_t>& sent, std::vector<BfbPiece>& pieces);

}  // namespace xccl
