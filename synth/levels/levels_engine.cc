// Makes plans for a machine of levels, whose ranks are of one kind or of a few kinds (synth/levels/levels.h).
// Ranks of a host, hosts of a pod, and pods send to each other in rounds, one level after the other. Few
// bytes then cross thin cores, and messages grow on the way. Only one rank of each kind is planned;
// translations give the sends of all others.
// 1. FindTranslations and TurnSwitches find the symmetry.
// 2. LevelFinder finds the levels. A level has a peer in each of its other groups, or becomes several levels
//    with fewer peers, which take fewer and longer messages. Levels that are joined take less latency. The
//    estimated time decides which levels are joined, and after which level the level of kinds comes.
// 3. SendOverLevels makes copies. Sums are copies on the reversed machine, played backwards
//    (synth/common/reverse.h), and an allreduce is both. In an alltoall, levels that share links are joined,
//    so that no byte takes these links twice. In an allreduce, a switch that sums and copies takes the place
//    of the innermost rounds (InWaves).
// 4. Dealing makes broadcasts and, on the reversed machine, reduces.
// 5. A machine with damaged links is planned as the whole machine. LeadAround adds the detours.
#include "synth/levels/levels_engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "ir/damaged.h"
#include "ir/simulate/simulate.h"
#include "ir/translated.h"
#include "synth/common/compose.h"
#include "synth/common/cost_model.h"
#include "synth/common/reverse.h"
#include "synth/common/serves.h"
#include "synth/common/step_limit.h"
#include "synth/levels/around.h"
#include "synth/levels/deal.h"
#include "synth/levels/levels.h"
#include "synth/levels/send.h"
#include "topologies/turned_switches.h"
#include "topologies/whole.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "levels";
constexpr CollectiveKind kServed[] = {CollectiveKind::kAllreduce,     CollectiveKind::kAllgather,
                                      CollectiveKind::kReduceScatter, CollectiveKind::kAlltoall,
                                      CollectiveKind::kBroadcast,     CollectiveKind::kReduce};
// The most peers of a level, for each plan that is tried: no limit; 7, so that 64 groups are two levels of 8;
// 1, so that 8 groups are three levels of 2. More levels take fewer and longer messages.
constexpr int64_t kMostPeers[] = {std::numeric_limits<int32_t>::max(), 7, 1};

// The tree links that cost as much work as a move, whose path between hosts has about four links.
constexpr int64_t kTreeLinksPerMove = 4;
// The most tree links in the columns of a plan, eight seconds of work.
constexpr int64_t kMostTreeLinks = int64_t{5'000'000} * kTreeLinksPerMove;

bool IsOfPairs(const Collective& collective) {
  return TraitsOf(collective.kind()).parts == KindTraits::Parts::kPerPair;
}

// A machine with its translations and levels: the machine itself, or the reversed machine for sums.
struct Direction {
  Topology topology;
  SymmetryGroup group;
  LevelFinder finder;
  Direction(Topology t, const SymmetryGroup& g) : topology(std::move(t)), group(g), finder(topology, group) {}
  Direction(const Direction&) = delete;
};

// A machine whose ranks are of one kind or of a few. A damaged machine is taken as the whole machine if
// that leaves one kind.
struct AlikeMachine {
  SymmetryGroup group;
  MissingLinks missing = {};
  std::optional<Topology> whole = {};  // absent: the topology is planned as it is

  const Topology& Whole(const Topology& topology) const { return whole ? *whole : topology; }

  static StatusOr<AlikeMachine> Find(const Topology& topology) {
    AlikeMachine machine{.group = FindTranslations(topology)};
    if (machine.group.num_rank_orbits() > 1)
      if (std::optional<MissingLinks> missing = FindMissingLinks(topology)) {
        XCCL_ASSIGN_OR_RETURN(Topology whole, MakeWhole(topology, *missing));
        if (SymmetryGroup group = TranslationsOfWhole(whole, *missing); group.IsTransitive()) {
          machine.whole = std::move(whole);
          machine.missing = *std::move(missing);
          machine.group = std::move(group);
          return machine;
        }
      }
    const int64_t kinds = machine.group.num_rank_orbits(), of_each = machine.group.order();
    if (kinds > of_each || kinds * topology.num_ranks() > kMostTransfers)
      return InvalidInput(fmt::format(
          "{}: {} kinds of ranks, {} of each; expected few kinds and many of each", kName, kinds, of_each));
    machine.group = TurnSwitches(topology, machine.group);
    return machine;
  }
};

