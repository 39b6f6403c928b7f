// Plans one group at a time, and reuses earlier plans.
// 1. Alone takes the submachine of the members, and narrows its links to the shares in `eighths`.
// 2. PlanOn looks up the submachine and the collective (KeyOf) in alone_, and asks an engine if there is no
//    entry. It renumbers the plan for the whole machine.
// 3. OnOwnLinks calls PlanOn with only the links that no other group's submachine has.
// 4. OnWhole renumbers the plan of an earlier group that a translation takes to this group. If there is no
//    such group, it asks the engine. It does not reuse plans on narrowed links.
#include "synth/groups/member_plans.h"

#include <algorithm>
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

// Returns the topology with every link narrowed to its share in `eighths`. If the topology is a submachine,
// `whole` maps its links to the links of the whole machine.
Topology WithEighths(const Topology& topology, const std::vector<LinkId>* whole,
                     const std::vector<uint8_t>& eighths) {
  TopologySpec spec = topology.spec();
  for (size_t l = 0; l < spec.links.size(); ++l) {
    int64_t& bandwidth = spec.links[l].bandwidth_bytes_per_s;
    const size_t there = whole != nullptr ? (*whole)[l].index() : l;
    bandwidth = std::max<int64_t>(1, bandwidth / 8 * eighths[there] + bandwidth % 8 * eighths[there] / 8);
  }
  return Topology::Create(std::move(spec)).value();
}

}  // namespace

MemberPlans::MemberPlans(const Topology& topology, const std::vector<ProcessGroup>& groups,
                         const MemberPlanOptions& options)
    : topology_(topology), groups_(groups), options_(options), submachines_(groups.size()) {}

const Submachine& MemberPlans::SubmachineOf(size_t group) {
  std::optional<Submachine>& alone = submachines_[group];
  if (!alone) alone = MembersAlone(topology_, groups_[group].collective.ranks());
  return *alone;
}

bool MemberPlans::IsJoinedAlone(size_t group) {
  const Submachine& alone = SubmachineOf(group);
  return CheckReachable(alone.topology, RestrictTo(groups_[group].collective, alone)).ok();
}

