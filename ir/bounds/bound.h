// A lower bound on the time of every plan for a collective: the largest of a latency bound (distance), a
// bandwidth bound (cuts, flows, a linear program) and bounds that count distance and bytes together. The
// ratio of a plan is its time ÷ the bound. docs/ir.md, Lower bounds, says which theorem gives which bound.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

enum class BoundKind : uint8_t {
  kCut,           // exact: a minimum cut (for allreduce valid, but not always attained)
  kFlow,          // exact: a maximum flow with supplies
  kLp,            // exact: a linear program
  kCounting,      // bytes × the moves that each byte needs ÷ the bandwidth of all moves together
  kRelaxed,       // a weaker bound, because the exact one would take too long
  kFlowOverTime,  // distance and bytes counted together
};
std::string_view ToString(BoundKind kind);

struct Bound {
  int64_t latency_ps = 0;                          // time of the farthest byte at size zero
  double bandwidth_ps = 0;                         // time of the bytes at alpha zero
  BoundKind bandwidth_kind = BoundKind::kRelaxed;  // method that gave bandwidth_ps
  // The largest of latency_ps, bandwidth_ps and the bounds of kind kFlowOverTime, rounded down.
  int64_t bound_ps = 0;
  // kFlowOverTime if a bound of that kind is above latency_ps and bandwidth_ps; otherwise bandwidth_kind.
  BoundKind kind = BoundKind::kRelaxed;
  int64_t size_bytes = 0;  // the requested size, rounded down (ir/sizes.h)
};

// Returns whether a plan's time equals the bound, up to rounding errors and one picosecond.
bool MeetsBound(int64_t time_ps, const Bound& bound);

// The effort that the computation of a bound may take. kFast takes a fraction of a second on 1,024 ranks, but
// may give a weaker bound (kRelaxed).
enum class BoundEffort : uint8_t { kFast, kExact };
// Returns the effort for a caller that computes several bounds on one machine: kFast above 256 ranks, because
// exact bounds would take minutes together.
BoundEffort QuickEffort(const Topology& topology);

// Returns the bound. Errors: kInfeasible if no path joins a rank to the data that it needs (the message names
// two ranks without a path); kInvalidInput if the bound is above one day.
StatusOr<Bound> LowerBound(const Topology& topology, const Collective& collective, int64_t size_bytes,
                           TimeModel model, BoundEffort effort = BoundEffort::kExact);

// Returns Bound::bandwidth_ps alone, in a fraction of the time of LowerBound(). Requires that
// CheckReachable() is OK.
double BandwidthBoundPs(const Topology& topology, const Collective& collective, int64_t size_bytes,
                        BoundEffort effort);

// Returns OK if a path leads from a holder of every contribution to every rank that needs the contribution.
// Otherwise returns kInfeasible with the names of two ranks without a path.
Status CheckReachable(const Topology& topology, const Collective& collective);

}  // namespace xccl
