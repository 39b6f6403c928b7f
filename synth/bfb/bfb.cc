// Planning makes the plan of one request.
// 1. SymmetryOf looks for translations that make all ranks alike. With them one rank is planned for all.
// 2. NetworkOf chooses the hops that the plan uses.
// 3. ChooseChunks scores several numbers of chunks a part and takes the least number that is near the best.
// 4. StartOf lists the chunks that each rank has before copies are made.
// 5. A BfbPlanner plans the copies. For sums, a BfbPlanner plans copies on the reversed machine, and Reverse
//    turns the copies into sums.
// 6. An allreduce without symmetry may be planned twice (Plan), and the faster plan is kept: every member
//    sums a share, or only the central ranks sum.
// Cost of a plan: one BfbPlanner for copies and one for sums, and one Score for each number of chunks tried.
#include "synth/bfb/bfb.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/units.h"
#include "ir/simulate/simulate.h"
#include "ir/time_model.h"
#include "ir/translated.h"
#include "synth/bfb/schedule.h"
#include "synth/common/compose.h"
#include "synth/common/cost_model.h"
#include "synth/common/reverse.h"
#include "synth/common/serves.h"
#include "synth/common/simulated_transfers.h"
#include "synth/common/step_limit.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

// Candidate numbers of chunks for the data of each source: small numbers, mostly multiples of 2 or 3. If
// ports have equal speeds, each port's share of the data is a simple fraction.
constexpr int32_t kChunkChoices[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16};
// The most receivers that are scored to compare numbers of chunks, and the most central ranks that make sums.
constexpr int32_t kSampleRanks = 12;
// If a plan takes longer than this multiple of the latency bound, most of its time is due to bytes. Sums at a
// few central ranks are then not tried, because they load links unevenly.
constexpr double kMostLatencies = 8;

constexpr std::string_view kName = "bfb";
constexpr std::string_view kSummary =
    "every chunk along shortest paths, links evenly loaded; fewest steps, and on tori, hypercubes, full "
    "meshes least load too";
constexpr CollectiveKind kServed[] = {CollectiveKind::kAllreduce,      CollectiveKind::kAllgather,
                                      CollectiveKind::kAllgatherv,     CollectiveKind::kReduceScatter,
                                      CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast,
                                      CollectiveKind::kReduce,         CollectiveKind::kBarrier};

// The chunks that each rank has before copies are made.
struct Start {
  Collective cut;
  std::vector<BfbSource> sources;
};

// Cuts each part into `chunks` chunks and lists the sources. In an allreduce, each rank of `centres` makes
// the sums of a piece of the buffer. The pieces are nearly equal.
Start StartOf(const Collective& collective, std::span<const Rank> centres, int32_t chunks) {
  Start start{collective.WithChunks(chunks), {}};
  const auto add = [&](Rank rank, ChunkRange block, int64_t weight) {
    if (block.count > 0) start.sources.push_back({rank, block, weight});
  };
  const CollectiveSpec& spec = collective.spec();
  if (IsAllreduce(spec.kind)) {
    const int32_t n = static_cast<int32_t>(centres.size());
    for (int32_t i = 0; i < n; ++i) add(centres[static_cast<size_t>(i)], Piece({0, chunks}, i, n), 1);
  } else if (spec.root) {
    add(*spec.root, {0, chunks}, 1);
  } else {
    int64_t all = 0;
    for (const int64_t count : spec.counts) all = std::max(all, count);
    // Counts may be very large; weights of 20 bits are exact enough to balance loads.
    const int64_t unit = std::max<int64_t>(1, all >> 20);
    for (int32_t i = 0; i < collective.num_members(); ++i) {
      const int64_t count = spec.counts.empty() ? 1 : spec.counts[static_cast<size_t>(i)];
      if (count > 0)
        add(spec.ranks[static_cast<size_t>(i)], {start.cut.FirstChunk(PartId(i)).value, chunks},
            std::max<int64_t>(1, count / unit));
    }
  }
  return start;
}

