// Translations are found one generator after the other. Colour refinement comes first: the order of a group
// that moves every GPU divides the size of each colour class of GPUs, so a damaged machine is given up at
// once.
//
// A generator h is found by a search over partial maps. It starts with rank 0 -> target and spreads over
// neighbours. A node maps to a node of its colour with equal links to the images of all its mapped
// neighbours. Because h commutes with the generators g found before, g(u) maps to g(h(u)). Candidates that
// keep the displacement of rank 0, of the previous node or of the first node of the colour come first,
// because machines are numbered regularly. Other images follow by elimination or are guessed; a contradiction
// takes back the last guess. A work limit, linear in nodes + links, bounds each search and all of them
// together.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/graph/grouped.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

constexpr int64_t kRefineWork = 40'000'000;  // neighbours visited by colour refinement
constexpr int64_t kSearchWork = 24;          // candidates tried per node and link in one search
constexpr int64_t kTotalWork = 400;          // and in all searches together
constexpr int32_t kFound = 3;                // generators found before the one of largest order is taken

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// A neighbour and a hash of the links to it. Equal bonds stand for equal multisets of links, in both
// directions.
struct BondedNode {
  int32_t node;
  int32_t bond;
};

class Graph {
 public:
  explicit Graph(const Topology& topology) {
    std::vector<int32_t>& first = neighbours_.first;
    first.assign(static_cast<size_t>(topology.num_nodes()) + 1, 0);
    // Each link gives one entry per end; once sorted, the entries of one bond are adjacent.
    std::vector<std::tuple<int32_t, int32_t, bool, int64_t, int64_t, int64_t>> ends;
    for (const Link& l : topology.spec().links) {
      ends.emplace_back(l.from.value, l.to.value, true, l.bandwidth_bytes_per_s, l.latency_ps, l.overhead_ps);
      ends.emplace_back(l.to.value, l.from.value, false, l.bandwidth_bytes_per_s, l.latency_ps,
                        l.overhead_ps);
    }
    std::sort(ends.begin(), ends.end());
    std::vector<std::pair<uint64_t, size_t>> hashes;
    for (size_t i = 0; i < ends.size();) {
      uint64_t hash = 0;
      const auto [u, w, out, a, b, c] = ends[i];
      for (; i < ends.size() && std::get<0>(ends[i]) == u && std::get<1>(ends[i]) == w; ++i) {
        const auto& [from, to, outward, bandwidth, latency, overhead] = ends[i];
        for (int64_t number : {int64_t{outward}, bandwidth, latency, overhead})
          hash = Mix(hash * 31 + static_cast<uint64_t>(number) + 1);
      }
      hashes.emplace_back(hash, neighbours_.items.size());
      neighbours_.items.push_back({w, 0});
      ++first[static_cast<size_t>(u) + 1];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::sort(hashes.begin(), hashes.end());
    int32_t bond = 0;
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (i > 0 && hashes[i].first != hashes[i - 1].first) ++bond;
      neighbours_.items[hashes[i].second].bond = bond;
    }
  }
  std::span<const BondedNode> Of(int32_t node) const { return neighbours_[node]; }
  // The bond between two nodes, or -1.
  int32_t Bond(int32_t a, int32_t b) const {
    const std::span<const BondedNode> of = Of(a);
    const auto it = std::ranges::lower_bound(of, b, {}, &BondedNode::node);
    return it != of.end() && it->node == b ? it->bond : -1;
  }
  int64_t size() const { return static_cast<int64_t>(neighbours_.first.size() + neighbours_.items.size()); }

 private:
  Grouped<BondedNode> neighbours_;  // by node, in the order of neighbours
};

