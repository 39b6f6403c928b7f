// What one rank receives, and over which hops: the shards of every source that lie one hop nearer to it at a
// neighbour, shared out over its ports. In: distances of the sources to the rank and to its neighbours; out:
// pieces of shards. The receivers of a breadth-first broadcast do not depend on each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "synth/bfb/network.h"
#include "synth/common/moves.h"

namespace xccl {

// Who has what: a rank, the chunks that it has, and the units of each of them, >= 1.
struct BfbSource {
  Rank rank;
  ChunkRange block;
  int64_t weight = 1;
};

// Not to be copied: `via` points into `rows`.
struct ReceiverView {
  std::span<const InHop> hops;
  std::span<const double> speeds;  // by port
  // By source: hops to the receiver, which is the step in which it arrives; 0: its own, -1: unreachable.
  std::span<const int32_t> distance;
  std::vector<std::span<const int32_t>> via = {};  // by hop, by source: distance to where the hop comes from
  std::vector<int32_t> order = {};                 // all sources in the order in which they are dealt out
  std::vector<int32_t> sender_class = {};       // by hop: those of one class share a link out of their sender
  std::vector<std::vector<int32_t>> rows = {};  // memory behind `via`, where it is no other's
};

struct BfbPiece {
  int32_t source = 0;
  ChunkRange chunks;
  int32_t hop = 0;  // index into ReceiverView::hops
};

// Adds pieces, by level. level_by_level: every level is as short as it can be, for messages that are waited
// for; else all levels together. `sent` counts units by sender class, over all receivers that share it, and
// grows by what is chosen. Returns the time in units ÷ bytes per second: that of each level's fullest port,
// added up, or that of the port that is fullest in all. Cost: sources × hops, and what Balance costs.
double PlanReceiver(std::span<const BfbSource> sources, const ReceiverView& view, bool level_by_level,
                    std::vector<int64_t>& sent, std::vector<BfbPiece>& pieces);

}  // namespace xccl
