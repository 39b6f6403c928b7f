// Shortest paths with few distinct link costs use one first-in-first-out queue per cost. Nodes are settled
// in order of distance, so each queue is sorted, and the next node is the least of the queues' heads:
// O((nodes + links) × costs). With many costs, a binary heap is used.
//
// Two GPUs with equal links to the same nodes are interchangeable, since exchanging them maps the topology
// onto itself. They are equally far from all other nodes, so one search serves both. One search also serves
// all translates of a rank.
#include "ir/bounds/bound_latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <tuple>

#include "ir/bounds/needs.h"
#include "ir/time_model.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;

class Distances {
 public:
  Distances(const Topology& topology, TimeModel model) : topology_(topology) {
    const int32_t nodes = topology.num_nodes();
    first_.assign(static_cast<size_t>(nodes) + 1, 0);
    for (int32_t n = 0; n < nodes; ++n) {
      for (LinkId l : topology.Out(NodeId(n))) {
        const Link& link = topology.link(l);
        const int64_t overhead = std::min(link.overhead_ps, kFar);
        const int64_t alpha = std::min(link.latency_ps, kFar);
        arcs_.push_back({link.to.value, 0,
                         std::min(kFar, alpha + (model == TimeModel::kBlocking ? overhead : 0)),
                         std::min(kFar, alpha + overhead)});
        costs_.push_back(arcs_.back().cost);
      }
      first_[n + 1] = static_cast<int32_t>(arcs_.size());
    }
    std::sort(costs_.begin(), costs_.end());
    costs_.erase(std::unique(costs_.begin(), costs_.end()), costs_.end());
    if (costs_.size() <= kFewCosts) {
      for (Arc& arc : arcs_)
        arc.queue =
            static_cast<int32_t>(std::lower_bound(costs_.begin(), costs_.end(), arc.cost) - costs_.begin());
      queues_.resize(costs_.size());
      heads_.resize(costs_.size());
    }
  }

  // The distance of every node from the nearest holder; kFar: unreachable.
  const std::vector<int64_t>& From(std::span<const Rank> holders) {
    distance_.assign(static_cast<size_t>(topology_.num_nodes()), kFar);
    starts_.clear();
    left_ = topology_.num_nodes() - static_cast<int32_t>(holders.size());
    farthest_ = 0;
    for (Rank r : holders) distance_[topology_.NodeOf(r).index()] = 0;
    for (Rank r : holders) {
      const size_t node = topology_.NodeOf(r).index();
      for (int32_t a = first_[node]; a < first_[node + 1]; ++a)
        if (arcs_[a].first_cost < distance_[arcs_[a].to]) {
          Reach(arcs_[a].to, arcs_[a].first_cost);
          starts_.push_back({arcs_[a].first_cost, arcs_[a].to});
        }
    }
    std::sort(starts_.begin(), starts_.end());
    costs_.size() <= kFewCosts ? SearchQueues() : SearchHeap();
    return distance_;
  }

 private:
  static constexpr size_t kFewCosts = 12;
  struct Arc {
    int32_t to = 0;
    int32_t queue = 0;
    int64_t cost = 0;
    int64_t first_cost = 0;  // cost where the link leaves a holder
  };
  using Entry = std::pair<int64_t, int32_t>;  // distance, node

  void Reach(int32_t node, int64_t distance) {
    left_ -= distance_[node] == kFar;
    distance_[node] = distance;
    farthest_ = std::max(farthest_, distance);
  }
  // True if no node settled at `distance` or later can bring any node nearer.
  bool Done(int64_t distance) const {
    return left_ == 0 && !costs_.empty() && distance + costs_.front() >= farthest_;
  }

  template <typename Push>
  void Relax(int32_t node, Push push) {
    for (int32_t a = first_[node]; a < first_[node + 1]; ++a) {
      const Arc& arc = arcs_[a];
      const int64_t distance = std::min(kFar - 1, distance_[node] + arc.cost);
      if (distance >= distance_[arc.to]) continue;
      Reach(arc.to, distance);
      push(arc, Entry{distance, arc.to});
    }
  }

