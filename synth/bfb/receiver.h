// Plans what one rank receives over which of its hops. In: the distances of all sources to the rank and to
// its neighbours. Out: pieces of the sources' blocks. A block may come over any hop from a neighbour that is
// one hop nearer to its source, and is shared out over the ports. The receivers of a breadth-first broadcast
// are independent of each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "synth/bfb/network.h"
#include "synth/common/moves.h"

namespace xccl {

// A rank, the chunks that it starts with, and the weight of each of these chunks in units, >= 1.
struct BfbSource {
  Rank rank;
  ChunkRange block;
  int64_t weight = 1;
};

// The machine around one receiver. Must not be copied, since `via` points into `rows`.
struct ReceiverView {
  std::span<const InHop> hops;
  std::span<const double> speeds;  // by port
  // By source: hops to the receiver, which is the step in which its block arrives; 0: the receiver itself,
  // -1: unreachable.
  std::span<const int32_t> distance;
  // By hop, by source: the source's distance to the rank that the hop comes from.
  std::vector<std::span<const int32_t>> via = {};
  std::vector<int32_t> order = {};  // all sources, in the order in which their blocks are shared out
  // By hop: hops of one class share the link out of their sender.
  std::vector<int32_t> sender_class = {};
  std::vector<std::vector<int32_t>> rows = {};  // memory for `via`; empty if `via` points elsewhere
};

struct BfbPiece {
  int32_t source = 0;
  ChunkRange chunks;
  int32_t hop = 0;  // index into ReceiverView::hops
};

// Appends the pieces that the receiver gets. A level is the set of sources at one distance. level_by_level:
// each level loads ports as evenly as possible, as blocking messages need; otherwise all levels together do.
// `sent` counts units by sender class over all receivers, and grows by the chosen units. Returns a time in
// units ÷ bytes per second: the sum of each level's fullest port, or the fullest port of all levels together.
// Cost: sources × hops, and one Balance a level.
double PlanReceiver(std::span<const BfbSource> sources, const ReceiverView& view, bool level_by_level,
                    std::vector<int64_t>& sent, std::vector<BfbPiece>& pieces);

}  // namespace xccl