// Sets `direction` to the reversed machine, which has the machine's translations.
void SetReversed(const Topology& topology, const SymmetryGroup& group, std::optional<Direction>& direction) {
  Topology reversed = ReverseTopology(topology);
  const StatusOr<SymmetryGroup> same = SymmetryGroup::Create(reversed, group.generators());
  XCCL_CHECK(same.ok());  // a permutation keeps reversed links if it keeps links
  direction.emplace(std::move(reversed), *same);
}

Status CheckAllRanks(const SynthesisRequest& request) {
  const int32_t members = request.collective->num_members();
  if (members != request.topology->num_ranks())
    return InvalidInput(
        fmt::format("{}: {} of {} ranks; expected all", kName, members, request.topology->num_ranks()));
  if (members < 2) return InvalidInput(fmt::format("{}: one rank", kName));
  return OkStatus();
}

class Planning {
 public:
  static StatusOr<std::shared_ptr<Planning>> Create(const SynthesisRequest& request) {
    const Collective& collective = *request.collective;
    XCCL_RETURN_IF_ERROR(CheckAllRanks(request));
    if (IsAllreduce(collective.kind()) && request.limits.chunks.value_or(0) % collective.num_members() != 0)
      return InvalidInput(fmt::format("{}: {} chunks on {} ranks; expected a multiple", kName,
                                      *request.limits.chunks, collective.num_members()));
    XCCL_ASSIGN_OR_RETURN(AlikeMachine machine, AlikeMachine::Find(*request.topology));
    Collective cut = CutOf(request);
    if (!machine.missing.hosts.empty()) {
      StatusOr<Collective> of_whole = WholeOf(machine.missing, cut, *machine.whole);
      if (!of_whole.ok()) return Annotate(of_whole.status(), std::string(kName));
      cut = *std::move(of_whole);
    }
    if (IsOfPairs(cut)) XCCL_RETURN_IF_ERROR(CheckChunkIds(machine.group, cut, kName));
    auto planning = std::make_shared<Planning>(request, std::move(cut), std::move(machine));
    XCCL_RETURN_IF_ERROR(planning->FindWays());
    return planning;
  }

  Planning(const SynthesisRequest& request, Collective cut, AlikeMachine machine)
      : request_(request),
        cut_(std::move(cut)),
        size_bytes_(WholeSizeBytes(*request.collective, cut_, request.size_bytes)),
        machine_(std::move(machine)) {
    const CollectiveKind kind = request.collective->kind();
    const Topology& whole = machine_.Whole(*request.topology);
    if (!IsReduction(kind) || EndsAlike(kind)) forward_.emplace(whole, machine_.group);
    if (IsReduction(kind)) SetReversed(whole, machine_.group, backward_);
  }

  StatusOr<Synthesis> Make() {
    StepBudget budget(kName, request_);
    std::optional<Synthesis> best;
    Status refused;
    for (const Way& way : ways_) {
      Schedule schedule = way.waves > 0 ? InWaves(way) : ScheduleOf(way);
      if (machine_.whole) {
        refused = LeadAround(schedule, machine_.missing, *request_.topology, *machine_.whole, machine_.group,
                             CutOf(request_), request_.size_bytes, kName);
        if (!refused.ok()) continue;
      }
      if (!budget.Allows(schedule.num_steps())) continue;
      const Collective cut = CutOf(way);
      Synthesis made{.collective = cut,
                     .schedule = ExpandWhereSmall(std::move(schedule), cut, *request_.topology),
                     .exact = false,
                     .engine = std::string(kName),
                     .note = way.note};
      if (!best)
        best = std::move(made);
      else
        best->others.push_back(std::move(made));
    }
    if (best) return *std::move(best);
    return refused.ok() ? budget.Refusal() : refused;
  }

