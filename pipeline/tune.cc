#include "pipeline/tune.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "base/units.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate_program.h"
#include "topologies/gpu_links.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

constexpr int64_t kSmallBytes = 16;
constexpr int64_t kLargeBytes = 16 << 20;
constexpr int32_t kHops = 3;
constexpr int32_t kMessages = 64;  // in a row over one connection
constexpr double kHopeless = 4;    // times the best prediction: not run

// A program that sends rank 0's buffer along ranks 1 .. `hops`, whole.
StatusOr<LoweredProgram> Chain(int32_t ranks, int32_t hops, Protocol protocol) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBroadcast;
  spec.root = Rank(0);
  spec.ranks = AllRanks(hops + 1);
  XCCL_ASSIGN_OR_RETURN(Collective collective, Collective::Create(std::move(spec)));
  Program program;
  program.protocol = protocol;
  program.ranks.resize(static_cast<size_t>(ranks));
  const auto block = [&](int32_t r, Opcode op) {
    Threadblock made;
    if (r > 0) made.recv_peer = Rank(r - 1);
    if (r < hops) made.send_peer = Rank(r + 1);
    const BufferKind src = r == 0 ? BufferKind::kInput : BufferKind::kOutput;
    made.instructions.push_back({.op = op, .count = 1, .src = {src, 0}, .dst = {BufferKind::kOutput, 0}});
    return made;
  };
  for (int32_t r = 0; r <= hops; ++r) {
    const Opcode op = r == 0 ? Opcode::kSend : r < hops ? Opcode::kRecvCopySend : Opcode::kRecv;
    program.ranks[Rank(r)].threadblocks.push_back(block(r, op));
    if (r < hops) program.connections.push_back({Rank(r), Rank(r + 1), 0, {}});
  }
  Threadblock copy;  // copies the root's own data
  copy.instructions.push_back(
      {.op = Opcode::kCopy, .count = 1, .src = {BufferKind::kInput, 0}, .dst = {BufferKind::kOutput, 0}});
  program.ranks[Rank(0)].threadblocks.push_back(copy);
  return LoweredProgram{std::move(collective), std::move(program)};
}

// Is each of the first ranks joined to the next by GPUs' links?
bool HaveGpuLinks(const Topology& topology, int32_t hops) {
  const GpuLinks links(topology);
  for (int32_t r = 0; r < hops; ++r) {
    const NeighbourTable row = GpuNeighboursOf(topology, Rank(r));
    const Neighbour* const next = row.Find(0, Rank(r + 1));
    if (next == nullptr || !links.Have(next->path)) return false;
  }
  return true;
}

struct Proposal {
  Plan plan;
  int32_t threadblocks = 0;
};

bool SameWork(const Plan& a, const Plan& b) {
  return a.topology == b.topology && a.schedule == b.schedule && a.program == b.program;
}

Status Propose(const Topology& topology, const Collective& collective, const TuneRequest& request,
               std::vector<Proposal>& proposals) {
  for (const int64_t size : request.sizes_bytes) {
    PlanOptions options = request.pipeline;
    options.request.size_bytes = size;
    options.lower = true;
    XCCL_ASSIGN_OR_RETURN(PlanResult made, MakePlan(topology, collective, options));
    if (!made.plan.program)
      return LimitReached(collective.name() + " on " + topology.name() +
                          ": the schedule is too long to be lowered");
    if (std::ranges::any_of(proposals, [&](const Proposal& p) { return SameWork(p.plan, made.plan); }))
      continue;
    proposals.push_back({std::move(made.plan), made.program_stats->threadblocks});
  }
  return OkStatus();
}

// On the plan's own topology.
double PredictedUs(const Plan& plan, int64_t size_bytes, const PlanOptions& options) {
  const StatusOr<Simulation> simulation =
      SimulateProgram(plan.program->program, plan.program->collective, plan.topology,
                      {.size_bytes = size_bytes,
                       .model = options.request.model,
                       .machine = options.machine ? &*options.machine : nullptr});
  return simulation.ok() ? PsToUs(simulation->time_ps) : std::numeric_limits<double>::infinity();
}

// The plan that serves a size.
struct Choice {
  size_t proposal = 0;
  double measured_us = std::numeric_limits<double>::infinity();
  double predicted_us = 0;
};

StatusOr<Choice> Choose(const std::vector<Proposal>& proposals, int64_t size_bytes,
                        const PlanOptions& options, const Measure& measure) {
  std::vector<double> predicted;
  for (const Proposal& p : proposals) predicted.push_back(PredictedUs(p.plan, size_bytes, options));
  const double best = *std::ranges::min_element(predicted);
  Choice choice;
  for (size_t i = 0; i < proposals.size(); ++i) {
    if (predicted[i] > kHopeless * best) continue;
    XCCL_ASSIGN_OR_RETURN(const double us, measure(*proposals[i].plan.program, size_bytes));
    if (us < choice.measured_us) choice = {i, us, predicted[i]};
  }
  return choice;
}

