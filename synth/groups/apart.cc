// 1. Each kind has a plan on all links of its submachine. It has a second plan on the links of no other
//    group, if these join its members. One round times the first plans of all kinds. If any kind has a second
//    plan, another round times the second plans in place of the first ones.
// 2. A round adds up the loads of all groups by link. In a compressed schedule, all links of an orbit have
//    equal loads, which follow from the transfers that the schedule lists.
// 3. A group's share of a link is its load ÷ the load of all groups. All links of an orbit get the least
//    share of any of them, because the machine must keep the schedule's translations. Groups of a kind with
//    equal shares have equal times, so one simulation serves them.
#include "synth/groups/apart.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/units.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "ir/translated.h"

namespace xccl {
namespace {

// The whole bandwidth of a link, as a share. Shares are whole numbers up to kWhole.
constexpr int32_t kWhole = 1 << 12;
// The most patterns of shares of one kind that have their own times. For all further groups of the kind, each
// link has the least share that any group of the kind has of it.
constexpr size_t kMostPatterns = 32;

using Shares = std::vector<int32_t>;  // by class of links

// A plan of one kind, with the loads of links and the times that are known for it.
struct Loaded {
  const LonePlan* plan = nullptr;
  std::vector<int32_t> class_of;  // by link of the submachine: links of a class need equal bandwidth
  std::vector<double> load;       // by class: seconds for which the plan keeps each of its links busy
  std::map<Shares, int64_t> time_ps;
};

Loaded LoadedBy(const LonePlan& plan, int64_t size_bytes) {
  const Topology& topology = plan.alone.topology;
  const Synthesis& made = plan.made;
  Loaded loaded{&plan, {}, {}, {}};
  std::optional<SymmetryGroup> group;
  if (!made.schedule.symmetry.empty()) {
    StatusOr<SymmetryGroup> created = SymmetryGroup::Create(topology, made.schedule.symmetry);
    if (created.ok()) group = *std::move(created);
  }
  for (LinkId l(0); l.value < topology.num_links(); ++l.value)
    loaded.class_of.push_back(group ? group->OrbitOf(l) : l.value);
  loaded.load.assign(static_cast<size_t>(group ? group->num_link_orbits() : topology.num_links()), 0);
  const CollectiveSizes sizes(made.collective, size_bytes);
  const Schedule& schedule = made.schedule;
  std::vector<double> bytes(static_cast<size_t>(schedule.paths.size()), 0);
  for (int64_t t = 0; t < schedule.size(); ++t)
    for (int32_t i = 0; i < schedule.count[t]; ++i)
      bytes[schedule.path[t].index()] +=
          static_cast<double>(sizes.ChunkBytes(ChunkId(schedule.first[t].value + i)));
  for (int32_t p = 0; p < schedule.paths.size(); ++p)
    for (LinkId l : schedule.paths[PathId(p)])
      loaded.load[static_cast<size_t>(loaded.class_of[l.index()])] +=
          bytes[static_cast<size_t>(p)] * (group ? group->LinkShare(group->OrbitOf(l)) : 1) /
          static_cast<double>(topology.link(l).bandwidth_bytes_per_s);
  return loaded;
}

class Round {
 public:
  Round(const Topology& topology, const std::vector<ProcessGroup>& groups, TimeModel model,
        const AlikeGroups& alike, std::vector<Loaded> kinds)
      : groups_(groups),
        model_(model),
        alike_(alike),
        kinds_(std::move(kinds)),
        busy_(static_cast<size_t>(topology.num_links()), 0) {
    for (size_t g = 0; g < groups.size(); ++g) {
      const Loaded& loaded = kinds_[alike.KindOf(g)];
      for (size_t l = 0; l < loaded.class_of.size(); ++l)
        busy_[ImageOf(g, l)] += loaded.load[static_cast<size_t>(loaded.class_of[l])];
    }
  }

  // Returns the time of every group while all groups run.
  std::vector<int64_t> Times() {
    std::vector<int64_t> times;
    std::vector<Shares> least(kinds_.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      Loaded& loaded = kinds_[alike_.KindOf(g)];
      Shares& all = least[alike_.KindOf(g)];
      Shares shares = SharesOf(g, loaded);
      if (all.empty()) all = shares;
      for (size_t i = 0; i < shares.size(); ++i) all[i] = std::min(all[i], shares[i]);
      if (loaded.time_ps.size() >= kMostPatterns && !loaded.time_ps.contains(shares)) {
        times.push_back(-1);
        continue;
      }
      times.push_back(TimeOf(g, loaded, std::move(shares)));
    }
    for (size_t g = 0; g < groups_.size(); ++g)
      if (times[g] < 0) times[g] = TimeOf(g, kinds_[alike_.KindOf(g)], least[alike_.KindOf(g)]);
    return times;
  }

  std::vector<const LonePlan*> Plans() const {
    std::vector<const LonePlan*> plans;
    for (const Loaded& kind : kinds_) plans.push_back(kind.plan);
    return plans;
  }