// Returns the translations if they take any rank to any other and all ranks are members. Serves allgather,
// reduce_scatter and allreduce; an allreduce only if all ranks can sum equally many of the requested chunks.
std::optional<SymmetryGroup> SymmetryOf(const SynthesisRequest& request) {
  const Collective& collective = *request.collective;
  const CollectiveKind kind = collective.kind();
  const bool even = kind == CollectiveKind::kAllgather || kind == CollectiveKind::kReduceScatter ||
                    kind == CollectiveKind::kAllreduce;
  if (!even || collective.num_members() != request.topology->num_ranks()) return std::nullopt;
  if (IsAllreduce(kind) && request.limits.chunks.value_or(0) % collective.num_members() != 0)
    return std::nullopt;
  SymmetryGroup group = FindTranslations(*request.topology);
  return group.IsTransitive() ? std::optional(std::move(group)) : std::nullopt;
}

// The number of ranks whose data are copied.
int64_t NumSources(const Collective& collective) {
  return collective.spec().root ? 1 : collective.num_members();
}

// Refuses a table of distances that is too large.
Status CheckPairs(const SynthesisRequest& request, bool has_symmetry) {
  const int64_t pairs = int64_t{request.topology->num_ranks()} * NumSources(*request.collective);
  if (has_symmetry || pairs <= kMostCells) return OkStatus();
  return LimitReached(
      fmt::format("bfb: {} pairs of a rank and a source without symmetry; at most {}", pairs, kMostCells));
}

class Planning {
 public:
  Planning(const SynthesisRequest& request, std::optional<SymmetryGroup> group)
      : request_(request),
        collective_(*request.collective),
        graphs_(*request.topology),
        budget_(kName, request),
        group_(std::move(group)),
        symmetry_(group_ ? &*group_ : nullptr) {}
  Planning(const Planning&) = delete;

  StatusOr<Synthesis> Run() {
    for (const Aim aim : {Aim::kTime, Aim::kNoWaves, Aim::kSteps}) {
      aim_ = aim;
      if (std::optional<Synthesis> made = Plan()) return *std::move(made);
    }
    return budget_.Refusal();
  }

 private:
  // The aims of a plan, in the order in which they are tried. The next aim is tried only if every plan of the
  // aim before takes more steps than --steps allows. kTime: in waves where Half can make them, over hops of
  // low latency. kNoWaves: each distance is one step. kSteps: each distance is one step, and hops may have
  // any latency.
  enum class Aim : uint8_t { kTime, kNoWaves, kSteps };

  // Returns nullopt if the plan has more steps than --steps allows.
  std::optional<Synthesis> Plan() {
    if (!IsAllreduce(collective_.kind())) return PlanWith({});
    if (symmetry_ != nullptr) return PlanWith(collective_.ranks());
    const bool barrier = collective_.kind() == CollectiveKind::kBarrier;
    std::optional<Synthesis> shared;
    if (!barrier) {
      shared = PlanWith(collective_.ranks());
      if (shared && Simulated(*shared) > kMostLatencies * LatencyPs()) return shared;
    }
    const std::vector<Rank> centres = Centres();
    std::optional<Synthesis> central = PlanWith(barrier ? std::span(centres).first(1) : centres);
    return central && (!shared || Simulated(*central) < Simulated(*shared)) ? std::move(central)
                                                                            : std::move(shared);
  }

  double Simulated(Synthesis& made) const {
    if (!made.simulation)
      made.simulation = Simulate(made.schedule, made.collective, *request_.topology, TimingOf(request_));
    return static_cast<double>(made.simulation->time_ps);
  }
  double LatencyPs() const {
    const StatusOr<Bound> bound = BoundOf(request_);
    return bound.ok() ? static_cast<double>(bound->latency_ps) : 0;
  }

  int32_t ChunksAsked(int32_t otherwise) const { return request_.limits.chunks.value_or(otherwise); }

  // Returns the hops that plans use: all hops if aim_ is kSteps, otherwise those of at most LatencyThatJoins.
  BfbNetwork NetworkOf(const RankGraph& graph) const {
    return {graph, aim_ == Aim::kSteps ? std::numeric_limits<int64_t>::max()
                                       : LatencyThatJoins(graph, collective_.ranks())};
  }

