// Demands that are moved, not copied: alltoall(v), sendrecv. The dual of the concurrent flow problem: give
// every link a length y >= 0; a byte that travels a distance takes up that much of Σ bandwidth × y, so
//   T >= Σ demand × distance under y ÷ Σ bandwidth × y    for any y,
// and the best y attains the optimum of the linear program. Every y here is evaluated like this in the end,
// so that a bound is valid whatever a solver returned.
//
// The best y by cutting planes (Kelley), grouped by source: maximise Σ z_s, z_s <= what source s's demands
// travel along any one tree of paths, Σ bandwidth × y = 1. Each round adds, for a y between the best so far
// and the program's, the shortest-path tree of every source. The program's value is an upper bound on what
// any y gives: when they meet the bound is exact (kLp).
#include "ir/bound_demand.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "base/units.h"
#include "ir/bound_bandwidth.h"
#include "ir/lp.h"

namespace xccl {
namespace {

constexpr double kMeets = 1e-9;
constexpr double kGrowth = 0.3;  // of the length of the most crowded link in a round

class Lengths {
 public:
  Lengths(const Topology& topology, const Demands& demands) : topology_(topology), demands_(demands) {
    for (int32_t n = 0; n < topology.num_nodes(); ++n) {
      first_.push_back(static_cast<int32_t>(arcs_.size()));
      for (LinkId l : topology.Out(NodeId(n))) arcs_.push_back({topology.link(l).to.value, l.value});
    }
    first_.push_back(static_cast<int32_t>(arcs_.size()));
    distance_.resize(static_cast<size_t>(topology.num_nodes()));
    parent_.resize(distance_.size());
    load_.resize(distance_.size());
  }

  // Seconds. Calls tree(source, bytes by link) for each source when given.
  template <typename Tree>
  double Bound(const std::vector<double>& y, Tree tree) {
    double total = 0, capacity = 0;
    for (int32_t l = 0; l < topology_.num_links(); ++l)
      capacity += y[l] * static_cast<double>(topology_.link(LinkId(l)).bandwidth_bytes_per_s);
    for (size_t s = 0; s < demands_.sources.size(); ++s) {
      Search(demands_.sources[s], y);
      std::fill(load_.begin(), load_.end(), 0);
      for (const Demands::To& to : demands_.to[s]) {
        total += to.bytes * distance_[to.node];
        load_[to.node] += to.bytes;
      }
      tree_.clear();
      for (auto it = settled_.rbegin(); it != settled_.rend(); ++it) {
        if (*it == demands_.sources[s] || load_[*it] == 0) continue;
        tree_.emplace_back(parent_[*it], load_[*it]);
        load_[topology_.link(LinkId(parent_[*it])).from.index()] += load_[*it];
      }
      tree(s, tree_);
    }
    return capacity > 0 ? total / capacity : 0;
  }
  double Bound(const std::vector<double>& y) {
    return Bound(y, [](size_t, const std::vector<std::pair<int32_t, double>>&) {});
  }

 private:
  struct Arc {
    int32_t to, link;
  };

  void Search(int32_t source, const std::vector<double>& y) {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    std::fill(distance_.begin(), distance_.end(), kFar);
    settled_.clear();
    std::vector<bool> done(distance_.size(), false);
    using Entry = std::pair<double, int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
    distance_[source] = 0;
    heap.push({0, source});
    while (!heap.empty()) {
      const int32_t node = heap.top().second;
      heap.pop();
      if (done[node]) continue;
      done[node] = true;
      settled_.push_back(node);
      for (int32_t a = first_[node]; a < first_[node + 1]; ++a) {
        const double next = distance_[node] + y[arcs_[a].link];
        if (next >= distance_[arcs_[a].to]) continue;
        distance_[arcs_[a].to] = next;
        parent_[arcs_[a].to] = arcs_[a].link;
        heap.push({next, arcs_[a].to});
      }
    }
  }