// Colours, as hashes, such that nodes of one colour have equally coloured neighbours over equal bonds
// (unless the limit on work stops the refinement).
std::vector<uint64_t> Colour(const Topology& topology, const Graph& graph) {
  const size_t nodes = static_cast<size_t>(topology.num_nodes());
  std::vector<uint64_t> colour(nodes), next(nodes), sorted;
  for (size_t n = 0; n < nodes; ++n) {
    const Node& node = topology.spec().nodes[n];
    colour[n] =
        Mix(static_cast<uint64_t>(node.kind) * 4 + (node.multicast ? 2 : 0) + (node.reduce ? 1 : 0) + 1);
  }
  size_t classes = 0;
  for (int64_t work = 0; work < kRefineWork; work += graph.size()) {
    sorted = colour;
    std::sort(sorted.begin(), sorted.end());
    const size_t found = static_cast<size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
    if (found == classes || found == nodes) break;
    classes = found;
    for (size_t n = 0; n < nodes; ++n) {
      next[n] = Mix(colour[n]);
      for (const BondedNode& w : graph.Of(static_cast<int32_t>(n)))
        next[n] += Mix(colour[w.node] * 0x9e3779b97f4a7c15ULL + static_cast<uint64_t>(w.bond));
    }
    colour.swap(next);
  }
  return colour;
}

// The search for one generator.
class Search {
 public:
  // `group` is what the generators found before make; `budget` is a limit on work.
  Search(const Topology& topology, const Graph& graph, const std::vector<uint64_t>& colour,
         const SymmetryGroup& group, int64_t budget)
      : topology_(topology),
        graph_(graph),
        colour_(colour),
        group_(group),
        budget_(budget),
        map_(colour.size(), -1),
        back_(colour.size(), -1),
        hops_(colour.size(), -1) {
    FindNearOrbits();
    std::vector<uint64_t> colours = colour;
    std::sort(colours.begin(), colours.end());
    colours.erase(std::unique(colours.begin(), colours.end()), colours.end());
    first_of_class_.assign(colours.size(), -1);
    for (const uint64_t c : colour)
      class_.push_back(static_cast<int32_t>(std::ranges::lower_bound(colours, c) - colours.begin()));
  }

  bool Run(int32_t seed, int32_t target) {
    displacement_ = target - seed;
    if (!Fits(seed, target) || !Assign(seed, target)) return false;
    while (static_cast<size_t>(trail_.size()) < map_.size()) {
      if (budget_ <= 0) return false;
      const bool fine = head_ < trail_.size() ? Spread() : Guess();
      if (!fine && !TakeBack()) return false;
    }
    return true;
  }
  const std::vector<int32_t>& map() const { return map_; }
  int64_t budget() const { return budget_; }

 private:
  // The image of u's neighbour w (of any w where u is -1) is its candidate number tried - 1.
  struct Decision {
    int32_t u, w;
    int32_t tried;
    size_t trail, head;
    std::array<size_t, 2> scan;
  };

  // The orbits of the GPUs that are nearest to each node, in links without direction, from the GPUs outwards.
  void FindNearOrbits() {
    std::vector<int32_t> queue;
    near_orbit_.assign(map_.size(), kSeveralOrbits);
    for (int32_t r = 0; r < topology_.num_ranks(); ++r) {
      const NodeId gpu = topology_.NodeOf(Rank(r));
      near_orbit_[gpu.index()] = group_.OrbitOf(gpu);
      hops_[gpu.index()] = 0;
      queue.push_back(gpu.value);
    }
    for (size_t i = 0; i < queue.size(); ++i) {
      const auto u = static_cast<size_t>(queue[i]);
      for (const BondedNode& n : graph_.Of(queue[i])) {
        const auto w = static_cast<size_t>(n.node);
        if (hops_[w] < 0) {
          hops_[w] = hops_[u] + 1;
          near_orbit_[w] = near_orbit_[u];
          queue.push_back(n.node);
        } else if (hops_[w] == hops_[u] + 1 && near_orbit_[w] != near_orbit_[u]) {
          near_orbit_[w] = kSeveralOrbits;
        }
      }
    }
  }

