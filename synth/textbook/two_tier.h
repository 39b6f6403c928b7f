// alltoall(v) on hosts of equal size with fast links inside, after FAST (NSDI 2026), however skewed. What
// goes from host to host is dealt out evenly to the rails (the j-th GPU of every host): a GPU with more than
// its share hands the rest to others of its host, rails cross, and the destination's host hands on. Hosts
// meet in Birkhoff's stages (synth/textbook/birkhoff.h), so that no receiver is crowded. Where links inside
// are fast enough that takes what the fullest host sends or receives, over all its NICs: the least there is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/schedule.h"
#include "synth/common/rank_graph.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// An amount of one part that goes by one rail.
struct RailPiece {
  int32_t part = 0;
  int32_t rail = 0;
  int64_t amount = 0;
  int32_t chunk = 0;  // of the collective, once it is cut
  int32_t step = 0;   // of its first hop
};

// A machine's hosts and the hops between their GPUs, made once; planning for counts takes about a microsecond
// for every 30 pieces.
class TwoTier {
 public:
  // Errors: kInvalidInput "hierarchical-alltoall: ..." on one host, on hosts of unequal size, and where GPUs
  // of a host or of a rail are not next to each other. `graph` must outlive the TwoTier.
  static StatusOr<TwoTier> Place(const RankGraph& graph, std::span<const Rank> members);
  // Requires: an alltoall or alltoallv of the members, parts whole. Linear in pieces, at most parts + hosts^2
  // x 2 GPUs of a host, but for the stages.
  Synthesis Plan(const Collective& collective) const;

 private:
  Schedule Move(std::span<const RailPiece> pieces, const Collective& cut, int32_t stages) const;

  const RankGraph* graph_ = nullptr;
  std::vector<std::vector<int32_t>> hosts_;  // members, by place
  std::vector<int32_t> host_, place_;        // by member
  std::vector<HopId> hop_;                   // by member and member; unset where not used
};

}  // namespace xccl
