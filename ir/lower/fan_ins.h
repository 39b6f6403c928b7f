// Pass "fan_ins": finds the additions that one threadblock does at once. All values that reach one chunk of
// one rank in one step of a schedule form one sum with the value that the rank holds. The addends are added
// in ascending order of their lowest contributors (docs/ir.md, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::lowering {

// In all passes, the index that stands for no move, path, group or fan-in. Programs have millions of indices,
// and std::optional would double their memory.
inline constexpr int32_t kNoIndex = -1;

// One sum of a step: several ranks, the members, send values over chains to one rank, the root.
struct FanIn {
  Rank root;
  std::vector<PathId> paths;  // one for each member, in the order in which the members' values are added
  int32_t own = 0;            // the number of members' values that are added before the root's own value
  bool operator==(const FanIn&) const = default;
};

struct FanIns {
  std::vector<FanIn> all;  // every fan-in once
  // By unit: the index of its fan-in in `all`, or kNoIndex. A unit is one chunk of one transfer; units are in
  // order of transfer, then chunk. Empty if there are no fan-ins.
  std::vector<int32_t> of_unit;
  int32_t Of(int64_t unit) const { return of_unit.empty() ? kNoIndex : of_unit[static_cast<size_t>(unit)]; }
  bool operator==(const FanIns&) const = default;
};

// Returns the fan-ins of the schedule. Two or more additions of a step to one chunk of one rank are a fan-in
// if all of them come over chains and several ranks complete the sum of that chunk. All ranks then compute
// the same bits. If only one rank completes the sum, any order gives all ranks the same bits; its additions
// are fan-ins only with `everywhere`. Linear in the units. Requires a normalized schedule that verifies.
FanIns FindFanIns(const Schedule& schedule, const Collective& collective, const Topology& topology,
                  bool everywhere = false);

}  // namespace xccl::lowering
