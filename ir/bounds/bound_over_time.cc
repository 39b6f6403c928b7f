// Why flows over time bound a plan: take any plan, and follow each byte that a rank needs back to a rank that
// held it at the start. In each time slot every link carries at most its bandwidth, and data arrives at least
// alpha after it enters the link. So the paths of all bytes together are a flow over time
// (base/graph/flow_over_time.h). No plan is faster than the least time of a flow
// - from one holder to one rank that needs all data of the holder (broadcast, reduce, allreduce),
// - from any set of holders of different bytes, joined into one source, to the rank that needs the bytes,
// - from one holder to any set of ranks that need different bytes of the holder, joined into one sink.
// Sums for different ranks are different bytes too. A holder's contribution to each sum goes to the sum's own
// destination, even if other contributions join it on the way. Contributions of several holders to one sum
// may travel as one, so the holders of one sum are never joined into a source.
//
// Let o(A) be the bytes that a joined set A can bring by time T, and d(A) the bytes that A must bring. Then
// o - d is submodular (Hoppe and Tardos 2000). The search for the worst set has these steps:
// 1. Bounds from distances and from the links of both ends sort the exchanges, the most promising first.
// 2. Some sets are tried: for several distances all ranks at least that far away, and all ranks outside the
//    host.
// 3. base/graph/submodular.h looks for a set with o - d < 0 at the largest T so far. The set raises T. The
//    search repeats until there is no such set.
//
// Overhead in the blocking model: data waits for alpha + overhead on every link before its bytes pass, so
// both delay it. Overhead in the pipelined model: only the first message of a link is sure to pay.
// - On a link from the source to another GPU, all bytes pass after the first overhead, because a GPU has a
//   segment only when the segment's last byte is there.
// - A link to a switch does not pay. A switch sends a segment on before its last byte is there. If the
//   switch's next link is slower, the overhead of the first link delays nothing.
// - With several sources no link pays, because o would not be submodular.
#include "ir/bounds/bound_over_time.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/graph/flow_over_time.h"
#include "base/graph/min_cost_flow.h"
#include "base/graph/submodular.h"
#include "base/units.h"

namespace xccl {
namespace {

// The most distances for which the set of all ranks at least that far away is tried.
constexpr size_t kDistances = 24;
// A search for the worst set looks at several orders of the set's elements. The search begins only if the
// work that is left is enough for this number of orders.
constexpr int64_t kOrders = 8;
// The most shares (Exchange::Share) of all ranks together. If there are more, only every n-th rank counts.
constexpr int32_t kShares = 1 << 18;
// Work limits in arcs looked at: a second for kExact, a fraction of a second for kFast.
constexpr int64_t kWork = 12'000'000;
constexpr int64_t kFastWork = 6'000'000;
// Flows are computed on a large machine (kLargeMachine) only if the work is enough for this number of
// searches over all links. One flow takes a search for each length of its paths. With less work, the bound
// follows from distances and from the links of both ends alone.
constexpr int64_t kFewestSearches = 64;

// The data that one rank must get from other ranks, or must give to them.
struct Exchange {
  // The data exchanged with one other rank.
  struct Share {
    int32_t node;
    int64_t bytes;
    int64_t distance = 0;  // in ps, between both ranks; set by Simple()
  };
  int32_t node = 0;     // of the one rank
  bool gets = false;    // the rank gets the shares; otherwise it gives them
  bool joined = false;  // shares are different bytes; otherwise each share is all the data
  std::vector<Share> shares;
};

class Exchanges {
 public:
  Exchanges(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
            Orbits& orbits)
      : topology_(topology), collective_(collective), sizes_(sizes), orbits_(orbits) {}

  std::vector<Exchange> List() {
    switch (TraitsOf(collective_.kind()).parts) {
      case KindTraits::Parts::kOne:
        OfOnePart();
        break;
      case KindTraits::Parts::kPerMember:
        OfMembers();
        break;
      case KindTraits::Parts::kPerPair:
        OfAllPairs();
        break;
      case KindTraits::Parts::kListed:
        OfListedPairs();
        break;
    }
    std::erase_if(made_, [](const Exchange& exchange) { return exchange.shares.empty(); });
    return std::move(made_);
  }