  const Topology& topology_;
  const Demands& demands_;
  std::vector<Arc> arcs_;
  std::vector<int32_t> first_, parent_, settled_;
  std::vector<double> distance_, load_;
  std::vector<std::pair<int32_t, double>> tree_;  // link, bytes
};

std::vector<double> EqualLengths(const Topology& topology) {
  return std::vector<double>(static_cast<size_t>(topology.num_links()), 1);
}

// The cutting planes. Raises *seconds to the best found; true where it is the optimum.
bool CuttingPlanes(const Topology& topology, const Demands& demands, Lengths& lengths, int32_t rounds,
                   double* seconds) {
  const int32_t links = topology.num_links(), sources = static_cast<int32_t>(demands.sources.size());
  // In units of the mean bandwidth and the mean demand, so that numbers are near one.
  double bandwidth = 0, bytes = 0;
  for (const Link& link : topology.spec().links) bandwidth += static_cast<double>(link.bandwidth_bytes_per_s);
  for (const auto& to : demands.to)
    for (const Demands::To& each : to) bytes += each.bytes;
  bandwidth /= links;
  bytes /= sources;
  std::vector<double> costs(static_cast<size_t>(links + sources), 0);
  std::fill(costs.begin() + links, costs.end(), 1);
  LinearProgram program(costs);
  std::vector<std::pair<int32_t, double>> row;
  for (int32_t l = 0; l < links; ++l)
    row.emplace_back(l, static_cast<double>(topology.link(LinkId(l)).bandwidth_bytes_per_s) / bandwidth);
  program.AddRow(row, 1, 1);
  std::vector<double> best(static_cast<size_t>(links), 1.0 / links), query = best;
  double best_value = 0;
  const double unit = bytes / bandwidth;
  for (int32_t round = 0; round < rounds; ++round) {
    const double value =
        lengths.Bound(query, [&](size_t s, const std::vector<std::pair<int32_t, double>>& tree) {
          row.assign(1, {links + static_cast<int32_t>(s), 1.0});
          for (const auto& [link, load] : tree) row.emplace_back(link, -load / bytes);
          program.AddRow(row, -LinearProgram::kInfinity, 0);
        });
    if (value > best_value) {
      best_value = value;
      best = query;
    }
    *seconds = std::max(*seconds, best_value);
    if (!program.Solve(20000)) return false;
    if (program.Objective() * unit <= *seconds * (1 + kMeets)) return true;
    const std::span<const double> values = program.Values();
    for (int32_t l = 0; l < links; ++l) query[l] = std::max(0.0, values[l]);
    const double own = lengths.Bound(query);
    if (own > best_value) {
      best_value = own;
      best = query;
      *seconds = std::max(*seconds, best_value);
    }
    if (round % 4 != 3)
      for (int32_t l = 0; l < links; ++l) query[l] = 0.5 * query[l] + 0.5 * best[l];
  }
  return false;
}

// Lengths grow where shortest paths crowd: multiplicative weights, a cheap way to a good y.
double CrowdedLengths(const Topology& topology, Lengths& lengths, int32_t rounds) {
  const size_t links = static_cast<size_t>(topology.num_links());
  std::vector<double> y(links, 1), load(links);
  double best = 0;
  for (int32_t round = 0; round < rounds; ++round) {
    std::fill(load.begin(), load.end(), 0);
    best = std::max(best, lengths.Bound(y, [&](size_t, const std::vector<std::pair<int32_t, double>>& tree) {
      for (const auto& [link, bytes] : tree) load[link] += bytes;
    }));
    double most = 0;
    for (size_t l = 0; l < links; ++l) {
      load[l] /= static_cast<double>(topology.spec().links[l].bandwidth_bytes_per_s);
      most = std::max(most, load[l]);
    }
    for (size_t l = 0; l < links; ++l) y[l] *= 1 + kGrowth * load[l] / most;
  }
  return best;
}

constexpr int64_t kLpWork = 6'500;         // sources × links up to which the optimum is sought
constexpr int64_t kCrowdWork = 3'000'000;  // sources × links × rounds
constexpr int32_t kCrowdRounds = 30;
constexpr int32_t kLpRounds = 100;

}  // namespace

BandwidthBound DemandBound(const Topology& topology, const Collective& collective,
                           const CollectiveSizes& sizes, BoundEffort effort) {
  const Demands demands = DemandsOf(topology, collective, sizes);
  if (demands.sources.empty()) return {0, BoundKind::kCut};
  Lengths lengths(topology, demands);
  const double scale = static_cast<double>(kPsPerSecond);
  double seconds = std::max(DegreeBoundPs(topology, collective, sizes) / scale, SweepCuts(topology, demands));
  seconds = std::max(seconds, lengths.Bound(EqualLengths(topology)));
  const int64_t work = static_cast<int64_t>(demands.sources.size()) * topology.num_links();
  if (effort == BoundEffort::kFast) return {seconds * scale, BoundKind::kRelaxed};
  if (work <= kLpWork && CuttingPlanes(topology, demands, lengths, kLpRounds, &seconds))
    return {seconds * scale, BoundKind::kLp};
  const int32_t rounds = static_cast<int32_t>(std::min<int64_t>(kCrowdRounds, kCrowdWork / work));
  seconds = std::max(seconds, CrowdedLengths(topology, lengths, rounds));
  return {seconds * scale, BoundKind::kRelaxed};
}

}  // namespace xccl
