// A broadcast over the levels of a symmetric machine: the root deals pieces of its data to ranks all over the
// machine, and each of them sends its piece to all ranks over the levels (van de Geijn's scatter and
// allgather).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "ir/schedule.h"
#include "synth/levels/levels.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// The ranks that the root deals a piece to: one of each group of the innermost levels. The root is one.
class Dealing {
 public:
  // Chooses the groups so that a schedule has at most `most_transfers` transfers. Requires: ranks are of one
  // kind; `levels` are of the finder, and all of them outlive the Dealing. Errors: kInvalidInput "ENGINE:
  // ..." if ranks are reached only through other GPUs; kLimit "ENGINE: ..." if even two pieces are too many
  // transfers.
  static StatusOr<Dealing> Create(const LevelFinder& finder, const Levels& levels, const Topology& topology,
                                  const SymmetryGroup& group, int64_t most_transfers,
                                  std::string_view engine);

  int32_t pieces() const { return pieces_; }
  // The estimated time of the schedule.
  double TimePs(int64_t size_bytes) const;
  // The copies of a broadcast of pieces() chunks, normalized. Each chunk reaches each rank once.
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
  size_t inner_ = 0;             // the number of levels inside a group
  int64_t inside_ = 1;           // the ranks of a group
  int32_t pieces_ = 1;           // the number of groups
  bool relays_ = false;          // pieces go out by way of the ranks of the root's own group
  Level direct_;                 // a way from rank 0 to every other rank
  std::vector<int32_t> way_to_;  // by element: the peer of direct_; -1 for the identity
};

}  // namespace xccl
