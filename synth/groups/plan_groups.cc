// Plans groups separately, lays the plans side by side, and keeps the merged plan that simulates fastest.
// 1. PlanEach plans every group without relays, and with relays if that is necessary or may be faster.
// 2. Evaluate merges the chosen plans in several orders of their steps and simulates each merged plan.
// 3. EvaluateOnOwnLinks moves groups to links that no other group's submachine has, and evaluates again.
// 4. If the engine asks other engines, ShareBandwidth plans groups anew, one after the other, while links are
//    crowded. For the group that is planned, each link is narrowed to the share (in eighths) of the busiest
//    link's time that the other groups leave. A new plan is taken if it lowers the crowding: the sum over
//    links of (busy time ÷ busiest time)^kSharpness.
// 5. TryGreedy then lets greedy search all groups as one collective, if they are small.
#include "synth/groups/plan_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "ir/analysis/bitwise_same.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "synth/common/cost_model.h"
#include "synth/engines.h"

namespace xccl {
namespace {

// ShareBandwidth plans no further group after this many engine searches. Each takes as long as planning a
// group.
constexpr int64_t kMostSearches = 24;
// The exponent in the measure of crowding. A larger exponent gives the busiest links more weight.
constexpr double kSharpness = 8;

using Loads = std::vector<std::pair<int32_t, double>>;  // (link, seconds that the plan keeps the link busy)

// Returns the loads of a plan on the links of the group that it was made for.
Loads LoadsOf(const GroupSchedule& plan, int64_t size_bytes, const Topology& topology) {
  const CollectiveSizes sizes(plan.collective, size_bytes);
  const Schedule& schedule = plan.schedule;
  std::vector<double> by_path(static_cast<size_t>(schedule.paths.size()), 0);
  for (int64_t t = 0; t < schedule.size(); ++t)
    for (int32_t i = 0; i < schedule.count[t]; ++i)
      by_path[schedule.path[t].index()] +=
          static_cast<double>(sizes.ChunkBytes(ChunkId(schedule.first[t].value + i)));
  std::vector<std::pair<int32_t, double>> all;
  for (int32_t p = 0; p < schedule.paths.size(); ++p)
    for (LinkId l : schedule.paths[PathId(p)])
      all.emplace_back(l.value, by_path[static_cast<size_t>(p)] /
                                    static_cast<double>(topology.link(l).bandwidth_bytes_per_s));
  std::ranges::sort(all);
  Loads loads;
  for (const auto& [link, seconds] : all) {
    if (!loads.empty() && loads.back().first == link)
      loads.back().second += seconds;
    else
      loads.emplace_back(link, seconds);
  }
  return loads;
}

class GroupsPlanner {
 public:
  GroupsPlanner(const Topology& topology, const GroupRequest& request, const MemberPlanOptions& options,
                MemberPlans& plans, Joint joint)
      : topology_(topology),
        groups_(request.groups),
        options_(options),
        plans_(plans),
        joint_(std::move(joint)),
        outcomes_(request.groups.size()) {}

  StatusOr<JointPlan> Run() && {
    XCCL_RETURN_IF_ERROR(FindBounds());
    XCCL_RETURN_IF_ERROR(PlanEach());
    XCCL_RETURN_IF_ERROR(CheckTransfers());
    Evaluate(fastest_, "each group's fastest plan");
    unaware_ps_ = together_ps_;
    if (alone_ != fastest_ && !options_.deadline()) Evaluate(alone_, "each group without relays");
    if (!IsGoodEnough()) EvaluateOnOwnLinks();
    XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(options_.engine));
    if (engine->asks_others) {
      XCCL_RETURN_IF_ERROR(ShareBandwidth());
      TryGreedy();
    }
    return Finished();
  }

 private:
  using Choice = std::vector<size_t>;  // by group: index into the group's options

  struct Option {
    MovedPlan moved;
    const Loads* loads = nullptr;  // of moved.plan, before it is moved
    const MemberPlan& plan() const { return *moved.plan; }
  };

