// Lower bounds on the time of any plan: the largest of a latency bound (distance), a bandwidth bound (cuts,
// flows, LP) and flows over time, which count both. Every plan is shown with time ÷ bound. docs/ir.md, Lower
// bounds, says which theorem gives which bound.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

enum class BoundKind : uint8_t {
  kCut,           // exact: a minimum cut (allreduce: valid, but not always attained)
  kFlow,          // exact: a maximum flow with supplies
  kLp,            // exact: a linear program
  kCounting,      // bytes times the number of moves that each needs, over their total bandwidth
  kRelaxed,       // a weaker bound, because the exact one would take too long
  kFlowOverTime,  // distance and bytes together, for the data that one rank must get or give
};
std::string_view ToString(BoundKind kind);

struct Bound {
  int64_t latency_ps = 0;                          // for the farthest byte, at size zero
  double bandwidth_ps = 0;                         // for the size, at alpha zero
  BoundKind bandwidth_kind = BoundKind::kRelaxed;  // kind of bandwidth_ps
  // The largest of both and of flows over time, rounded down.
  int64_t bound_ps = 0;
  // kFlowOverTime if flows over time give more than latency_ps and bandwidth_ps, else bandwidth_kind.
  BoundKind kind = BoundKind::kRelaxed;
  int64_t size_bytes = 0;  // the real size, after rounding down
};

// True if a plan's time equals the bound up to rounding, to picoseconds and of floating point.
bool MeetsBound(int64_t time_ps, const Bound& bound);

// The work that a bound may cost. kFast takes a fraction of a second on 1,024 ranks and may give a relaxed
// bound.
enum class BoundEffort : uint8_t { kFast, kExact };
// The effort for one of several bounds on a machine: exact ones of more than 256 ranks would take minutes
// together.
BoundEffort QuickEffort(const Topology& topology);

// Errors: kInfeasible naming two ranks that the collective needs joined but the topology does not join;
// kInvalidInput for bounds above one day.
StatusOr<Bound> LowerBound(const Topology& topology, const Collective& collective, int64_t size_bytes,
                           TimeModel model, BoundEffort effort = BoundEffort::kExact);

// Bound::bandwidth_ps alone, for a fraction of the time. Requires: CheckReachable.
double BandwidthBoundPs(const Topology& topology, const Collective& collective, int64_t size_bytes,
                        BoundEffort effort);

// OK if every rank that needs a contribution can be reached from a holder of it; else kInfeasible naming
// both.
Status CheckReachable(const Topology& topology, const Collective& collective);

}  // namespace xccl