 private:
  int32_t NodeOf(Rank r) const { return topology_.NodeOf(r).value; }

  // Returns one rank of each orbit. If the ranks have too many shares together, returns every n-th of them.
  std::vector<Rank> Representatives() const {
    std::vector<Rank> kept = orbits_.OneOfEach(collective_, sizes_);
    const auto most = static_cast<size_t>(std::max(1, kShares / collective_.num_members()));
    const size_t stride = (kept.size() + most - 1) / most;
    for (size_t i = 0; i * stride < kept.size(); ++i) kept[i] = kept[i * stride];
    kept.resize((kept.size() + stride - 1) / stride);
    return kept;
  }

  // Adds the exchange of `rank` with every other member. bytes(i) is the share with the i-th member.
  template <typename Bytes>
  void Add(Rank rank, bool gets, bool joined, Bytes bytes) {
    Exchange exchange{.node = NodeOf(rank), .gets = gets, .joined = joined, .shares = {}};
    for (int32_t i = 0; i < collective_.num_members(); ++i) {
      const Rank member = collective_.ranks()[static_cast<size_t>(i)];
      if (member == rank) continue;
      if (const int64_t share = bytes(i); share > 0) exchange.shares.push_back({NodeOf(member), share});
    }
    made_.push_back(std::move(exchange));
  }

  void OfOnePart() {
    const int64_t all = sizes_.PartBytes(PartId(0));
    const auto whole = [&](int32_t) { return all; };
    const bool to_root = TraitsOf(collective_.kind()).after == KindTraits::Holders::kRoot;
    if (IsRooted(collective_.kind())) return Add(*collective_.spec().root, to_root, false, whole);
    for (const Rank r : Representatives()) Add(r, false, false, whole);
  }

  void OfMembers() {
    const KindTraits& traits = TraitsOf(collective_.kind());
    const bool gets = traits.before == KindTraits::Holders::kOwn;
    const auto part = [&](int32_t i) { return sizes_.PartBytes(PartId(i)); };
    if (IsRooted(collective_.kind())) return Add(*collective_.spec().root, gets, true, part);
    for (const Rank r : Representatives()) Add(r, gets, true, part);
  }

  void OfAllPairs() {
    const int32_t members = collective_.num_members();
    for (const Rank r : Representatives()) {
      const int32_t own = *collective_.MemberIndex(r);
      Add(r, true, true, [&](int32_t i) { return sizes_.PartBytes(PartId(i * members + own)); });
      Add(r, false, true, [&](int32_t i) { return sizes_.PartBytes(PartId(own * members + i)); });
    }
  }

  void OfListedPairs() {
    std::map<std::pair<int32_t, bool>, Exchange> by_end;
    const auto& pairs = collective_.spec().pairs;
    for (int32_t p = 0; p < std::ssize(pairs); ++p) {
      const auto [from, to] = pairs[static_cast<size_t>(p)];
      const int64_t bytes = sizes_.PartBytes(PartId(p));
      if (from == to || bytes == 0) continue;
      for (const bool gets : {false, true}) {
        const int32_t node = NodeOf(gets ? to : from), other = NodeOf(gets ? from : to);
        Exchange& exchange = by_end[{node, gets}];
        exchange.node = node;
        exchange.gets = gets;
        exchange.joined = true;
        exchange.shares.push_back({other, bytes});
      }
    }
    for (auto& [end, exchange] : by_end) made_.push_back(std::move(exchange));
  }

