#include "ir/bounds/bound.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/units.h"
#include "ir/bounds/bound_bandwidth.h"
#include "ir/bounds/bound_copies.h"
#include "ir/bounds/bound_damaged.h"
#include "ir/bounds/bound_latency.h"
#include "ir/bounds/bound_over_time.h"
#include "ir/bounds/bound_windows.h"
#include "ir/bounds/orbits.h"
#include "ir/sizes.h"
#include "ir/translated.h"
#include "topologies/submachine.h"

namespace xccl {
namespace {

// The longest bound in picoseconds, one day. LowerBound() refuses longer bounds, so that times of schedules
// fit into 64 bits of picoseconds.
constexpr double kLongestPs = kPsPerDay;
// Relative rounding error by which a simulated time may differ from an equal bound.
constexpr double kRounding = 1e-9;
// Indexed by BoundKind.
constexpr std::string_view kKindNames[] = {"cut", "flow", "lp", "counting", "relaxed", "flow-over-time"};

// Refuses an alltoall with more than kMostParts demands. Only the demands of one source for each orbit of
// ranks count, because that source stands for its orbit. If no pair has a byte, all pairs count.
Status CheckDemands(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes) {
  if (collective.num_parts() <= kMostParts) return OkStatus();
  const bool is_empty = sizes.size_bytes() == 0;
  const int64_t sources =
      is_empty ? collective.num_members() : TranslationsFor(collective, topology, &sizes).num_rank_orbits();
  if (sources * collective.num_members() <= kMostParts) return OkStatus();
  return InvalidInput(
      fmt::format("{} of {} ranks: {}; expected at most {} pairs, or ranks that are alike", collective.name(),
                  collective.num_members(),
                  is_empty ? std::string("no byte for each pair") : fmt::format("{} kinds of ranks", sources),
                  kMostParts));
}

}  // namespace

std::string_view ToString(BoundKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

double BandwidthBoundPs(const Topology& topology, const Collective& collective, int64_t size_bytes,
                        BoundEffort effort) {
  const std::optional<Topology> pruned = WithoutDeadEnds(topology);
  const Topology& useful = pruned ? *pruned : topology;
  Orbits orbits(useful);
  return BandwidthBoundOf(useful, collective, CollectiveSizes(collective, size_bytes), effort, orbits).ps;
}

bool MeetsBound(int64_t time_ps, const Bound& bound) {
  const double bound_ps = static_cast<double>(bound.bound_ps);
  return static_cast<double>(time_ps) <= bound_ps * (1 + kRounding) + 1;
}

BoundEffort QuickEffort(const Topology& topology) {
  constexpr int32_t kMostRanks = 256;
  return topology.num_ranks() > kMostRanks ? BoundEffort::kFast : BoundEffort::kExact;
}

StatusOr<Bound> LowerBound(const Topology& topology, const Collective& collective, int64_t size_bytes,
                           TimeModel model, BoundEffort effort) {
  Bound bound;
  Orbits of_whole(topology);
  if (const std::optional<WholeMachine> whole = WholeForBounds(topology, collective, of_whole)) {
    if (whole->has_more_ranks) {
      XCCL_ASSIGN_OR_RETURN(bound.latency_ps, LatencyBound(topology, collective, model, of_whole));
      bound.bound_ps = bound.latency_ps;
      bound.size_bytes = CollectiveSizes(collective, size_bytes).size_bytes();
      bound.kind = bound.bandwidth_kind = BoundKind::kRelaxed;
    } else {
      XCCL_ASSIGN_OR_RETURN(bound, LowerBound(whole->topology, collective, size_bytes, model, effort));
    }
    const double scale = static_cast<double>(kPsPerSecond);
    const double cuts_ps =
        CutsAroundDamage(topology, collective, CollectiveSizes(collective, size_bytes)) * scale;
    if (cuts_ps <= bound.bandwidth_ps || cuts_ps > kLongestPs) return bound;
    bound.bandwidth_ps = cuts_ps;
    bound.bandwidth_kind = BoundKind::kRelaxed;
    if (cuts_ps < static_cast<double>(bound.bound_ps)) return bound;
    bound.bound_ps = static_cast<int64_t>(std::floor(cuts_ps));
    bound.kind = BoundKind::kRelaxed;
    return bound;
  }
  const CollectiveSizes sizes(collective, size_bytes);
  XCCL_RETURN_IF_ERROR(CheckDemands(topology, collective, sizes));
  XCCL_ASSIGN_OR_RETURN(bound.latency_ps, LatencyBound(topology, collective, model, of_whole));
  bound.size_bytes = sizes.size_bytes();
  // Links into dead ends carry no useful bytes, but partitions would count their bandwidth.
  const std::optional<Topology> pruned = WithoutDeadEnds(topology);
  const Topology& useful = pruned ? *pruned : topology;
  Orbits orbits = pruned ? Orbits(useful) : std::move(of_whole);
  const BandwidthBound bandwidth = BandwidthBoundOf(useful, collective, sizes, effort, orbits);
  bound.bandwidth_ps = bandwidth.ps;
  bound.bandwidth_kind = bound.kind = bandwidth.kind;
  double least_ps = std::max(static_cast<double>(bound.latency_ps), bound.bandwidth_ps);
  if (least_ps <= kLongestPs) {
    bound.bound_ps = std::max(bound.latency_ps, static_cast<int64_t>(std::floor(bound.bandwidth_ps)));
    const auto raise = [&](std::optional<int64_t> ps) {
      if (!ps) return;
      bound.bound_ps = *ps;
      bound.kind = BoundKind::kFlowOverTime;
      least_ps = static_cast<double>(*ps);
    };
    raise(
        WindowBound(useful, collective, sizes, model, effort, bandwidth.partitions, bound.bound_ps, orbits));
    raise(CopiesBound(useful, collective, sizes, model, effort, bound.bound_ps, orbits));
    raise(FlowOverTimeBound(useful, collective, sizes, model, effort, bound.bound_ps, orbits));
  }
  if (least_ps > kLongestPs)
    return InvalidInput(fmt::format(
        "{}: {} of {} takes {:.1f} days at least; times of up to {:.0f} day are supported", topology.name(),
        collective.name(), FormatSize(bound.size_bytes), least_ps / kPsPerDay, kLongestPs / kPsPerDay));
  return bound;
}

Status CheckReachable(const Topology& topology, const Collective& collective) {
  if (topology.num_ranks() >= kLargeMachine && AllReachEachOther(topology, collective)) return OkStatus();
  Orbits orbits(topology);
  return LatencyBound(topology, collective, TimeModel::kPipelined, orbits).status();
}

}  // namespace xccl