  Status FindBounds() {
    XCCL_RETURN_IF_ERROR(FindJointBound());
    for (size_t g = 0; g < groups_.size(); ++g) {
      const StatusOr<Bound> found = plans_.BoundOf(g);
      if (!found.ok()) return Annotate(found.status(), "group " + groups_[g].name);
      const Bound& bound = *found;
      outcomes_[g].bound_ps = bound.bound_ps;
      bound_.latency_ps = std::max(bound_.latency_ps, bound.latency_ps);
      if (bound.bandwidth_ps > bound_.bandwidth_ps) {
        bound_.bandwidth_ps = bound.bandwidth_ps;
        bound_.kind = bound.kind;
      }
      bound_.bound_ps = std::max(bound_.bound_ps, bound.bound_ps);
    }
    return OkStatus();
  }

  // Finds the bound of all groups together. On large machines it counts only bytes; distances count only in
  // the groups' own bounds.
  Status FindJointBound() {
    if (MayRelay()) {
      XCCL_ASSIGN_OR_RETURN(bound_,
                            LowerBound(topology_, joint_.collective, joint_.size_bytes, options_.model));
      return OkStatus();
    }
    bound_.size_bytes = joint_.size_bytes;
    bound_.bandwidth_ps =
        BandwidthBoundPs(topology_, joint_.collective, joint_.size_bytes, BoundEffort::kFast);
    bound_.bound_ps = static_cast<int64_t>(std::min(bound_.bandwidth_ps, static_cast<double>(kForeverPs)));
    return OkStatus();
  }

  size_t AddOption(size_t group, MovedPlan moved) {
    const auto [found, is_new] = loads_.try_emplace(moved.plan.get());
    if (is_new) found->second = LoadsOf(moved.plan->plan, groups_[group].size_bytes, topology_);
    of_group_[group].push_back({std::move(moved), &found->second});
    return of_group_[group].size() - 1;
  }

  // Adds the option's load of each link, times `sign`, to `busy`.
  void AddLoads(const Option& option, double sign, std::vector<double>& busy) const {
    for (const auto& [link, seconds] : *option.loads) busy[ImageOf(option, link)] += sign * seconds;
  }
  size_t ImageOf(const Option& option, int32_t link) const {
    return plans_.alike().translations().Image(option.moved.element, LinkId(link)).index();
  }

  // Finds each group's fastest plan and its plan without relays. Members that need relays have one plan for
  // both.
  Status PlanEach() {
    of_group_.resize(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto failed = [&](const Status& why) { return Annotate(why, "group " + groups_[g].name); };
      std::optional<MovedPlan> alone;
      if (plans_.IsJoinedAlone(g)) {
        StatusOr<MovedPlan> made = plans_.Alone(g);
        if (!made.ok() && !MayRelay()) return failed(made.status());
        if (made.ok()) alone = *std::move(made);
      }
      const bool is_best = alone && static_cast<double>(alone->plan->time_ps) <=
                                        static_cast<double>(outcomes_[g].bound_ps) * kNear;
      std::optional<MovedPlan> relayed;
      if (!alone || (!is_best && MayRelay())) {
        StatusOr<MovedPlan> made = plans_.OnWhole(g);
        if (!made.ok() && !alone) return failed(made.status());
        if (made.ok()) relayed = *std::move(made);
      }
      const bool relays_win = relayed && (!alone || relayed->plan->time_ps < alone->plan->time_ps);
      outcomes_[g].alone_ps = (relays_win ? relayed : alone)->plan->time_ps;
      alone_.push_back(AddOption(g, alone ? *std::move(alone) : *relayed));
      fastest_.push_back(relays_win && plans_.IsJoinedAlone(g) ? AddOption(g, *std::move(relayed))
                                                               : alone_.back());
    }
    return OkStatus();
  }
  // Returns an error if the groups' plans, which are merged and simulated, have too many transfers.
  Status CheckTransfers() const {
    int64_t transfers = 0;
    for (size_t g = 0; g < groups_.size(); ++g)
      transfers += of_group_[g][fastest_[g]].plan().plan.schedule.size();
    if (transfers <= kMostTransfers) return OkStatus();
    return LimitReached(fmt::format(
        "{}: one plan of {} has {} transfers; at most {}; hint: without --output the groups are "
        "planned apart",
        joint_.collective.name(), Counted(std::ssize(groups_), "group"), transfers, kMostTransfers));
  }
  bool MayRelay() const { return QuickEffort(topology_) == BoundEffort::kExact; }

