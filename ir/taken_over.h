// The transfers of lost ranks in a compressed schedule (ir/damaged.h), which other ranks take over. Each
// chunk of the columns travels along a tree of ranks. Copies go away from the rank of the chunk's block, and
// sums go towards this rank (rule S9). The chunks of lost ranks are not part of the collective. A lost rank
// is taken out of the trees of all other chunks. One of its children that is not lost, its *heir*, takes its
// place: the heir moves what the lost rank would move, in the same steps. docs/ir.md, section 3.
//
// A chunk of an alltoall goes from one rank to one other rank and needs no heirs. A rank that passes the
// chunk on is lost only if one of the two ends is lost.
//
// Work and memory grow with the lost ranks, and with the columns for each of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/damaged.h"
#include "ir/schedule.h"
#include "ir/translated.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// A transfer of one chunk that the heir of a lost rank takes over. The heir is at the end at which the
// translate of the columns has the lost rank.
struct TakenOver {
  ChunkId chunk;
  Rank src, dst;
  TransferOp op = TransferOp::kCopy;
  int32_t step = 0;
  Rank lost;
  bool heir_sends = false;
};

// A fault of an alltoall's columns: `relay` passes on `chunk`, and a translate between ranks that are not
// lost has the lost rank `lost` in the place of `relay`.
struct LostRelay {
  ChunkId chunk;
  Rank relay, lost;
};
// Returns the first lost relay of an alltoall's columns, or nullopt. Requires: lost hosts, and rules S1 to
// S7.
std::optional<LostRelay> FindLostRelay(const Schedule& schedule, const Translations& translations,
                                       const Topology& whole);

// Returns all transfers that heirs take over; none in an alltoall. Goes through the chunks of the columns
// and, for each chunk, through the elements in order. The children that may be heirs of a lost rank take
// turns. A child may be the heir if its path from the lost rank has as many links as most of the children's
// paths. Requires: lost hosts, the schedule's translations, and rules S1 to S7 and S9 except for paths.
std::vector<TakenOver> TransfersTakenOver(const Schedule& schedule, const Translations& translations,
                                          const Topology& whole);

// Finds paths for transfers that no column makes.
class PathsBetween {
 public:
  // Requires: the arguments outlive it.
  PathsBetween(const Schedule& schedule, const PathKinds& kinds, const Topology& whole,
               const SymmetryGroup& group);

  // Sets `links` to the schedule's way between two ranks or, if there is none, to a translate of a path of
  // the columns, with its detours. Returns false if there is neither.
  bool Find(Rank src, Rank dst, std::vector<LinkId>& links) const;
  // Sets `links` to a translate of a path of the columns, without detours. Returns false if there is none.
  bool FindTranslate(Rank src, Rank dst, std::vector<LinkId>& links) const;

 private:
  static uint64_t KeyOf(int32_t src, int32_t dst) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(src)) << 32) | static_cast<uint32_t>(dst);
  }

  const Schedule& schedule_;
  const PathKinds& kinds_;
  const SymmetryGroup& group_;
  const Detours detours_;
  std::unordered_map<uint64_t, int32_t> kind_;  // by ends: the first kind with these ends
  std::unordered_map<uint64_t, size_t> way_;    // by ends
};

// Adds the transfers that heirs take over to `plain`. Errors: kInvalidInput if there is no path for one.
Status AddTakenOver(const Schedule& schedule, const Translations& translations, const Topology& whole,
                    Schedule& plain);

}  // namespace xccl
