// Makes packings of one request: trees that are ready to be cut into waves. A packing comes from a linear
// program of trees, or from a linear program of pairs (a tree of sums and a tree of copies), or consists of a
// given number of equal trees. Input: a Task, which holds the request and the data that all its packings
// share. Output: Candidates.
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

// Trees that copy down are packed on the machine, trees that sum up on its reverse.
struct BothWays {
  Topology forwards;
  std::optional<Topology> backwards;  // set if the collective reduces
};

// One request and the data that all its packings share. Constant while packings are made; before, PackAndCut
// may reset `group` and `twins`. Must not outlive the request.
struct Task {
  const SynthesisRequest& request;
  const Topology& topology;
  const Collective& collective;
  CollectiveSizes sizes;
  Bound bound;
  double beat_ps = 0;  // plans that cannot take less time are left out
  BothWays machine;
  std::optional<SymmetryGroup> group;  // set if not trivial and of use for the request
  std::optional<Twins> twins;          // set if of use: one root, and some ranks have twins
  Deadline stopped;                    // returns true once the request's time has passed

  int64_t Copies() const { return group ? group->order() : 1; }  // translates of each tree
  int64_t Rows() const;                                          // rows of the linear program
};

Task MakeTask(const SynthesisRequest& request, const Bound& bound, double beat_ps);

// Returns whether latency is more than 1 % of the bound. Packings then look for trees of few levels.
bool LatencyCounts(const Task& task);

inline constexpr int32_t kFewWaves = 8;  // times in up to this many waves predict the times in more
inline constexpr int32_t kMostWaves = 192;

// One packing. Either `pairs` has trees, or `up` and `down` have the trees that the collective needs.
struct Candidate {
  PackedTrees up, down;
  AllreduceTrees pairs;
  double rate_ps = 0;  // the busiest link's time for all bytes; doubled for separate trees of an allreduce
  std::string note;
  int64_t arcs = 0;     // transfers of one wave
  int32_t depth = 0;    // depth of the deepest tree
  bool shared = false;  // translates of a tree share links and are simulated one by one
  int64_t most_waves = kMostWaves;
};

// The aims of a packing in addition to an even load of bytes.
struct PackingAim {
  // Weight of latency against bytes. Absent: only trees of shortest paths, and among them the cheapest.
  std::optional<double> latency_weight;
  // Weight of the time for which links are held (synth/common/blocked_links.h). Above 0, only the cheapest
  // trees are used, which takes longer.
  double blocking_weight = 0;
  bool exact = false;  // use the cheapest trees if cheap trees miss the best rate; takes longer
};

// The last packing of each kind for a task. A packing that weighs held links takes few rounds, and would end
// far from the least load if it started without trees. It starts with the trees of the last packing, if that
// took at least as many rounds. Other packings start without trees, so that they find other trees.
struct LastPackings {
  FractionalPacking up, down, pairs;
};

// Packs trees at the best rate. Replaces the packings in `last`. Errors: kLimit if the solver fails.
StatusOr<Candidate> PackAtBestRate(const Task& task, const PackingAim& aim, LastPackings& last);

// Packs pairs (a tree of sums and a tree of copies) for an allreduce. Replaces last.pairs. Errors: kLimit if
// the solver fails.
StatusOr<Candidate> PackPairs(const Task& task, const PackingAim& aim, LastPackings& last);

// Packs `trees` trees of equal weight for each root, without symmetry. Errors: kLimit if the work runs out.
StatusOr<Candidate> PackEqual(const Task& task, int64_t trees, const EqualTreesAim& aim);

}  // namespace xccl::forest
