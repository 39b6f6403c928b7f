// Lowers a compressed schedule to the programs of single ranks. The columns of a compressed schedule are the
// transfers of one chunk of each orbit of chunks; translations give all other transfers. The passes therefore
// run over the columns alone. A rank's instructions are the translates of the columns' moves that begin or
// end at the rank. One rank's program costs the work of the columns, whatever the number of ranks. On a
// damaged machine the ranks differ: connections take detours. A rank then leaves out its moves with lost
// ranks and makes the moves that it takes over from them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/lower/fuse.h"
#include "ir/lower/moves.h"
#include "ir/lower/order.h"
#include "ir/lower/paths.h"
#include "ir/lower/threadblocks.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "ir/translated.h"
#include "topologies/topology.h"

namespace xccl {

// The passes' results for the columns, from which programs of ranks are made. Paths of the columns that
// translations take to each other are one *class*. A rank has a connection out for each class that begins in
// its orbit, and a connection in for each class that ends in its orbit. All ranks take channel, slots, pairs
// of connections and order of messages from the class, so the two ends of every connection agree.
//
// Events of all ranks happen in the order of the columns' events, and all translates of an event happen
// together. This order has no circle, so no program deadlocks. If lost ranks have heirs, messages of a step
// come in order of chunk, sender and receiver, and each is received as soon as it is sent. No message waits
// for a message of its own step, so this order has no circle either. Immutable.
class RankLowering {
 public:
  RankLowering(RankLowering&&) noexcept;
  RankLowering& operator=(RankLowering&&) noexcept;
  ~RankLowering();
  // Runs the passes over the columns. `size_bytes` is the size for which passes and instances are chosen. The
  // schedule, the collective and the topology must outlive the object. Requires a compressed, normalized
  // schedule that verifies. Errors: kInvalidInput for trees of links, for sums that several ranks must add up
  // in one order, and for more chunks than a program can name; kLimit if a rank's tables need too much
  // memory.
  static StatusOr<RankLowering> Create(const Schedule& schedule, const Collective& collective,
                                       const Topology& topology, int64_t size_bytes);

  // Returns a program with the threadblocks and connections of `ranks` alone. The programs of all ranks
  // together are a program of the schedule that verifies. With `outlines`, all other ranks have their
  // threadblocks and connections, too, without instructions. Cost: for each of `ranks`, O(columns ×
  // generators); for each rank with an outline, O(classes).
  Program ProgramOf(std::span<const Rank> ranks, bool outlines = false) const;

  // Returns an upper limit of the messages of all ranks' programs together.
  int64_t num_messages() const { return std::ssize(moves_.moves) * translations_.group().order(); }
  // Returns the number of classes. Besides ways, at most this many connections leave a rank, or enter it.
  int32_t num_classes() const { return classes_.size(); }

 private:
  struct OwnPaths;  // the connections of one rank
  struct Damage;
  struct OwnMoves;  // the moves of one rank, on its connections

  RankLowering(Translations translations, const Collective& collective, const Topology& topology);
  void FindClasses(const lowering::Paths& paths);
  void FindDamage(const Schedule& schedule, Topology whole);
  bool IsThere(Rank rank) const { return rank.value < topology_->num_ranks(); }
  Status ChooseSegments(int64_t size_bytes);
  int64_t ElementTo(Rank from, Rank to) const;
  OwnPaths PathsOf(Rank rank) const;
  lowering::Assignment AssignmentOf(Rank rank, const OwnPaths& own) const;
  OwnMoves TranslatedMoves(Rank rank, const OwnPaths& own) const;
  OwnMoves MovesWithHeirs(Rank rank, const OwnPaths& own, const lowering::Assignment& assignment) const;
  Program WriteRank(Rank rank) const;
  Program WriteOutline(Rank rank) const;

  Translations translations_;
  const Collective* collective_;
  const Topology* topology_;
  lowering::Moves moves_;  // of the columns; Move::path is a class
  lowering::Order order_;
  lowering::Paths classes_;          // by class: the translate that leaves the lowest rank of its orbit
  lowering::Assignment assignment_;  // of classes
  lowering::Fusion fusion_;
  Program head_;                          // slots, instances, protocol and passes of every program
  std::unique_ptr<const Damage> damage_;  // null on a whole machine
};

}  // namespace xccl
