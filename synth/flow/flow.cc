// 1. SolveConcurrentFlow finds a flow in which the busiest link takes about the least time.
// 2. TryPieces cuts each part into equal pieces, and ShareOut distributes the pieces over the part's routes.
//    The number of pieces grows until the links are about as evenly loaded as in the flow.
// 3. TryWaves cuts the data of each route into more and more waves, until two increases in a row do not help.
// 4. Consider simulates each candidate and keeps the fastest plan.
// 4. Consider simulates each candidate and keeps the fastest plan.
// A hop in this file is a stretch of a route from one GPU to the next GPU. Within a wave, data with more hops
// ahead has lower steps. Cost: rounds of the linear program × (sources × links × log), and the simulations.
#include "synth/flow/flow.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

#include "base/units.h"
#include "ir/bounds/bound.h"
#include "ir/bounds/concurrent_flow.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "ir/translated.h"
#include "synth/common/cost_model.h"
#include "synth/common/packed_trees.h"
#include "synth/common/serves.h"
#include "synth/common/step_limit.h"
#include "synth/flow/routes.h"
#include "topologies/paths.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

// The largest linear program, in sources × orbits of links. It takes some seconds to solve.
constexpr int64_t kMostFlowWork = 60'000;
// The most rounds of cutting planes. Each round searches for the cheapest paths from every source. Most flows
// meet the bound after fewer rounds.
constexpr int32_t kRounds = 200;
// Candidate numbers of pieces into which a part is cut, and of waves.
constexpr std::array<int32_t, 8> kPieces = {1, 2, 3, 4, 6, 8, 16, 64};
constexpr std::array<int32_t, 4> kWaves = {3, 8, 20, 48};
// The most links that the transfers of all candidates together cross, which limits the time for simulations.
// The first candidate may cross more. kQuickWork is the limit if the engine `auto` asks for the plan.
constexpr int64_t kDefaultWork = 14'000'000;
constexpr int64_t kQuickWork = 1'000'000;
// If bytes take a smaller share of a plan's time, latency is most of the time. Finer pieces then do not help.
constexpr double kMinBandwidthShare = 0.3;

constexpr std::string_view kName = "flow";
constexpr std::string_view kSummary =
    "every part over the ways of a maximum concurrent flow; least load for what is moved, not copied";
constexpr CollectiveKind kServed[] = {CollectiveKind::kAlltoall, CollectiveKind::kAlltoallv,
                                      CollectiveKind::kSendrecv, CollectiveKind::kGather,
                                      CollectiveKind::kScatter};

class Planning {
 public:
  explicit Planning(const SynthesisRequest& request)
      : request_(request),
        topology_(*request.topology),
        collective_(*request.collective),
        sizes_(collective_, request.size_bytes),
        group_(TranslationsFor(collective_, topology_, &sizes_)),
        problem_(FlowOf(topology_, DemandsOf(topology_, collective_, sizes_, 1), group_)),
        left_(request.limits.work_units > 0 ? request.limits.work_units : kDefaultWork),
        stopped_(request.limits.deadline),
        budget_(kName, request) {}

  StatusOr<Synthesis> Run() {
    if (problem_.demands.sources.empty()) return NothingToMove(kName, request_);
    const int64_t work =
        static_cast<int64_t>(problem_.demands.sources.size()) * static_cast<int64_t>(problem_.share.size());
    if (work > kMostFlowWork)
      return LimitReached(
          fmt::format("flow: {} sources x {} links that differ; at most {} together; hint: "
                      "--engine=greedy",
                      problem_.demands.sources.size(), problem_.share.size(), kMostFlowWork));
    if (const int64_t hops = LeastHops(); hops > kMovesWorthCutting)
      return LimitReached(
          fmt::format("flow: its parts cross {} links at least; at most {}; hint: --engine=greedy", hops,
                      kMovesWorthCutting));
    XCCL_ASSIGN_OR_RETURN(bound_, BoundOf(request_));
    const ConcurrentFlow flow =
        SolveConcurrentFlow(problem_, {.gap = kNear - 1, .rounds = kRounds, .stopped = stopped_});
    if (flow.trees.empty()) return LimitReached("flow: the linear program was not solved");
    Routes routes(problem_, flow);
    XCCL_RETURN_IF_ERROR(TryPieces(routes, flow.load_s));
    if (!best_) return budget_.Refusal();
    if (!request_.rough) best_->simulation = Timed(best_->schedule, best_->collective, false);
    best_->exact = MeetsBound(best_->simulation->time_ps, bound_);
    return *std::move(best_);
  }

