// A schedule as trees: a chunk's sums flow up one tree and its copies flow down another. Replanning cuts and
// joins edges of trees, which a list of transfers does not have.
//
// A chunk has at most two trees: one of sums, whose edges point to the rank that ends with the whole sum, and
// one of copies out of the ranks that have the whole. A rank's place in a tree is its edge towards the root.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::replan {

// Values of `next` where there is no next rank.
inline constexpr int32_t kAbsent = -1;  // the rank is not in the tree
inline constexpr int32_t kRoot = -2;
inline constexpr int32_t kCutOff = -3;  // its edge is gone: to be joined again

struct Place {
  int32_t next = kAbsent;  // the rank towards the root
  PathId path;             // of the edge, in Trees::paths, in the order in which data takes the links
  int32_t step = 0;        // at least; 0 where nothing is known
};

// Chunks of one part that take the same paths are one tree.
struct Tree {
  bool sums = false;  // data flows to the root; else away from it
  // Chunks of the new collective. Trees of sums and of copies of the same chunks list them alike, and follow
  // each other.
  std::vector<ChunkId> chunks;
  std::vector<int32_t> later;  // by how many steps each chunk comes after the first
};

struct Trees {
  int32_t num_ranks = 0;
  std::vector<Tree> trees;
  std::vector<Place> places;  // [tree × num_ranks + rank]
  PathTable paths;            // of the new machine's links
  int32_t cut = 1;            // pieces that each chunk of the plan is cut into
  Place& At(int32_t tree, int32_t rank) { return places[Index(tree, rank)]; }
  const Place& At(int32_t tree, int32_t rank) const { return places[Index(tree, rank)]; }
  size_t Index(int32_t tree, int32_t rank) const {
    return static_cast<size_t>(tree) * static_cast<size_t>(num_ranks) + static_cast<size_t>(rank);
  }
};

// How an old machine's names map to the new one's; absent: gone.
struct Renaming {
  IdVector<Rank, std::optional<Rank>> rank;
  IdVector<LinkId, std::optional<LinkId>> link;
  IdVector<PartId, std::optional<PartId>> part;
  int32_t most_cut = 1;  // pieces that a chunk may be cut into
};

// The trees of a plan's schedule in the new names; edges over what is gone are cut off. Where a root is gone,
// the first rank that fed it, or was fed by it, takes its place. Where links carry few trees, the chunks of a
// tree are dealt out to several; chunks are cut where there are too few for that, or, where copies follow
// sums, to be a pipeline. New chunks are numbered as if the parts that are left had the old chunks, each cut.
// Requires: `schedule` is plain, normalized and verifies. Errors: kInvalidInput "rank 3 sends two partial
// sums of chunk 0" and the like where a chunk's transfers are no trees, and for switches that multicast or
// reduce; kLimit. Cost: linear in transfers × chunks each moves, and in places.
StatusOr<Trees> TreesOf(const Schedule& schedule, const Collective& collective, const Topology& old,
                        const Renaming& renaming, int32_t new_ranks);

// The schedule in which every edge goes as early as its step and what it waits for allow. Ranks that only
// pass on what nobody needs are left out. Normalized. Requires: nothing is cut off. Linear in places and in
// what is written.
Schedule ScheduleOf(const Trees& trees, const Collective& collective);

}  // namespace xccl::replan
