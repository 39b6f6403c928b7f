// ScheduleWriter:
// 1. Check the transfer's ranks and chunks.
// 2. Find the hop between the two ranks; of parallel hops, the least loaded one. A multicast or an in-switch
//    reduction takes a tree: the union of the hops between its root and its leaves.
// 3. Append the transfer with the links of its hop or tree.
// PlanOfSchedule verifies and simulates the schedule, then calls CompletePlan.
#include "pipeline/own_schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "ir/analysis/bitwise_same.h"
#include "ir/known_machines.h"
#include "ir/simulate/simulate_program.h"
#include "ir/verify/verify_schedule.h"
#include "pipeline/arguments.h"
#include "pipeline/pipeline.h"

namespace xccl {

HopId HopLoads::Take(const RankGraph& graph, HopId best, double parts) {
  const auto after = [&](HopId h) {
    return load_[h.index()] + parts / static_cast<double>(graph.hop(h).bandwidth_bytes_per_s);
  };
  HopId taken = best;
  for (int32_t k = 1; k < graph.Parallel(best); ++k)
    if (const HopId other(best.value + k); after(other) < after(taken)) taken = other;
  load_[taken.index()] = after(taken);
  return taken;
}

ScheduleWriter::ScheduleWriter(const Topology& topology, const Collective& collective)
    : topology_(topology), collective_(collective), graph_(topology), loads_(graph_) {
  schedule_.num_chunks = collective.num_chunks();
}

Status ScheduleWriter::CheckChunks(ChunkId first, int32_t count) const {
  const int64_t chunks = collective_.num_chunks();
  if (count < 1) return InvalidInput(fmt::format("{} chunks; expected at least one", count));
  if (first.value >= 0 && first.value < chunks && count <= chunks - first.value) return OkStatus();
  return InvalidInput(fmt::format("no chunk {}; chunks are 0..{}",
                                  first.value < 0 || first.value >= chunks ? first.value : chunks,
                                  chunks - 1));
}

StatusOr<HopId> ScheduleWriter::Between(Rank src, Rank dst) const {
  for (const Rank rank : {src, dst})
    if (rank.value < 0 || rank.value >= topology_.num_ranks())
      return InvalidInput(fmt::format("no rank {}; ranks are 0..{}", rank.value, topology_.num_ranks() - 1));
  if (src == dst) return InvalidInput(fmt::format("rank {} sends to itself", src.value));
  if (const std::optional<HopId> hop = graph_.Find(src, dst)) return *hop;
  return InvalidInput(fmt::format(
      "rank {} sends to rank {}; no link of {} leads there but through another GPU; hint: two transfers",
      src.value, dst.value, topology_.name()));
}

Status ScheduleWriter::Add(ChunkId first, int32_t count, Rank src, Rank dst, TransferOp op, int32_t step) {
  XCCL_RETURN_IF_ERROR(CheckChunks(first, count));
  XCCL_ASSIGN_OR_RETURN(const HopId best, Between(src, dst));
  double parts = 0;
  for (int32_t c = first.value; c < first.value + count; ++c) {
    const ChunkId chunk(c);
    const int64_t whole = std::max<int64_t>(1, collective_.PartWeight(collective_.PartOf(chunk)));
    parts += static_cast<double>(collective_.Weight(chunk)) / static_cast<double>(whole);
  }
  const HopId hop = loads_.Take(graph_, best, parts);
  schedule_.Add(first, count, src, dst, graph_.Links(hop), op, step);
  return OkStatus();
}

StatusOr<std::vector<LinkId>> ScheduleWriter::Tree(Rank root, std::span<const Rank> leaves,
                                                   bool to_root) const {
  std::vector<LinkId> links;
  for (const Rank leaf : leaves) {
    XCCL_ASSIGN_OR_RETURN(const HopId hop, to_root ? Between(leaf, root) : Between(root, leaf));
    const std::span<const LinkId> path = graph_.Links(hop);
    std::vector<LinkId> from_root(path.begin(), path.end());
    if (to_root) std::ranges::reverse(from_root);
    for (const LinkId link : from_root)
      if (std::ranges::find(links, link) == links.end()) links.push_back(link);
  }
  if (to_root) std::ranges::reverse(links);
  return links;
}

Status ScheduleWriter::Multicast(ChunkId first, int32_t count, Rank src, std::span<const Rank> dsts,
                                 int32_t step) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<LinkId> links, Tree(src, dsts, false));
  return AddOver(links, first, count, TransferOp::kCopy, step);
}

