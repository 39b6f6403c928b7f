// Plans one group at a time, and reuses earlier plans. A plan is made for the first group of a kind, except
// on narrowed links of the whole machine. It serves another group of the kind by the translation that takes
// the first group to that group.
// 1. Alone takes the submachine of the members, and narrows its links to the shares in `eighths`.
// 2. PlanOn looks up the submachine and the collective (KeyOf) in found_, and asks an engine if there is no
//    entry. It renumbers the plan for the whole machine.
// 3. OnOwnLinks calls PlanOn with only the links that no other group's submachine has.
// 4. OnWhole asks the engine once for each kind. On narrowed links, it asks for every group anew.
#include "synth/groups/member_plans.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <utility>

#include "ir/simulate/simulate.h"
#include "ir/translated.h"
#include "synth/common/members_alone.h"
#include "synth/engines.h"

namespace xccl {
namespace {

// Returns a key that two groups share if one plan serves both, in the rank numbers of their submachines.
std::vector<int64_t> KeyOf(const Topology& topology, const Collective& collective, int64_t size_bytes) {
  std::vector<int64_t> key;
  const auto add = [&](std::initializer_list<int64_t> numbers) { key.insert(key.end(), numbers); };
  for (const Node& n : topology.spec().nodes)
    add({static_cast<int64_t>(n.kind), n.multicast, n.reduce, n.host ? n.host->value : -1});
  for (const Link& l : topology.spec().links)
    add({l.from.value, l.to.value, l.bandwidth_bytes_per_s, l.latency_ps, l.overhead_ps});
  const CollectiveSpec& spec = collective.spec();
  add({static_cast<int64_t>(spec.kind), size_bytes, spec.root ? spec.root->value : -1});
  for (Rank r : spec.ranks) add({r.value});
  key.insert(key.end(), spec.counts.begin(), spec.counts.end());
  for (const auto& [from, to] : spec.pairs) add({from.value, to.value});
  return key;
}

// Returns the topology with every link narrowed to eighths_of(link) eighths of its bandwidth.
template <typename EighthsOf>
Topology WithEighths(const Topology& topology, EighthsOf eighths_of) {
  TopologySpec spec = topology.spec();
  for (size_t l = 0; l < spec.links.size(); ++l) {
    int64_t& bandwidth = spec.links[l].bandwidth_bytes_per_s;
    const int64_t eighths = eighths_of(LinkId(static_cast<int64_t>(l)));
    bandwidth = std::max<int64_t>(1, bandwidth / 8 * eighths + bandwidth % 8 * eighths / 8);
  }
  return Topology::Create(std::move(spec)).value();
}

}  // namespace

MemberPlans::MemberPlans(const Topology& topology, const std::vector<ProcessGroup>& groups,
                         const MemberPlanOptions& options)
    : topology_(topology),
      groups_(groups),
      options_(options),
      alike_(topology, groups),
      kinds_(alike_.num_kinds()) {}

const Submachine& MemberPlans::SubmachineOf(size_t group) {
  std::optional<Submachine>& alone = KindOf(group).alone;
  if (!alone) alone = MembersAlone(topology_, FirstOf(group).collective.ranks());
  return *alone;
}

bool MemberPlans::IsJoinedAlone(size_t group) {
  std::optional<bool>& is_joined = KindOf(group).is_joined_alone;
  if (!is_joined) {
    const Submachine& alone = SubmachineOf(group);
    is_joined = CheckReachable(alone.topology, RestrictTo(FirstOf(group).collective, alone)).ok();
  }
  return *is_joined;
}

StatusOr<Synthesis> MemberPlans::Ask(const Topology& machine, const Collective& collective,
                                     int64_t size_bytes, bool rough) {
  XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(options_.engine));
  const SynthesisRequest request{.topology = &machine,
                                 .collective = &collective,
                                 .size_bytes = size_bytes,
                                 .model = options_.model,
                                 .limits = {.deadline = options_.deadline},
                                 .seed = options_.seed,
                                 .rough = rough,
                                 .allow_divergent = options_.allow_divergent};
  ++searches_;
  XCCL_ASSIGN_OR_RETURN(Synthesis made, engine->Synthesize(request));
  faults_.insert(faults_.end(), made.faults.begin(), made.faults.end());
  if (!made.simulation)
    made.simulation = Simulate(made.schedule, made.collective, machine, TimingOf(request));
  return made;
}

