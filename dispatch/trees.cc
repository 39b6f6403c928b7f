// A tree is grown domain by domain, in the order of their distances from the home's own, which is first:
// where the fabric is thin or has no link at all between two domains, the way leads through a third. Inside a
// domain the ranks hang on the one by which rows enter it; where no path joins them, on ranks between.
#include "dispatch/trees.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "base/units.h"

namespace xccl::dispatch {
namespace {

struct Exit {
  int32_t from = -1, to = -1;
  int64_t cost = kForeverPs;
};

class TreeMaker {
 public:
  TreeMaker(const Topology& topology, const Domains& domains, const Paths& paths, const Route& route)
      : topology_(topology),
        domains_(domains),
        paths_(paths),
        route_(route),
        ranks_(topology.num_ranks()),
        order_(domains.size()) {
    JoinDomains();
  }

  StatusOr<std::vector<int32_t>> Make(int32_t lane, int32_t home) {
    tree_.assign(ranks_, -1);
    tree_[home] = home;
    XCCL_RETURN_IF_ERROR(Fill(home));
    const int32_t own = domains_.of_rank[home];
    std::vector<Entered>& order = order_[own];
    if (order.empty()) order = OrderFrom(own);
    if (static_cast<int32_t>(order.size()) < domains_.size()) return Unreachable(home, order);
    for (const auto [domain, before] : order)
      if (domain != own) XCCL_RETURN_IF_ERROR(Enter(lane, home, before, domain));
    return tree_;
  }

 private:
  struct Entered {
    int32_t domain, before;  // the domain that rows come from
  };

  // All domains in the order in which a tree of the first one gets them (Dijkstra 1959).
  std::vector<Entered> OrderFrom(int32_t own) const {
    std::vector<Entered> order;
    std::vector<bool> has(domains_.size());
    std::vector<int64_t> distance(domains_.size(), kForeverPs);
    std::vector<int32_t> before(domains_.size(), own);
    distance[own] = 0;
    while (true) {
      int32_t next = -1;
      for (int32_t d = 0; d < domains_.size(); ++d)
        if (!has[d] && distance[d] < kForeverPs && (next < 0 || distance[d] < distance[next])) next = d;
      if (next < 0) return order;
      has[next] = true;
      order.push_back({next, before[next]});
      for (int32_t d = 0; d < domains_.size(); ++d) {
        const int64_t through = distance[next] + Between(next, d);
        if (has[d] || through >= distance[d]) continue;
        distance[d] = through;
        before[d] = next;
      }
    }
  }

  int64_t& Between(int32_t from, int32_t to) {
    return between_[static_cast<size_t>(from) * domains_.size() + to];
  }
  int64_t Between(int32_t from, int32_t to) const {
    return between_[static_cast<size_t>(from) * domains_.size() + to];
  }

  // The least cost between each two domains.
  void JoinDomains() {
    between_.assign(static_cast<size_t>(domains_.size()) * domains_.size(), kForeverPs);
    for (int32_t from = 0; from < ranks_; ++from)
      for (int32_t to = 0; to < ranks_; ++to) {
        int64_t& least = Between(domains_.of_rank[from], domains_.of_rank[to]);
        least = std::min(least, paths_.Cost(from, to));
      }
  }

  Status Unreachable(int32_t home, std::span<const Entered> order) const {
    const auto has = [&](int32_t rank) {
      return std::ranges::find(order, domains_.of_rank[rank], &Entered::domain) != order.end();
    };
    int32_t rank = 0;
    while (has(rank)) ++rank;
    return Infeasible(fmt::format("{}: no path from rank {} to rank {}; expected one between all ranks",
                                  topology_.name(), home, rank));
  }

  // The member of the domain that stands `behind` places after the home's place.
  int32_t Member(int32_t domain, int32_t home, int32_t behind) const {
    const std::vector<int32_t>& members = domains_.members[domain];
    return members[(domains_.place[home] + behind) % members.size()];
  }