Status ScheduleWriter::ReduceInSwitch(ChunkId first, int32_t count, std::span<const Rank> srcs, Rank dst,
                                      int32_t step) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<LinkId> links, Tree(dst, srcs, true));
  return AddOver(links, first, count, TransferOp::kReduce, step);
}

Status ScheduleWriter::AddOver(std::span<const LinkId> links, ChunkId first, int32_t count, TransferOp op,
                               int32_t step) {
  XCCL_RETURN_IF_ERROR(CheckChunks(first, count));
  for (const LinkId link : links)
    if (link.value < 0 || link.value >= topology_.num_links())
      return InvalidInput(fmt::format("no link {}; links are 0..{}", link.value, topology_.num_links() - 1));
  std::vector<Rank> sources, destinations;
  PathEnds(topology_, links, sources, destinations);
  if (sources.empty() || destinations.empty())
    return InvalidInput(fmt::format("a path of {} links; expected one from a GPU to a GPU", links.size()));
  schedule_.Add(first, count, sources.front(), destinations.front(), links, op, step);
  return OkStatus();
}

Schedule ScheduleWriter::Finish() {
  Schedule made = std::exchange(schedule_, Schedule());
  Normalize(made);
  return made;
}

StatusOr<PlanResult> PlanOfSchedule(const Topology& topology, Collective collective, Schedule schedule,
                                    const std::string& name, const PlanOptions& asked) {
  const auto began = std::chrono::steady_clock::now();
  const PlanOptions options = OnMachineOf(topology, asked);
  XCCL_RETURN_IF_ERROR(ToStatus(VerifySchedule(schedule, collective, topology)));
  XCCL_ASSIGN_OR_RETURN(const Bound bound,
                        LowerBound(topology, collective, options.request.size_bytes, options.request.model));
  Synthesis made{
      .collective = std::move(collective), .schedule = std::move(schedule), .engine = name, .note = ""};
  SimulateOptions timing = TimingOf(options.request);
  timing.deadline = options.deadline;
  made.simulation = Simulate(made.schedule, made.collective, topology, timing);
  if (made.simulation->stopped)
    return LimitReached(fmt::format("{} before the schedule was simulated", options.deadline.Passed()));
  made.exact = MeetsBound(made.simulation->time_ps, bound);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  std::vector<Synthesis> found = {std::move(made)};
  return CompletePlan(topology, found, bound, seconds.count(), options);
}

StatusOr<PlanResult> DescribePlan(Plan plan) {
  SimulateOptions timing{.size_bytes = plan.made_by.size_bytes, .model = plan.made_by.model};
  PlanResult result{.plan = std::move(plan)};
  const Plan& own = result.plan;
  XCCL_ASSIGN_OR_RETURN(result.bound,
                        LowerBound(own.topology, own.collective, timing.size_bytes, timing.model));
  result.simulation = Simulate(own.schedule, own.collective, own.topology, timing);
  result.exact = MeetsBound(result.simulation.time_ps, result.bound);
  result.schedule_stats = Stats(own.schedule, own.collective, own.topology);
  result.relays = RelaysOf(own.schedule, own.collective, own.topology);
  if (!own.bitwise_same) result.plan.bitwise_same = IsBitwiseSame(own.schedule, own.collective, own.topology);
  if (own.program) {
    std::optional<MachineModel> machine;
    if (!own.made_by.machine.empty()) {
      XCCL_ASSIGN_OR_RETURN(machine, FindMachine(own.made_by.machine));
    }
    if (machine) {
      timing.machine = &*machine;
      result.machine = machine->source;
    }
    XCCL_ASSIGN_OR_RETURN(
        const Simulation simulation,
        SimulateProgram(own.program->program, own.program->collective, own.topology, timing));
    result.program_time_ps = simulation.time_ps;
    result.program_stats =
        Stats(own.program->program, CollectiveSizes(own.program->collective, timing.size_bytes));
  }
  if (result.machine.empty()) result.no_machine = WhyNoModel(own.topology.gpu_arch());
  result.ratio = RatioOf(result.program_time_ps.value_or(result.simulation.time_ps), result.bound.bound_ps);
  return result;
}

}  // namespace xccl