  Offer Offered() const {
    double least_ps = ways_.front().time_ps;
    for (const Way& way : ways_) least_ps = std::min(least_ps, way.time_ps);
    return {.time_ps = least_ps, .work = Work()};
  }

 private:
  using Ends = std::vector<LevelEnd>;
  // A plan that may be made: its levels in the directions that the collective needs, and its estimated cost.
  struct Way {
    Levels forward = {}, backward = {};
    std::string note;
    double time_ps = 0, latency_ps = 0, links_ps = 0;
    int64_t work = 0;
    int32_t waves = 0;  // waves, each of one chunk of each block; 0: all chunks of cut_ at once
    double behind = 0;  // wait of a wave's copies after its sums, in lengths of a wave
  };

  static Collective CutOf(const SynthesisRequest& request) {
    const int32_t least = IsAllreduce(request.collective->kind()) ? request.collective->num_members() : 1;
    return request.collective->WithChunks(request.limits.chunks.value_or(least));
  }

  Status FindWays() {
    const LevelFinder& finder = forward_ ? forward_->finder : backward_->finder;
    std::vector<std::vector<Ends>> known;
    for (const int64_t most : kMostPeers) {
      const std::vector<int64_t> ends = finder.Ends(most);
      XCCL_ASSIGN_OR_RETURN(const std::vector<Ends> choices, ChoicesOver(ends));
      if (std::ranges::find(known, choices) != known.end()) continue;
      known.push_back(choices);
      XCCL_ASSIGN_OR_RETURN(Way way, FasterWayOver(ends));
      // Plans with fewer messages are added only if all plans together cost little work.
      if (!ways_.empty() && Work() + way.work > kManyTransfers) break;
      ways_.push_back(std::move(way));
      if (ways_.size() == 1) JoinLevels(ends);
    }
    return OkStatus();
  }

  // Joins levels of the only way as long as the estimate gets faster. Puts the fastest way first, or in place
  // of the other way if both would cost too much work.
  void JoinLevels(std::vector<int64_t> ends) {
    if (IsOfPairs(cut_)) return;
    std::optional<Way> best;
    for (bool joins = true; joins && ends.size() > 1;) {
      const Way& before = best ? *best : ways_.front();
      joins = kNear * (before.time_ps - before.latency_ps) < before.time_ps;
      const std::vector<int64_t> all = ends;
      for (size_t i = 0; joins && i + 1 < all.size(); ++i) {
        std::vector<int64_t> fewer = all;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        StatusOr<Way> way = FasterWayOver(fewer);
        // On rails, ranks at different places of two hosts have no path: their levels stay apart.
        if (!way.ok() || kNear * way->time_ps >= (best ? *best : ways_.front()).time_ps) continue;
        best = *std::move(way);
        ends = std::move(fewer);
      }
      joins &= ends != all;
    }
    if (!best) return;
    if (Work() + best->work > kManyTransfers) ways_.clear();
    ways_.insert(ways_.begin(), *std::move(best));
  }

  // Returns the way through switches that sum and copy if there is one and its estimate is faster; otherwise
  // the best other way.
  StatusOr<Way> FasterWayOver(std::span<const int64_t> ends) const {
    XCCL_ASSIGN_OR_RETURN(Way way, BestWayOver(ends));
    if (std::optional<Way> through = WayThroughSwitches(ends);
        through && kNear * through->time_ps < way.time_ps)
      return *std::move(through);
    return way;
  }

