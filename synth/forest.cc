// Rate, relays out, trees in, schedule. The capacities that stay unused and the order of what waits at a link
// are all that distinguishes the plan's time from the bound: orders are simulated and the best kept.
#include "synth/forest.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/bound.h"
#include "ir/simulate.h"
#include "ir/sizes.h"
#include "synth/forest_allreduce.h"
#include "synth/forest_broadcast.h"
#include "synth/forest_network.h"
#include "synth/forest_pack.h"
#include "synth/forest_split.h"
#include "synth/forest_trees.h"
#include "synth/packed_trees.h"
#include "synth/reverse.h"
#include "synth/textbook.h"

namespace xccl {
namespace {

using forest::LogicalTree;
using forest::Network;

constexpr int64_t kDefaultWork = 2'000'000'000;  // arcs looked at
constexpr double kGoodEnough = 1.005;            // times the bound: other orders are not tried
constexpr double kWantedLoss = 0.008;            // of the bound: slices are made so many
constexpr int64_t kFirstSlices = 16, kMostSlices = 256;
constexpr int64_t kMostTransfers = 400'000;
constexpr int64_t kLeastSlice = 64 << 10;  // bytes of the largest chunk

bool IsGathered(CollectiveKind kind) {
  return kind == CollectiveKind::kAllgather || kind == CollectiveKind::kAllgatherv ||
         kind == CollectiveKind::kBroadcast;
}
bool IsReduced(CollectiveKind kind) {
  return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kReduceScatterv ||
         kind == CollectiveKind::kReduce;
}
bool IsSummedEverywhere(CollectiveKind kind) {
  return kind == CollectiveKind::kAllreduce || kind == CollectiveKind::kBarrier;
}

class Attempt {
 public:
  explicit Attempt(const SynthesisRequest& request)
      : request_(request),
        topology_(*request.topology),
        collective_(*request.collective),
        turned_(IsReduced(collective_.kind()) ? ReverseTopology(topology_) : topology_),
        work_(request.limits.work_units > 0 ? request.limits.work_units : kDefaultWork) {}

  StatusOr<Synthesis> Run() {
    XCCL_ASSIGN_OR_RETURN(
        bound_, LowerBound(topology_, collective_, request_.size_bytes, request_.model, BoundEffort::kFast));
    PackedTrees trees;
    std::string note = "nothing to move";
    const std::vector<int64_t> weights = forest::WeightsOf(turned_, collective_);
    if (collective_.num_members() > 1 &&
        std::any_of(weights.begin(), weights.end(), [](int64_t w) { return w > 0; })) {
      Network network = forest::MakeNetwork(turned_, collective_, Trees());
      XCCL_RETURN_IF_ERROR(forest::RemoveRelays(turned_, network, work_));
      forest::PackOptions options;
      XCCL_ASSIGN_OR_RETURN(
          const std::vector<LogicalTree> packed,
          forest::PackTrees(network.graph, network.demands, network.members, options, work_));
      trees = forest::LayOut(turned_, collective_, network, packed, request_.limits.chunks.has_value());
      note = fmt::format("{} trees a rank, {} forms, depth {}", network.trees, trees.trees.size(),
                         trees.Depth());
      if (network.rate_loss > 0) note += fmt::format(", {:.2f} % off the best rate", 100 * network.rate_loss);
    }
    return Choose(trees, std::move(note));
  }

 private:
  std::optional<int64_t> Trees() const {
    if (!request_.limits.chunks) return std::nullopt;
    return *request_.limits.chunks;
  }

  TreeSchedule Schedule(const PackedTrees& trees, const TreeSteps& steps) const {
    return IsReduced(collective_.kind()) ? SumUp(trees, topology_, collective_, steps)
                                         : CopyDown(trees, collective_, steps);
  }

  StatusOr<Synthesis> Choose(const PackedTrees& trees, std::string note) {
    XCCL_RETURN_IF_ERROR(Try(trees, {TreeOrder::kShallowFirst, 1}));
    if (!GoodEnough()) XCCL_RETURN_IF_ERROR(Try(trees, {TreeOrder::kTallFirst, 1}));
    // What slices cost is the filling of the pipeline: inversely proportional to their number.
    const int64_t most = MostSlices(trees);
    for (int64_t slices = std::min(kFirstSlices, most); slices > 1 && !GoodEnough();) {
      XCCL_RETURN_IF_ERROR(Try(trees, {TreeOrder::kTallFirst, static_cast<int32_t>(slices)}));
      const double loss = last_ps_ / static_cast<double>(bound_.bound_ps) - 1;
      const int64_t wanted = static_cast<int64_t>(static_cast<double>(slices) * loss / kWantedLoss) + 1;
      if (slices >= most || loss <= kWantedLoss) break;
      slices = std::min(std::max(wanted, 2 * slices), most);
    }
    best_->note = std::move(note);
    best_->exact = best_->schedule.size() == 0 || best_->simulation->time_ps <= bound_.bound_ps + 1;
    return *std::move(best_);
  }

