// The order that a rank's own threadblocks and dependencies give its accesses, and hence which messages may
// be direct. docs/kernels.md.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/program_index.h"
#include "ir/rank_clocks.h"
#include "ir/slot_line.h"

namespace xccl {

// The accesses to a rank's slots. Input and output are separate or, in place, overlap.
class SlotAccesses {
 public:
  SlotAccesses(const Program& program, const Collective& collective, const ProgramIndex& index, Rank rank,
               bool in_place);

  // True if every other access to what `node` writes certainly comes after it.
  bool NothingBefore(int32_t node, const RankClocks& order) const;
  // True if every other write to these slots is certainly done when `node` starts.
  bool NothingWritesAfter(int32_t node, const Operand& operand, const RankClocks& order) const;
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

}  // namespace xccl