PlanBookEntry EntryOf(const Plan& plan, int64_t size_bytes) {
  std::string size = FormatSize(size_bytes);
  PlanBookEntry entry;
  entry.collective = plan.collective.kind();
  entry.ranks = plan.topology.num_ranks();
  entry.root = plan.collective.spec().root;
  const std::string root = entry.root ? "-root" + std::to_string(entry.root->value) : "";
  entry.file = plan.collective.name() + root + "-" + size + ".plan.json";
  entry.in_place = plan.program->program.in_place ? InPlaceMode::kBoth : InPlaceMode::kNever;
  return entry;
}

// The largest size that is nearer to the first, by ratio.
int64_t Between(int64_t a, int64_t b) {
  return static_cast<int64_t>(std::sqrt(static_cast<double>(a) * static_cast<double>(b)));
}

}  // namespace

StatusOr<MachineModel> MeasureMachine(const Topology& topology, const std::string& source, bool flags_travel,
                                      const Measure& measure) {
  const int32_t hops = std::min(kHops, topology.num_ranks() - 1);
  const int64_t links_ps =
      LeastLatencyFrom(topology, {topology.NodeOf(Rank(0))})[topology.NodeOf(Rank(1)).index()].value_or(0);
  MachineModel model;
  model.source = source;
  double launch_us = std::numeric_limits<double>::infinity();
  for (const Protocol protocol : {Protocol::kSimple, Protocol::kLl, Protocol::kLl128}) {
    if (protocol == Protocol::kLl128 && flags_travel && !HaveGpuLinks(topology, hops)) {
      // Executors refuse it there, and no plan has it.
      model.protocols[static_cast<size_t>(protocol)] =
          model.protocols[static_cast<size_t>(Protocol::kSimple)];
      continue;
    }
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram one, Chain(topology.num_ranks(), 1, protocol));
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram all, Chain(topology.num_ranks(), hops, protocol));
    XCCL_ASSIGN_OR_RETURN(const double near_us, measure(one, kSmallBytes));
    XCCL_ASSIGN_OR_RETURN(const double far_us, measure(all, kSmallBytes));
    XCCL_ASSIGN_OR_RETURN(const double large_us, measure(one, kLargeBytes));
    LoweredProgram row = one;
    row.program.segment_bytes = kSmallBytes;
    row.program.slots = kMessages;  // none waits for a free one
    XCCL_ASSIGN_OR_RETURN(const double row_us, measure(row, kMessages * kSmallBytes));
    const double hop_us = hops > 1 ? std::max(0.0, (far_us - near_us) / (hops - 1)) : near_us;
    const double message_us = std::clamp((row_us - near_us) / (kMessages - 1), 0.0, hop_us);
    launch_us = std::min(launch_us, std::max(0.0, near_us - hop_us - message_us));
    ProtocolCost& cost = model.protocols[static_cast<size_t>(protocol)];
    cost.message_ps = std::llround(message_us * static_cast<double>(kPsPerUs));
    cost.hop_ps =
        std::max<int64_t>(0, std::llround((hop_us - message_us) * static_cast<double>(kPsPerUs)) - links_ps);
    const double moved_us = std::max(1e-3, large_us - near_us);
    cost.block_bytes_per_s = std::llround(static_cast<double>(kLargeBytes) / moved_us * 1e6);
    if (flags_travel && protocol == Protocol::kLl) cost.data_bytes = 8, cost.wire_bytes = 16;
    if (flags_travel && protocol == Protocol::kLl128) cost.data_bytes = 120, cost.wire_bytes = 128;
  }
  model.launch_ps = std::llround(launch_us * static_cast<double>(kPsPerUs));
  return model;
}

StatusOr<Tuned> Tune(std::span<const Topology> topologies, const TuneRequest& request,
                     const Measure& measure) {
  Tuned tuned;
  for (const Collective& collective : request.collectives) {
    std::vector<Proposal> proposals;
    for (const Topology& topology : topologies)
      XCCL_RETURN_IF_ERROR(Propose(topology, collective, request, proposals));
    std::optional<size_t> last;
    for (size_t s = 0; s < request.sizes_bytes.size(); ++s) {
      const int64_t size = request.sizes_bytes[s];
      XCCL_ASSIGN_OR_RETURN(const Choice choice, Choose(proposals, size, request.pipeline, measure));
      const Proposal& chosen = proposals[choice.proposal];
      if (last != choice.proposal) {
        PlanBookEntry entry = EntryOf(chosen.plan, size);
        if (last) {
          tuned.entries.back().max_bytes = Between(request.sizes_bytes[s - 1], size);
          entry.min_bytes = *tuned.entries.back().max_bytes + 1;
        }
        tuned.entries.push_back(std::move(entry));
        tuned.plans.push_back(chosen.plan);
        last = choice.proposal;
      }
      tuned.rows.push_back({.collective = collective.name(),
                            .engine = chosen.plan.made_by.engine,
                            .file = tuned.entries.back().file,
                            .topology = chosen.plan.topology.name(),
                            .root = collective.spec().root,
                            .size_bytes = size,
                            .measured_us = choice.measured_us,
                            .predicted_us = choice.predicted_us,
                            .threadblocks = chosen.threadblocks});
    }
  }
  return tuned;
}

}  // namespace xccl