  // The cheapest way from one rank into a domain; of several the one whose place is next to the rank's own.
  Exit Cheapest(int32_t from, int32_t domain) const {
    Exit best;
    for (size_t i = 0; i < domains_.members[domain].size(); ++i) {
      const int32_t to = Member(domain, from, static_cast<int32_t>(i));
      if (paths_.Cost(from, to) < best.cost) best = {from, to, paths_.Cost(from, to)};
    }
    return best;
  }

  // The cheapest way out of one domain into another; of several the one nearest to the entry's place.
  Exit CheapestOut(int32_t entry, int32_t domain) const {
    Exit best;
    const int32_t own = domains_.of_rank[entry];
    for (size_t i = 0; i < domains_.members[own].size(); ++i) {
      const Exit out = Cheapest(Member(own, entry, static_cast<int32_t>(i)), domain);
      if (out.cost < best.cost) best = out;
    }
    return best;
  }

  Status Enter(int32_t lane, int32_t home, int32_t before, int32_t domain) {
    const int32_t own = domains_.of_rank[home];
    if (before != own) return EnterFrom(CheapestOut(entry_of_[before], domain));
    switch (route_.way) {
      case Way::kDirect:
        if (std::ranges::all_of(domains_.members[domain], [&](int32_t to) { return paths_.Joins(home, to); }))
          return HangAll(domain, [&](int32_t) { return home; });
        break;
      case Way::kHomeRail:
        if (std::ranges::all_of(domains_.members[domain],
                                [&](int32_t to) { return BestSender(home, to) >= 0; }))
          return HangAll(domain, [&](int32_t to) { return BestSender(home, to); });
        break;
      case Way::kSpread: {
        const Exit out = Cheapest(Member(own, home, lane), domain);
        if (out.cost < kForeverPs) return EnterFrom(out);
        break;
      }
      case Way::kSameIndex: {
        const int32_t to = Member(domain, home, 0);
        if (paths_.Joins(home, to)) return EnterFrom({home, to, 0});
        break;
      }
      case Way::kRail:
        break;
    }
    const Exit out = Cheapest(home, domain);
    return EnterFrom(out.cost < kForeverPs ? out : CheapestOut(home, domain));
  }

  Status EnterFrom(const Exit& exit) {
    tree_[exit.to] = exit.from;
    return Fill(exit.to);
  }

  // The rank of the home's domain from which the destination costs least; the home itself where it is one.
  int32_t BestSender(int32_t home, int32_t to) const {
    int32_t best = -1;
    int64_t least = kForeverPs;
    const int32_t own = domains_.of_rank[home];
    for (size_t i = 0; i < domains_.members[own].size(); ++i) {
      const int32_t from = Member(own, home, static_cast<int32_t>(i));
      if (paths_.Cost(from, to) >= least) continue;
      least = paths_.Cost(from, to);
      best = from;
    }
    return best;
  }

  template <typename Sender>
  Status HangAll(int32_t domain, Sender sender) {
    for (const int32_t to : domains_.members[domain]) tree_[to] = sender(to);
    entry_of_.resize(domains_.size());
    entry_of_[domain] = domains_.members[domain].front();
    return OkStatus();
  }

  // Hangs the other ranks of a domain on the one that the tree has.
  Status Fill(int32_t entry) {
    const int32_t domain = domains_.of_rank[entry];
    entry_of_.resize(domains_.size());
    entry_of_[domain] = entry;
    const std::vector<int32_t>& members = domains_.members[domain];
    bool all = true;
    for (const int32_t to : members) {
      if (to == entry) continue;
      if (paths_.Joins(entry, to))
        tree_[to] = entry;
      else
        all = false;
    }
    return all ? OkStatus() : FillThrough(entry, members);
  }

