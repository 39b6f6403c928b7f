// Two GPUs are interchangeable if they have equal links to the same nodes, because exchanging the two GPUs
// maps the topology onto itself. Interchangeable GPUs are equally far from all other nodes, so one search
// serves both. One search also serves all ranks of an orbit.
#include "ir/bounds/bound_latency.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "base/graph/min_cost_flow.h"
#include "base/graph/union_find.h"
#include "base/units.h"
#include "ir/bounds/bound_over_time.h"
#include "ir/bounds/needs.h"
#include "ir/time_model.h"
#include "topologies/paths.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

// Most links of a GPU for which a comparison with other GPUs' links costs less than a search.
constexpr size_t kFewLinks = 64;
// The most links that the searches from all holders look at: about two seconds. If all searches would look at
// more links, only some holders, evenly spaced, are searched from. The bound can then be weaker, but never
// too large.
constexpr int64_t kMostLooks = int64_t{1} << 26;

// Sorted links of a GPU as (other end, incoming?, alpha, overhead). Interchangeable GPUs have equal lists.
using Attachment = std::vector<std::tuple<int32_t, bool, int64_t, int64_t>>;

Attachment AttachmentOf(const Topology& topology, Rank rank) {
  Attachment attachment;
  const NodeId node = topology.NodeOf(rank);
  for (LinkId l : topology.Out(node)) {
    const Link& link = topology.link(l);
    attachment.emplace_back(link.to.value, false, link.latency_ps, link.overhead_ps);
  }
  for (LinkId l : topology.In(node)) {
    const Link& link = topology.link(l);
    attachment.emplace_back(link.from.value, true, link.latency_ps, link.overhead_ps);
  }
  std::sort(attachment.begin(), attachment.end());
  return attachment;
}

// Finds holders that are as far from the destinations as a holder that is searched from.
class EquivalentHolders {
 public:
  EquivalentHolders(const Topology& topology, const Need& need, Orbits& orbits) : topology_(topology) {
    const size_t ranks = static_cast<size_t>(topology.num_ranks()), holders = need.holders.size();
    everyone_ = holders == need.destinations.size();
    if (topology.num_ranks() >= kManyRanks && holders == ranks && everyone_)
      translations_ = &orbits.OfMachine();
  }
  // Returns whether the search from another rank serves `r`, too. The other rank is an earlier argument of
  // Seen(), or it represents the orbit of `r`.
  bool Seen(Rank r) {
    if (translations_ != nullptr && translations_->Representative(translations_->OrbitOf(r)) != r)
      return true;
    const NodeId node = topology_.NodeOf(r);
    const bool few_links = topology_.Out(node).size() + topology_.In(node).size() <= kFewLinks;
    return everyone_ && few_links && !seen_.emplace(AttachmentOf(topology_, r)).second;
  }

 private:
  const Topology& topology_;
  bool everyone_ = false;  // every destination is a holder, and every holder a destination
  const SymmetryGroup* translations_ = nullptr;
  std::set<Attachment> seen_;
};

// Returns why a path is missing, if the ranks are on two hosts that no chain of links joins in either
// direction. Otherwise returns an empty text.
std::string HostsApart(const Topology& topology, Rank a, Rank b) {
  const NodeId from = topology.NodeOf(a), to = topology.NodeOf(b);
  const std::optional<HostId> host = topology.node(from).host, other = topology.node(to).host;
  if (!host || !other || *host == *other) return "";
  UnionFind joined(static_cast<size_t>(topology.num_nodes()));
  for (const Link& link : topology.spec().links) joined.Join(link.from.value, link.to.value);
  if (joined.Find(from.value) == joined.Find(to.value)) return "";
  const std::vector<Host>& hosts = topology.spec().hosts;
  return fmt::format(": hosts {} and {} are not joined; hint: <fabric/> joins them",
                     hosts[host->index()].name, hosts[other->index()].name);
}