  // True if w may map to x, given what is mapped so far.
  bool Fits(int32_t w, int32_t x) {
    --budget_;
    if (back_[x] >= 0 || colour_[w] != colour_[x]) return false;
    // The nearest GPUs map to the nearest GPUs, and no GPU maps into its own orbit.
    if (near_orbit_[w] != kSeveralOrbits && near_orbit_[w] == near_orbit_[x]) return false;
    const bool gpu = topology_.IsGpu(NodeId(w));
    int32_t first_gpu = -1;
    const std::span<const BondedNode> neighbours = graph_.Of(w);
    budget_ -= static_cast<int64_t>(neighbours.size()) / 8;
    for (const BondedNode& n : neighbours) {
      if (map_[n.node] >= 0) {
        if (graph_.Bond(x, map_[n.node]) != n.bond) return false;
      } else if (first_gpu < 0 && topology_.IsGpu(NodeId(n.node))) {
        first_gpu = n.node;
      }
    }
    // Some GPU next to x must be left for the switch's GPUs.
    if (gpu || first_gpu < 0) return true;
    const int32_t own = group_.OrbitOf(NodeId(first_gpu));
    const std::span<const BondedNode> others = graph_.Of(x);
    return std::any_of(others.begin(), others.end(), [&](const BondedNode& n) {
      return back_[n.node] < 0 && colour_[n.node] == colour_[first_gpu] &&
             group_.OrbitOf(NodeId(n.node)) != own;
    });
  }

  // Maps w to x, and their translates accordingly.
  bool Assign(int32_t w, int32_t x) {
    const size_t begin = trail_.size();
    Put(w, x);
    for (size_t i = begin; i < trail_.size(); ++i) {
      const int32_t u = trail_[i];
      for (const Automorphism& g : group_.generators()) {
        const int32_t a = g.image[u].value, b = g.image[map_[u]].value;
        if (map_[a] == b) continue;
        if (map_[a] >= 0 || !Fits(a, b)) return false;
        Put(a, b);
      }
    }
    return true;
  }
  void Put(int32_t w, int32_t x) {
    if (int32_t& first = first_of_class_[class_[w]]; first < 0) first = w;
    map_[w] = x;
    back_[x] = w;
    trail_.push_back(w);
  }

  // Sets candidates_ for w, best first, and no more than `most` of them. u is a mapped neighbour of w, or -1.
  void Candidates(int32_t u, int32_t w, size_t most) {
    candidates_.clear();
    const auto add = [&](int32_t to) {
      if (u >= 0 && graph_.Bond(map_[u], to) != graph_.Bond(u, w)) return;
      if (std::find(candidates_.begin(), candidates_.end(), to) == candidates_.end() && Fits(w, to))
        candidates_.push_back(to);
    };
    AddPreferred(u, w, add);
    if (u < 0) {
      for (size_t x = 0; x < map_.size() && candidates_.size() < 2; ++x) add(static_cast<int32_t>(x));
      return;
    }
    const int32_t bond = graph_.Bond(u, w);
    const size_t preferred = candidates_.size();
    if (preferred >= most) return;
    for (const BondedNode& n : graph_.Of(map_[u])) {
      if (candidates_.size() >= most) return;
      if (n.bond != bond || !Fits(w, n.node)) continue;
      const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(preferred);
      if (std::find(candidates_.begin(), end, n.node) == end) candidates_.push_back(n.node);
    }
  }
  template <typename Add>
  void AddPreferred(int32_t u, int32_t w, Add add) const {
    const int64_t of_parent = u >= 0 ? int64_t{map_[u]} - u : 0;
    const auto moved = [&](int64_t by) {
      if (w + by >= 0 && w + by < static_cast<int64_t>(map_.size())) add(static_cast<int32_t>(w + by));
    };
    if (topology_.IsGpu(NodeId(w))) {
      moved(displacement_);
      moved(of_parent);
      return;
    }
    if (const int32_t first = first_of_class_[class_[w]]; first >= 0) moved(int64_t{map_[first]} - first);
    moved(0);
    moved(of_parent);
    moved(displacement_);
  }