  // Returns a way through switches that sum and multicast. The innermost levels that such a switch joins
  // become one level, with trees in place of peers. Sums then load the links to switches, and copies load the
  // links from switches. An allreduce in waves does both at the same time.
  std::optional<Way> WayThroughSwitches(std::span<const int64_t> ends) const {
    if (!forward_ || !backward_ || machine_.whole || !machine_.group.IsTransitive()) return std::nullopt;
    for (size_t i = ends.size() - 1; i-- > 0;) {
      if (ends[i] == 2) break;  // between two ranks a switch saves nothing
      const auto copies = forward_->finder.SwitchTrees(ends[i], false);
      const auto sums = backward_->finder.SwitchTrees(ends[i], true);
      if (copies.empty() || sums.empty()) continue;
      Way way;
      StatusOr<Levels> forward = forward_->finder.Make(ends.subspan(i), kName);
      StatusOr<Levels> backward = backward_->finder.Make(ends.subspan(i), kName);
      if (!forward.ok() || !backward.ok()) return std::nullopt;
      way.forward = *std::move(forward);
      way.backward = *std::move(backward);
      way.forward.front().trees = copies;
      way.backward.front().trees = sums;
      // One rank's part of a compressed plan cannot have trees. Programs are therefore made from the plain
      // form, whose length is limited.
      if (request_.programs_decide && cut_.num_members() * TreeLinks(way) > kMostTransfers)
        return std::nullopt;
      way.note = fmt::format("{} levels, the innermost through switches", way.forward.size());
      SetWaves(way);
      return way;
    }
    return std::nullopt;
  }

  // Chooses the number of waves and sets the time and the work. In one wave, copies follow the sums. In more,
  // the copies of a wave overlap the sums of later ones, and the latency of all levels counts once more.
  void SetWaves(Way& way) const {
    const LevelsCost copies =
        CostOverLevels(way.forward, forward_->topology, forward_->group, cut_, size_bytes_);
    const LevelsCost sums =
        CostOverLevels(way.backward, backward_->topology, backward_->group, cut_, size_bytes_);
    way.latency_ps = copies.latency_ps + sums.latency_ps;
    way.links_ps = copies.links_ps + sums.links_ps;
    double together_ps = 0;
    for (size_t orbit = 0; orbit < copies.load_ps.size(); ++orbit)
      together_ps = std::max(together_ps, copies.load_ps[orbit] + sums.load_ps[orbit]);
    const double apart_ps = copies.time_ps + sums.time_ps - way.latency_ps;
    const auto time_ps = [&](int64_t waves) {
      if (waves == 1) return way.latency_ps + apart_ps;
      return 2 * way.latency_ps + together_ps + (apart_ps - together_ps) / static_cast<double>(waves);
    };
    const int64_t n = cut_.num_members(), columns = TreeLinks(way), plain = n * columns;
    const int64_t affordable = request_.programs_decide
                                   ? kMostTransfers / plain
                                   : std::min(kMostTreeLinks / columns, kMostPartChunks / n);
    const int64_t most = std::min(affordable, size_bytes_ / Inside(way) / kLeastPieceBytes);
    int64_t waves = std::max<int64_t>(1, request_.limits.chunks.value_or(0) / n);
    for (int64_t more = 1; !request_.limits.chunks && more < most;) {
      more = std::min(2 * more, most);
      if (kNear * time_ps(more) < time_ps(waves)) waves = more;
    }
    way.waves = static_cast<int32_t>(waves);
    way.behind = way.latency_ps * static_cast<double>(waves) / together_ps;
    way.time_ps = time_ps(waves);
    way.work = (plain * waves <= kMostTransfers ? plain : columns) * waves / kTreeLinksPerMove;
  }

  // Returns the number of tree links in the columns of a wave, plus one for each send of an outer level.
  int64_t TreeLinks(const Way& way) const {
    return 2 * (cut_.num_members() + cut_.num_members() / Inside(way));
  }

  // Returns the number of ranks that the innermost level joins.
  static int64_t Inside(const Way& way) { return std::ssize(way.forward.front().peers) + 1; }

  // Tries all choices of ChoicesOver. Returns the fastest way; of about equally fast ways, the one that loads
  // links least. Error: the refusal of the last choice, if all are refused.
  StatusOr<Way> BestWayOver(std::span<const int64_t> ends) const {
    XCCL_ASSIGN_OR_RETURN(const std::vector<Ends> choices, ChoicesOver(ends));
    std::optional<Way> best;
    Status refused;
    for (const Ends& choice : choices) {
      StatusOr<Way> way = WayOver(choice);
      if (!way.ok()) {
        refused = way.status();
        continue;
      }
      const bool is_faster = best && kNear * way->time_ps < best->time_ps;
      const bool is_lighter = best && way->time_ps <= kNear * best->time_ps && way->links_ps < best->links_ps;
      if (!best || is_faster || is_lighter) best = *std::move(way);
    }
    return best ? StatusOr<Way>(*std::move(best)) : refused;
  }