  // Gives each group a plan on links that no other group's submachine has, if such links join its members.
  // Evaluates the result if any group's plan changes.
  void EvaluateOnOwnLinks() {
    Choice choice = best_choice_;
    for (size_t g = 0; g < groups_.size(); ++g)
      if (StatusOr<std::optional<MovedPlan>> made = plans_.OnOwnLinks(g); made.ok() && *made)
        choice[g] = AddOption(g, **std::move(made));
    if (choice != best_choice_) Evaluate(choice, "groups on links of their own");
  }

  double BoundPs() const { return static_cast<double>(bound_.bound_ps); }
  // Returns true if the best plan is near the bound or the time is over.
  bool IsGoodEnough() const {
    return options_.deadline() || static_cast<double>(best_ps_) <= BoundPs() * kNear;
  }

  // Merges the chosen plans in several orders of steps, and keeps each merged plan that is the fastest so
  // far. Sets together_ps_ to the time of the order in which all groups begin with their first step.
  void Evaluate(const Choice& choice, const std::string& how) {
    const SymmetryGroup& translations = plans_.alike().translations();
    std::vector<MovedSchedule> plans;
    int64_t moves = 0;
    int32_t shortest = INT32_MAX, longest = 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const MovedPlan& moved = of_group_[g][choice[g]].moved;
      const Schedule& schedule = moved.plan->plan.schedule;
      plans.push_back({&moved.plan->plan, moved.element});
      moves += schedule.size();
      shortest = std::min(shortest, schedule.num_steps());
      longest = std::max(longest, schedule.num_steps());
    }
    together_ps_ = Consider(Merge(joint_, translations, plans, StepOrder::kTogether), choice, how);
    if (IsGoodEnough() || groups_.size() < 2) return;
    if (shortest < longest)
      Consider(Merge(joint_, translations, plans, StepOrder::kStretched), choice,
               how + ", steps of short plans spread");
    if (IsGoodEnough() || moves > kManyTransfers) return;
    Choice turn(groups_.size());
    std::iota(turn.begin(), turn.end(), 0);
    std::ranges::stable_sort(turn, [&](size_t a, size_t b) {
      return of_group_[a][choice[a]].plan().time_ps > of_group_[b][choice[b]].plan().time_ps;
    });
    const std::vector<int32_t> order(turn.begin(), turn.end());
    Consider(Merge(joint_, translations, plans, StepOrder::kInTurn, order), choice,
             how + ", slow groups first");
  }

  int64_t Consider(MergedPlan merged, const Choice& choice, const std::string& how) {
    // A rough simulation is enough to compare candidates, and is faster if they have very many segments.
    SimulateOptions options = Options();
    options.rough = true;
    const int64_t time_ps = Simulate(merged.schedule, merged.collective, topology_, options).time_ps;
    if (best_ && time_ps >= best_ps_) return time_ps;
    best_ps_ = time_ps;
    best_choice_ = choice;
    best_ = std::move(merged);
    note_ = how;
    return time_ps;
  }
  SimulateOptions Options() const { return {.size_bytes = joint_.size_bytes, .model = options_.model}; }

  // Returns the seconds for which the chosen plans keep each link busy.
  std::vector<double> Busy(const Choice& choice) const {
    std::vector<double> busy(static_cast<size_t>(topology_.num_links()), 0);
    for (size_t g = 0; g < groups_.size(); ++g) AddLoads(of_group_[g][choice[g]], 1, busy);
    return busy;
  }

  // Returns one link's term of the crowding (step 4 at the top of this file).
  static double CrowdingOf(double seconds, double most) {
    return seconds > 0 ? std::pow(seconds / most, kSharpness) : 0;
  }
  static double Crowding(const std::vector<double>& busy, double most) {
    double sum = 0;
    for (double seconds : busy) sum += CrowdingOf(seconds, most);
    return sum;
  }

