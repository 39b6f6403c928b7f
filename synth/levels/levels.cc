// 1. FindDistances searches the links from rank 0 and stops at other GPUs.
// 2. FindChain grows a subgroup by one rank after another, the nearest first, in steps of prime index.
// 3. Ends chooses the subgroups of the chain that end a level.
// 4. Make takes the nearest element of each coset as a peer. PathTo walks back from the peer along links that
//    are on a shortest path, and takes the least loaded of several.
#include "synth/levels/levels.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

namespace xccl {

namespace {

constexpr std::pair<int64_t, int32_t> kUnreached = {std::numeric_limits<int64_t>::max(), 0};

}  // namespace

LevelFinder::LevelFinder(const Topology& topology, const SymmetryGroup& group)
    : topology_(topology),
      group_(group),
      distance_(static_cast<size_t>(topology.num_nodes()), kUnreached),
      place_(static_cast<size_t>(group.order()), -1) {
  FindDistances();
  FindChain();
}

LevelFinder::Distance LevelFinder::After(Distance before, const Link& link) {
  return {before.first + link.latency_ps + link.overhead_ps, before.second + 1};
}
LevelFinder::Distance LevelFinder::To(Rank r) const { return distance_[topology_.NodeOf(r).index()]; }

void LevelFinder::FindDistances() {
  using Entry = std::pair<Distance, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const NodeId start = topology_.NodeOf(Rank(0));
  distance_[start.index()] = {0, 0};
  queue.push({{0, 0}, start.value});
  while (!queue.empty()) {
    const auto [distance, node] = queue.top();
    queue.pop();
    if (distance != distance_[static_cast<size_t>(node)]) continue;
    if (node != start.value && topology_.IsGpu(NodeId(node))) continue;
    for (const LinkId l : topology_.Out(NodeId(node))) {
      const Distance next = After(distance, topology_.link(l));
      Distance& known = distance_[topology_.link(l).to.index()];
      if (next >= known) continue;
      known = next;
      queue.push({next, topology_.link(l).to.value});
    }
  }
  for (int32_t r = 0; r < topology_.num_ranks(); ++r)
    if (To(Rank(r)) != kUnreached) nearest_.push_back(Rank(r));
  std::ranges::stable_sort(nearest_, {}, [&](Rank r) { return To(r); });
}

void LevelFinder::FindChain() {
  Append(0);
  int32_t tier = 0;
  for (size_t i = 1; i < nearest_.size(); ++i) {
    const bool is_farther = To(nearest_[i]) != To(nearest_[i - 1]);
    if (is_farther && !chain_.empty() && chain_.back().tier == tier) ++tier;
    if (const int64_t e = group_.ElementOf(nearest_[i]); !Has(e, std::ssize(elements_))) Add(e, tier);
  }
}

bool LevelFinder::Has(int64_t element, int64_t order) const {
  const int32_t place = place_[static_cast<size_t>(element)];
  return place >= 0 && place < order;
}

void LevelFinder::Append(int64_t element) {
  place_[static_cast<size_t>(element)] = static_cast<int32_t>(elements_.size());
  elements_.push_back(element);
}

// Adds the element to the largest subgroup of the chain, in steps of prime index.
void LevelFinder::Add(int64_t element, int32_t tier) {
  std::vector<int64_t> powers = {0};  // until one is in the subgroup
  for (int64_t power = element; !Has(power, std::ssize(elements_)); power = group_.Compose(power, element))
    powers.push_back(power);
  int64_t index = std::ssize(powers);
  for (int64_t prime = 2; index > 1;) {
    if (index % prime != 0) {
      prime = prime * prime > index ? index : prime + 1;
      continue;
    }
    index /= prime;
    const int64_t step = powers[static_cast<size_t>(index)], before = std::ssize(elements_);
    int64_t power = step;
    for (int64_t i = 1; i < prime; ++i, power = group_.Compose(power, step))
      for (int64_t j = 0; j < before; ++j) Append(group_.Compose(power, elements_[static_cast<size_t>(j)]));
    chain_.push_back({std::ssize(elements_), tier});
  }
}

std::vector<int64_t> LevelFinder::Ends(int64_t most_peers) const {
  std::vector<int64_t> ends;
  int64_t before = 1;
  for (size_t i = 0; i < chain_.size(); ++i) {
    const bool ends_tier = i + 1 == chain_.size() || chain_[i + 1].tier != chain_[i].tier;
    if (!ends_tier && chain_[i + 1].size / before <= most_peers + 1) continue;
    ends.push_back(chain_[i].size);
    before = chain_[i].size;
  }
  return ends;
}

Peer LevelFinder::PathTo(int64_t element, double blocks, std::vector<double>& load) const {
  Peer peer{.element = element, .links = {}};
  const NodeId start = topology_.NodeOf(Rank(0));
  for (NodeId at = topology_.NodeOf(group_.Image(element, Rank(0))); at != start;) {
    LinkId best(-1);
    double least = std::numeric_limits<double>::infinity();
    for (const LinkId l : topology_.In(at)) {
      const Link& link = topology_.link(l);
      const Distance before = distance_[link.from.index()];
      const bool passes = link.from == start || !topology_.IsGpu(link.from);
      if (!passes || before == kUnreached || After(before, link) != distance_[at.index()]) continue;
      const int32_t orbit = group_.OrbitOf(l);
      const double with_this =
          load[static_cast<size_t>(orbit)] +
          blocks * group_.LinkShare(orbit) / static_cast<double>(link.bandwidth_bytes_per_s);
      if (with_this >= least) continue;
      least = with_this;
      best = l;
    }
    load[static_cast<size_t>(group_.OrbitOf(best))] = least;
    peer.links.push_back(best);
    peer.latency_ps += topology_.link(best).latency_ps + topology_.link(best).overhead_ps;
    at = topology_.link(best).from;
  }
  std::ranges::reverse(peer.links);
  return peer;
}

StatusOr<Levels> LevelFinder::Make(std::span<const int64_t> ends, std::string_view engine) const {
  Levels levels;
  std::vector<double> load(static_cast<size_t>(group_.num_link_orbits()), 0);  // seconds × blocks ÷ bytes
  int64_t inside = 1;
  for (const int64_t end : ends) {
    Level level{.peers = {}, .inside = inside};
    std::vector<bool> covered(static_cast<size_t>(group_.order()), false);
    const auto cover = [&](int64_t element) {
      for (const int64_t h : Subgroup(inside))
        covered[static_cast<size_t>(group_.Compose(element, h))] = true;
    };
    cover(0);
    for (const Rank r : nearest_) {
      const int64_t e = group_.ElementOf(r);
      if (!Has(e, end) || covered[static_cast<size_t>(e)]) continue;
      cover(e);
      level.peers.push_back(PathTo(e, static_cast<double>(group_.order()) / static_cast<double>(end), load));
    }
    if (std::ssize(level.peers) + 1 != end / inside) break;
    std::ranges::reverse(level.peers);
    levels.push_back(std::move(level));
    inside = end;
  }
  if (inside != group_.order())
    return InvalidInput(
        fmt::format("{}: rank 0 reaches {} of {} ranks without passing another gpu; expected a rank of every "
                    "host",
                    engine, nearest_.size(), topology_.num_ranks()));
  return levels;
}

}  // namespace xccl