  const Topology& topology_;
  const Collective& collective_;
  const CollectiveSizes& sizes_;
  Orbits& orbits_;
  std::vector<Exchange> made_;
};

// Returns the machine with one more node, the hub. Arcs lead from the hub to every node and from every node
// to the hub. They have no capacity until FlowsSteadily() gives them some.
MinCostFlow WithHub(const Topology& topology, TimeModel model) {
  std::vector<CostArc> arcs = ArcsOf(topology, model);
  for (CostArc& arc : arcs) arc.cost += std::exchange(arc.start_cost, 0);
  const int32_t hub = topology.num_nodes();
  for (int32_t n = 0; n < hub; ++n) {
    arcs.push_back({.from = hub, .to = n});
    arcs.push_back({.from = n, .to = hub});
  }
  return MinCostFlow(hub + 1, std::move(arcs));
}

class WorstExchange {
 public:
  WorstExchange(const Topology& topology, TimeModel model, int64_t most_work, int64_t at_least)
      : topology_(topology),
        network_(topology.num_nodes(), ArcsOf(topology, model)),
        flows_(topology.num_ranks() < kLargeMachine || kFewestSearches * topology.num_links() <= most_work),
        hubbed_(WithHub(topology, model)),
        most_work_(most_work),
        best_(at_least) {
    out_.resize(static_cast<size_t>(topology.num_nodes()));
    in_.resize(out_.size());
    for (const Link& link : topology.spec().links) {
      starts_cost_ |= link.overhead_ps > 0 && model == TimeModel::kPipelined;
      out_[link.from.index()] += link.bandwidth_bytes_per_s;
      in_[link.to.index()] += link.bandwidth_bytes_per_s;
    }
  }

  int64_t Run(std::vector<Exchange> exchanges) {
    // Bounds that need no flow come first. They sort the exchanges, the most promising first, so that most
    // later exchanges end early.
    std::vector<std::pair<int64_t, size_t>> order;
    for (size_t e = 0; e < exchanges.size() && HasTime(); ++e) order.emplace_back(-Simple(exchanges[e]), e);
    std::ranges::sort(order);
    if (!flows_) return best_;
    for (const auto& [promise, e] : order) {
      if (!HasTime()) break;
      exchanges[e].joined ? TryFarOnes(exchanges[e]) : TryEach(exchanges[e]);
    }
    for (const auto& [promise, e] : order) {
      if (!HasTime()) break;
      if (exchanges[e].joined && !IsEasy(exchanges[e])) FindWorst(exchanges[e]);
    }
    return best_;
  }

 private:
  int64_t WorkLeft() const { return most_work_ - network_.work() - hubbed_.work(); }
  bool HasTime() const { return WorkLeft() > 0; }

  // Returns in ps the wait plus the time of `bytes` over `bandwidth`.
  static int64_t After(int64_t wait, int64_t bytes, int64_t bandwidth) {
    const __int128 ps = static_cast<__int128>(bytes) * kPsPerSecond / bandwidth + wait;
    return static_cast<int64_t>(std::min<__int128>(ps, kForeverPs));
  }

  // Sorts the shares: by distance, farthest first, if they are joined; otherwise by their own bound. Returns
  // the largest bound that follows from distances and from the links of both ends.
  int64_t Simple(Exchange& exchange) {
    const std::span<const int32_t> end(&exchange.node, 1);
    const std::vector<int64_t> costs = exchange.gets ? network_.CostsTo(end) : network_.CostsFrom(end);
    for (Exchange::Share& share : exchange.shares) share.distance = costs[static_cast<size_t>(share.node)];
    const int64_t own = (exchange.gets ? in_ : out_)[static_cast<size_t>(exchange.node)];
    const auto simple = [&](const Exchange::Share& share) {
      const int64_t other = (exchange.gets ? out_ : in_)[static_cast<size_t>(share.node)];
      return After(share.distance, share.bytes, std::min(own, other));
    };
    const auto far_first = [](const Exchange::Share& share) {
      return std::pair(-share.distance, share.node);
    };
    const auto long_first = [&](const Exchange::Share& share) {
      return std::pair(-simple(share), share.node);
    };
    exchange.joined ? std::ranges::sort(exchange.shares, {}, far_first)
                    : std::ranges::sort(exchange.shares, {}, long_first);
    int64_t most = 0, bytes = 0;
    for (const Exchange::Share& share : exchange.shares) {
      bytes += share.bytes;
      most = std::max(most, simple(share));
      if (exchange.joined) most = std::max(most, After(share.distance, bytes, own));
    }
    best_ = std::max(best_, most);
    return most;
  }

