// A link is useful only in a window of the plan's time T. A transfer begins at a GPU at time 0 or later and
// ends at a GPU by T. So useful bytes enter the link no earlier than a GPU's bytes can reach the link's tail.
// They leave the link's head early enough to reach a GPU by T. The link is useful for T - wait, with wait =
// (way to its tail) + alpha + (way on from its head). A way is the latency of the cheapest path.
//
// Allreduce: bytes pass between k blocks at least 2(k-1) times (bound_allreduce.cc). So Σ bandwidth × (T -
// wait) over the links out of the blocks is at least 2(k-1) × bytes. The sum over the links into the blocks
// is at least as large. A link whose wait is T or more carries nothing.
//
// Demands: for any prices y of the links, a byte uses up at least its distance under y, so
//   Σ bandwidth × y × (T - wait) >= Σ demand × distance under y.
// A linear program finds the best prices (concurrent_flow.h). A wait counts as at most the bound so far, so
// that T - wait is never negative.
#include "ir/bounds/bound_windows.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/bounds/bound_over_time.h"
#include "ir/bounds/concurrent_flow.h"
#include "ir/bounds/demand_flow.h"

namespace xccl {
namespace {

// Relative error that floating point may cause in the result of the linear program.
constexpr double kRounding = 1e-12;

// Returns the wait of each link in ps; kForeverPs if no useful byte can pass the link.
std::vector<int64_t> WaitsOf(const Topology& topology, TimeModel model, std::span<const int32_t> sources,
                             std::span<const int32_t> sinks) {
  const std::vector<CostArc> arcs = ArcsOf(topology, model);
  MinCostFlow network(topology.num_nodes(), arcs);
  const std::vector<int64_t> to_tail = network.CostsFrom(sources), from_head = network.CostsTo(sinks);
  std::vector<int64_t> waits;
  for (const CostArc& arc : arcs) {
    const int64_t before = to_tail[static_cast<size_t>(arc.from)];
    const int64_t after = from_head[static_cast<size_t>(arc.to)];
    waits.push_back(before < 0 || after < 0 ? kForeverPs : std::min(kForeverPs, before + arc.cost + after));
  }
  return waits;
}

struct Window {
  int64_t wait_ps = 0;
  int64_t bandwidth_bytes_per_s = 0;
};

// Returns the least time in ps in which the links together carry `bytes` bytes, each within its window.
int64_t LeastTimeWithin(std::vector<Window> links, __int128 bytes) {
  std::ranges::sort(links, {}, &Window::wait_ps);
  __int128 over = bytes * kPsPerSecond, under = 0;
  for (const auto& [wait, bandwidth] : links) {
    if (under > 0 && static_cast<__int128>(wait) * under >= over) break;
    over += static_cast<__int128>(wait) * bandwidth;
    under += bandwidth;
  }
  return under == 0 ? 0 : static_cast<int64_t>(std::min<__int128>(over / under, kForeverPs));
}

int64_t PassesInWindows(const Topology& topology, const Collective& collective, int64_t bytes,
                        const std::vector<int64_t>& waits, const NodeGroups& block_of) {
  std::set<int32_t> with_members;
  for (Rank r : collective.ranks()) with_members.insert(block_of[topology.NodeOf(r).index()]);
  if (with_members.size() < 2 || PassBandwidth(topology, block_of) == 0) return 0;
  const __int128 passes = 2 * (static_cast<__int128>(with_members.size()) - 1) * bytes;
  std::vector<Window> out, in;
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    const int32_t from = block_of[link.from.index()], to = block_of[link.to.index()];
    const Window window = {waits[static_cast<size_t>(l)], link.bandwidth_bytes_per_s};
    if (from == to) continue;
    if (from >= 0) out.push_back(window);
    if (to >= 0) in.push_back(window);
  }
  return std::max(LeastTimeWithin(std::move(out), passes), LeastTimeWithin(std::move(in), passes));
}

int64_t AllreduceInWindows(const Topology& topology, const Collective& collective, int64_t bytes,
                           TimeModel model, const std::vector<NodeGroups>& partitions) {
  std::vector<int32_t> members, gpus;
  for (const Rank r : collective.ranks()) members.push_back(topology.NodeOf(r).value);
  for (int32_t r = 0; r < topology.num_ranks(); ++r) gpus.push_back(topology.NodeOf(Rank(r)).value);
  const std::vector<int64_t> waits = WaitsOf(topology, model, members, gpus);
  int64_t ps = 0;
  for (const NodeGroups& block_of : partitions)
    ps = std::max(ps, PassesInWindows(topology, collective, bytes, waits, block_of));
  return ps;
}

int64_t DemandsInWindows(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
                         TimeModel model, BoundEffort effort, int64_t at_least, Orbits& orbits) {
  const SymmetryGroup& group = orbits.OfCollective(collective, sizes);
  DemandFlow of = DemandFlowOf(topology, collective, sizes, group, false);
  FlowProblem& problem = of.problem;
  if (problem.demands.sources.empty()) return 0;
  const int64_t work = std::ssize(problem.demands.sources) * std::ssize(problem.share);
  if (work > (effort == BoundEffort::kFast ? kFastLpWork : kLpWork)) return 0;
  const std::vector<int64_t> waits = WaitsOf(topology, model, of.sources, of.sinks);
  for (int32_t o = 0; o < group.num_link_orbits(); ++o) {
    const int64_t wait = std::min(waits[group.LinkRepresentative(o).index()], at_least);
    problem.wait_s.push_back(static_cast<double>(wait) / static_cast<double>(kPsPerSecond));
  }
  const double ps =
      SolveConcurrentFlow(problem, BoundFlowOptions(problem)).bound_s * static_cast<double>(kPsPerSecond);
  return static_cast<int64_t>(std::floor(ps * (1 - kRounding)));
}

}  // namespace

std::optional<int64_t> WindowBound(const Topology& topology, const Collective& collective,
                                   const CollectiveSizes& sizes, TimeModel model, BoundEffort effort,
                                   const std::vector<NodeGroups>& partitions, int64_t at_least,
                                   Orbits& orbits) {
  int64_t ps = 0;
  if (collective.kind() == CollectiveKind::kAllreduce && collective.num_members() > 1) {
    if (const int64_t bytes = sizes.PartBytes(PartId(0)); bytes > 0)
      ps = AllreduceInWindows(topology, collective, bytes, model, partitions);
  } else if (const auto parts = TraitsOf(collective.kind()).parts;
             parts == KindTraits::Parts::kPerPair || collective.kind() == CollectiveKind::kSendrecv) {
    ps = DemandsInWindows(topology, collective, sizes, model, effort, at_least, orbits);
  }
  return ps > at_least ? std::optional(ps) : std::nullopt;
}

}  // namespace xccl
