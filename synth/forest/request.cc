#include "synth/forest/request.h"

#include <algorithm>

#include "synth/forest/twins.h"

namespace xccl::forest {

bool HasManyRoots(const Collective& collective) {
  return collective.kind() != CollectiveKind::kBroadcast && collective.kind() != CollectiveKind::kReduce;
}

bool IsUneven(const Collective& collective) {
  return collective.kind() == CollectiveKind::kAllgatherv ||
         collective.kind() == CollectiveKind::kReduceScatterv;
}

bool MayUseSymmetry(const Topology& topology, const Collective& collective) {
  return HasManyRoots(collective) && !IsUneven(collective) &&
         collective.num_members() == topology.num_ranks() && topology.num_ranks() > 1 &&
         std::is_sorted(collective.ranks().begin(), collective.ranks().end());
}

void TakeOrbits(const SymmetryGroup& group, PackingProblem& problem) {
  problem.roots.clear();
  for (int32_t o = 0; o < group.num_rank_orbits(); ++o) problem.roots.push_back(group.Representative(o));
  problem.demand.assign(problem.roots.size(), 1.0);
  for (size_t l = 0; l < problem.orbit.size(); ++l)
    problem.orbit[l] = group.OrbitOf(LinkId(static_cast<int64_t>(l)));
  problem.share.clear();
  for (int32_t o = 0; o < group.num_link_orbits(); ++o) problem.share.push_back(group.LinkShare(o));
}

bool MayHaveTwins(const SynthesisRequest& request) {
  return !request.limits.chunks && !HasManyRoots(*request.collective);
}

int64_t NumRows(const SynthesisRequest& request) {
  if (MayHaveTwins(request))
    return Twins(*request.topology, request.collective->ranks(), *request.collective->spec().root).NumRows();
  return int64_t{request.topology->num_links()} + request.collective->num_members();
}

int64_t NumRows(const SymmetryGroup& group) {
  return int64_t{group.num_link_orbits()} + group.num_rank_orbits();
}

}  // namespace xccl::forest
