// Plans for a machine of levels, in which all ranks are alike (synth/levels/levels.h). Ranks of a host, hosts
// of a pod and pods send to each other in rounds, one level after the other, so that few bytes cross thin
// cores, and messages grow on the way. One rank's sends are planned, and translations give those of the
// others; a plan of a hundred thousand ranks is made in about a second.
// 1. FindTranslations, TurnSwitches: the symmetry.
// 2. LevelFinder: the levels. With direct rounds a level has as many peers as it has groups; with fewer peers
//    each level becomes several, which take fewer and longer messages.
// 3. SendOverLevels: the copies. Sums are copies on the reversed machine, played backwards
//    (synth/common/reverse.h), and an allreduce is both. In an alltoall, levels that share links are one, so
//    that no byte takes those links twice.
// 4. A machine whose links are damaged is planned as the whole machine. LeadAround: the detours.
#include "synth/levels/levels_engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ir/simulate/simulate.h"
#include "ir/translated.h"
#include "synth/common/compose.h"
#include "synth/common/cost_model.h"
#include "synth/common/reverse.h"
#include "synth/common/serves.h"
#include "synth/common/step_limit.h"
#include "synth/levels/around.h"
#include "synth/levels/levels.h"
#include "synth/levels/send.h"
#include "topologies/turned_switches.h"
#include "topologies/whole.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "levels";
constexpr CollectiveKind kServed[] = {CollectiveKind::kAllreduce, CollectiveKind::kAllgather,
                                      CollectiveKind::kReduceScatter, CollectiveKind::kAlltoall};
// The most peers of a level, of the plans that are made: all, the powers of 8, and the powers of 2. Each has
// a third of the rounds, and so of the messages, of the one before, or less.
constexpr int64_t kMostPeers[] = {std::numeric_limits<int32_t>::max(), 7, 1};

// A direction of the machine: itself, or reversed for sums.
struct Direction {
  Topology topology;
  SymmetryGroup group;
  LevelFinder finder;
  Direction(Topology t, const SymmetryGroup& g) : topology(std::move(t)), group(g), finder(topology, group) {}
  Direction(const Direction&) = delete;
};

// A machine whose ranks are all alike, or would be if it were whole.
struct AlikeMachine {
  SymmetryGroup group;
  MissingLinks missing = {};
  std::optional<Topology> whole = {};  // if something is missing

  const Topology& Whole(const Topology& topology) const { return whole ? *whole : topology; }

  static StatusOr<AlikeMachine> Find(const Topology& topology) {
    AlikeMachine machine{.group = FindTranslations(topology)};
    const int32_t kinds = machine.group.num_rank_orbits();
    if (kinds > 1)
      if (std::optional<MissingLinks> missing = FindMissingLinks(topology)) {
        XCCL_ASSIGN_OR_RETURN(machine.whole, MakeWhole(topology, *missing));
        machine.missing = *std::move(missing);
        machine.group = FindTranslations(*machine.whole);
      }
    if (!machine.group.IsTransitive())
      return InvalidInput(
          fmt::format("{}: {} kinds of ranks; expected ranks that are all alike", kName, kinds));
    machine.group = TurnSwitches(machine.Whole(topology), machine.group);
    return machine;
  }
};

class Planning {
 public:
  static StatusOr<std::shared_ptr<Planning>> Create(const SynthesisRequest& request) {
    const Collective& collective = *request.collective;
    if (collective.num_members() != request.topology->num_ranks())
      return InvalidInput(fmt::format("{}: {} of {} ranks; expected all", kName, collective.num_members(),
                                      request.topology->num_ranks()));
    if (collective.num_members() < 2) return InvalidInput(fmt::format("{}: one rank", kName));
    if (IsAllreduce(collective.kind()) && request.limits.chunks.value_or(0) % collective.num_members() != 0)
      return InvalidInput(fmt::format("{}: {} chunks on {} ranks; expected a multiple", kName,
                                      *request.limits.chunks, collective.num_members()));
    XCCL_ASSIGN_OR_RETURN(AlikeMachine machine, AlikeMachine::Find(*request.topology));
    auto planning = std::make_shared<Planning>(request, std::move(machine));
    XCCL_RETURN_IF_ERROR(planning->FindWays());
    return planning;
  }

  Planning(const SynthesisRequest& request, AlikeMachine machine)
      : request_(request), cut_(CutOf(request)), machine_(std::move(machine)) {
    const CollectiveKind kind = request.collective->kind();
    const Topology& whole = machine_.Whole(*request.topology);
    if (!IsReduction(kind) || EndsAlike(kind)) forward_.emplace(whole, machine_.group);
    if (!IsReduction(kind)) return;
    Topology reversed = ReverseTopology(whole);
    const StatusOr<SymmetryGroup> same = SymmetryGroup::Create(reversed, machine_.group.generators());
    XCCL_CHECK(same.ok());  // a permutation keeps reversed links if it keeps links
    backward_.emplace(std::move(reversed), *same);
  }

  StatusOr<Synthesis> Make() {
    StepBudget budget(kName, request_);
    std::optional<Synthesis> best;
    for (const Way& way : ways_) {
      Schedule schedule = ScheduleOf(way);
      if (machine_.whole)
        XCCL_RETURN_IF_ERROR(LeadAround(schedule, machine_.missing, *request_.topology, *machine_.whole,
                                        machine_.group, cut_, request_.size_bytes, kName));
      if (!budget.Allows(schedule.num_steps())) continue;
      Synthesis made{.collective = cut_,
                     .schedule = ExpandWhereSmall(std::move(schedule), cut_, *request_.topology),
                     .exact = false,
                     .engine = std::string(kName),
                     .note = way.note};
      if (!best)
        best = std::move(made);
      else
        best->others.push_back(std::move(made));
    }
    return best ? StatusOr<Synthesis>(*std::move(best)) : budget.Refusal();
  }

