// Pass "fan_ins": which additions one threadblock does at once. A schedule adds all writes of a step to one
// (rank, chunk), and what it holds, in ascending order of their lowest contributor (docs/ir.md, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::lowering {

inline constexpr int32_t kNoFanIn = -1;

// What several ranks send to one in a step, over chains.
struct FanIn {
  Rank root;
  std::vector<PathId> paths;  // in the order in which what they bring is added
  int32_t own = 0;            // how many of them come before what the root holds
  bool operator==(const FanIn&) const = default;
};

struct FanIns {
  std::vector<FanIn> all;  // each once
  // By unit, a chunk of a transfer, in order of transfer, then chunk: the unit's fan-in. Empty where there is
  // no fan-in at all.
  std::vector<int32_t> of_unit;
  int32_t Of(int64_t unit) const { return of_unit.empty() ? kNoFanIn : of_unit[static_cast<size_t>(unit)]; }
  bool operator==(const FanIns&) const = default;
};

// Guarantees a fan-in wherever a step has several additions to one (rank, chunk), all over chains, and more
// than one rank adds up that chunk: these ranks then compute the same bits. Where one rank alone does, any
// order will do; with `everywhere` these additions, too, are fan-ins. Linear in the transfers × chunks each
// moves. Requires: a normalized schedule that verifies.
FanIns FindFanIns(const Schedule& schedule, const Collective& collective, const Topology& topology,
                  bool everywhere = false);

}  // namespace xccl::lowering
