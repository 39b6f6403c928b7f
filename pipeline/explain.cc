// 1. Trace the schedule, and the program if any. The critical path names the links on which the plan waits.
// 2. Try one change at a time:
//    a. double the bandwidth of the class of links whose transfers take most of the path;
//    b. double the bandwidth of the one cable whose transfers take most of the path;
//    c. halve the latency of the class of links whose latency takes most of the path;
//    d. cut every chunk in two;
//    e. add a NIC to every host that has NICs.
//    For a, b and c, simulate the same schedule on the changed machine. For d and e, make a new plan.
// 3. Sort the changes by time.
#include "pipeline/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "base/wrap.h"
#include "ir/analysis/program_index.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/trace.h"
#include "ir/simulate/trace_program.h"
#include "pipeline/pipeline.h"
#include "synth/common/cost_model.h"

namespace xccl {
namespace {

// A class of equal links: the kinds of the two nodes, the bandwidth and the latency.
using LinkClass = std::tuple<NodeKind, NodeKind, int64_t, int64_t>;

LinkClass ClassOf(const Topology& topology, LinkId l) {
  const Link& link = topology.link(l);
  const auto [a, b] = std::minmax(topology.node(link.from).kind, topology.node(link.to).kind);
  return {a, b, link.bandwidth_bytes_per_s, link.latency_ps};
}
std::string NameOf(const LinkClass& links) {
  return fmt::format("{}-{} links of {}", NodeKindName(std::get<0>(links)), NodeKindName(std::get<1>(links)),
                     FormatBandwidthShort(static_cast<double>(std::get<2>(links))));
}

// Returns the class of links whose pieces of this kind take most of the path; absent if there are none.
std::optional<LinkClass> MostOf(const Topology& topology, const CriticalPath& path, PathKind kind) {
  std::map<LinkClass, int64_t> sums;
  for (const PathPiece& piece : path.pieces)
    if (piece.kind == kind && piece.link) sums[ClassOf(topology, *piece.link)] += piece.ps();
  const auto most = std::ranges::max_element(sums, {}, [](const auto& sum) { return sum.second; });
  return most == sums.end() ? std::nullopt : std::optional(most->first);
}

StatusOr<Topology> WithLinks(const Topology& topology, const std::function<void(LinkId, Link&)>& change) {
  TopologySpec spec = topology.spec();
  for (size_t l = 0; l < spec.links.size(); ++l) change(LinkId(static_cast<int64_t>(l)), spec.links[l]);
  return Topology::Create(std::move(spec));
}

// Adds a NIC to every host that has NICs. The new NIC has the same links as the host's first NIC. Returns
// nullopt if no host has a NIC, or if the result is not a valid topology.
std::optional<Topology> WithOneMoreNic(const Topology& topology) {
  TopologySpec spec = topology.spec();
  std::map<HostId, NodeId> first;
  std::map<NodeId, NodeId> copy;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    const Node& node = topology.node(NodeId(n));
    if (node.kind != NodeKind::kNic || !node.host || !first.try_emplace(*node.host, NodeId(n)).second)
      continue;
    copy[NodeId(n)] = NodeId(static_cast<int64_t>(spec.nodes.size()));
    spec.nodes.push_back(node);
    spec.nodes.back().id += "-more";
  }
  if (copy.empty()) return std::nullopt;
  for (const Link& link : topology.spec().links) {
    const auto from = copy.find(link.from), to = copy.find(link.to);
    if (from == copy.end() && to == copy.end()) continue;
    Link more = link;
    if (from != copy.end()) more.from = from->second;
    if (to != copy.end()) more.to = to->second;
    spec.links.push_back(more);
  }
  StatusOr<Topology> made = Topology::Create(std::move(spec));
  return made.ok() ? std::optional(*std::move(made)) : std::nullopt;
}

class Explainer {
 public:
  Explainer(const PlanResult& result, const Collective& collective, const PlanOptions& options)
      : result_(result), topology_(result.plan.topology), collective_(collective), options_(options) {}

