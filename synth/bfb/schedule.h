// Makes the schedule of a breadth-first broadcast from the plans of all receivers. Input: the sources; a
// network, for sums that of the reversed machine; and the machine's translations, if all ranks are alike.
// Output: a schedule of copies that writes every chunk once at every rank but its source. With translations
// one receiver is planned, and the schedule is compressed. A domain is one of RankGraph::Domain
// (synth/common/rank_graph.h).
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
  // `symmetry` is null or a transitive group. With a group, the sources must be all ranks. The network and
  // the group must outlive the planner. Cost: one search for each source; with symmetry a single search.
  // Memory: a table of ranks × sources numbers; with symmetry one row of the table.
  BfbPlanner(const BfbNetwork& network, std::span<const BfbSource> sources, const SymmetryGroup* symmetry);

  // Returns the largest number of hops that any chunk travels.
  int32_t num_levels() const { return num_levels_; }
  // Returns the longest PlanReceiver time of at most `most` receivers, evenly spaced among the ranks.
  double Score(std::span<const BfbSource> sources, bool level_by_level, int32_t most) const;
  // Returns the normalized schedule; with symmetry it is compressed. Each level is one step, or several steps
  // after SplitIntoWaves. Requires the same ranks of sources as in the constructor; with symmetry also equal
  // blocks and weights. Cost: a sort of the transfers, and one PlanReceiver for each receiver.
  Schedule Make(std::span<const BfbSource> sources, bool level_by_level, int32_t num_chunks) const;
  // Splits the steps into waves; does nothing if there is one domain or one level. A rank receives the data
  // of each source's domain in waves of its own: first the data of the rank's own domain, then the data of
  // the domain before it in cyclic order, and so on. In a wave each chunk of a block has its own step.
  // Without waves, data that a rank relays would wait for data of other domains only because that has a lower
  // step. Cost: one pass over the hops for each source; with symmetry one pass.
  void SplitIntoWaves();

 private:
  void NumberDomains();
  // Returns the index of (rank, source) in the tables. With symmetry the tables have only the row of rank 0.
  // The index is then that of the source to which `source` moves in the translation from `rank` to rank 0.
  size_t At(Rank rank, size_t source) const;
  // Returns how far `to` comes after `from` in cyclic order: by domains, then by places within a domain.
  int32_t TurnKey(Rank from, Rank to) const;
  ReceiverView ViewOf(Rank receiver) const;

  const BfbNetwork& network_;
  const SymmetryGroup* symmetry_;
  std::vector<Rank> sources_;
  std::vector<int32_t> source_of_rank_;  // by rank: index of the source; -1: not a source
  std::vector<int32_t> distance_;        // hops by (rank, source); with symmetry by source, to rank 0
  std::vector<int32_t> wave_;            // by (rank, source); with symmetry by source; empty: no waves
  int32_t num_levels_ = 0;
  int32_t domains_ = 1, places_ = 1;           // places_: the number of ranks in the largest domain
  std::vector<int32_t> domain_of_, place_of_;  // by rank; a place is a rank's number in its domain
};

}  // namespace xccl