  // The cheapest ways from the entry through the domain's ranks; of equal ones that over the pair that fewest
  // trees use.
  Status FillThrough(int32_t entry, const std::vector<int32_t>& members) {
    FindNeighbours();
    std::vector<int64_t> distance(ranks_, kForeverPs);
    using Item = std::pair<int64_t, int32_t>;
    std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
    distance[entry] = 0;
    queue.emplace(0, entry);
    std::vector<int32_t> order;
    while (!queue.empty()) {
      const auto [far, at] = queue.top();
      queue.pop();
      if (far > distance[at]) continue;
      order.push_back(at);
      for (const int32_t next : neighbours_[at]) {
        const int64_t through = far + paths_.Cost(at, next);
        if (through >= distance[next]) continue;
        distance[next] = through;
        queue.emplace(through, next);
      }
    }
    if (order.size() < members.size())
      return Infeasible(fmt::format(
          "{}: rank {} is not joined with all ranks of its domain; expected a path to each and back",
          topology_.name(), entry));
    for (const int32_t to : order) {
      if (to == entry) continue;
      int32_t best = -1;
      for (const int32_t from : into_[to])
        if (distance[from] + paths_.Cost(from, to) == distance[to] &&
            (best < 0 || Uses(from, to) < Uses(best, to)))
          best = from;
      tree_[to] = best;
      ++Uses(best, to);
    }
    return OkStatus();
  }

  int32_t& Uses(int32_t from, int32_t to) { return uses_[static_cast<size_t>(from) * ranks_ + to]; }

  void FindNeighbours() {
    if (!uses_.empty()) return;
    uses_.resize(static_cast<size_t>(ranks_) * ranks_);
    neighbours_.resize(ranks_);
    into_.resize(ranks_);
    for (const std::vector<int32_t>& members : domains_.members)
      for (const int32_t from : members)
        for (const int32_t to : members)
          if (from != to && paths_.Joins(from, to)) {
            neighbours_[from].push_back(to);
            into_[to].push_back(from);
          }
  }

  const Topology& topology_;
  const Domains& domains_;
  const Paths& paths_;
  const Route& route_;
  const int32_t ranks_;
  std::vector<std::vector<Entered>> order_;              // by the home's domain
  std::vector<int64_t> between_;                         // by domain and domain
  std::vector<int32_t> tree_, entry_of_;                 // by rank; by domain
  std::vector<std::vector<int32_t>> neighbours_, into_;  // by rank, inside its domain
  std::vector<int32_t> uses_;                            // by rank and rank: trees with this branch
};

// The deepest sender of the tree, with the home at 0.
int32_t DepthOf(std::span<const int32_t> tree, int32_t home) {
  int32_t deepest = 0;
  for (int32_t rank = 0; rank < static_cast<int32_t>(tree.size()); ++rank) {
    int32_t depth = -1;
    for (int32_t at = rank; at != home; at = tree[at]) ++depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

}  // namespace

StatusOr<ExpertPlan> PlantTrees(const Topology& topology, const Domains& domains, const Paths& paths,
                                const Sizes& sizes, const Route& route) {
  ExpertPlan plan{
      .topology = topology, .sizes = sizes, .route = route.name, .entry = route.entry, .lanes = route.lanes};
  plan.domains = domains.of_rank;
  TreeMaker maker(topology, domains, paths, route);
  int32_t deepest = 0;
  for (int32_t lane = 0; lane < route.lanes; ++lane)
    for (int32_t home = 0; home < sizes.ranks; ++home) {
      XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> tree, maker.Make(lane, home));
      deepest = std::max(deepest, DepthOf(tree, home));
      plan.parents.insert(plan.parents.end(), tree.begin(), tree.end());
    }
  // A row that enters by a rank that needs it may take one branch more than its tree says.
  if (route.entry == Entry::kNeeded) ++deepest;
  // Each block but the smallest may pass it on once.
  if (route.entry == Entry::kNested)
    for (const std::vector<int32_t>& members : domains.members)
      for (const int32_t a : members) deepest = std::max(deepest, BlockOf(a, members.front()));
  for (int32_t depth = 0; depth <= deepest; ++depth) plan.stage_of_depth.push_back(depth);
  return plan;
}

}  // namespace xccl::dispatch
