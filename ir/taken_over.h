// The transfers of lost ranks in a compressed schedule (ir/damaged.h), which other ranks take over. Each
// chunk of the columns travels along a tree of ranks: copies away from the rank of its block, sums towards it
// (rule S9). A lost rank is taken out of the trees of all chunks but its own, which are none of the
// collective. One of its children that is there, its *heir*, takes its place: the heir moves what the lost
// rank would move, at the same steps. docs/ir.md, section 3.
//
// A chunk of an alltoall goes from one rank to one other, and has no heirs: the ranks that pass it on are
// lost only with one of these two.
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

// A transfer of one chunk, of which a lost rank's heir is one end. The lost rank stands at that end in the
// columns.
struct TakenOver {
  ChunkId chunk;
  Rank src, dst;
  TransferOp op = TransferOp::kCopy;
  int32_t step = 0;
  Rank lost;
  bool heir_sends = false;
};

// A rank that passes a chunk of the columns on. In a translate whose ends are not lost, a lost rank stands
// there.
struct LostRelay {
  ChunkId chunk;
  Rank relay, lost;
};
// The first such rank of an alltoall's columns, if there is one. Requires: lost hosts, and rules S1 to S7.
std::optional<LostRelay> FindLostRelay(const Schedule& schedule, const Translations& translations,
                                       const Topology& whole);

// All transfers that heirs take over; none in an alltoall. Elements are taken in order for each chunk of the
// columns, and those of a lost rank's children that may be its heir take turns: those whose paths from it
// have as many links as most of its children's paths have. Requires: lost hosts, rules S1 to S7 and S9 but
// for its paths, and the translations of the schedule.
std::vector<TakenOver> TransfersTakenOver(const Schedule& schedule, const Translations& translations,
                                          const Topology& whole);

// Finds paths for transfers that no column makes.
class PathsBetween {
 public:
  // Requires: the arguments outlive it.
  PathsBetween(const Schedule& schedule, const PathKinds& kinds, const Topology& whole,
               const SymmetryGroup& group);

  // Sets the links to the schedule's way between two ranks, or to a translate of a path of the columns, with
  // its detours. Returns false if there is neither.
  bool Find(Rank src, Rank dst, std::vector<LinkId>& links) const;
  // Sets the links to a translate of a path of the columns, without detours. Returns false if there is none.
  bool FindTranslate(Rank src, Rank dst, std::vector<LinkId>& links) const;

 private:
  static uint64_t KeyOf(int32_t src, int32_t dst) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(src)) << 32) | static_cast<uint32_t>(dst);
  }

  const Schedule& schedule_;
  const PathKinds& kinds_;
  const SymmetryGroup& group_;
  const Detours detours_;
  std::unordered_map<uint64_t, int32_t> kind_;  // by the ends of a kind, the first with these
  std::unordered_map<uint64_t, size_t> way_;    // by ends
};

// Adds the transfers that heirs take over. Errors: kInvalidInput if there is no path for one.
Status AddTakenOver(const Schedule& schedule, const Translations& translations, const Topology& whole,
                    Schedule& plain);

}  // namespace xccl
