// Turns a schedule into trees, and trees into a schedule. Replanning cuts and joins edges of trees, which a
// list of transfers does not have.
//
// A chunk has at most two trees. The edges of the tree of sums point to the rank that ends with the whole
// sum. The edges of the tree of copies lead away from the ranks that hold the whole value. A rank's place in
// a tree is its edge towards the root.
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

// Values of Place::next for ranks without an edge.
enum : int32_t {
  kAbsent = -1,  // the rank is not in the tree
  kRoot = -2,
  kCutOff = -3,  // the edge is gone and is to be joined again
};

struct Place {
  int32_t next = kAbsent;  // the next rank towards the root
  PathId path;             // path of the edge in Trees::paths, in the direction of the data
  int32_t step = 0;        // earliest step of the edge; 0 if unknown
};

// A tree of chunks of one part that take the same paths. The chunks with the same paths may be dealt out to
// several trees.
struct Tree {
  bool sums = false;  // data flows to the root; if false, away from the root
  // Chunks of the new collective. A tree of sums and a tree of copies of the same chunks list the chunks
  // alike, and the tree of sums stands directly before the tree of copies.
  std::vector<ChunkId> chunks;
  std::vector<int32_t> later;  // by chunk: delay of its transfers against Place::step, in steps
};

struct Trees {
  int32_t num_ranks = 0;
  std::vector<Tree> trees;
  std::vector<Place> places;  // [tree × num_ranks + rank]
  PathTable paths;            // paths over the new machine's links
  int32_t cut = 1;            // pieces that each chunk of the plan is cut into
  Place& At(int32_t tree, int32_t rank) { return places[Index(tree, rank)]; }
  const Place& At(int32_t tree, int32_t rank) const { return places[Index(tree, rank)]; }
  size_t Index(int32_t tree, int32_t rank) const {
    return static_cast<size_t>(tree) * static_cast<size_t>(num_ranks) + static_cast<size_t>(rank);
  }
};

// The new names of the old machine's ranks and links, and of the plan's parts; nullopt if gone.
struct Renaming {
  IdVector<Rank, std::optional<Rank>> rank;
  IdVector<LinkId, std::optional<LinkId>> link;
  IdVector<PartId, std::optional<PartId>> part;
  int32_t most_cut = 1;  // pieces that a chunk may be cut into
};

// Returns the trees of a plan's schedule in the new names. Edges over lost links or ranks are cut off. If a
// root is gone, the first rank whose edge led to it takes its place; a tree of copies after sums takes the
// rank with the sum as its root. If links carry few trees, the chunks of a tree are dealt out to several
// trees. Chunks are cut into pieces if there are too few chunks for that, or too few for a pipeline of sums
// and copies. The new chunks are the pieces of the old chunks of the parts that are left. Requires:
// `schedule` is plain, normalized and verifies. Errors: kInvalidInput if a chunk's transfers are no trees
// ("rank 3 sends two partial sums of chunk 0"), and for switches that multicast or reduce; kLimit for more
// than kMostCells places. Cost: linear in transfers × chunks each moves, and in places.
StatusOr<Trees> TreesOf(const Schedule& schedule, const Collective& collective, const Topology& old,
                        const Renaming& renaming, int32_t new_ranks);

// Returns the normalized schedule of the trees. Every edge goes as early as its step and the edges that it
// waits for allow. Leaves out edges whose data no rank needs. Requires: no rank is cut off. Cost: linear in
// places and in the transfers written.
Schedule ScheduleOf(const Trees& trees, const Collective& collective);

}  // namespace xccl::replan
