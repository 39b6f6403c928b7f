// Packings of one request: trees that are ready to be cut into waves, from a linear program, from pairs of
// trees, or a given number of equal trees. In: a Task, which is the request with what all its packings share.
// Out: Candidates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "ir/bounds/bound.h"
#include "ir/sizes.h"
#include "synth/common/allreduce_trees.h"
#include "synth/common/fractional_packing.h"
#include "synth/common/packed_trees.h"
#include "synth/common/synthesizer.h"
#include "synth/forest/equal_trees.h"
#include "synth/forest/twins.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl::forest {

// Trees that copy down are packed on the machine, those that sum up on its reverse.
struct BothWays {
  Topology forwards;
  std::optional<Topology> backwards;  // where the collective reduces
};

// Nothing in it changes after MakeTask. The request outlives it.
struct Task {
  const SynthesisRequest& request;
  const Topology& topology;
  const Collective& collective;
  CollectiveSizes sizes;
  Bound bound;
  double beat_ps = 0;  // plans that cannot take less are left out
  BothWays machine;
  std::optional<SymmetryGroup> group;  // where it is not trivial and the request may use it
  std::optional<Twins> twins;          // of one root, where some ranks have any
  Deadline stopped;                    // has the request's time passed?

  int64_t Copies() const { return group ? group->order() : 1; }  // of each tree
  int64_t Rows() const;                                          // of the linear program
};

Task MakeTask(const SynthesisRequest& request, const Bound& bound, double beat_ps);

// Is latency a good part of the least time? Packings then look for trees of few levels.
bool LatencyCounts(const Task& task);

inline constexpr int32_t kFewWaves = 8;  // tell what more would bring
inline constexpr int32_t kMostWaves = 192;

// One packing. Either `pairs` has trees or `up` and `down` have, those of the two that the collective needs.
struct Candidate {
  PackedTrees up, down;
  AllreduceTrees pairs;
  double rate_ps = 0;  // what the trees' bytes take on the busiest link
  std::string note;
  int64_t arcs = 0;     // transfers of a wave
  int32_t depth = 0;    // of the deepest tree
  bool shared = false;  // translates meet on a link, and must be simulated one by one
  int64_t most_waves = kMostWaves;
};

// The aims of a packing beside bytes.
struct PackingAim {
  // Latency against bytes; absent: trees of shortest paths, of which the cheapest are taken.
  std::optional<double> latency_weight;
  // How much counts that links are held (synth/common/blocked_links.h). Above 0 trees are the cheapest:
  // slower.
  double blocking_weight = 0;
  bool exact = false;  // goes on with the cheapest trees where cheap ones miss the rate: slower
};

// The last packing of each kind that was made of a task. Those that weigh held links have few rounds. Where
// the last packing took as many they begin with its trees, since by themselves they end far from the least
// load. Others begin afresh, and so have other trees.
struct LastPackings {
  FractionalPacking up, down, pairs;
};

// Trees at the best rate. Errors: kLimit: the solver failed.
StatusOr<Candidate> PackAtBestRate(const Task& task, const PackingAim& aim, LastPackings& last);

// Pairs of trees for an allreduce. Errors: kLimit: the solver failed.
StatusOr<Candidate> PackPairs(const Task& task, const PackingAim& aim, LastPackings& last);

// `trees` trees of equal weight a root, without symmetry. Errors: kLimit: work.
StatusOr<Candidate> PackEqual(const Task& task, int64_t trees, const EqualTreesAim& aim);

}  // namespace xccl::forest