  // Returns up to kSampleRanks central members: for them, (hops to the farthest member) + (hops from the
  // farthest member) is least.
  std::vector<Rank> Centres() {
    const BfbNetwork network = NetworkOf(graphs_.forward());
    std::vector<int32_t> from(static_cast<size_t>(request_.topology->num_ranks()), 0), to = from;
    for (const Rank r : collective_.ranks()) {
      const std::vector<int32_t> distance = network.Distances(r, false);
      for (const Rank other : collective_.ranks()) {
        from[r.index()] = std::max(from[r.index()], distance[other.index()]);
        to[other.index()] = std::max(to[other.index()], distance[other.index()]);
      }
    }
    std::vector<Rank> centres(collective_.ranks().begin(), collective_.ranks().end());
    const auto eccentricity = [&](Rank r) { return from[r.index()] + to[r.index()]; };
    std::ranges::stable_sort(centres, {}, eccentricity);
    size_t n = 1;
    while (n < centres.size() && n < kSampleRanks && eccentricity(centres[n]) == eccentricity(centres[0]))
      ++n;
    centres.resize(n);
    return centres;
  }

  std::optional<Synthesis> PlanWith(std::span<const Rank> centres) {
    const CollectiveKind kind = collective_.kind();
    chunks_ = 0;
    std::optional<Schedule> down, up;
    if (IsReduction(kind)) {
      const Schedule copies = Half(graphs_.reversed(), centres);
      down = Reverse(copies, *request_.topology, StartOf(collective_, centres, chunks_).cut,
                     TransferOp::kReduce);
    }
    if (EndsAlike(kind)) up = Half(graphs_.forward(), centres);
    Collective cut = StartOf(collective_, centres, chunks_).cut;
    if (down && up) return Finish(std::move(cut), Compose(*down, *up));
    return Finish(std::move(cut), std::move(down ? *down : *up));
  }

  // Plans copies on `graph`: the machine or, for sums, the reversed machine. Sets chunks_ if it is 0.
  Schedule Half(const RankGraph& graph, std::span<const Rank> centres) {
    const BfbNetwork network = NetworkOf(graph);
    BfbPlanner planner(network, StartOf(collective_, centres, LeastChunks(centres)).sources, symmetry_);
    const bool waves =
        aim_ == Aim::kTime && !LevelByLevel() && planner.num_levels() > 1 && graph.num_domains() > 1;
    if (chunks_ == 0) {
      chunks_ = ChooseChunks(planner, graph, centres);
      if (waves) chunks_ = InWaves(chunks_, centres);
    }
    if (waves) planner.SplitIntoWaves();
    const Start start = StartOf(collective_, centres, chunks_);
    return Pruned(planner.Make(start.sources, LevelByLevel(), start.cut.num_chunks()), start);
  }

  // Returns the number of chunks for a plan in waves, a multiple of `chunks`. The first of many small chunks
  // arrives sooner.
  int32_t InWaves(int32_t chunks, std::span<const Rank> centres) const {
    if (request_.limits.chunks) return chunks;
    const int64_t starts =
        std::max<int64_t>(1, std::ssize(StartOf(collective_, centres, LeastChunks(centres)).sources));
    const int64_t pieces = chunks / LeastChunks(centres);
    const int64_t most = std::min({int64_t{*std::ranges::max_element(kChunkChoices)},
                                   kManyTransfers / (starts * request_.topology->num_ranks()),
                                   Bytes() / (starts * LeastUsefulBytes(*request_.topology))});
    return chunks * static_cast<int32_t>(std::max<int64_t>(1, most / pieces));
  }

  bool LevelByLevel() const { return request_.model == TimeModel::kBlocking; }
  int64_t Bytes() const { return collective_.kind() == CollectiveKind::kBarrier ? 0 : request_.size_bytes; }
  int32_t LeastChunks(std::span<const Rank> centres) const {
    const int32_t least = IsAllreduce(collective_.kind()) ? static_cast<int32_t>(centres.size()) : 1;
    return ChunksAsked(least);
  }