StatusOr<MovedPlan> MemberPlans::Alone(size_t group, const std::vector<uint8_t>* eighths) {
  const Submachine& alone = SubmachineOf(group);
  const Collective collective = RestrictTo(FirstOf(group).collective, alone);
  const int64_t element = alike_.ElementOf(group);
  std::optional<Topology> narrowed;
  if (eighths != nullptr)
    narrowed = WithEighths(alone.topology, [&](LinkId l) {
      return (*eighths)[alike_.translations().Image(element, alone.link[l.index()]).index()];
    });
  XCCL_ASSIGN_OR_RETURN(
      std::shared_ptr<const MemberPlan> plan,
      PlanOn(group, alone, narrowed ? *narrowed : alone.topology, collective, narrowed.has_value()));
  return MovedPlan{std::move(plan), element};
}

void MemberPlans::CountUsers() {
  users_.assign(static_cast<size_t>(topology_.num_links()), 0);
  for (size_t g = 0; g < groups_.size(); ++g)
    for (LinkId l : SubmachineOf(g).link)
      ++users_[alike_.translations().Image(alike_.ElementOf(g), l).index()];
}

std::vector<bool> MemberPlans::AreOwn(size_t group) {
  if (users_.empty()) CountUsers();
  std::vector<bool> is_own;
  for (LinkId l : SubmachineOf(group).link)
    is_own.push_back(users_[alike_.translations().Image(alike_.ElementOf(group), l).index()] == 1);
  return is_own;
}

std::optional<Submachine> MemberPlans::WithSome(size_t group, const std::vector<bool>& is_own) {
  const Submachine& alone = SubmachineOf(group);
  TopologySpec spec = alone.topology.spec();
  const std::vector<Link> links = std::exchange(spec.links, {});
  std::vector<LinkId> kept;
  for (size_t l = 0; l < links.size(); ++l) {
    if (!is_own[l]) continue;
    spec.links.push_back(links[l]);
    kept.push_back(alone.link[l]);
  }
  const Topology own = Topology::Create(std::move(spec)).value();
  const Collective collective = RestrictTo(FirstOf(group).collective, alone);
  Submachine inner = MembersAlone(own, collective.ranks());
  if (!CheckReachable(inner.topology, RestrictTo(collective, inner)).ok()) return std::nullopt;
  for (Rank& r : inner.rank) r = alone.rank[r.index()];
  for (LinkId& l : inner.link) l = kept[l.index()];
  return inner;
}

StatusOr<std::optional<MovedPlan>> MemberPlans::OnOwnLinks(size_t group) {
  const std::vector<bool> is_own = AreOwn(group);
  if (std::ranges::all_of(is_own, std::identity())) return std::optional<MovedPlan>();
  std::map<std::vector<bool>, Planned>& known = KindOf(group).on_own;
  auto found = known.find(is_own);
  if (found == known.end()) {
    const std::optional<Submachine> own = WithSome(group, is_own);
    Planned plan = std::shared_ptr<const MemberPlan>();
    if (own) plan = PlanOn(group, *own, own->topology, RestrictTo(FirstOf(group).collective, *own), false);
    found = known.emplace(is_own, std::move(plan)).first;
  }
  XCCL_ASSIGN_OR_RETURN(std::shared_ptr<const MemberPlan> plan, found->second);
  return plan == nullptr ? std::optional<MovedPlan>() : MovedPlan{std::move(plan), alike_.ElementOf(group)};
}

StatusOr<Synthesis>& MemberPlans::Found(const Topology& machine, const Collective& collective,
                                        int64_t size_bytes, bool rough) {
  std::vector<int64_t> key = KeyOf(machine, collective, size_bytes);
  const auto found = found_.find(key);
  if (found != found_.end()) return found->second;
  return found_.emplace(std::move(key), Ask(machine, collective, size_bytes, rough)).first->second;
}

