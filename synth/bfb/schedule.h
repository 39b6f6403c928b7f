// The schedule of a breadth-first broadcast, put together from what each rank receives. In: the sources, a
// network (the reversed machine's for sums) and, if all ranks are alike, the machine's translations. Out: a
// schedule of copies that writes every (rank, chunk) once. With translations one receiver is planned, and the
// schedule is compressed.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/schedule.h"
#include "synth/bfb/network.h"
#include "synth/bfb/receiver.h"
#include "topologies/symmetry.h"

namespace xccl {

class BfbPlanner {
 public:
  // `symmetry`: null, or a transitive group, in which case the sources are all ranks. The network and the
  // group must outlive the planner. Cost: one search for each source; with symmetry one. Memory: ranks ×
  // sources numbers; with symmetry one row.
  BfbPlanner(const BfbNetwork& network, std::span<const BfbSource> sources, const SymmetryGroup* symmetry);

  // The most hops that any chunk travels.
  int32_t num_levels() const { return num_levels_; }
  // The longest PlanReceiver time among `most` receivers, evenly spaced, or among all if there are fewer.
  double Score(std::span<const BfbSource> sources, bool level_by_level, int32_t most) const;
  // The schedule, normalized; compressed with symmetry, else plain. A level is one step, or several after
  // SplitIntoWaves. Requires: the same ranks of sources as in the constructor; with symmetry, equal blocks
  // and weights. Cost: linear in the transfers, and one PlanReceiver for each receiver.
  Schedule Make(std::span<const BfbSource> sources, bool level_by_level, int32_t num_chunks) const;
  // Gives the data of each domain steps of its own, the next domain's first, and each chunk of a part one of
  // these steps. A rank that passes on (in reverse: sums up) data from many domains then never waits for data
  // only because other data has a lower step. Cost: one pass over the hops for each source; with symmetry
  // one.
  void SplitIntoWaves();

 private:
  void NumberDomains();
  // The index of (rank, source) in the tables. With symmetry the tables have only rank 0's row, and the index
  // is that of the source which rank 0 sees as `rank` sees `source`.
  size_t At(Rank rank, size_t source) const;
  // How far `to` comes after `from`, in domains and then in places within them.
  int32_t TurnKey(Rank from, Rank to) const;
  ReceiverView ViewOf(Rank receiver) const;

  const BfbNetwork& network_;
  const SymmetryGroup* symmetry_;
  std::vector<Rank> sources_;
  std::vector<int32_t> source_of_rank_;  // -1: none
  std::vector<int32_t> distance_;        // by (rank, source); with symmetry by source, to rank 0
  std::vector<int32_t> wave_;            // by (rank, source); with symmetry by source; empty: no waves
  int32_t num_levels_ = 0;
  int32_t domains_ = 1, places_ = 1;           // places_: ranks of the largest domain
  std::vector<int32_t> domain_of_, place_of_;  // by rank
};

}  // namespace xccl