// Returns the latency of the farthest holder, if all needs have one and the same destination, as in a gather.
// One search backwards from the destination then replaces one search for each holder. Returns nullopt if the
// needs differ in their destinations or a need has several holders, or if a holder has no path. Also returns
// nullopt on small machines if links have overheads, because the search leaves overheads out.
std::optional<int64_t> FarthestFromOne(const Topology& topology, const std::vector<Need>& needs,
                                       TimeModel model) {
  const bool same = needs.size() > 1 && std::ranges::all_of(needs, [&](const Need& need) {
                      return !need.each && need.holders.size() == 1 && need.destinations.size() == 1 &&
                             need.destinations == needs.front().destinations;
                    });
  const bool overhead =
      model == TimeModel::kPipelined &&
      std::ranges::any_of(topology.spec().links, [](const Link& link) { return link.overhead_ps > 0; });
  if (!same || (overhead && std::ssize(needs) < kLargeMachine)) return std::nullopt;
  const int32_t one = topology.NodeOf(needs.front().destinations.front()).value;
  const std::vector<int64_t> costs =
      MinCostFlow(topology.num_nodes(), ArcsOf(topology, model)).CostsTo(std::span(&one, 1));
  int64_t farthest = 0;
  for (const Need& need : needs) {
    const int64_t cost = costs[topology.NodeOf(need.holders.front()).index()];
    if (cost < 0) return std::nullopt;
    farthest = std::max(farthest, cost);
  }
  return farthest;
}

// Drops holders so that the searches from the others look at no more than kMostLooks links. Returns an error
// if a holder has no path to the first holder. LatencyBound() finds out whether the first holder reaches all
// destinations; then every holder reaches them.
Status ThinOut(const Topology& topology, const Collective& collective, std::vector<Rank>& holders) {
  const size_t most =
      static_cast<size_t>(std::max<int64_t>(1, kMostLooks / std::max(1, topology.num_links())));
  if (holders.size() <= most) return OkStatus();
  const Rank first = holders[0];
  const auto nearest = LeastLatencyTo(topology, topology.NodeOf(first));
  for (const Rank r : holders)
    if (!nearest[topology.NodeOf(r).index()])
      return Infeasible(fmt::format("{}: no path from rank {} to rank {}, which {} needs{}", topology.name(),
                                    r.value, first.value, collective.name(), HostsApart(topology, r, first)));
  for (size_t i = 0; i < most; ++i) holders[i] = holders[i * holders.size() / most];
  holders.resize(most);
  return OkStatus();
}

}  // namespace

StatusOr<int64_t> LatencyBound(const Topology& topology, const Collective& collective, TimeModel model,
                               Orbits& orbits) {
  for (Rank r : collective.ranks())
    if (r.value >= topology.num_ranks())
      return InvalidInput(fmt::format("{}: no rank {}, which {} needs; ranks are 0..{}", topology.name(),
                                      r.value, collective.name(), topology.num_ranks() - 1));
  std::vector<int64_t> cost_ps, first_cost_ps;  // by link; first_cost_ps if the link leaves a holder
  for (const Link& link : topology.spec().links) {
    const int64_t alpha = std::min(link.latency_ps, kForeverPs);
    first_cost_ps.push_back(std::min(alpha + std::min(link.overhead_ps, kForeverPs), kForeverPs));
    cost_ps.push_back(model == TimeModel::kBlocking ? first_cost_ps.back() : alpha);
  }
  int64_t farthest = 0;
  // Raises `farthest` to the latency of the destination that is farthest from its nearest holder.
  const auto search = [&](std::span<const Rank> holders, std::span<const Rank> destinations) -> Status {
    std::vector<NodeId> nodes;
    for (const Rank holder : holders) nodes.push_back(topology.NodeOf(holder));
    const auto exchange_costs = [&] {
      for (const NodeId node : nodes)
        for (LinkId l : topology.Out(node)) std::swap(cost_ps[l.index()], first_cost_ps[l.index()]);
    };
    exchange_costs();
    const auto nearest = LeastLatencyFrom(topology, nodes, cost_ps);
    exchange_costs();
    for (Rank r : destinations) {
      const std::optional<int64_t> distance = nearest[topology.NodeOf(r).index()];
      if (!distance)
        return Infeasible(fmt::format("{}: no path from rank {} to rank {}, which {} needs{}",
                                      topology.name(), holders[0].value, r.value, collective.name(),
                                      HostsApart(topology, holders[0], r)));
      farthest = std::max(farthest, *distance);
    }
    return OkStatus();
  };
  const std::vector<Need> needs = NeedsOf(collective);
  if (const std::optional<int64_t> to_one = FarthestFromOne(topology, needs, model)) return *to_one;
  for (const Need& need : needs) {
    if (!need.each) {
      XCCL_RETURN_IF_ERROR(search(need.holders, need.destinations));
      continue;
    }
    EquivalentHolders equivalent(topology, need, orbits);
    std::vector<Rank> holders;
    for (const Rank r : need.holders)
      if (!equivalent.Seen(r)) holders.push_back(r);
    XCCL_RETURN_IF_ERROR(ThinOut(topology, collective, holders));
    for (const Rank& r : holders) XCCL_RETURN_IF_ERROR(search(std::span(&r, 1), need.destinations));
  }
  return farthest;
}

}  // namespace xccl
