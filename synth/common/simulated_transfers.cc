#include "synth/common/simulated_transfers.h"

#include "ir/translated.h"

namespace xccl {

int64_t SimulatedTransfers(const Topology& topology, const SymmetryGroup& group) {
  const int64_t ranks = topology.num_ranks();
  bool apart = true;
  for (int32_t l = 0; l < topology.num_links() && apart; ++l) apart = group.IsFreeOn(LinkId(l));
  return ranks * (apart || ranks * ranks > kMostTransfers ? int64_t{group.num_rank_orbits()} : ranks);
}

}  // namespace xccl