  TimeQuery QueryOf(const Exchange& exchange, std::span<const int32_t> others, int64_t bytes) {
    const std::span<const int32_t> own(&exchange.node, 1);
    return {.sources = exchange.gets ? others : own,
            .sinks = exchange.gets ? own : others,
            .amount = bytes,
            .times = kPsPerSecond};
  }

  void Try(const Exchange& exchange, std::span<const int32_t> others, int64_t bytes) {
    best_ = std::max(best_, LeastTime(network_, QueryOf(exchange, others, bytes), best_).value_or(0));
  }

  void TryEach(const Exchange& exchange) {
    for (const Exchange::Share& share : exchange.shares) {
      if (!HasTime()) return;
      Try(exchange, std::span(&share.node, 1), share.bytes);
    }
  }

  // Tries these sets of shares:
  // - all shares at least as far away as a distance, for the distances with the largest bounds from the links
  //   of this rank alone;
  // - all shares outside the rank's host;
  // - each share alone, if the rank gets the shares and links have overheads, since only a lone source pays
  //   the overhead of its links.
  void TryFarOnes(const Exchange& exchange) {
    const std::vector<Exchange::Share>& shares = exchange.shares;
    const int64_t own = (exchange.gets ? in_ : out_)[static_cast<size_t>(exchange.node)];
    std::vector<int32_t> others;
    std::vector<std::tuple<int64_t, size_t, int64_t>>
        ends;  // (- bound by own links, number of shares, their bytes)
    int64_t bytes = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      others.push_back(shares[i].node);
      bytes += shares[i].bytes;
      if (i + 1 == shares.size() || shares[i + 1].distance != shares[i].distance)
        ends.emplace_back(-After(shares[i].distance, bytes, own), i + 1, bytes);
    }
    std::ranges::sort(ends);
    for (size_t i = 0; i < std::min(ends.size(), kDistances) && HasTime(); ++i) {
      const auto [promise, count, sum] = ends[i];
      Try(exchange, std::span(others).first(count), sum);
    }
    others.clear();
    bytes = 0;
    for (const Exchange::Share& share : shares) {
      if (topology_.node(NodeId(share.node)).host == topology_.node(NodeId(exchange.node)).host) continue;
      others.push_back(share.node);
      bytes += share.bytes;
    }
    if (!others.empty() && others.size() < shares.size()) Try(exchange, others, bytes);
    if (exchange.gets && starts_cost_) TryEach(exchange);
  }

  // Returns whether a simple plan finishes the exchange by best_, so that no set gives a larger bound. In the
  // simple plan each share flows at a steady rate over paths at most `detour` longer than the shortest path.
  // Its last byte arrives just in time.
  bool IsEasy(const Exchange& exchange) {
    const int64_t spare = best_ - exchange.shares.front().distance;
    for (const int64_t detour : {int64_t{0}, spare / 16, spare / 4})
      if (detour < spare && HasTime() && FlowsSteadily(exchange, detour)) return true;
    return false;
  }

