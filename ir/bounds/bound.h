// How fast any plan could be: the larger of a latency bound (distance) and a bandwidth bound (cuts, flows,
// LP). Every plan is shown with time ÷ bound. Which theorem gives which bound: docs/ir.md, lower bounds.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

enum class BoundKind : uint8_t {
  kCut,       // exact: a minimum cut (allreduce: valid, not always attained)
  kFlow,      // exact: a maximum flow with supplies
  kLp,        // exact: a linear program
  kCounting,  // every byte must be moved so many times over this much bandwidth in all
  kRelaxed,   // a weaker bound where the exact one would take too long
};
std::string_view ToString(BoundKind kind);

struct Bound {
  int64_t latency_ps = 0;                // for the farthest byte, at size zero
  double bandwidth_ps = 0;               // for the size, at alpha zero
  int64_t bound_ps = 0;                  // the larger, rounded down
  BoundKind kind = BoundKind::kRelaxed;  // of bandwidth_ps
  int64_t size_bytes = 0;                // the real one
};

// Is a plan's time the bound, but for rounding: to picoseconds, and of floating point?
bool MeetsBound(int64_t time_ps, const Bound& bound);

// How much work a bound may cost: kFast keeps 1,024 ranks within a fraction of a second and may be relaxed.
enum class BoundEffort : uint8_t { kFast, kExact };

// Errors: kInvalidInput naming two ranks that the collective needs joined and the topology does not; also for
// more than a day.
StatusOr<Bound> LowerBound(const Topology& topology, const Collective& collective, int64_t size_bytes,
                           TimeModel model, BoundEffort effort = BoundEffort::kExact);

// OK when every rank that needs a contribution can be reached from its holder; else kInvalidInput naming
// both.
Status CheckReachable(const Topology& topology, const Collective& collective);

}  // namespace xccl