  void SearchQueues() {
    for (std::vector<Entry>& queue : queues_) queue.clear();
    std::fill(heads_.begin(), heads_.end(), 0);
    size_t start = 0;
    while (true) {
      const Entry* least = start < starts_.size() ? &starts_[start] : nullptr;
      size_t* head = &start;
      for (size_t q = 0; q < queues_.size(); ++q) {
        if (heads_[q] >= queues_[q].size()) continue;
        if (least && queues_[q][heads_[q]].first >= least->first) continue;
        least = &queues_[q][heads_[q]];
        head = &heads_[q];
      }
      if (!least || Done(least->first)) return;
      const Entry entry = *least;
      ++*head;
      if (entry.first > distance_[entry.second]) continue;
      Relax(entry.second, [&](const Arc& arc, Entry e) { queues_[arc.queue].push_back(e); });
    }
  }

  void SearchHeap() {
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap(std::greater<>(), starts_);
    while (!heap.empty()) {
      const Entry entry = heap.top();
      if (Done(entry.first)) return;
      heap.pop();
      if (entry.first > distance_[entry.second]) continue;
      Relax(entry.second, [&](const Arc&, Entry e) { heap.push(e); });
    }
  }

  const Topology& topology_;
  std::vector<Arc> arcs_;  // by tail
  std::vector<int32_t> first_;
  std::vector<int64_t> costs_, distance_;
  std::vector<std::vector<Entry>> queues_;
  std::vector<size_t> heads_;
  std::vector<Entry> starts_;
  int32_t left_ = 0;      // number of nodes not yet reached
  int64_t farthest_ = 0;  // the largest distance of a reached node
};

constexpr size_t kFewLinks = 64;  // with more links, comparing costs more than searching

// Links of a GPU, equal for interchangeable GPUs: (other end, direction, alpha, overhead), sorted.
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

constexpr int32_t kManyRanks = 64;  // with fewer ranks, finding translations costs more than it saves

// Finds holders that are equally far from the destinations.
class EquivalentHolders {
 public:
  EquivalentHolders(const Topology& topology, const AllToAll& all) : topology_(topology) {
    const size_t ranks = static_cast<size_t>(topology.num_ranks()), holders = all.holders.size();
    everyone_ = holders == all.destinations.size();
    if (topology.num_ranks() >= kManyRanks && holders == ranks && everyone_)
      translations_ = FindTranslations(topology);
  }
  // True if an equivalent rank was seen before.
  bool Seen(Rank r) {
    if (translations_ && translations_->Representative(translations_->OrbitOf(r)) != r) return true;
    const NodeId node = topology_.NodeOf(r);
    const bool few_links = topology_.Out(node).size() + topology_.In(node).size() <= kFewLinks;
    return everyone_ && few_links && !seen_.emplace(AttachmentOf(topology_, r)).second;
  }

 private:
  const Topology& topology_;
  bool everyone_ = false;  // each rank is needed by all others
  std::optional<SymmetryGroup> translations_;
  std::set<Attachment> seen_;
};

}  // namespace

StatusOr<int64_t> LatencyBound(const Topology& topology, const Collective& collective, TimeModel model) {
  for (Rank r : collective.ranks())
    if (r.value >= topology.num_ranks())
      return InvalidInput(fmt::format("{}: no rank {}, which {} needs; ranks are 0..{}", topology.name(),
                                      r.value, collective.name(), topology.num_ranks() - 1));
  Distances distances(topology, model);
  int64_t farthest = 0;
  // Updates `farthest` with the farthest destination of these holders.
  const auto search = [&](std::span<const Rank> holders, std::span<const Rank> destinations) -> Status {
    const std::vector<int64_t>& from = distances.From(holders);
    for (Rank r : destinations) {
      const int64_t distance = from[topology.NodeOf(r).index()];
      if (distance >= kFar)
        return InvalidInput(fmt::format("{}: no path from rank {} to rank {}, which {} needs",
                                        topology.name(), holders[0].value, r.value, collective.name()));
      farthest = std::max(farthest, distance);
    }
    return OkStatus();
  };
  const std::optional<AllToAll> all = AllToAllOf(collective);
  if (!all) {
    for (const Need& need : NeedsOf(collective))
      XCCL_RETURN_IF_ERROR(search(need.holders, need.destinations));
    return farthest;
  }
  EquivalentHolders equivalent(topology, *all);
  for (const Rank& r : all->holders)
    if (!equivalent.Seen(r)) XCCL_RETURN_IF_ERROR(search(std::span(&r, 1), all->destinations));
  return farthest;
}

}  // namespace xccl