  // From a switch to one below it or on its level: these look alike, and a wrong image shows only at their
  // GPUs. One of them is guessed at a time, so that what is below it follows before the next.
  bool IsNotUpward(int32_t u, int32_t w) const {
    const auto is_switch = [&](int32_t n) { return topology_.node(NodeId(n)).kind == NodeKind::kSwitch; };
    return hops_[static_cast<size_t>(w)] <= hops_[static_cast<size_t>(u)] && is_switch(u) && is_switch(w);
  }

  // Maps those neighbours of the next mapped node that have a preferred image.
  bool Spread() {
    const int32_t u = trail_[head_];
    budget_ -= static_cast<int64_t>(graph_.Of(u).size()) / 8;
    for (const BondedNode& n : graph_.Of(u)) {
      if (map_[n.node] >= 0 || IsNotUpward(u, n.node)) continue;
      int32_t best = -1;
      AddPreferred(u, n.node, [&](int32_t to) {
        if (best < 0 && graph_.Bond(map_[u], to) == n.bond && Fits(n.node, to)) best = to;
      });
      if (best < 0) continue;
      decisions_.push_back({u, n.node, 1, trail_.size(), head_, scan_});
      if (!Assign(n.node, best)) return false;
    }
    ++head_;
    return true;
  }

  // Guesses an image for a neighbour that Spread left; for a switch that is not above its neighbour only
  // where there is no other.
  bool Guess() {
    std::pair<int32_t, int32_t> next = FewestCandidates(false);
    if (next.second < 0) next = FewestCandidates(true);
    if (next.second < 0) {  // another component
      while (map_[lowest_] >= 0) ++lowest_;
      next.second = lowest_;
    }
    const auto [u, w] = next;
    Candidates(u, w, 1);
    if (candidates_.empty()) return false;
    decisions_.push_back({u, w, 1, trail_.size(), head_, scan_});
    return Assign(w, candidates_[0]);
  }

  // A mapped node and its neighbour that has the fewest candidates among the next few that are downward, or
  // among those that are not; -1 if none is left. More than a few candidates are not counted: below a switch
  // of many ports that would be work which grows with the square of the ports.
  std::pair<int32_t, int32_t> FewestCandidates(bool not_upward) {
    constexpr int32_t kLook = 8;
    constexpr size_t kCount = 8;
    std::pair<int32_t, int32_t> best = {-1, -1};
    int32_t looked = 0;
    size_t fewest = std::numeric_limits<size_t>::max();
    size_t& scan = scan_[not_upward ? 1 : 0];
    for (size_t i = scan; i < trail_.size() && looked < kLook && fewest > 1; ++i) {
      const int32_t u = trail_[i];
      budget_ -= 1 + static_cast<int64_t>(graph_.Of(u).size()) / 8;
      bool open = false;
      for (const BondedNode& n : graph_.Of(u)) {
        if (map_[n.node] >= 0 || IsNotUpward(u, n.node) != not_upward) continue;
        open = true;
        if (looked++ >= kLook) break;
        Candidates(u, n.node, kCount);
        if (candidates_.size() >= fewest) continue;
        fewest = candidates_.size();
        best = {u, n.node};
        if (fewest <= 1) break;
      }
      if (!open && i == scan) ++scan;
    }
    return best;
  }

  // Returns to the last decision that has another candidate, and takes that.
  bool TakeBack() {
    while (!decisions_.empty() && budget_ > 0) {
      Decision& last = decisions_.back();
      for (; trail_.size() > last.trail; trail_.pop_back()) {
        back_[map_[trail_.back()]] = -1;
        map_[trail_.back()] = -1;
        if (int32_t& first = first_of_class_[class_[trail_.back()]]; first == trail_.back()) first = -1;
      }
      head_ = last.head;
      scan_ = last.scan;
      lowest_ = 0;
      Candidates(last.u, last.w, static_cast<size_t>(last.tried) + 1);
      if (static_cast<size_t>(last.tried) < candidates_.size()) {
        const int32_t w = last.w;
        if (Assign(w, candidates_[static_cast<size_t>(last.tried++)])) return true;
        continue;
      }
      decisions_.pop_back();
    }
    return false;
  }

