// Breadth-first broadcast of every source's chunks: the schedule of copies, put together from what each rank
// receives. In: a network (turned round for reductions) and, where the machine looks the same from every
// rank, its translations: then one receiver is planned and the schedule is compressed. Out: a Schedule of
// copies in which every (rank, chunk) is written once.
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
  // `symmetry`: absent, or a transitive group for sources that are all ranks. What is pointed to must outlive
  // the planner. Cost: a search a source (with symmetry: one); memory: ranks × sources numbers (one row).
  BfbPlanner(const BfbNetwork& network, std::span<const BfbSource> sources, const SymmetryGroup* symmetry);

  // Most hops that anything travels.
  int32_t num_levels() const { return num_levels_; }
  // The longest time of some receivers, `most` at most; all where there are no more.
  double Score(std::span<const BfbSource> sources, bool level_by_level, int32_t most) const;
  // Requires: the ranks of the sources as given to the constructor; with symmetry, equal blocks and weights.
  // Compressed with symmetry, else plain; normalized. A level is a step, or, after SplitIntoWaves, several.
  // Linear in the transfers and receivers × what they cost.
  Schedule Make(std::span<const BfbSource> sources, bool level_by_level, int32_t num_chunks) const;
  // For pipelines over several domains: what comes from the next domain arrives everywhere before what comes
  // from the one after it, in steps of their own, and every chunk of a part again in its own, so that a rank
  // that passes on (backwards: sums up) what comes from many is not kept waiting by order alone. Cost: a pass
  // over the hops a source (with symmetry: one).
  void SplitIntoWaves();

 private:
  void NumberDomains();
  // The index of (rank, source) in the tables. With symmetry they have the row of rank 0 alone: it sees the
  // source as `rank` sees that source's translate.
  size_t At(Rank rank, size_t source) const;
  int32_t TurnKey(Rank from, Rank to) const;
  ReceiverView ViewOf(Rank receiver) const;

  const BfbNetwork& network_;
  const SymmetryGroup* symmetry_;
  std::vector<Rank> sources_;
  std::vector<int32_t> source_of_rank_;  // -1: none
  std::vector<int32_t> distance_;        // by (rank, source); with symmetry by source, to rank 0
  std::vector<int32_t> wave_;            // likewise; empty: levels
  int32_t num_levels_ = 0;
  int32_t domains_ = 1, places_ = 1;           // places: in the largest domain
  std::vector<int32_t> domain_of_, place_of_;  // by rank
};

}  // namespace xccl