  Explanation Run() {
    FindPath();
    TryWiderLinks();
    TryShorterLatency();
    TryMoreChunks();
    TryOneMoreNic();
    std::ranges::stable_sort(made_.changes, {}, &WhatIf::time_ps);
    return std::move(made_);
  }

 private:
  SimulateOptions Timing() const {
    return {.size_bytes = options_.request.size_bytes,
            .model = options_.request.model,
            .deadline = options_.deadline};
  }

  void FindPath() {
    const Plan& plan = result_.plan;
    StatusOr<ScheduleTrace> trace =
        TraceSchedule(plan.schedule, plan.collective, topology_, Timing(), {.most_slices = 0});
    made_.time_ps = result_.simulation.time_ps;
    if (!trace.ok()) {
      made_.untraced = trace.status().message();
      return;
    }
    schedule_path_ = std::move(trace->critical_path);
    made_.path = schedule_path_;
    if (!plan.program) return;
    SimulateOptions timing = Timing();
    timing.machine = options_.machine ? &*options_.machine : nullptr;
    StatusOr<ProgramTrace> program =
        TraceProgram(plan.program->program, plan.program->collective, topology_, timing, {.most_slices = 0});
    if (!program.ok()) return;  // it cannot be traced: keep the schedule's path
    made_.path = std::move(program->critical_path);
    made_.time_ps = program->simulation.time_ps;
    made_.of_program = true;
  }

  // Returns whether there is time for another change. If not, records the reason in `stopped`.
  bool HasTime() {
    if (!options_.deadline.IsOver()) return true;
    made_.stopped = options_.deadline.Passed() + " before all changes were tried";
    return false;
  }
  int64_t BoundOn(const Topology& topology) const {
    const StatusOr<Bound> bound = LowerBound(topology, collective_, options_.request.size_bytes,
                                             options_.request.model, QuickEffort(topology));
    return bound.ok() ? bound->bound_ps : 0;
  }

  // Simulates the schedule on a changed machine and adds the change with its time.
  void Simulated(const std::string& change, const StatusOr<Topology>& topology) {
    if (!topology.ok() || !HasTime()) return;
    const Simulation simulation =
        Simulate(result_.plan.schedule, result_.plan.collective, *topology, Timing());
    if (simulation.stopped) return;
    made_.changes.push_back({change, simulation.time_ps, BoundOn(*topology), false});
  }

  void TryWiderLinks() {
    const std::optional<LinkClass> links = MostOf(topology_, schedule_path_, PathKind::kTransfer);
    if (!links) return;
    const auto double_it = [](Link& link) {
      link.bandwidth_bytes_per_s = std::min(2 * link.bandwidth_bytes_per_s, kMaxBandwidthBytesPerS);
    };
    Simulated(NameOf(*links) + " twice as fast", WithLinks(topology_, [&](LinkId l, Link& link) {
                if (ClassOf(topology_, l) == *links) double_it(link);
              }));
    // Widen only the cable that takes most of the path. A compressed schedule is skipped, because widening
    // one cable breaks the symmetry that the schedule needs.
    if (!result_.plan.schedule.symmetry.empty()) return;
    const std::vector<PathShare> shares = SharesOf(schedule_path_);
    const auto most = std::ranges::find_if(
        shares, [](const PathShare& share) { return share.kind == PathKind::kTransfer; });
    const Link& slow = topology_.link(*most->link);
    Simulated(fmt::format("the cable {} alone twice as fast", topology_.LinkName(*most->link)),
              WithLinks(topology_, [&](LinkId, Link& link) {
                if ((link.from == slow.from && link.to == slow.to) ||
                    (link.from == slow.to && link.to == slow.from))
                  double_it(link);
              }));
  }

  void TryShorterLatency() {
    const std::optional<LinkClass> links = MostOf(topology_, schedule_path_, PathKind::kLatency);
    if (!links) return;
    Simulated("half the latency of " + NameOf(*links), WithLinks(topology_, [&](LinkId l, Link& link) {
                if (ClassOf(topology_, l) == *links) link.latency_ps /= 2;
              }));
  }