  StatusOr<Way> WayOver(const Ends& ends) const {
    Way way;
    for (const bool sums : {false, true}) {
      const std::optional<Direction>& direction = sums ? backward_ : forward_;
      if (!direction) continue;
      Levels& levels = sums ? way.backward : way.forward;
      XCCL_ASSIGN_OR_RETURN(levels, direction->finder.Make(ends, kName));
      const auto cost_of = [&](const Levels& of) {
        return CostOverLevels(of, direction->topology, direction->group, cut_, size_bytes_);
      };
      LevelsCost cost = cost_of(levels);
      if (Levels around = levels; direction->finder.LeadAroundCrowds(around)) {
        LevelsCost less = cost_of(around);
        if (less.time_ps < cost.time_ps) {
          levels = std::move(around);
          cost = std::move(less);
        }
      }
      way.time_ps += cost.time_ps;
      way.latency_ps += cost.latency_ps;
      way.links_ps += cost.links_ps;
      way.work += WorkOf(levels, *direction);
      way.note = fmt::format("{} levels", levels.size());
    }
    return way;
  }

  int64_t Work() const {
    int64_t work = 0;
    for (const Way& way : ways_) work += way.work;
    return work;
  }

  // Returns the moves that a simulation runs. The columns alone are enough if the machine is whole and
  // translates of a path share no link. Otherwise these are all transfers, if they are few enough to be
  // written out. Each chunk of a block has a transfer of its own.
  int64_t WorkOf(const Levels& levels, const Direction& direction) const {
    const int64_t n = direction.topology.num_ranks(), moves_of_rank = n * ChunksOfBlock(cut_),
                  pairs = n * moves_of_rank, columns = direction.group.num_rank_orbits() * moves_of_rank;
    if (pairs > kMostTransfers) return columns;
    if (machine_.whole) return pairs;
    for (const Level& level : levels)
      for (const Peer& peer : level.peers)
        for (const PeerPath& path : peer.from)
          for (const LinkId l : path.links)
            if (!direction.group.IsFreeOn(l)) return pairs;
    return columns;
  }

  // Returns the ends of levels that end with these subgroups, once for each place that the level of kinds may
  // have: innermost, or after a level. In an alltoall, neighbouring levels that share links are joined. The
  // first way of an alltoall may also be a single level of all ranks: if ranks pass data on to other kinds of
  // their host, the host's inner links may carry as many bytes as those between hosts.
  StatusOr<std::vector<Ends>> ChoicesOver(std::span<const int64_t> orders) const {
    const int32_t kinds = machine_.group.num_rank_orbits();
    std::vector<Ends> choices;
    Status refused;
    for (size_t inside = 0; inside <= (kinds > 1 ? orders.size() : 0); ++inside) {
      Ends ends = EndsWithKinds(orders, inside, kinds);
      if (IsOfPairs(cut_)) {
        StatusOr<Ends> joined = JoinedWhereShared(ends);
        if (!joined.ok()) {
          refused = joined.status();
          continue;
        }
        ends = *std::move(joined);
      }
      if (std::ranges::find(choices, ends) == choices.end()) choices.push_back(std::move(ends));
    }
    const Ends one = {{machine_.group.order(), true}};
    if (IsOfPairs(cut_) && kinds > 1 && ways_.empty() && std::ranges::find(choices, one) == choices.end())
      choices.push_back(one);
    return choices.empty() ? StatusOr<std::vector<Ends>>(refused) : choices;
  }

  StatusOr<Ends> JoinedWhereShared(const Ends& ends) const {
    XCCL_ASSIGN_OR_RETURN(const Levels levels, forward_->finder.Make(ends, kName));
    Ends joined;
    for (size_t i = 0; i < levels.size(); ++i)
      if (i + 1 == levels.size() || !ShareLinks(levels[i], levels[i + 1], forward_->group))
        joined.push_back(ends[i]);
    return joined;
  }