  // Plans groups anew, slow groups first, on the bandwidth that other groups leave within the busiest link's
  // time. Takes a plan if it makes links less crowded. Every change lowers the crowding, so the rounds end.
  // Counts the loads of all links anew only after a change.
  Status ShareBandwidth() {
    Choice choice = best_choice_;
    std::vector<size_t> turn(groups_.size());
    std::iota(turn.begin(), turn.end(), 0);
    std::ranges::stable_sort(
        turn, [&](size_t a, size_t b) { return outcomes_[a].alone_ps > outcomes_[b].alone_ps; });
    const int64_t begun = plans_.searches();
    for (int32_t round = 0; groups_.size() > 1; ++round) {
      bool changed = false, changed_last = true;
      for (size_t g : turn) {
        if (changed_last) CountBusy(choice);
        if (IsGoodEnough() || most_ * static_cast<double>(kPsPerSecond) <= BoundPs() * kNear)
          return OkStatus();
        if (plans_.searches() - begun >= kMostSearches) break;
        changed_last = Replan(g, choice);
        changed |= changed_last;
      }
      if (!changed) break;
      const int64_t before_ps = best_ps_;
      Evaluate(choice, fmt::format("groups on what the others leave, round {}", round + 1));
      if (best_ps_ >= before_ps && round > 0) break;
    }
    return OkStatus();
  }

  void CountBusy(const Choice& choice) {
    busy_ = Busy(choice);
    most_ = busy_.empty() ? 0 : *std::ranges::max_element(busy_);
    crowding_ = Crowding(busy_, most_);
  }

  // Returns by how much the option's loads would raise the crowding. Requires: busy_ counts all groups but
  // the option's.
  double AddedCrowding(const Option& option) const {
    double added = 0;
    for (const auto& [link, seconds] : *option.loads) {
      const double others = busy_[ImageOf(option, link)];
      added += CrowdingOf(others + seconds, most_) - CrowdingOf(others, most_);
    }
    return added;
  }

  bool Replan(size_t g, Choice& choice) {
    const size_t before = choice[g];
    // A copy, because AddOption may move the options in memory.
    const Option chosen = of_group_[g][before];
    std::vector<double> kept;  // busy_ on the chosen plan's links, put back without rounding errors
    for (const auto& [link, seconds] : *chosen.loads) kept.push_back(busy_[ImageOf(chosen, link)]);
    AddLoads(chosen, -1, busy_);
    const double without = crowding_ - AddedCrowding(chosen);
    double best = crowding_ / kNear;
    const auto consider = [&](size_t option) {
      const double crowding = without + AddedCrowding(of_group_[g][option]);
      if (crowding >= best) return;
      best = crowding;
      choice[g] = option;
    };
    for (size_t option = 0; option < of_group_[g].size(); ++option)
      if (option != before) consider(option);
    if (SharesLinks(of_group_[g][choice[g]])) {
      std::vector<uint8_t> eighths;
      for (double seconds : busy_)
        eighths.push_back(static_cast<uint8_t>(std::clamp(8 * (1 - seconds / most_), 1.0, 8.0)));
      if (plans_.IsJoinedAlone(g))
        if (StatusOr<MovedPlan> made = plans_.Alone(g, &eighths); made.ok())
          consider(AddOption(g, *std::move(made)));
      if (MayRelay())
        if (StatusOr<MovedPlan> made = plans_.OnWhole(g, &eighths); made.ok())
          consider(AddOption(g, *std::move(made)));
    }
    size_t i = 0;
    for (const auto& [link, seconds] : *chosen.loads) busy_[ImageOf(chosen, link)] = kept[i++];
    return choice[g] != before;
  }

  // Returns whether another group uses any of the option's links. Requires: busy_ counts all groups but the
  // option's.
  bool SharesLinks(const Option& option) const {
    return std::ranges::any_of(*option.loads, [&](const auto& load) {
      return 8 * (1 - busy_[ImageOf(option, load.first)] / most_) < 8;
    });
  }