StatusOr<Synthesis> MemberPlans::Ask(const Topology& machine, const Collective& collective, size_t group,
                                     bool rough) {
  XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(options_.engine));
  const SynthesisRequest request{.topology = &machine,
                                 .collective = &collective,
                                 .size_bytes = groups_[group].size_bytes,
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

StatusOr<MemberPlan> MemberPlans::Alone(size_t group, const std::vector<uint8_t>* eighths) {
  const Submachine& alone = SubmachineOf(group);
  const Collective collective = RestrictTo(groups_[group].collective, alone);
  std::optional<Topology> narrowed;
  if (eighths != nullptr) narrowed = WithEighths(alone.topology, &alone.link, *eighths);
  return PlanOn(group, alone, narrowed ? *narrowed : alone.topology, collective, narrowed.has_value());
}

std::optional<Submachine> MemberPlans::OwnLinksOf(size_t group) {
  if (users_.empty()) {
    users_.assign(static_cast<size_t>(topology_.num_links()), 0);
    for (size_t g = 0; g < groups_.size(); ++g)
      for (LinkId l : SubmachineOf(g).link) ++users_[l.index()];
  }
  const Submachine& alone = SubmachineOf(group);
  const auto is_own = [&](LinkId l) { return users_[l.index()] == 1; };
  if (std::ranges::all_of(alone.link, is_own)) return std::nullopt;
  TopologySpec spec = alone.topology.spec();
  const std::vector<Link> links = std::exchange(spec.links, {});
  std::vector<LinkId> kept;
  for (size_t l = 0; l < links.size(); ++l) {
    if (!is_own(alone.link[l])) continue;
    spec.links.push_back(links[l]);
    kept.push_back(alone.link[l]);
  }
  const Topology own = Topology::Create(std::move(spec)).value();
  const Collective collective = RestrictTo(groups_[group].collective, alone);
  Submachine inner = MembersAlone(own, collective.ranks());
  if (!CheckReachable(inner.topology, RestrictTo(collective, inner)).ok()) return std::nullopt;
  for (Rank& r : inner.rank) r = alone.rank[r.index()];
  for (LinkId& l : inner.link) l = kept[l.index()];
  return inner;
}

StatusOr<std::optional<MemberPlan>> MemberPlans::OnOwnLinks(size_t group) {
  const std::optional<Submachine> own = OwnLinksOf(group);
  if (!own) return std::optional<MemberPlan>();
  XCCL_ASSIGN_OR_RETURN(MemberPlan plan, PlanOn(group, *own, own->topology,
                                                RestrictTo(groups_[group].collective, *own), false));
  return std::optional(std::move(plan));
}

StatusOr<MemberPlan> MemberPlans::PlanOn(size_t group, const Submachine& alone, const Topology& machine,
                                         const Collective& collective, bool rough) {
  const Collective& whole = groups_[group].collective;
  const std::vector<int64_t> key = KeyOf(machine, collective, groups_[group].size_bytes);
  auto found = alone_.find(key);
  if (found == alone_.end()) found = alone_.emplace(key, Ask(machine, collective, group, rough)).first;
  XCCL_RETURN_IF_ERROR(found->second.status());
  XCCL_ASSIGN_OR_RETURN(Synthesis made, OnWholeMachine(*found->second, alone, whole));
  return MemberPlan{{std::move(made.collective), std::move(made.schedule)},
                    std::move(made.engine),
                    found->second->simulation->time_ps};
}

std::optional<std::pair<const MemberPlans::Seen*, int64_t>> MemberPlans::Translate(size_t group,
                                                                                   bool (*has)(const Seen&)) {
  const CollectiveSpec& spec = groups_[group].collective.spec();
  if (!translations_) translations_ = FindTranslations(topology_);
  for (const Seen& seen : seen_) {
    if (!has(seen)) continue;
    const CollectiveSpec& other = groups_[seen.group].collective.spec();
    if (other.kind != spec.kind || groups_[seen.group].size_bytes != groups_[group].size_bytes ||
        other.ranks.size() != spec.ranks.size() || other.counts != spec.counts || !spec.pairs.empty() ||
        translations_->OrbitOf(other.ranks[0]) != translations_->OrbitOf(spec.ranks[0]))
      continue;
    const int64_t e =
        translations_->Compose(translations_->ElementOf(spec.ranks[0]),
                               translations_->Inverse(translations_->ElementOf(other.ranks[0])));
    bool same = !spec.root || translations_->Image(e, *other.root) == *spec.root;
    for (size_t i = 0; same && i < spec.ranks.size(); ++i)
      same = translations_->Image(e, other.ranks[i]) == spec.ranks[i];
    if (same) return std::pair(&seen, e);
  }
  return std::nullopt;
}

StatusOr<MemberPlan> MemberPlans::OnWhole(size_t group, const std::vector<uint8_t>* eighths) {
  const Collective& whole = groups_[group].collective;
  if (eighths == nullptr) {
    if (const auto found = Translate(group, [](const Seen& seen) { return seen.plan.has_value(); })) {
      MemberPlan plan = *found->first->plan;
      plan.plan.schedule = Renumber(
          plan.plan.schedule, [&](Rank r) { return translations_->Image(found->second, r); },
          [&](LinkId l) { return translations_->Image(found->second, l); });
      // The parts of the two collectives correspond in order.
      std::vector<std::vector<int64_t>> weights(static_cast<size_t>(whole.num_parts()));
      const Collective& cut = plan.plan.collective;
      for (int32_t c = 0; c < cut.num_chunks(); ++c)
        weights[cut.PartOf(ChunkId(c)).index()].push_back(cut.Weight(ChunkId(c)));
      plan.plan.collective = whole.WithWeights(weights);
      return plan;
    }
  }
  std::optional<Topology> narrowed;
  if (eighths != nullptr) narrowed = WithEighths(topology_, nullptr, *eighths);
  const Topology& machine = narrowed ? *narrowed : topology_;
  XCCL_ASSIGN_OR_RETURN(Synthesis made, Ask(machine, whole, group, narrowed.has_value()));
  XCCL_ASSIGN_OR_RETURN(Schedule plain, Expand(made.schedule, made.collective, machine));
  MemberPlan plan{
      {std::move(made.collective), std::move(plain)}, std::move(made.engine), made.simulation->time_ps};
  if (eighths == nullptr) seen_.push_back({group, plan, {}});
  return plan;
}

StatusOr<Bound> MemberPlans::BoundOf(size_t group) {
  if (const auto found = Translate(group, [](const Seen& seen) { return seen.bound.has_value(); }))
    return *found->first->bound;
  const BoundEffort effort = QuickEffort(topology_);
  XCCL_ASSIGN_OR_RETURN(Bound bound, LowerBound(topology_, groups_[group].collective,
                                                groups_[group].size_bytes, options_.model, effort));
  seen_.push_back({group, {}, bound});
  return bound;
}

}  // namespace xccl