  // Makes a new plan with the machine and the options of a change, and adds the change with its time.
  void Planned(const std::string& change, const Topology& topology, PlanOptions options) {
    if (!HasTime()) return;
    options.lower = false;
    options.request.bound = nullptr;
    options.request.graphs.reset();
    const StatusOr<PlanResult> made = MakePlan(topology, collective_, options);
    if (made.ok())
      made_.changes.push_back({change, made->simulation.time_ps, made->bound.bound_ps, true});
    else
      HasTime();  // records the reason if the deadline ended the search
  }

  void TryMoreChunks() {
    const Collective& cut = result_.plan.collective;
    if (!cut.HasEvenParts() || result_.plan.schedule.size() > kManyTransfers) return;
    const int32_t chunks = cut.ChunksOf(PartId(0));
    PlanOptions options = options_;
    options.engine = result_.plan.made_by.engine;
    options.request.limits.chunks = 2 * chunks;
    Planned(fmt::format("{} chunks a part in place of {}", 2 * chunks, chunks), topology_, options);
  }

  void TryOneMoreNic() {
    if (topology_.num_hosts() < 2) return;
    const std::optional<Topology> topology = WithOneMoreNic(topology_);
    if (topology) Planned("one more NIC in every host", *topology, options_);
  }

  const PlanResult& result_;
  const Topology& topology_;
  const Collective& collective_;
  const PlanOptions& options_;
  CriticalPath schedule_path_;
  Explanation made_;
};

// ---- In words ----

std::string Percent(int64_t part, int64_t whole) {
  return fmt::format("{:.0f} %",
                     100 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(whole, 1)));
}

std::string KindInWords(PathKind kind) {
  switch (kind) {
    case PathKind::kTransfer:
      return "bytes on links";
    case PathKind::kLatency:
      return "latency";
    case PathKind::kOverhead:
      return "cost of messages on links";
    case PathKind::kThreadblock:
      return "threadblocks";
    case PathKind::kHandOff:
      return "hand-offs between threadblocks";
    case PathKind::kHop:
      return "hops to receivers";
    case PathKind::kLaunch:
      return "launch";
  }
  return "";
}

// Returns a name such as "threadblock 3 of rank 6".
std::string NameOfBlock(const LoweredProgram& lowered, int32_t block) {
  const ProgramIndex index(lowered.program);
  const Rank rank = index.BlockRank(block);
  return fmt::format("threadblock {} of rank {}", block - index.RankFirstBlock(rank), rank.value);
}

// Returns a text such as "bytes on links 81 % (0->nvswitch 40 %, 3 others)".
std::string PathText(const Explanation& explanation, const PlanResult& result) {
  if (!explanation.untraced.empty()) return "not traced: " + explanation.untraced;
  struct Sum {
    int64_t ps = 0;
    std::vector<PathShare> shares;
  };
  std::array<Sum, kNumPathKinds> sums;
  for (const PathShare& share : SharesOf(explanation.path)) {
    Sum& sum = sums[static_cast<size_t>(share.kind)];
    sum.ps += share.ps;
    sum.shares.push_back(share);
  }
  std::vector<size_t> order;
  for (size_t k = 0; k < kNumPathKinds; ++k)
    if (sums[k].ps > 0) order.push_back(k);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return sums[a].ps > sums[b].ps; });
  std::string text = fmt::format("of the {}'s {}: ", explanation.of_program ? "program" : "schedule",
                                 FormatDurationShort(explanation.time_ps));
  for (const size_t k : order) {
    const Sum& sum = sums[k];
    if (!text.ends_with(": ")) text += ", ";
    text += fmt::format("{} {}", KindInWords(static_cast<PathKind>(k)), Percent(sum.ps, explanation.time_ps));
    const PathShare& first = sum.shares.front();
    if (!first.link && !first.block) continue;
    const std::string place = first.link ? result.plan.topology.LinkName(*first.link)
                                         : NameOfBlock(*result.plan.program, *first.block);
    if (sum.shares.size() == 1) {
      text += fmt::format(" ({})", place);
    } else {
      text += fmt::format(" ({} {}, {} more)", place, Percent(first.ps, explanation.time_ps),
                          sum.shares.size() - 1);
    }
  }
  return text;
}