  // Lets greedy search all groups as one collective, first from the best plan so far and then from nothing.
  // The first search keeps what the groups' own plans do well.
  void TryGreedy() {
    // Greedy considers every part that a member may need at every rank that may send the part.
    const int64_t moves = int64_t{joint_.collective.num_parts()} * joint_.collective.num_members();
    if (IsGoodEnough() || moves > kManyTransfers / topology_.num_ranks() || groups_.size() < 2) return;
    const Engine& greedy = ImprovingEngine();
    const auto start = std::make_shared<const Synthesis>(Synthesis{.collective = best_->collective,
                                                                   .schedule = best_->schedule,
                                                                   .exact = false,
                                                                   .engine = "groups",
                                                                   .note = "",
                                                                   .simulation = {}});
    SynthesisRequest request{.topology = &topology_,
                             .collective = &joint_.collective,
                             .size_bytes = joint_.size_bytes,
                             .model = options_.model,
                             .limits = {.deadline = options_.deadline},
                             .seed = options_.seed,
                             .rough = true,
                             .allow_divergent = options_.allow_divergent};
    for (const std::shared_ptr<const Synthesis>& from : {start, std::shared_ptr<const Synthesis>()}) {
      request.start = from;
      StatusOr<Synthesis> made = greedy.Synthesize(request);
      if (!made.ok()) continue;
      faults_.insert(faults_.end(), made->faults.begin(), made->faults.end());
      if (!made->schedule.symmetry.empty()) continue;
      if (!options_.allow_divergent && !IsBitwiseSame(made->schedule, made->collective, topology_)) continue;
      const int64_t before_ps = best_ps_;
      Consider({std::move(made->collective), std::move(made->schedule)}, best_choice_,
               from != nullptr ? "greedy, from the groups' plans" : "greedy, all groups at once");
      by_greedy_ |= best_ps_ < before_ps;
    }
  }

  JointPlan Finished() {
    SimulateOptions options = Options();
    options.record_parts = true;
    Simulation simulation = Simulate(best_->schedule, best_->collective, topology_, options);
    for (size_t g = 0; g < groups_.size(); ++g) {
      GroupOutcome& outcome = outcomes_[g];
      outcome.engine =
          by_greedy_ ? std::string(ImprovingEngine().name) : of_group_[g][best_choice_[g]].plan().engine;
      for (int32_t p = joint_.first_part[g]; p < joint_.first_part[g + 1]; ++p)
        outcome.together_ps = std::max(outcome.together_ps, simulation.part_done_ps[static_cast<size_t>(p)]);
    }
    const bool exact = MeetsBound(simulation.time_ps, bound_);
    Synthesis made{.collective = std::move(best_->collective),
                   .schedule = std::move(best_->schedule),
                   .exact = exact,
                   .engine = "groups",
                   .note = note_,
                   .simulation = std::move(simulation),
                   .faults = std::move(faults_)};
    made.faults.insert(made.faults.end(), plans_.faults().begin(), plans_.faults().end());
    return {std::move(joint_), std::move(made), bound_, std::move(outcomes_), unaware_ps_};
  }

  const Topology& topology_;
  const std::vector<ProcessGroup>& groups_;
  const MemberPlanOptions& options_;
  MemberPlans& plans_;
  Joint joint_;
  std::vector<GroupOutcome> outcomes_;
  Bound bound_;
  int64_t unaware_ps_ = 0;
  std::vector<std::vector<Option>> of_group_;
  std::map<const MemberPlan*, Loads> loads_;  // of every option's plan
  // Set while bandwidth is shared: busy seconds by link, the most of any link, and the crowding of all links.
  std::vector<double> busy_;
  double most_ = 0, crowding_ = 0;
  Choice fastest_, alone_, best_choice_;
  std::optional<MergedPlan> best_;
  int64_t best_ps_ = 0;
  int64_t together_ps_ = 0;
  bool by_greedy_ = false;
  std::string note_;
  std::vector<std::string> faults_;  // of engines that searched all groups at once
};

}  // namespace

StatusOr<JointPlan> PlanGroups(const Topology& topology, const GroupRequest& request,
                               const MemberPlanOptions& options) {
  MemberPlans plans(topology, request.groups, options);
  return PlanGroups(topology, request, options, plans);
}

StatusOr<JointPlan> PlanGroups(const Topology& topology, const GroupRequest& request,
                               const MemberPlanOptions& options, MemberPlans& plans) {
  XCCL_ASSIGN_OR_RETURN(Joint joint, MakeJoint(request));
  // On large machines, FindBounds finds ranks that no path joins.
  if (QuickEffort(topology) == BoundEffort::kExact)
    XCCL_RETURN_IF_ERROR(CheckReachable(topology, joint.collective));
  return GroupsPlanner(topology, request, options, plans, std::move(joint)).Run();
}

}  // namespace xccl