  Collective CutOf(const Way& way) const {
    return way.waves > 0 ? request_.collective->WithChunks(way.waves * request_.collective->num_members())
                         : CutOf(request_);
  }

  // Makes the schedule in waves, each with one chunk of each block. The copies of a wave lie among the sums
  // of later waves. They begin when its sums have ended and the latency of all levels has passed. Without
  // this delay, busy links would hold up sums at first, and copies would lack finished sums later.
  Schedule InWaves(const Way& way) const {
    const Collective one = request_.collective->WithChunks(request_.collective->num_members());
    const size_t trees = std::lcm(way.forward.front().trees.size(), way.backward.front().trees.size());
    std::vector<std::pair<Schedule, Schedule>> by_tree;
    Schedule all;
    all.num_chunks = one.num_chunks() * way.waves;
    for (int32_t wave = 0; wave < way.waves; ++wave) {
      if (by_tree.size() < trees) by_tree.emplace_back(Sums(way, one, wave), Copies(way, one, wave));
      const auto& [sums, copies] = by_tree[static_cast<size_t>(wave) % trees];
      if (wave == 0) all.Reserve((sums.size() + copies.size()) * way.waves);
      const int32_t steps = sums.num_steps(), behind = static_cast<int32_t>(std::ceil(way.behind * steps));
      AddWave(sums, wave, way.waves, wave * steps, all);
      AddWave(copies, wave, way.waves, (wave + 1) * steps + behind, all);
    }
    return Translate(std::move(all), machine_.group);
  }

  // Adds `one`, a schedule with one chunk for each block, to `all` as the wave `wave`, from first_step on.
  static void AddWave(const Schedule& one, int32_t wave, int32_t waves, int32_t first_step, Schedule& all) {
    std::vector<PathId> path;
    for (int32_t p = 0; p < one.paths.size(); ++p) path.push_back(all.paths.Intern(one.paths[PathId(p)]));
    for (int64_t t = 0; t < one.size(); ++t) {
      Transfer transfer = one.at(t);
      transfer.first = ChunkId(transfer.first.value * waves + wave);
      transfer.path = path[transfer.path.index()];
      transfer.step += first_step;
      all.Add(transfer);
    }
  }

  Schedule ScheduleOf(const Way& way) const {
    if (!backward_) return Copies(way, cut_);
    if (!forward_) return Sums(way, cut_);
    return Compose(Sums(way, cut_), Copies(way, cut_));
  }

  Schedule Sums(const Way& way, const Collective& cut, int32_t tree = 0) const {
    return Reverse(
        SendOverLevels(way.backward, backward_->topology, backward_->group, cut, size_bytes_, tree),
        machine_.Whole(*request_.topology), cut, TransferOp::kReduce);
  }

  Schedule Copies(const Way& way, const Collective& cut, int32_t tree = 0) const {
    return SendOverLevels(way.forward, forward_->topology, forward_->group, cut, size_bytes_, tree);
  }

  const SynthesisRequest& request_;
  const Collective cut_;  // with lost hosts, of the whole machine
  const int64_t size_bytes_;
  const AlikeMachine machine_;
  std::optional<Direction> forward_, backward_;
  std::vector<Way> ways_;
};

// Plans a broadcast or, on the reversed machine, a reduce.
class RootedPlanning {
 public:
  static StatusOr<std::shared_ptr<RootedPlanning>> Create(const SynthesisRequest& request) {
    XCCL_RETURN_IF_ERROR(CheckAllRanks(request));
    XCCL_ASSIGN_OR_RETURN(AlikeMachine machine, AlikeMachine::Find(*request.topology));
    if (machine.whole || !machine.group.IsTransitive())
      return InvalidInput(fmt::format("{}: ranks that differ; expected ranks that are all alike in a {}",
                                      kName, request.collective->name()));
    auto planning = std::make_shared<RootedPlanning>(request, machine.group);
    XCCL_RETURN_IF_ERROR(planning->FindWay());
    return planning;
  }

  RootedPlanning(const SynthesisRequest& request, const SymmetryGroup& group) : request_(request) {
    if (IsReduction(request.collective->kind()))
      SetReversed(*request.topology, group, direction_);
    else
      direction_.emplace(*request.topology, group);
  }

