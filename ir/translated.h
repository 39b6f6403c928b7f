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

// The chunks that move together when ranks are permuted.
struct ChunkBlocks {
  bool of_pairs = false;       // block i·n + j belongs to members (i, j), else block i to member i
  int32_t chunks_of_each = 0;  // if all blocks have as many; else 0
  // Uneven blocks: block b is chunks first[b]..first[b+1]-1; the block of every chunk.
  std::vector<int32_t> first, of_chunk;

  int32_t First(int32_t block) const {
    return chunks_of_each > 0 ? block * chunks_of_each : first[static_cast<size_t>(block)];
  }
  int32_t Count(int32_t block) const { return First(block + 1) - First(block); }
  int32_t Of(ChunkId c) const { return chunks_of_each > 0 ? c.value / chunks_of_each : of_chunk[c.index()]; }
};
// Errors: kInvalidInput for collectives without a block for each rank: "broadcast has no part for each rank".
StatusOr<ChunkBlocks> ChunkBlocksOf(const Collective& collective);

class Translations {
 public:
  // The group is one of the whole machine where the schedule is of a damaged machine (ir/damaged.h).
  // Errors: kInvalidInput with the fault of the schedule's symmetry (rule S7). Cost: linear in generators ×
  // (nodes + links), and in the blocks if they are uneven.
  static StatusOr<Translations> Create(const Schedule& schedule, const Collective& collective,
                                       const Topology& machine);

  const SymmetryGroup& group() const { return group_; }
  ChunkId Image(int64_t e, ChunkId c) const;
  // The representative chunks, ascending. Requires: their ids fit 32 bits. Cost: linear in them and in the
  // members.
  std::vector<ChunkId> Representatives() const;
  bool of_pairs() const { return blocks_.of_pairs; }
  // Lost members, which are the last ones, are members too.
  int32_t num_members() const { return static_cast<int32_t>(members_.size()); }
  int32_t members_there() const { return members_there_; }
  // The chunk's number in the collective of the machine that lacks hosts (ir/damaged.h), or nullopt if it is
  // one of a lost rank. Elsewhere that number is its own. Requires: chunks of all pairs have ids, if
  // `of_pairs`.
  std::optional<ChunkId> InMachine(ChunkId c) const;
  // Requires: `of_pairs`.
  std::pair<Rank, Rank> EndsOfPair(ChunkId c) const {
    const auto block = static_cast<size_t>(blocks_.Of(c));
    return {members_[block / members_.size()], members_[block % members_.size()]};
  }
  // The number of translates of the chunk's pair of which no end is lost. Requires: `of_pairs`. Cost: linear
  // in the lost members.
  int64_t PairsThere(ChunkId c) const;
  // The end of c's block (exclusive). Translations move blocks as a whole.
  ChunkId EndOfBlock(ChunkId c) const { return ChunkId(blocks_.First(blocks_.Of(c) + 1)); }
  // True if every block maps to a block with as many chunks and equal weights and counts.
  bool KeepParts(const Collective& collective) const;
  // True if all translates of each chunk have the same bytes; rounding can make them differ by an element.
  bool KeepSizes(const CollectiveSizes& sizes) const;
  // True if translates of a transfer over any of these paths never share a link: only the identity keeps a
  // link of theirs in place, and no path has two links of one orbit, as trees through a switch have.
  bool KeepApart(const PathTable& paths) const;
  // Numbers paths densely from 0 so that translates of each other get equal numbers. Requires:
  // KeepApart(paths).
  std::vector<int32_t> PathClasses(const PathTable& paths) const;

 private:
  explicit Translations(SymmetryGroup group) : group_(std::move(group)) {}
  int32_t ImageOfBlock(int64_t e, int32_t block) const;
  // True if same(block, image) holds for all blocks and generators.
  template <typename Same>
  bool ForAllImages(Same same) const;

  SymmetryGroup group_;
  ChunkBlocks blocks_;
  int32_t members_there_ = 0;            // members that are not lost, which come first
  std::vector<bool> is_representative_;  // by member, of a pair the source
  std::vector<Rank> members_;
  std::vector<int32_t> member_of_rank_;  // -1 where not a member
  std::vector<Rank> tail_;               // by link: the GPU that it leaves, or rank 0 if it leaves no GPU
};

// The translations of the machine that a compressed schedule of this collective can use. Trivial if there
// are none, or if they do not map members to members and parts to equal parts; given sizes, to parts with as
// many bytes, too. Cost: FindTranslations.
SymmetryGroup TranslationsFor(const Collective& collective, const Topology& topology,
                              const CollectiveSizes* sizes = nullptr);

// The members, of which one stands for all of its orbit where the translations keep the collective; each by
// itself on few ranks. An allreduce of all ranks needs no parts that map to parts.
std::vector<Rank> OneOfEachOrbit(const Collective& collective, const Topology& topology,
                                 const CollectiveSizes& sizes);

// Makes a schedule that does all translates of `base` too. Normalized; plain if the group is trivial.
// Engines plan for the lowest rank of each orbit and end with this. Requires: `base` moves only chunks of
// parts that represent their orbits, and Translations::Create accepts the group.
Schedule Translate(Schedule base, const SymmetryGroup& group);

// The number of transfers in the plain form, or 0 if Translations::Create fails. Neighbouring runs of chunks
// count one by one where the form is long.
int64_t ExpandedTransfers(const Schedule& schedule, const Collective& collective, const Topology& topology);

// The plain form: for each transfer in column order, all its translates in the order of elements.
// Normalized if `schedule` is. A schedule without symmetry is returned unchanged. Errors: those of Create;
// kLimit beyond `most_transfers`, or where the deadline passes.
StatusOr<Schedule> Expand(const Schedule& schedule, const Collective& collective, const Topology& topology,
                          int64_t most_transfers = kMostTransfers, const Deadline& deadline = Deadline());

// Returns the plain form if it has at most kFewTransfers; otherwise the schedule unchanged. Engines return
// schedules in this form.
Schedule ExpandWhereSmall(Schedule schedule, const Collective& collective, const Topology& topology);

}  // namespace xccl