StatusOr<const LonePlan*> MemberPlans::Lone(size_t group) {
  std::optional<StatusOr<LonePlan>>& lone = KindOf(group).lone;
  if (!lone) {
    const Collective& whole = FirstOf(group).collective;
    Submachine alone{topology_, AllRanks(topology_.num_ranks()), {}};
    for (LinkId l(0); l.value < topology_.num_links(); ++l.value) alone.link.push_back(l);
    if (IsJoinedAlone(group)) alone = SubmachineOf(group);
    StatusOr<Synthesis>& made = Found(alone.topology, IsJoinedAlone(group) ? RestrictTo(whole, alone) : whole,
                                      FirstOf(group).size_bytes, false);
    lone = made.ok() ? StatusOr<LonePlan>(LonePlan{std::move(alone), *made}) : made.status();
  }
  XCCL_RETURN_IF_ERROR(lone->status());
  return &**lone;
}

StatusOr<const LonePlan*> MemberPlans::LoneOnOwnLinks(size_t group) {
  std::optional<StatusOr<LonePlan>>& lone = KindOf(group).lone_on_own;
  if (!lone) {
    const std::vector<bool> is_own = AreOwn(alike_.FirstOf(alike_.KindOf(group)));
    std::optional<Submachine> own;
    if (!std::ranges::all_of(is_own, std::identity())) own = WithSome(group, is_own);
    if (!own) return nullptr;
    StatusOr<Synthesis>& made =
        Found(own->topology, RestrictTo(FirstOf(group).collective, *own), FirstOf(group).size_bytes, false);
    lone = made.ok() ? StatusOr<LonePlan>(LonePlan{*std::move(own), *made}) : made.status();
  }
  XCCL_RETURN_IF_ERROR(lone->status());
  return &**lone;
}

MemberPlans::Planned MemberPlans::PlanOn(size_t group, const Submachine& alone, const Topology& machine,
                                         const Collective& collective, bool rough) {
  StatusOr<Synthesis>& found = Found(machine, collective, FirstOf(group).size_bytes, rough);
  XCCL_RETURN_IF_ERROR(found.status());
  std::vector<int64_t> key = KeyOf(machine, collective, FirstOf(group).size_bytes);
  for (Rank r : alone.rank) key.push_back(r.value);
  for (LinkId l : alone.link) key.push_back(l.value);
  auto placed = placed_.find(key);
  if (placed == placed_.end()) {
    StatusOr<Synthesis> made = OnWholeMachine(*found, alone, FirstOf(group).collective);
    Planned plan = made.status();
    if (made.ok())
      plan = std::make_shared<const MemberPlan>(
          MemberPlan{{std::move(made->collective), std::move(made->schedule)},
                     std::move(made->engine),
                     found->simulation->time_ps});
    placed = placed_.emplace(std::move(key), std::move(plan)).first;
  }
  return placed->second;
}

StatusOr<MovedPlan> MemberPlans::OnWhole(size_t group, const std::vector<uint8_t>* eighths) {
  const auto plan_on = [&](const Topology& machine, const ProcessGroup& asked, bool rough) -> Planned {
    XCCL_ASSIGN_OR_RETURN(Synthesis made, Ask(machine, asked.collective, asked.size_bytes, rough));
    XCCL_ASSIGN_OR_RETURN(Schedule plain, Expand(made.schedule, made.collective, machine));
    return std::make_shared<const MemberPlan>(MemberPlan{
        {std::move(made.collective), std::move(plain)}, std::move(made.engine), made.simulation->time_ps});
  };
  if (eighths != nullptr) {
    const Topology narrowed = WithEighths(topology_, [&](LinkId l) { return (*eighths)[l.index()]; });
    XCCL_ASSIGN_OR_RETURN(std::shared_ptr<const MemberPlan> plan, plan_on(narrowed, groups_[group], true));
    return MovedPlan{std::move(plan), 0};
  }
  std::optional<Planned>& planned = KindOf(group).on_whole;
  if (!planned) planned = plan_on(topology_, FirstOf(group), false);
  XCCL_ASSIGN_OR_RETURN(std::shared_ptr<const MemberPlan> plan, *planned);
  return MovedPlan{std::move(plan), alike_.ElementOf(group)};
}

StatusOr<Bound> MemberPlans::BoundOf(size_t group) {
  std::optional<StatusOr<Bound>>& bound = KindOf(group).bound;
  if (!bound)
    bound = LowerBound(topology_, FirstOf(group).collective, FirstOf(group).size_bytes, options_.model,
                       QuickEffort(topology_));
  return *bound;
}

}  // namespace xccl