  int64_t MostSlices(const PackedTrees& trees) const {
    if (request_.limits.chunks) return 1;
    const CollectiveSizes sizes(best_->collective, request_.size_bytes);
    int64_t largest = 0;
    for (int32_t c = 0; c < best_->collective.num_chunks(); ++c)
      largest = std::max(largest, sizes.ChunkBytes(ChunkId(c)));
    return std::min(
        {kMostSlices, kMostTransfers / std::max<int64_t>(trees.NumArcs(), 1), largest / kLeastSlice});
  }

  bool GoodEnough() const {
    return static_cast<double>(best_->simulation->time_ps) <=
           kGoodEnough * static_cast<double>(bound_.bound_ps);
  }

  // Simulates the trees' schedule with these steps, and keeps it if it is the fastest.
  Status Try(const PackedTrees& trees, const TreeSteps& steps) {
    TreeSchedule made = Schedule(trees, steps);
    const int32_t num_steps = made.schedule.num_steps();
    if (request_.limits.steps && num_steps > *request_.limits.steps) {
      if (best_) return OkStatus();
      return LimitReached(
          fmt::format("forest: {} on {}: its trees take {} steps; at most {} are allowed; hint: --steps={}",
                      collective_.name(), topology_.name(), num_steps, *request_.limits.steps, num_steps));
    }
    const Simulation simulation = Simulate(made.schedule, made.collective, topology_,
                                           {.size_bytes = request_.size_bytes, .model = request_.model});
    last_ps_ = static_cast<double>(simulation.time_ps);
    if (best_ && simulation.time_ps >= best_->simulation->time_ps) return OkStatus();
    best_ = Synthesis{.collective = std::move(made.collective),
                      .schedule = std::move(made.schedule),
                      .exact = false,
                      .engine = "forest",
                      .note = {},
                      .simulation = simulation};
    return OkStatus();
  }

  const SynthesisRequest& request_;
  const Topology& topology_;
  const Collective& collective_;
  const Topology turned_;
  int64_t work_;
  Bound bound_;
  std::optional<Synthesis> best_;
  double last_ps_ = 0;  // of the schedule simulated last
};

// The same with its time, and whether that is the bound's.
StatusOr<Synthesis> Simulated(const SynthesisRequest& request, StatusOr<Synthesis> made) {
  if (!made.ok()) return made;
  XCCL_ASSIGN_OR_RETURN(const Bound bound, LowerBound(*request.topology, *request.collective,
                                                      request.size_bytes, request.model, BoundEffort::kFast));
  made->simulation = Simulate(made->schedule, made->collective, *request.topology,
                              {.size_bytes = request.size_bytes, .model = request.model});
  made->exact = made->schedule.size() == 0 || made->simulation->time_ps <= bound.bound_ps + 1;
  return made;
}

class Forest final : public Synthesizer {
 public:
  std::string_view name() const override { return "forest"; }
  std::string_view summary() const override {
    return "packs spanning trees at the best rate of any machine, shallow trees first; exact in bandwidth";
  }

  Status Serves(const SynthesisRequest& request) const override {
    const Collective& collective = *request.collective;
    if (!IsGathered(collective.kind()) && !IsReduced(collective.kind()) &&
        !IsSummedEverywhere(collective.kind()))
      return InvalidInput(
          fmt::format("forest: {} is not served; it serves allgather(v), reduce_scatter(v), "
                      "broadcast, reduce, allreduce and barrier",
                      collective.name()));
    XCCL_RETURN_IF_ERROR(CheckMembers(name(), request));
    if (IsSummedEverywhere(collective.kind())) return NeedsGpusAlone(request);
    if (request.limits.chunks && !collective.spec().counts.empty())
      return InvalidInput(fmt::format(
          "forest: --chunks with {}: uneven parts have uneven trees; expected none", collective.name()));
    return OkStatus();
  }

  std::optional<double> EstimatePs(const SynthesisRequest& request) const override {
    const StatusOr<Bound> bound = LowerBound(*request.topology, *request.collective, request.size_bytes,
                                             request.model, BoundEffort::kFast);
    if (!bound.ok()) return std::nullopt;
    return 1.01 * bound->bandwidth_ps + 2 * static_cast<double>(bound->latency_ps);
  }

  StatusOr<Synthesis> Synthesize(const SynthesisRequest& request) const override {
    XCCL_RETURN_IF_ERROR(Serves(request));
    if (IsSummedEverywhere(request.collective->kind()))
      return Simulated(request, SynthesizeAllreduceTrees(request));
    if (request.collective->spec().root && NeedsGpusAlone(request).ok())
      return Simulated(request, SynthesizeBroadcastTrees(request));
    return Attempt(request).Run();
  }
};

}  // namespace

std::unique_ptr<Synthesizer> MakeForest() { return std::make_unique<Forest>(); }

}  // namespace xccl