std::string ReasonOf(const Bound& bound) {
  if (bound.kind == BoundKind::kFlowOverTime)
    return fmt::format(
        "bytes and the way they go, together, by a flow over time; {} for bandwidth alone, {} for latency "
        "alone",
        FormatDurationShort(static_cast<int64_t>(bound.bandwidth_ps)), FormatDurationShort(bound.latency_ps));
  const bool latency = bound.latency_ps >= static_cast<int64_t>(bound.bandwidth_ps);
  return latency ? "the latency of the farthest byte" : fmt::format("bandwidth, by {}", ToString(bound.kind));
}

std::string BoundText(const PlanResult& result) {
  const Bound& bound = result.bound;
  const int64_t time_ps = result.simulation.time_ps;
  if (result.exact) return fmt::format("{}: no plan is faster", FormatDurationShort(time_ps));
  return fmt::format("no plan is faster than {} ({}); the schedule's {} is {:.1f} % above that",
                     FormatDurationShort(bound.bound_ps), ReasonOf(bound), FormatDurationShort(time_ps),
                     100 * (RatioOf(time_ps, bound.bound_ps) - 1));
}

std::string NextText(const PlanResult& result) {
  if (!result.next)
    return "no other engine was asked, or none came near; hint: xccl-synth compare shows them all";
  const bool sooner = result.next->time_ps < result.simulation.time_ps;
  return fmt::format("{}'s schedule would take {} on ideal links, {:.2f} x as long as this one{}",
                     result.next->engine, FormatDurationShort(result.next->time_ps),
                     RatioOf(result.next->time_ps, result.simulation.time_ps),
                     sooner ? ", with more messages or steps, or a slower program" : "");
}

}  // namespace

Explanation Explain(const PlanResult& result, const Collective& collective, const PlanOptions& options) {
  const PlanOptions on_machine = OnMachineOf(result.plan.topology, options);
  return Explainer(result, collective, on_machine).Run();
}

std::vector<NamedLine> LinesOf(const Explanation& explanation, const PlanResult& result) {
  std::string faster, no_gain;
  const int64_t time_ps = result.simulation.time_ps;
  for (const WhatIf& change : explanation.changes) {
    const bool gains = kNear * static_cast<double>(change.time_ps) < static_cast<double>(time_ps);
    std::string& line = gains ? faster : no_gain;
    if (!line.empty()) line += "; ";
    line += change.change;
    if (gains)
      line += fmt::format(": {}{} (bound {})", FormatDurationShort(change.time_ps),
                          change.replanned ? " planned anew" : "", FormatDurationShort(change.bound_ps));
  }
  if (faster.empty())
    faster = "nothing that was tried";
  else if (explanation.of_program)
    faster = fmt::format("of the schedule's {}: {}", FormatDurationShort(time_ps), faster);
  if (no_gain.empty())
    no_gain = explanation.changes.empty() ? "nothing was tried" : "none: every change that was tried helps";
  if (!explanation.stopped.empty()) no_gain += "; " + explanation.stopped;
  return {{"bound", BoundText(result)},
          {"path", PathText(explanation, result)},
          {"next", NextText(result)},
          {"faster", faster},
          {"no gain", no_gain}};
}

std::string ExplanationText(std::span<const NamedLine> why) {
  std::string text = why.empty() ? "" : "why\n";
  for (const NamedLine& line : why) {
    std::string_view name = line.name;
    for (const std::string& part : WrapWords(line.text, 67)) {
      text += fmt::format("  {:<10} {}\n", name, part);
      name = "";
    }
  }
  return text;
}

}  // namespace xccl
