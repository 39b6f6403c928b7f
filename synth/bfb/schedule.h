// Breadth-first broadcast of every source's chunks: the schedule of copies, put together from what each rank
// receives. In: a network (turned round for reductions) and, where the machine looks the same from every
// rank, its translations: then one receiver is planned and the schedule is compressed. Out: a Schedule of
// copies in which every (rank, chunk) is written once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
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
  BfbPlanner(const BfbNetwork& network, std::vector<Rank> sources, const SymmetryGroup* symmetry);

  // Most hops that anything travels.
  int32_t num_levels() const { return num_levels_; }
  // Loads of the worst of some receivers, `most` at most; all where there are no more.
  ReceiverLoad Score(const BfbSources& sources, bool level_by_level, int32_t most) const;
  // Requires: sources.rank as given to the constructor; with symmetry, equal blocks and weights.
  // Compressed with symmetry, else plain; normalized. A level is a step, or, after SplitIntoWaves, several.
  // Linear in the transfers and receivers × what they cost.
  Schedule Make(const BfbSources& sources, bool level_by_level, int32_t num_chunks) const;
  // For pipelines over several domains: what comes from the next domain goes all its way before what comes
  // from the one after it, in steps of their own, and every chunk of a part again in its own, so that a rank
  // that passes on (backwards: sums up) what comes from many is not kept waiting by order alone. Cost: a pass
  // over the hops a source (with symmetry: one).
  void SplitIntoWaves();

 private:
  struct View;
  // Both by (rank, source): one more than the largest at any nearer neighbour, at least `least`.
  std::vector<int32_t> Longest(const std::vector<int32_t>& least) const;
  std::vector<int32_t> LongestSeenFromOne(const std::vector<int32_t>& least) const;
  void NumberDomains();
  // The number of the source that lies to `from` as `source` lies to rank 0's place in `to`.
  int32_t Translated(Rank from, int32_t source) const;
  void Turn(Rank receiver, std::vector<int32_t>& sources) const;
  int32_t TurnKey(Rank from, Rank to) const;
  // The steps in which a piece moves, and its chunks in each.
  void ForEachStep(Rank receiver, const BfbPiece& piece, const BfbSources& sources,
                   const std::function<void(int32_t, ChunkRange)>& visit) const;
  View ViewOf(Rank receiver) const;
  Schedule MakePlain(const BfbSources& sources, bool level_by_level, int32_t num_chunks) const;
  Schedule MakeCompressed(const BfbSources& sources, bool level_by_level, int32_t num_chunks) const;

  const BfbNetwork& network_;
  const SymmetryGroup* symmetry_;
  std::vector<Rank> sources_;
  std::vector<int32_t> source_of_rank_;    // -1: none
  std::vector<int32_t> distance_, level_;  // by (rank, source); with symmetry by source, to rank 0
  std::vector<int32_t> wave_;              // likewise; empty: levels
  int32_t num_levels_ = 0;
  // Ranks by (domain, place in it), -1 where an domain is smaller.
  int32_t domains_ = 1, places_ = 1;
  std::vector<int32_t> at_, domain_of_, place_of_;
};

}  // namespace xccl