  int32_t ChooseChunks(const BfbPlanner& planner, const RankGraph& graph,
                       std::span<const Rank> centres) const {
    const int32_t least = LeastChunks(centres);
    if (request_.limits.chunks || Bytes() == 0) return least;
    int64_t latency = 0;
    for (int32_t h = 0; h < graph.num_hops(); ++h)
      latency = std::max(latency, graph.hop(HopId(h)).latency_ps);
    std::vector<std::pair<double, int32_t>> times;
    for (const int32_t pieces : kChunkChoices) {
      const Start start = StartOf(collective_, centres, least * pieces);
      const int64_t moves = int64_t{start.cut.num_chunks()} * request_.topology->num_ranks();
      if (pieces > 1 && moves > kMovesWorthCutting) break;
      double units = 0;
      for (const BfbSource& source : start.sources)
        units += static_cast<double>(source.weight) * source.block.count;
      const double ps = planner.Score(start.sources, LevelByLevel(), kSampleRanks) *
                        static_cast<double>(kPsPerSecond) * static_cast<double>(Bytes()) / units;
      times.emplace_back(ps + static_cast<double>(planner.num_levels() * latency), least * pieces);
    }
    double best = times[0].first;
    for (const auto& [ps, chunks] : times) best = std::min(best, ps);
    for (const auto& [ps, chunks] : times)
      if (ps <= best * kNear) return chunks;
    return least;
  }

  // Removes copies to ranks that are not members and do not relay the data.
  Schedule Pruned(Schedule schedule, const Start& start) const {
    if (collective_.num_members() == request_.topology->num_ranks()) return schedule;
    CopyGoal goal;
    goal.members.assign(collective_.ranks().begin(), collective_.ranks().end());
    goal.owner.assign(static_cast<size_t>(start.cut.num_chunks()), goal.members[0]);
    for (const BfbSource& source : start.sources)
      std::fill_n(goal.owner.begin() + source.block.first, source.block.count, source.rank);
    return KeepTrees(schedule, goal, request_.topology->num_ranks());
  }

  std::optional<Synthesis> Finish(Collective cut, Schedule schedule) {
    schedule.num_chunks = cut.num_chunks();
    schedule = ExpandWhereSmall(std::move(schedule), cut, *request_.topology);
    if (!budget_.Allows(schedule.num_steps())) return std::nullopt;
    const bool nothing = schedule.size() == 0;
    return Synthesis{std::move(cut), std::move(schedule), nothing, std::string(kName), ""};
  }

  const SynthesisRequest& request_;
  const Collective& collective_;
  RankGraphs graphs_;
  StepBudget budget_;
  Aim aim_ = Aim::kTime;
  const std::optional<SymmetryGroup> group_;
  const SymmetryGroup* const symmetry_;  // null without symmetry
  int32_t chunks_ = 0;                   // chunks a part; 0: not chosen yet
};

StatusOr<Synthesis> MakePlan(const SynthesisRequest& request) {
  if (request.collective->num_members() == 1) return NothingToMove(kName, request);
  std::optional<SymmetryGroup> group = SymmetryOf(request);
  XCCL_RETURN_IF_ERROR(CheckPairs(request, group.has_value()));
  return Planning(request, std::move(group)).Run();
}

// Estimates the work: making the graph of ranks; a look at all hops for each source, or for one source if all
// are alike; and a move of each chunk to each rank. An allreduce takes the work twice.
StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  const Topology& topology = *request.topology;
  const std::optional<SymmetryGroup> group = SymmetryOf(request);
  XCCL_RETURN_IF_ERROR(CheckPairs(request, group.has_value()));
  const int64_t hops = MostHops(topology), sources = group ? 1 : NumSources(*request.collective);
  const bool both = IsAllreduce(request.collective->kind());
  const int64_t pieces = both ? request.collective->num_members() : 1;  // of the buffer, each with a source
  const int64_t chunks = std::max<int64_t>(1, request.limits.chunks.value_or(1) / pieces);
  const int64_t moves =
      chunks * (group ? SimulatedTransfers(topology, *group) : sources * int64_t{topology.num_ranks()});
  const int64_t halves = both ? 2 : 1;
  return Offer{.time_ps = static_cast<double>(bound.bound_ps),
               .work = halves * (WorkOfHops(hops) + sources * hops / kOperationsPerMove + moves),
               .bytes = halves * BytesOfHops(hops)};
}

}  // namespace

Engine BfbEngine() {
  return {.name = kName,
          .summary = kSummary,
          .kinds = std::vector<CollectiveKind>(std::begin(kServed), std::end(kServed)),
          .exact_on = ExactOn::kNothing,
          .is_witness = true,
          .any_chunks = true,
          .offer = OfferOf,
          .make = MakePlan};
}

}  // namespace xccl