  const Topology& topology_;
  const Graph& graph_;
  const std::vector<uint64_t>& colour_;
  const SymmetryGroup& group_;
  int64_t budget_;
  int32_t displacement_ = 0;
  static constexpr int32_t kSeveralOrbits = -1;
  std::vector<int32_t> map_, back_;      // image and preimage of a node, or -1
  std::vector<int32_t> class_;           // by node: the number of its colour
  std::vector<int32_t> first_of_class_;  // by colour: the node of it that was mapped first, or -1
  std::vector<int32_t> hops_;            // by node: links to the nearest GPUs
  std::vector<int32_t> near_orbit_;      // by node: their orbit
  std::vector<int32_t> trail_;           // mapped nodes in order
  std::vector<Decision> decisions_;
  std::vector<int32_t> candidates_;
  size_t head_ = 0;                      // Spread is done before this position in trail_
  std::array<size_t, 2> scan_ = {0, 0};  // Guess is done before it: for others, and for what is IsNotUpward
  int32_t lowest_ = 0;
};

// True if at least half of the ranks move by as many node ids as rank 0, as in a regularly numbered machine.
bool KeepsDisplacement(const Topology& topology, const std::vector<int32_t>& h) {
  const int32_t seed = topology.NodeOf(Rank(0)).value;
  int32_t kept = 0;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) {
    const NodeId node = topology.NodeOf(Rank(r));
    kept += h[node.index()] - node.value == h[static_cast<size_t>(seed)] - seed ? 1 : 0;
  }
  return 2 * kept >= topology.num_ranks();
}

}  // namespace

SymmetryGroup FindTranslations(const Topology& topology) {
  const Graph graph(topology);
  const std::vector<uint64_t> colour = Colour(topology, graph);
  std::map<uint64_t, int64_t> ranks_of_colour;
  for (int32_t r = 0; r < topology.num_ranks(); ++r)
    ++ranks_of_colour[colour[topology.NodeOf(Rank(r)).index()]];
  int64_t largest = 0;  // an upper bound on the group's order
  for (const auto& [unused, ranks] : ranks_of_colour) largest = std::gcd(largest, ranks);

  SymmetryGroup group(topology);
  const int32_t seed = topology.NodeOf(Rank(0)).value;
  int64_t left = kTotalWork * graph.size();
  while (group.order() < largest && left > 0) {
    std::optional<SymmetryGroup> best;
    int32_t found = 0;
    for (int32_t r = 1; r < topology.num_ranks() && found < kFound && left > 0; ++r) {
      const int32_t target = topology.NodeOf(Rank(r)).value;
      if (group.OrbitOf(Rank(r)) == group.OrbitOf(Rank(0)) || colour[target] != colour[seed]) continue;
      const int64_t budget = std::min(left, kSearchWork * graph.size());
      Search search(topology, graph, colour, group, budget);
      const bool complete = search.Run(seed, target);
      left -= budget - search.budget();
      if (!complete) continue;
      // Its order is the length of rank 0's cycle, if it is a translation at all.
      Automorphism h;
      for (int32_t n : search.map()) h.image.push_back(NodeId(n));
      for (int32_t n = target; n != seed; n = search.map()[n]) ++h.order;
      StatusOr<SymmetryGroup> larger = group.With(topology, std::move(h));
      if (!larger.ok() || largest % larger->order() != 0) continue;
      ++found;
      if (best && best->order() >= larger->order()) continue;
      best = *std::move(larger);
      if (best->order() == largest || KeepsDisplacement(topology, search.map())) break;
    }
    if (!best) break;
    group = *std::move(best);
  }
  return group;
}

}  // namespace xccl
