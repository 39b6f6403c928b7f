// Take any plan, and follow each byte that a rank needs back to a rank that held it at first. In its time
// slot every link carries at most its bandwidth, and what enters it arrives alpha later at the earliest:
// together the ways of all bytes are a flow over time (base/graph/flow_over_time.h). So no plan is faster
// than the least time of a flow from
//   one holder to one rank that needs all that the holder has (broadcast, reduce, allreduce),
//   any set of the holders of different bytes, joined into one source, to the rank that needs them,
//   one holder to any set of ranks that need different bytes of it, joined into one sink.
// Sums for different ranks are different bytes too: a holder's share of each goes to its own destination,
// whatever joins it on the way. Shares of one sum that several holders have may travel as one, so the holders
// of one sum are never joined into a source.
//
// The worst set: let o(A) be the bytes that the joined set A can bring by time T, and d(A) the bytes that it
// has to bring; then o - d is submodular (Hoppe and Tardos 2000). The sets tried are, for every distance, all
// ranks at least so far away, and all ranks outside the host. Then base/graph/submodular.h looks for a set
// below zero at the largest T so far, until there is none.
//
// Overhead: in `blocking` data waits for alpha + overhead on every link before its bytes pass, so both delay
// it. In `pipelined` only the first message of a link is sure to pay it. Where the link leaves the source for
// another GPU, which has a segment only when its last byte is there, all bytes pass after that overhead. A
// switch sends a segment on before its last byte is there. If the switch's next link is slower, the overhead
// of the first link delays nothing, so links to switches are not made to pay. Neither are links of several
// sources together, since o would not be submodular.
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
#include "ir/translated.h"

namespace xccl {
namespace {

// Distances of a rank for which the set of the ranks at least so far away is tried.
constexpr size_t kDistances = 24;
// A search for the worst set looks at several orders of its elements. It begins where the work that is left
// would do for so many orders.
constexpr int64_t kOrders = 8;
// Shares of all ranks together that are looked at.
constexpr int32_t kShares = 1 << 18;
// Limits of the work, in arcs looked at: a second, and a fraction of a second.
constexpr int64_t kWork = 12'000'000;
constexpr int64_t kFastWork = 6'000'000;

// One rank, and the data that it must get from each other rank, or give to it.
struct Exchange {
  struct Share {
    int32_t node;
    int64_t bytes;
    int64_t distance = 0;  // between both ends; set by the search
  };
  int32_t node = 0;
  bool gets = false;
  bool joined = false;  // the shares are different bytes; else each is the whole by itself
  std::vector<Share> shares;
};

class Exchanges {
 public:
  Exchanges(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes)
      : topology_(topology), collective_(collective), sizes_(sizes) {}

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

  // One rank of each orbit; every n-th of them where they have too many shares.
  std::vector<Rank> Representatives() const {
    std::vector<Rank> kept = OneOfEachOrbit(collective_, topology_, sizes_);
    const auto most = static_cast<size_t>(std::max(1, kShares / collective_.num_members()));
    const size_t stride = (kept.size() + most - 1) / most;
    for (size_t i = 0; i * stride < kept.size(); ++i) kept[i] = kept[i * stride];
    kept.resize((kept.size() + stride - 1) / stride);
    return kept;
  }

  // Adds the exchange of `rank` with every other member; bytes(member) is its size.
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
  std::vector<Exchange> made_;
};

// The machine with one more node. For each node of the machine there is an arc to it and one from it, of no
// capacity yet.
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
    // Bounds that need no flow come first. They order the exchanges, the most promising first, so that most
    // later exchanges are given up early.
    std::vector<std::pair<int64_t, size_t>> order;
    for (size_t e = 0; e < exchanges.size() && HasTime(); ++e) order.emplace_back(-Simple(exchanges[e]), e);
    std::ranges::sort(order);
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

  // A wait and the time of `bytes` over `bandwidth`, in ps.
  static int64_t After(int64_t wait, int64_t bytes, int64_t bandwidth) {
    const __int128 ps = static_cast<__int128>(bytes) * kPsPerSecond / bandwidth + wait;
    return static_cast<int64_t>(std::min<__int128>(ps, kForeverPs));
  }

  // Sorts the shares, far ones first, and returns the largest bound from distances and the links of both
  // ends.
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

  // Tries sets of shares: all shares at least so far away, for the distances that promise most by the links
  // of this rank alone; then all shares outside its host; then each share by itself where its start costs
  // more.
  void TryFarOnes(const Exchange& exchange) {
    const std::vector<Exchange::Share>& shares = exchange.shares;
    const int64_t own = (exchange.gets ? in_ : out_)[static_cast<size_t>(exchange.node)];
    std::vector<int32_t> others;
    std::vector<std::tuple<int64_t, size_t, int64_t>>
        ends;  // minus the promise, how many shares, their bytes
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

  // True if a simple plan does the exchange by the time best_, so that no set is worse: each share flows
  // steadily, on ways at most `detour` longer than the shortest, until the last of it is just in time.
  bool IsEasy(const Exchange& exchange) {
    const int64_t spare = best_ - exchange.shares.front().distance;
    for (const int64_t detour : {int64_t{0}, spare / 16, spare / 4})
      if (detour < spare && HasTime() && FlowsSteadily(exchange, detour)) return true;
    return false;
  }

  // The hub's arcs make all ways equally long and hold each share to its rate.
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

  // Looks for a set that cannot bring its bytes until a picosecond after best_, as long as there is one.
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
  MinCostFlow network_, hubbed_;
  const int64_t most_work_;
  bool starts_cost_ = false;
  int64_t best_;
  std::vector<int64_t> out_, in_;  // by node: bandwidth of all its links
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
                                         int64_t at_least) {
  if (collective.kind() == CollectiveKind::kCustom || sizes.size_bytes() == 0) return std::nullopt;
  const int64_t found = WorstExchange(topology, model, MostArcs(effort), at_least)
                            .Run(Exchanges(topology, collective, sizes).List());
  return found > at_least ? std::optional(found) : std::nullopt;
}

}  // namespace xccl
