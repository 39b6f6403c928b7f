// Compressed schedules: a pattern for one rank of an orbit, translated over a symmetric machine. In: a
// Schedule with generators of a SymmetryGroup; out: what its translates do, or the plain form written out.
//
// A translation takes ranks to ranks, and so blocks of chunks to blocks: the part of a rank (allgather(v),
// reduce_scatter(v)) to that of its image, the part of a pair (alltoall(v)) likewise; an allreduce of n ranks
// and n·C chunks has block c ÷ C for member c ÷ C. A block represents its orbit when its rank (of a pair, the
// source) is the lowest of its orbit; the columns move chunks of these blocks alone. docs/ir.md, Compressed
// schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/sizes.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// Which chunks move together when ranks are permuted: block b is chunks first[b]..first[b+1)-1.
struct ChunkBlocks {
  std::vector<int32_t> first;
  bool of_pairs = false;  // block i·n + j belongs to members (i, j), else block i to member i
};
// Errors: kInvalidInput for collectives without such blocks: "broadcast has no part for each rank".
StatusOr<ChunkBlocks> ChunkBlocksOf(const Collective& collective);

class Translations {
 public:
  // Requires: the schedule's symmetry is one (rule S7); else the error says what is wrong. Cost: linear in
  // generators × (nodes + links) and blocks.
  static StatusOr<Translations> Create(const Schedule& schedule, const Collective& collective,
                                       const Topology& topology);

  const SymmetryGroup& group() const { return group_; }
  ChunkId Image(int64_t e, ChunkId c) const;
  bool IsRepresentative(ChunkId c) const {
    return is_representative_[static_cast<size_t>(block_of_[c.index()])];
  }
  // Ends of the run of chunks from c on that one translation keeps together.
  ChunkId EndOfBlock(ChunkId c) const {
    return ChunkId(blocks_.first[static_cast<size_t>(block_of_[c.index()]) + 1]);
  }
  // Do blocks go to blocks of equal chunks, weights and counts?
  bool KeepParts(const Collective& collective) const;
  // Do all translates of each chunk have the same bytes? Rounding may take an element here and there.
  bool KeepSizes(const CollectiveSizes& sizes) const;
  // Is there no translation but the identity that keeps a link of these paths in place? Then translates of a
  // transfer never share a link.
  bool AreFreeOn(const PathTable& paths) const;
  // Paths by what they are translates of: equal numbers for translates of each other, dense from 0. Requires:
  // AreFreeOn(paths).
  std::vector<int32_t> PathClasses(const PathTable& paths) const;

 private:
  explicit Translations(SymmetryGroup group) : group_(std::move(group)) {}
  int32_t ImageOfBlock(int64_t e, int32_t block) const;
  // same(block, image) for all blocks and generators?
  template <typename Same>
  bool ForAllImages(Same same) const;

  SymmetryGroup group_;
  ChunkBlocks blocks_;
  std::vector<int32_t> block_of_;        // by chunk
  std::vector<bool> is_representative_;  // by block
  std::vector<Rank> members_;
  std::vector<int32_t> member_of_rank_;  // -1 where not a member
  std::vector<Rank> tail_;               // by link: the GPU that it leaves, else rank 0
};

// The translations of the machine that a compressed schedule of this collective can use; trivial where there
// are none, or where they take members or unequal parts to others. Cost: FindTranslations.
SymmetryGroup TranslationsFor(const Collective& collective, const Topology& topology);
// Those that at this size take parts to parts of as many bytes, too.
SymmetryGroup TranslationsFor(const Collective& collective, const CollectiveSizes& sizes,
                              const Topology& topology);

// `base` moves chunks of parts that represent their orbits under the group, over `Translations`' conditions:
// the schedule that does all translates too. Normalized; plain where the group is trivial. Engines plan for
// the lowest rank of each orbit and end with this.
Schedule Translate(Schedule base, const SymmetryGroup& group);

// Most transfers that Expand writes out where nothing else is asked for.
inline constexpr int64_t kMostExpanded = int64_t{1} << 26;

// Transfers of the plain form. Requires: as Translations::Create; 0 where that fails.
int64_t ExpandedTransfers(const Schedule& schedule, const Collective& collective, const Topology& topology);

// The plain form, in the order of the columns, for each transfer all its translates in the order of elements;
// normalized when `schedule` is. A schedule without symmetry comes back as it is. Errors: those of Create;
// kLimit beyond `most_transfers`.
StatusOr<Schedule> Expand(const Schedule& schedule, const Collective& collective, const Topology& topology,
                          int64_t most_transfers = kMostExpanded);

// What engines hand on: the plain form where it is small (2^17 transfers), which every stage is quick with;
// else as it is.
Schedule ExpandWhereSmall(Schedule schedule, const Collective& collective, const Topology& topology);

}  // namespace xccl