  StatusOr<Synthesis> Make() const {
    const Collective cut = request_.collective->WithChunks(dealing_->pieces());
    Schedule schedule = dealing_->From(*cut.spec().root);
    if (IsReduction(cut.kind())) schedule = Reverse(schedule, *request_.topology, cut, TransferOp::kReduce);
    XCCL_RETURN_IF_ERROR(CheckSteps(kName, request_, schedule.num_steps()));
    return Synthesis{.collective = cut,
                     .schedule = std::move(schedule),
                     .exact = false,
                     .engine = std::string(kName),
                     .note = fmt::format("{} pieces over {} levels", dealing_->pieces(), levels_->size())};
  }

  Offer Offered() const {
    return {.time_ps = dealing_->TimePs(request_.size_bytes),
            .work = int64_t{dealing_->pieces()} * direction_->topology.num_ranks()};
  }

 private:
  // Takes the faster of two choices: all levels, or two levels, the innermost one and the rest.
  Status FindWay() {
    const std::vector<int64_t> ends = direction_->finder.Ends(kMostPeers[0]);
    if (ends.size() < 2)
      return InvalidInput(
          fmt::format("{}: one level of ranks; expected hosts, pods or others in a {}; hint: --engine=spread",
                      kName, request_.collective->name()));
    for (const std::vector<int64_t>& some : {ends, std::vector{ends.front(), ends.back()}}) {
      if (dealing_ && some == ends) break;
      StatusOr<Levels> made = direction_->finder.Make(some, kName);
      if (!made.ok() && dealing_) break;
      XCCL_RETURN_IF_ERROR(made.status());
      auto levels = std::make_unique<Levels>(*std::move(made));
      StatusOr<Dealing> dealing = Dealing::Create(direction_->finder, *levels, direction_->topology,
                                                  direction_->group, kManyTransfers, kName);
      if (!dealing.ok() && !dealing_) return dealing.status();
      const double known_ps = dealing_ ? dealing_->TimePs(request_.size_bytes) : 0;
      if (dealing_ && (!dealing.ok() || dealing->TimePs(request_.size_bytes) >= known_ps)) continue;
      levels_ = std::move(levels);
      dealing_ = *std::move(dealing);
    }
    const int32_t chunks = request_.limits.chunks.value_or(dealing_->pieces());
    if (chunks != dealing_->pieces())
      return InvalidInput(fmt::format(
          "{}: {} chunks; expected {}, one for each group of {} ranks; hint: --chunks={}", kName, chunks,
          dealing_->pieces(), direction_->topology.num_ranks() / dealing_->pieces(), dealing_->pieces()));
    return OkStatus();
  }

  const SynthesisRequest& request_;
  std::optional<Direction> direction_;
  std::unique_ptr<Levels> levels_;
  std::optional<Dealing> dealing_;
};

template <typename Plans>
StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Plans> planning, Plans::Create(request));
  Offer offer = planning->Offered();
  offer.make = [planning](int64_t) { return planning->Make(); };
  return offer;
}

template <typename Plans>
StatusOr<Synthesis> PlanOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Plans> planning, Plans::Create(request));
  return planning->Make();
}

}  // namespace

Engine LevelsEngine() {
  return {.name = kName,
          .summary = "symmetric clusters: rounds inside hosts, pods and between pods; plans in linear time",
          .family = EngineFamily::kExchanges,
          .kinds = std::vector<CollectiveKind>(std::begin(kServed), std::end(kServed)),
          .any_chunks = true,
          .any_parts = true,
          .offer =
              [](const SynthesisRequest& request) {
                return IsRooted(request.collective->kind()) ? OfferOf<RootedPlanning>(request)
                                                            : OfferOf<Planning>(request);
              },
          .make = [](const SynthesisRequest& request) -> StatusOr<Synthesis> {
            if (request.collective->num_members() == 1) return NothingToMove(kName, request);
            return IsRooted(request.collective->kind()) ? PlanOf<RootedPlanning>(request)
                                                        : PlanOf<Planning>(request);
          }};
}

}  // namespace xccl