 private:
  bool Near() const {
    return best_ && static_cast<double>(best_ps_) <= kNear * static_cast<double>(bound_.bound_ps);
  }
  bool Stopped() const { return stopped_ && stopped_(); }

  // Returns the number of links that the parts together cross if each part takes a path of the fewest links.
  // With symmetry, counts the parts of one source of each orbit.
  int64_t LeastHops() const {
    const std::vector<int64_t> one(static_cast<size_t>(topology_.num_links()), 1);
    int64_t hops = 0;
    for (size_t s = 0; s < problem_.demands.sources.size(); ++s) {
      const auto distance = LeastLatencyFrom(topology_, {NodeId(problem_.demands.sources[s])}, one);
      for (const Demands::To& to : problem_.demands.to[s]) hops += *distance[static_cast<size_t>(to.node)];
    }
    return hops;
  }

  Status TryPieces(Routes& routes, double flow_s) {
    int32_t tried = 0;  // pieces of the last candidate; 0: no candidate yet
    bool bytes_matter = true;
    for (const int32_t pieces : kPieces) {
      const int32_t wanted = request_.limits.chunks.value_or(pieces);
      if (int64_t{wanted} * collective_.num_parts() > kMostTransfers)
        return best_ ? OkStatus()
                     : LimitReached(fmt::format("flow: {} chunks a part of {} parts; at most {} in all",
                                                wanted, collective_.num_parts(), kMostTransfers));
      const double seconds = routes.ShareOut(wanted);
      const int64_t hops = Work(routes);
      if (tried > 0 && (left_ < hops || Stopped())) break;
      const bool balanced = seconds <= flow_s * kNear;
      if (tried > 0 && !balanced && pieces != kPieces.back()) continue;
      Consider(routes, wanted, 1);
      left_ -= hops;
      tried = wanted;
      bytes_matter =
          seconds * static_cast<double>(kPsPerSecond) >= kMinBandwidthShare * static_cast<double>(best_ps_);
      if (request_.limits.chunks || !bytes_matter || balanced || Near()) break;
    }
    if (request_.limits.chunks || !bytes_matter || !best_) return OkStatus();
    // The last number of pieces that was tried balances loads best.
    routes.ShareOut(tried);
    TryWaves(routes, tried);
    return OkStatus();
  }

  // Returns how many links transfers cross in one simulation. Runs every translate if translates share links.
  int64_t Work(const Routes& routes) const {
    int64_t crossed = 0;
    bool shared = false;
    for (const RoutedPart& part : routes.parts())
      for (const Route& route : part.routes) {
        if (route.pieces == 0) continue;
        crossed += std::ssize(route.links);
        for (const LinkId l : route.links) shared |= !group_.IsFreeOn(l);
      }
    return crossed * (shared ? group_.order() : 1);
  }

  void TryWaves(const Routes& routes, int32_t pieces) {
    const int64_t hops = Work(routes);
    int64_t used = 0;
    double bytes = 0;
    for (const RoutedPart& part : routes.parts()) {
      bytes += part.bytes;
      used += std::ranges::count_if(part.routes, [](const Route& route) { return route.pieces > 0; });
    }
    int32_t last = 1;
    bool was_better = true;
    for (const int32_t wanted : kWaves) {
      const int32_t waves = std::min(wanted, budget_.Most() / MostHops(routes));
      if (waves <= last) break;
      last = waves;
      if (bytes < static_cast<double>(used * waves * LeastUsefulBytes(topology_))) break;
      if (Near() || left_ < hops * waves || Stopped() || used * group_.order() * waves > kMostTransfers)
        break;
      left_ -= hops * waves;
      const bool is_better = Consider(routes, pieces, waves);
      if (!is_better && !was_better) break;
      was_better = is_better;
    }
  }

