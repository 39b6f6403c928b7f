// Compressed schedules: columns for one rank of each orbit, translated over a symmetric machine. The input
// is a Schedule with generators of a SymmetryGroup; the result is facts about its translates, or the plain
// form.
//
// A translation permutes ranks, and thereby blocks of chunks. In allgather(v) and reduce_scatter(v) the
// part of a rank maps to the part of its image, and in alltoall(v) likewise for pairs. In an allreduce of n
// ranks and n·C chunks, chunk c is in the block of member c ÷ C. A block represents its orbit if its rank
// (in a pair, the source) is the lowest of its orbit. The columns move chunks of representing blocks only.
// docs/ir.md, Compressed schedules.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/sizes.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// The blocks of chunks. A permutation of the ranks moves the chunks of a block together.
struct ChunkBlocks {
  bool of_pairs = false;       // block i·n + j belongs to members (i, j), else block i to member i
  int32_t chunks_of_each = 0;  // number of chunks of every block; 0 if blocks differ
  // Only if blocks differ: block b has the chunks first[b]..first[b+1]-1, and of_chunk says the block of
  // every chunk.
  std::vector<int32_t> first, of_chunk;

  int32_t First(int32_t block) const {
    return chunks_of_each > 0 ? block * chunks_of_each : first[static_cast<size_t>(block)];
  }
  int32_t Count(int32_t block) const { return First(block + 1) - First(block); }
  int32_t Of(ChunkId c) const { return chunks_of_each > 0 ? c.value / chunks_of_each : of_chunk[c.index()]; }
};
// Returns the blocks. Errors: kInvalidInput for collectives without a block for each rank: "broadcast has no
// part for each rank".
StatusOr<ChunkBlocks> ChunkBlocksOf(const Collective& collective);

class Translations {
 public:
  // Returns the translations of the schedule; if the machine is damaged, those of the whole machine
  // (ir/damaged.h). Errors: kInvalidInput with the fault of the schedule's symmetry (rule S7). Cost: linear
  // in generators × (nodes + links), and in the blocks if they are uneven.
  static StatusOr<Translations> Create(const Schedule& schedule, const Collective& collective,
                                       const Topology& machine);

  const SymmetryGroup& group() const { return group_; }
  ChunkId Image(int64_t e, ChunkId c) const;
  // Returns the chunks of the blocks that represent their orbits, ascending. Requires: their ids fit 32 bits.
  // Cost: linear in these chunks and in the members.
  std::vector<ChunkId> Representatives() const;
  bool of_pairs() const { return blocks_.of_pairs; }
  // Returns the number of members, lost members included; the lost ones come last.
  int32_t num_members() const { return static_cast<int32_t>(members_.size()); }
  // Returns the number of members that are not lost.
  int32_t members_there() const { return members_there_; }
  // Returns the chunk's number in the collective of the damaged machine (ir/damaged.h), or nullopt if it is a
  // chunk of a lost rank. Returns the chunk itself if no host is lost. Requires: if `of_pairs`, chunks of all
  // pairs have ids.
  std::optional<ChunkId> InMachine(ChunkId c) const;
  // Returns the source and the destination of a chunk. Requires: `of_pairs`.
  std::pair<Rank, Rank> EndsOfPair(ChunkId c) const {
    const auto block = static_cast<size_t>(blocks_.Of(c));
    return {members_[block / members_.size()], members_[block % members_.size()]};
  }
  // Returns the number of translates of the chunk's pair that have no lost end. Requires: `of_pairs`. Cost:
  // linear in the lost members.
  int64_t PairsThere(ChunkId c) const;
  // Returns the end of c's block (exclusive). Translations move blocks as a whole.
  ChunkId EndOfBlock(ChunkId c) const { return ChunkId(blocks_.First(blocks_.Of(c) + 1)); }
  // Returns whether every block maps to a block with as many chunks and equal weights and counts.
  bool KeepParts(const Collective& collective) const;
  // Returns whether all translates of each chunk have the same bytes; rounding may make them differ.
  bool KeepSizes(const CollectiveSizes& sizes) const;
  // Returns whether translates of a transfer over any of these paths never share a link. For this, only the
  // identity may keep a link of the paths in place, and no path may have two links of one orbit. Trees
  // through a switch often have two.
  bool KeepApart(const PathTable& paths) const;
  // Returns a number for each path, dense from 0. Paths that are translates of each other have equal numbers.
  // Requires: KeepApart(paths).
  std::vector<int32_t> PathClasses(const PathTable& paths) const;

 private:
  explicit Translations(SymmetryGroup group) : group_(std::move(group)) {}
  int32_t ImageOfBlock(int64_t e, int32_t block) const;
  // Returns whether same(block, image) holds for all blocks and generators.
  template <typename Same>
  bool ForAllImages(Same same) const;

  SymmetryGroup group_;
  ChunkBlocks blocks_;
  int32_t members_there_ = 0;            // members that are not lost, which come first
  std::vector<bool> is_representative_;  // by member; for a pair, its source counts
  std::vector<Rank> members_;
  std::vector<int32_t> member_of_rank_;  // -1 where not a member
  std::vector<Rank> tail_;               // by link: the GPU that it leaves, or rank 0 if it leaves no GPU
};

// Returns the translations of the machine that a compressed schedule of this collective can use. Returns the
// trivial group if there are none, or if they do not map members to members and parts to equal parts. With
// `sizes`, parts must also map to parts with as many bytes. Cost: FindTranslations.
SymmetryGroup TranslationsFor(const Collective& collective, const Topology& topology,
                              const CollectiveSizes* sizes = nullptr);

// Returns a schedule that stands for `base` and all its translates. Normalized; plain if the group is
// trivial. Engines plan for the lowest rank of each orbit and then call Translate. Requires: `base` moves
// only chunks of parts that represent their orbits, and Translations::Create accepts the group.
Schedule Translate(Schedule base, const SymmetryGroup& group);

// Returns the number of transfers in the plain form, or 0 if Translations::Create fails. Expand joins
// neighbouring runs of chunks; in a long form they count one by one.
int64_t ExpandedTransfers(const Schedule& schedule, const Collective& collective, const Topology& topology);

// Returns the plain form: for each transfer in column order, all its translates in the order of elements.
// Normalized if `schedule` is. A schedule without symmetry is returned unchanged. Errors: those of Create;
// kLimit if there are more than `most_transfers`, or if the deadline passes.
StatusOr<Schedule> Expand(const Schedule& schedule, const Collective& collective, const Topology& topology,
                          int64_t most_transfers = kMostTransfers, const Deadline& deadline = Deadline());

// Returns the plain form if it has at most kFewTransfers; otherwise the schedule unchanged. Engines return
// schedules in this form.
Schedule ExpandWhereSmall(Schedule schedule, const Collective& collective, const Topology& topology);

}  // namespace xccl