  Offer Offered() const {
    double least_ps = ways_.front().time_ps;
    for (const Way& way : ways_) least_ps = std::min(least_ps, way.time_ps);
    return {.time_ps = least_ps, .work = Work()};
  }

 private:
  // Levels with a given number of peers, in the directions that the collective needs.
  struct Way {
    Levels forward = {}, backward = {};
    std::string note;
    double time_ps = 0;
    int64_t work = 0;
  };

  static Collective CutOf(const SynthesisRequest& request) {
    const int32_t least = IsAllreduce(request.collective->kind()) ? request.collective->num_members() : 1;
    return request.collective->WithChunks(request.limits.chunks.value_or(least));
  }

  Status FindWays() {
    std::vector<std::vector<int64_t>> known;
    for (const int64_t most : kMostPeers) {
      const LevelFinder& finder = forward_ ? forward_->finder : backward_->finder;
      XCCL_ASSIGN_OR_RETURN(const std::vector<int64_t> ends, EndsFor(finder, most));
      if (std::ranges::find(known, ends) != known.end()) continue;
      known.push_back(ends);
      Way way{.note = fmt::format("{} levels", ends.size())};
      const int64_t known_work = Work();
      for (const bool sums : {false, true}) {
        const std::optional<Direction>& direction = sums ? backward_ : forward_;
        if (!direction) continue;
        Levels& levels = sums ? way.backward : way.forward;
        XCCL_ASSIGN_OR_RETURN(levels, direction->finder.Make(ends, kName));
        way.time_ps +=
            TimeOverLevelsPs(levels, direction->topology, direction->group, cut_, request_.size_bytes);
        way.work += WorkOf(levels, *direction);
      }
      // Plans with fewer messages are for machines where making them costs little.
      if (!ways_.empty() && known_work + way.work > kManyTransfers) break;
      ways_.push_back(std::move(way));
    }
    return OkStatus();
  }

  int64_t Work() const {
    int64_t work = 0;
    for (const Way& way : ways_) work += way.work;
    return work;
  }

  // A simulation takes the columns alone where translations keep the peers' paths apart, and the machine is
  // whole. Otherwise it takes all transfers, if they are few enough to write out.
  int64_t WorkOf(const Levels& levels, const Direction& direction) const {
    const int64_t n = direction.group.order();
    if (machine_.whole && n * n <= kMostExpanded) return n * n;
    for (const Level& level : levels)
      for (const Peer& peer : level.peers)
        for (const LinkId l : peer.links)
          if (!direction.group.IsFreeOn(l) && n * n <= kMostExpanded) return n * n;
    return n;
  }

  // In an alltoall, neighbouring levels that share links are one level.
  StatusOr<std::vector<int64_t>> EndsFor(const LevelFinder& finder, int64_t most_peers) const {
    std::vector<int64_t> ends = finder.Ends(most_peers);
    if (TraitsOf(cut_.kind()).parts != KindTraits::Parts::kPerPair) return ends;
    XCCL_ASSIGN_OR_RETURN(const Levels levels, finder.Make(ends, kName));
    std::vector<int64_t> joined;
    for (size_t i = 0; i < levels.size(); ++i)
      if (i + 1 == levels.size() || !ShareLinks(levels[i], levels[i + 1], forward_->group))
        joined.push_back(ends[i]);
    return joined;
  }

  Schedule ScheduleOf(const Way& way) const {
    std::optional<Schedule> sums, copies;
    if (backward_)
      sums = Reverse(SendOverLevels(backward_->finder, way.backward, backward_->topology, backward_->group,
                                    cut_, request_.size_bytes),
                     machine_.Whole(*request_.topology), cut_, TransferOp::kReduce);
    if (forward_)
      copies = SendOverLevels(forward_->finder, way.forward, forward_->topology, forward_->group, cut_,
                              request_.size_bytes);
    if (sums && copies) return Compose(*sums, *copies);
    return sums ? *std::move(sums) : *std::move(copies);
  }

  const SynthesisRequest& request_;
  const Collective cut_;
  const AlikeMachine machine_;
  std::optional<Direction> forward_, backward_;
  std::vector<Way> ways_;
};

}  // namespace

Engine LevelsEngine() {
  return {.name = kName,
          .summary = "symmetric clusters: rounds inside hosts, pods and between pods; plans in linear time",
          .family = EngineFamily::kExchanges,
          .kinds = std::vector<CollectiveKind>(std::begin(kServed), std::end(kServed)),
          .any_chunks = true,
          .offer = [](const SynthesisRequest& request) -> StatusOr<Offer> {
            XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Planning> planning, Planning::Create(request));
            Offer offer = planning->Offered();
            offer.make = [planning](int64_t) { return planning->Make(); };
            return offer;
          },
          .make = [](const SynthesisRequest& request) -> StatusOr<Synthesis> {
            if (request.collective->num_members() == 1) return NothingToMove(kName, request);
            XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Planning> planning, Planning::Create(request));
            return planning->Make();
          }};
}

}  // namespace xccl
