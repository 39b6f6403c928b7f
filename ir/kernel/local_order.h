// What a rank's own threadblock order and dependencies say of its accesses: which instruction is surely done
// when another starts, and from that which messages may go straight between buffers. In: one rank of a
// Program. docs/kernels.md.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/program_index.h"

namespace xccl {

// Vector clocks of one rank's instructions. Above 2^24 entries nothing is known to be ordered.
class LocalOrder {
 public:
  // `order`: TopologicalOrder(program, index, kLocal). Cost: O(instructions of the rank × its threadblocks).
  LocalOrder(const ProgramIndex& index, const std::vector<int32_t>& order, Rank rank);

  bool known() const { return known_; }
  // Is instruction a done before b starts, both of this rank? Constant time.
  bool Before(int32_t a, int32_t b) const;

 private:
  const ProgramIndex& index_;
  int32_t first_node_, first_block_;
  size_t blocks_;
  bool known_;
  std::vector<int32_t> clocks_;  // [instruction][threadblock]: instructions done
};

// The accesses to a rank's slots, with input and output apart or, in place, one over the other.
class SlotAccesses {
 public:
  SlotAccesses(const Program& program, const Collective& collective, const ProgramIndex& index, Rank rank,
               bool in_place);

  // Does everything else that touches what `node` writes come surely after it?
  bool NothingBefore(int32_t node, const LocalOrder& order) const;
  // Is everything else that writes these slots surely over when `node` starts?
  bool NothingWritesAfter(int32_t node, const Operand& operand, const LocalOrder& order) const;
  // Are any two conflicting accesses ordered by the rank itself?
  bool AllOrdered(const LocalOrder& order) const;

 private:
  struct Access {
    int32_t node = 0;
    bool writes = false;
  };
  size_t SlotOf(const Operand& operand, int32_t k) const;
  void Add(const Operand& operand, int32_t count, int32_t node, bool writes);

  const ProgramIndex& index_;
  int64_t input_at_ = 0, output_at_ = 0, scratch_at_ = 0;
  std::vector<std::vector<Access>> of_slot_;
};

}  // namespace xccl