 private:
  // Returns the link of the whole machine to which the group's translation takes the kind's l-th link.
  size_t ImageOf(size_t group, size_t l) const {
    const LinkId link = kinds_[alike_.KindOf(group)].plan->alone.link[l];
    return alike_.translations().Image(alike_.ElementOf(group), link).index();
  }

  Shares SharesOf(size_t group, const Loaded& loaded) const {
    Shares shares(loaded.load.size(), kWhole);
    for (size_t l = 0; l < loaded.class_of.size(); ++l) {
      const size_t c = static_cast<size_t>(loaded.class_of[l]);
      if (loaded.load[c] <= 0) continue;
      // Rounds down. 1e-6 makes up for the rounding errors of busy_.
      const double share = loaded.load[c] / busy_[ImageOf(group, l)];
      shares[c] = std::min(shares[c], std::max(1, static_cast<int32_t>(share * kWhole + 1e-6)));
    }
    return shares;
  }

  int64_t TimeOf(size_t group, Loaded& loaded, Shares shares) const {
    const auto found = loaded.time_ps.find(shares);
    if (found != loaded.time_ps.end()) return found->second;
    const LonePlan& plan = *loaded.plan;
    int64_t time_ps = plan.made.simulation->time_ps;
    if (std::ranges::any_of(shares, [](int32_t share) { return share < kWhole; })) {
      TopologySpec spec = plan.alone.topology.spec();
      for (size_t l = 0; l < spec.links.size(); ++l) {
        int64_t& bandwidth = spec.links[l].bandwidth_bytes_per_s;
        const int64_t share = shares[static_cast<size_t>(loaded.class_of[l])];
        bandwidth = std::max<int64_t>(1, bandwidth / kWhole * share + bandwidth % kWhole * share / kWhole);
      }
      const Topology narrowed = Topology::Create(std::move(spec)).value();
      time_ps = Simulate(plan.made.schedule, plan.made.collective, narrowed,
                         {.size_bytes = groups_[group].size_bytes, .model = model_, .rough = true})
                    .time_ps;
    }
    loaded.time_ps.emplace(std::move(shares), time_ps);
    return time_ps;
  }

  const std::vector<ProcessGroup>& groups_;
  const TimeModel model_;
  const AlikeGroups& alike_;
  std::vector<Loaded> kinds_;
  std::vector<double> busy_;  // by link of the whole machine: seconds that all groups keep it busy
};

Bound Largest(const Bound& a, const Bound& b) {
  Bound largest = b.bound_ps > a.bound_ps ? b : a;
  largest.latency_ps = std::max(a.latency_ps, b.latency_ps);
  largest.bandwidth_ps = std::max(a.bandwidth_ps, b.bandwidth_ps);
  return largest;
}

}  // namespace

StatusOr<ApartPlan> PlanApart(const Topology& topology, const std::vector<ProcessGroup>& groups,
                              TimeModel model, MemberPlans& plans) {
  const AlikeGroups& alike = plans.alike();
  ApartPlan apart;
  std::vector<Loaded> on_all, on_own;
  std::vector<GroupOutcome> of_kind;
  bool differ = false;
  for (size_t k = 0; k < alike.num_kinds(); ++k) {
    const ProcessGroup& first = groups[alike.FirstOf(k)];
    const auto failed = [&](const Status& why) { return Annotate(why, "group " + first.name); };
    const StatusOr<Bound> bound = plans.BoundOf(alike.FirstOf(k));
    if (!bound.ok()) return failed(bound.status());
    apart.bound = k == 0 ? *bound : Largest(apart.bound, *bound);
    const StatusOr<const LonePlan*> all = plans.Lone(alike.FirstOf(k));
    if (!all.ok()) return failed(all.status());
    of_kind.push_back({(*all)->made.engine, (*all)->made.simulation->time_ps, 0, bound->bound_ps});
    on_all.push_back(LoadedBy(**all, first.size_bytes));
    const StatusOr<const LonePlan*> own = plans.LoneOnOwnLinks(alike.FirstOf(k));
    const bool has_own = own.ok() && *own != nullptr;
    differ |= has_own;
    on_own.push_back(has_own ? LoadedBy(**own, first.size_bytes) : on_all.back());
  }
  Round round(topology, groups, model, alike, std::move(on_all));
  std::vector<int64_t> times = round.Times();
  apart.unaware_ps = apart.time_ps = std::ranges::max(times);
  std::vector<const LonePlan*> chosen = round.Plans();
  if (differ) {
    Round other(topology, groups, model, alike, std::move(on_own));
    std::vector<int64_t> others = other.Times();
    if (std::ranges::max(others) < apart.time_ps) {
      times = std::move(others);
      apart.time_ps = std::ranges::max(times);
      chosen = other.Plans();
    }
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    GroupOutcome outcome = of_kind[alike.KindOf(g)];
    outcome.engine = chosen[alike.KindOf(g)]->made.engine;
    outcome.together_ps = times[g];
    apart.groups.push_back(std::move(outcome));
    if (times[g] == apart.time_ps) apart.slowest = alike.KindOf(g);
  }
  for (size_t k = 0; k < chosen.size(); ++k) apart.kinds.push_back({alike.FirstOf(k), chosen[k]});
  return apart;
}

}  // namespace xccl
