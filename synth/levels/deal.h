// Makes a broadcast over the levels of a symmetric machine. The root deals pieces of its data to ranks in all
// parts of the machine. Each of these ranks sends its piece to all ranks over the levels. Together this is
// van de Geijn's scatter and allgather.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "ir/schedule.h"
#include "synth/levels/levels.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// The owners of the pieces. The ranks that the innermost levels join are a group. Each group gets a piece,
// and one of its ranks owns the piece. The root owns the piece of its own group.
class Dealing {
 public:
  // Chooses the groups so that a schedule has at most `most_transfers` transfers. Requires: ranks are of
  // one kind; the finder made `levels`; the arguments outlive the Dealing. Errors: kInvalidInput "ENGINE:
  // ..." if ranks are reached only through other GPUs; kLimit "ENGINE: ..." if even the fewest pieces
  // need too many transfers.
  static StatusOr<Dealing> Create(const LevelFinder& finder, const Levels& levels, const Topology& topology,
                                  const SymmetryGroup& group, int64_t most_transfers,
                                  std::string_view engine);

  int32_t pieces() const { return pieces_; }
  // Returns the estimated time of the schedule.
  double TimePs(int64_t size_bytes) const;
  // Returns the copies of a broadcast of pieces() chunks, normalized. Each chunk reaches each rank once.
  Schedule From(Rank root) const;

 private:
  Dealing() = default;
  struct Place {
    int64_t element = 0;  // takes rank 0 to the rank that has the piece
    int32_t step = -1;    // of the transfer that brought the piece
  };
  class Piece;

  const LevelFinder* finder_ = nullptr;
  const Levels* levels_ = nullptr;
  const Topology* topology_ = nullptr;
  const SymmetryGroup* group_ = nullptr;
  size_t inner_ = 0;             // number of levels inside a group
  int64_t inside_ = 1;           // number of ranks of a group
  int32_t pieces_ = 1;           // number of groups
  bool relays_ = false;          // ranks of the root's own group pass pieces on to owners
  Level direct_;                 // one level of all ranks: a path from rank 0 to every other rank
  std::vector<int32_t> way_to_;  // by element: the index of the peer of direct_; -1: identity
};

}  // namespace xccl