  // Simulates a candidate. Returns true if it is the fastest so far.
  bool Consider(const Routes& routes, int32_t pieces, int32_t waves) {
    Collective cut = Cut(routes, pieces, waves);
    Schedule schedule = Move(routes, cut, waves);
    if (!budget_.Allows(schedule.num_steps())) return false;
    Simulation timed = Timed(schedule, cut, true);
    if (best_ && timed.time_ps >= best_ps_) return false;
    best_ps_ = timed.time_ps;
    best_ = Synthesis{.collective = std::move(cut),
                      .schedule = std::move(schedule),
                      .exact = false,
                      .engine = "flow",
                      .note = waves > 1 ? fmt::format("{} waves", waves) : "",
                      .simulation = std::move(timed)};
    return true;
  }

  // Simulates a schedule. Candidates are compared by rough times, because an exact simulation follows all
  // segments of large chunks.
  Simulation Timed(const Schedule& schedule, const Collective& cut, bool rough) const {
    SimulateOptions timing = TimingOf(request_);
    timing.rough |= rough;
    return Simulate(schedule, cut, topology_, timing);
  }

  // Returns the part into which translation e turns `part`. For other kinds than alltoall(v), e is the
  // identity.
  PartId ImageOf(int64_t e, const RoutedPart& part) const {
    if (e == 0) return part.part;
    const auto member = [&](Rank r) {
      return static_cast<int64_t>(*collective_.MemberIndex(group_.Image(e, r)));
    };
    return PartId(member(part.source) * collective_.num_members() + member(part.destination));
  }

  // Cuts each part into one chunk for each wave of each route in use. A chunk's weight is the number of the
  // route's pieces × the weight of the wave. If the request gives the number of chunks, all chunks are equal.
  Collective Cut(const Routes& routes, int32_t pieces, int32_t waves) const {
    if (request_.limits.chunks || (pieces == 1 && waves == 1)) return collective_.WithChunks(pieces);
    const std::vector<int64_t> wave_weights = WaveWeights(waves);
    std::vector<std::vector<int64_t>> weights(static_cast<size_t>(collective_.num_parts()));
    for (const RoutedPart& part : routes.parts()) {
      int64_t common = 0;
      for (const Route& route : part.routes) common = std::gcd(common, int64_t{route.pieces});
      std::vector<int64_t> own;
      for (const Route& route : part.routes)
        for (int32_t w = 0; route.pieces > 0 && w < waves; ++w)
          own.push_back(route.pieces / common * wave_weights[static_cast<size_t>(w)]);
      for (int64_t e = 0; e < group_.order(); ++e) weights[ImageOf(e, part).index()] = own;
    }
    for (std::vector<int64_t>& part : weights)
      if (part.empty()) part.push_back(1);
    return collective_.WithWeights(weights);
  }

  // Returns the parts by destination minus source, so that sources start with different destinations.
  std::vector<const RoutedPart*> Ordered(const Routes& routes) const {
    std::vector<const RoutedPart*> parts;
    for (const RoutedPart& part : routes.parts()) parts.push_back(&part);
    const int32_t n = topology_.num_ranks();
    std::ranges::stable_sort(parts, {}, [&](const RoutedPart* part) {
      return (part->destination.value - part->source.value + n) % n;
    });
    return parts;
  }

  int32_t HopsOf(std::span<const LinkId> links) const {
    return static_cast<int32_t>(std::ranges::count_if(links, [this](LinkId l) { return EndsHop(l); }));
  }
  int32_t MostHops(const Routes& routes) const {
    int32_t most = 1;
    for (const RoutedPart& part : routes.parts())
      for (const Route& route : part.routes)
        if (route.pieces > 0) most = std::max(most, HopsOf(route.links));
    return most;
  }
  bool EndsHop(LinkId l) const { return topology_.IsGpu(topology_.link(l).to); }

