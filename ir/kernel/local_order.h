// The order that a rank's own threadblocks and dependencies give its accesses: which instructions are
// certainly done when another starts, and hence which messages may be direct. docs/kernels.md.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/program_index.h"
#include "ir/slot_line.h"

namespace xccl {

// Vector clocks of one rank's instructions. If they need more than 2^24 entries, no order is known.
class LocalOrder {
 public:
  // `order` is TopologicalOrder(program, index, kLocal). Cost: O(instructions of the rank × its
  // threadblocks).
  LocalOrder(const ProgramIndex& index, const std::vector<int32_t>& order, Rank rank);

  bool known() const { return known_; }
  // True if instruction a is certainly done before b starts. Requires: both of this rank. Constant time.
  bool Before(int32_t a, int32_t b) const;

 private:
  const ProgramIndex& index_;
  int32_t first_node_, first_block_;
  size_t blocks_;
  bool known_;
  std::vector<int32_t> clocks_;  // [instruction][threadblock]: number of instructions done
};

// The accesses to a rank's slots. Input and output are separate or, in place, overlap.
class SlotAccesses {
 public:
  SlotAccesses(const Program& program, const Collective& collective, const ProgramIndex& index, Rank rank,
               bool in_place);

  // True if every other access to what `node` writes certainly comes after it.
  bool NothingBefore(int32_t node, const LocalOrder& order) const;
  // True if every other write to these slots is certainly done when `node` starts.
  bool NothingWritesAfter(int32_t node, const Operand& operand, const LocalOrder& order) const;
  // True if the rank's own order covers every two conflicting accesses.
  bool AllOrdered(const LocalOrder& order) const;

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

}  // namespace xccl