  // Returns whether the simple plan of IsEasy() exists for this detour. The hub's arcs make all paths equally
  // long and limit each share to its rate.
  bool FlowsSteadily(const Exchange& exchange, int64_t detour) {
    const int32_t hub = topology_.num_nodes();
    const int64_t farthest = exchange.shares.front().distance;
    const auto arc_of = [&](int32_t node) {
      return topology_.num_links() + 2 * node + (exchange.gets ? 0 : 1);
    };
    __int128 left = 0;
    for (const Exchange::Share& share : exchange.shares) {
      const __int128 bytes = static_cast<__int128>(share.bytes) * kPsPerSecond;
      const __int128 time = best_ - share.distance - detour, rate = (bytes + time - 1) / time;
      left += rate;
      if (left >= kForeverPs) break;
      hubbed_.Change(arc_of(share.node), static_cast<int64_t>(rate), farthest - share.distance);
    }
    if (left < kForeverPs) {
      const std::span<const int32_t> own(&exchange.node, 1), others(&hub, 1);
      hubbed_.Start(exchange.gets ? others : own, exchange.gets ? own : others);
      while (const std::optional<FlowStep> step = hubbed_.Next(farthest + detour + 1)) left -= step->amount;
    }
    for (const Exchange::Share& share : exchange.shares) hubbed_.Change(arc_of(share.node), 0, 0);
    return left == 0;
  }

  // Looks for a set of shares that cannot bring its bytes by best_ + 1 ps, and raises best_ to the least time
  // of the set. Repeats until there is no such set or the work is used up.
  void FindWorst(const Exchange& exchange) {
    const std::vector<Exchange::Share>& shares = exchange.shares;
    if (std::ssize(shares) * topology_.num_links() > WorkLeft() / kOrders) return;
    double all = 0;
    NegativeSetSearch search{.elements = static_cast<int32_t>(shares.size()),
                             .values_along = {},
                             .first_order = {},
                             .stopped = [&] { return !HasTime(); }};
    for (int32_t i = 0; i < search.elements; ++i) {
      search.first_order.push_back(i);
      all += static_cast<double>(shares[static_cast<size_t>(i)].bytes) * static_cast<double>(kPsPerSecond);
    }
    std::vector<int32_t> others;
    int64_t bytes = 0;
    const auto add = [&](int32_t i) {
      others.push_back(shares[static_cast<size_t>(i)].node);
      bytes += shares[static_cast<size_t>(i)].bytes;
    };
    search.values_along = [&](std::span<const int32_t> order) {
      std::vector<double> values;
      others.clear();
      bytes = 0;
      for (const int32_t i : order) {
        add(i);
        values.push_back(
            static_cast<double>(SurplusBy(network_, QueryOf(exchange, others, bytes), best_ + 1)) / all);
      }
      return values;
    };
    while (const auto worse = FindNegativeSet(search)) {
      others.clear();
      bytes = 0;
      for (const int32_t i : *worse) add(i);
      Try(exchange, others, bytes);
    }
  }

  const Topology& topology_;
  MinCostFlow network_;
  const bool flows_;  // there is time for flows
  MinCostFlow hubbed_;
  const int64_t most_work_;
  bool starts_cost_ = false;
  int64_t best_;
  std::vector<int64_t> out_, in_;  // by node: bandwidth of all links out of and into it
};

}  // namespace

std::vector<CostArc> ArcsOf(const Topology& topology, TimeModel model) {
  std::vector<CostArc> arcs;
  for (const Link& link : topology.spec().links) {
    const bool blocking = model == TimeModel::kBlocking;
    const bool between_gpus = topology.IsGpu(link.from) && topology.IsGpu(link.to);
    arcs.push_back({link.from.value, link.to.value, link.bandwidth_bytes_per_s,
                    link.latency_ps + (blocking ? link.overhead_ps : 0),
                    !blocking && between_gpus ? link.overhead_ps : 0});
  }
  return arcs;
}

int64_t MostArcs(BoundEffort effort) { return effort == BoundEffort::kFast ? kFastWork : kWork; }

std::optional<int64_t> FlowOverTimeBound(const Topology& topology, const Collective& collective,
                                         const CollectiveSizes& sizes, TimeModel model, BoundEffort effort,
                                         int64_t at_least, Orbits& orbits) {
  if (collective.kind() == CollectiveKind::kCustom || sizes.size_bytes() == 0) return std::nullopt;
  const int64_t found = WorstExchange(topology, model, MostArcs(effort), at_least)
                            .Run(Exchanges(topology, collective, sizes, orbits).List());
  return found > at_least ? std::optional(found) : std::nullopt;
}

}  // namespace xccl
