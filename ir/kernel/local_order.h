// The order that a rank's own threadblocks and dependencies give its accesses, and hence which messages may
// be direct. docs/kernels.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "ir/analysis/program_index.h"
#include "ir/analysis/rank_clocks.h"
#include "ir/analysis/slot_line.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

// The accesses to a rank's slots. Input and output are separate or, in place, overlap.
class SlotAccesses {
 public:
  SlotAccesses(const Program& program, const Collective& collective, const ProgramIndex& index, Rank rank,
               bool in_place);

  // Nodes of the rank that a question leaves out: something else orders them.
  using Except = std::function<bool(int32_t node)>;

  // True if every other access to the slots that `node` writes certainly comes after `node`.
  bool NothingBefore(int32_t node, const RankClocks& order, const Except& except = {}) const;
  // True if every other write to the slots of `operand` is certainly done when `node` starts.
  bool NothingWritesAfter(int32_t node, const Operand& operand, const RankClocks& order,
                          const Except& except = {}) const;
  // True if the rank's own order covers every two conflicting accesses.
  bool AllOrdered(const RankClocks& order) const;

 private:
  struct Access {
    int32_t node = 0;
    bool writes = false;
  };
  void Add(const Operand& operand, int32_t count, int32_t node, bool writes);

  const ProgramIndex& index_;
  const SlotLine line_;
  std::vector<std::vector<Access>> of_slot_;
};

// The order that the roots of groups give their members' accesses: a root's threadblock takes a message
// before it sends the next one. In one instruction, every element is loaded before it is stored.
class RootTurns {
 public:
  explicit RootTurns(const ProgramIndex& index) : index_(index) {}

  // The instructions of a rank that are over when a root sends the message that `node` receives.
  SlotAccesses::Except TakenBeforeSent(int32_t node) const;
  // The instructions of a rank that start after a root has taken the message that `node` sends.
  SlotAccesses::Except SentAfterTaken(int32_t node) const;

 private:
  const Threadblock& ThreadblockOf(int32_t node) const { return index_.threadblock(index_.BlockOf(node)); }
  // The root's instruction that takes the message of a member's send `node`; and the one that sends the
  // message of a member's receive `node`.
  std::optional<int32_t> TakenBy(int32_t node) const;
  std::optional<int32_t> SentBy(int32_t node) const;
  bool InTurn(std::optional<int32_t> taken, std::optional<int32_t> sent) const;

  const ProgramIndex& index_;
};

}  // namespace xccl
