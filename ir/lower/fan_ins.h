// Pass "fan_ins": finds the additions that one threadblock does at once. All values that reach one chunk of
// one rank in one step of a schedule, and the value that the rank holds, are one sum. Its addends come in
// ascending order of their lowest contributor (docs/ir.md, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::lowering {

// No move, path, group or fan-in, in all passes: programs have millions of indices, and std::optional would
// double their memory.
inline constexpr int32_t kNoIndex = -1;

// One sum of a step: the values that several ranks send to one rank, the root, over chains.
struct FanIn {
  Rank root;
  std::vector<PathId> paths;  // one a member, in the order in which the members' values are added
  int32_t own = 0;            // how many members' values are added before the root's own
  bool operator==(const FanIn&) const = default;
};

struct FanIns {
  std::vector<FanIn> all;  // each once
  // A unit is one chunk of one transfer; units are in order of transfer, then chunk. By unit: its fan-in, an
  // index in `all`, or kNoIndex. Empty where `all` is.
  std::vector<int32_t> of_unit;
  int32_t Of(int64_t unit) const { return of_unit.empty() ? kNoIndex : of_unit[static_cast<size_t>(unit)]; }
  bool operator==(const FanIns&) const = default;
};

// Guarantees a fan-in for all additions of a step to one chunk of one rank, where all of them come over
// chains and several ranks complete the sum of that chunk. All ranks then compute the same bits. Where one
// rank alone completes the sum, any order gives all ranks the same bits, so its additions are fan-ins only
// with `everywhere`. Linear in the units. Requires: a normalized schedule that verifies.
FanIns FindFanIns(const Schedule& schedule, const Collective& collective, const Topology& topology,
                  bool everywhere = false);

}  // namespace xccl::lowering