  Schedule Move(const Routes& routes, const Collective& cut, int32_t waves) const {
    Schedule schedule;
    schedule.num_chunks = cut.num_chunks();
    const int32_t most = MostHops(routes);
    for (const RoutedPart* part : Ordered(routes)) {
      ChunkId chunk = cut.FirstChunk(part->part);
      for (const Route& route : part->routes) {
        if (route.pieces == 0) continue;
        const int32_t chunks = request_.limits.chunks ? route.pieces : 1;
        const int32_t late = most - HopsOf(route.links);
        for (int32_t w = 0; w < waves; ++w) {
          AddHops(route.links, chunk, chunks, w * most + late, schedule);
          chunk = ChunkId(chunk.value + chunks);
        }
      }
    }
    return ExpandWhereSmall(Translate(std::move(schedule), group_), cut, topology_);
  }

  // Adds one transfer for each hop of the route, in consecutive steps from `step` on.
  void AddHops(std::span<const LinkId> links, ChunkId chunk, int32_t chunks, int32_t step,
               Schedule& schedule) const {
    size_t first = 0;
    for (size_t i = 0; i < links.size(); ++i) {
      if (!EndsHop(links[i])) continue;
      schedule.Add(chunk, chunks, *topology_.RankOf(topology_.link(links[first]).from),
                   *topology_.RankOf(topology_.link(links[i]).to), links.subspan(first, i + 1 - first),
                   TransferOp::kCopy, step++);
      first = i + 1;
    }
  }

  const SynthesisRequest& request_;
  const Topology& topology_;
  const Collective& collective_;
  const CollectiveSizes sizes_;
  const SymmetryGroup group_;
  const FlowProblem problem_;
  Bound bound_;
  int64_t left_;
  std::function<bool()> stopped_;
  StepBudget budget_;
  std::optional<Synthesis> best_;
  int64_t best_ps_ = 0;
};

// Returns the number of sources or more: one rank of each orbit. Only alltoall(v) has nontrivial orbits.
int64_t NumSources(const Collective& collective, const SymmetryGroup& group) {
  if (collective.kind() == CollectiveKind::kScatter) return 1;
  if (collective.kind() != CollectiveKind::kSendrecv) return group.num_rank_orbits();
  std::set<Rank> senders;
  for (const auto& [from, to] : collective.spec().pairs) senders.insert(from);
  return static_cast<int64_t>(senders.size());
}

// Returns the work of solving the flow in kRounds rounds. Each round searches from every source. A search
// takes (orbits of links) × (levels of a heap of these orbits).
int64_t FlowWork(const SynthesisRequest& request) {
  const SymmetryGroup group = TranslationsFor(*request.collective, *request.topology);
  const int64_t links = group.num_link_orbits();
  return 2 * kRounds * NumSources(*request.collective, group) * links *
         static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(links))) / kOperationsPerMove;
}

StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
  // The demands stand in lists that double as they grow.
  const int64_t bytes = 2 * request.collective->num_parts() * int64_t{sizeof(Demands::To)};
  return Offer{.time_ps = static_cast<double>(bound.bound_ps),
               .work = FlowWork(request),
               .bytes = bytes,
               .make = [&request](int64_t) {
                 SynthesisRequest limited = request;
                 if (limited.limits.work_units == 0) limited.limits.work_units = kQuickWork;
                 return Planning(limited).Run();
               }};
}

}  // namespace

Engine FlowEngine() {
  return {.name = kName,
          .summary = kSummary,
          .kinds = std::vector<CollectiveKind>(std::begin(kServed), std::end(kServed)),
          .exact_on = ExactOn::kBandwidth,
          .is_witness = true,
          .offer = OfferOf,
          .make = [](const SynthesisRequest& request) { return Planning(request).Run(); }};
}

}  // namespace xccl
