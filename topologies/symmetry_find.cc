// Translations are found one generator after the other. Colour refinement comes first: the order of a group
// that moves every GPU divides the size of each colour class of GPUs, so a damaged machine is given up at
// once.
//
// A generator h is found by a search over partial maps. It starts with rank 0 -> target and spreads over
// neighbours. A node maps to a node of its colour with equal links to the images of all its mapped
// neighbours. Because h commutes with the generators g found before, g(u) maps to g(h(u)). Candidates that
// keep the displacement of rank 0 or of the previous node come first, because machines are numbered
// regularly. So do the first displacement among switches as far from the GPUs, and the image that closes a
// cycle, since all cycles of GPUs are as long. Other images follow by elimination or are guessed; a
// contradiction takes back the last guess. A work limit, linear in nodes + links, bounds each search and all
// of them together.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "topologies/symmetry.h"
#include "topologies/symmetry_graph.h"

namespace xccl {
namespace {

constexpr int64_t kSearchWork = 24;  // candidates tried per node and link in one search
constexpr int64_t kTotalWork = 400;  // and in all searches together
constexpr int32_t kFound = 3;        // generators found before the one of largest order is taken

// The search for one generator.
class Search {
 public:
  // `group` is what the generators found before make; `budget` is a limit on work.
  Search(const Topology& topology, const SymmetryGraph& graph, const std::vector<uint64_t>& colour,
         const SymmetryGroup& group, int64_t budget)
      : topology_(topology),
        graph_(graph),
        colour_(colour),
        group_(group),
        budget_(budget),
        map_(colour.size(), -1),
        back_(colour.size(), -1),
        start_(colour.size()),
        end_(colour.size()),
        length_(colour.size(), 1),
        hops_(colour.size(), -1) {
    FindNearOrbits();
    std::iota(start_.begin(), start_.end(), 0);
    std::iota(end_.begin(), end_.end(), 0);
    const int32_t highest = *std::max_element(hops_.begin(), hops_.end());
    move_of_tier_.resize(static_cast<size_t>(highest + 2) * std::size(kNodeKinds));
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
    size_t trail, head, scan;
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
    if (back_[x] >= 0) return false;
    --budget_;
    if (colour_[w] != colour_[x]) return false;
    // The nearest GPUs map to the nearest GPUs, and no GPU maps into its own orbit.
    if (near_orbit_[w] != kSeveralOrbits && near_orbit_[w] == near_orbit_[x]) return false;
    const bool gpu = topology_.IsGpu(NodeId(w));
    if (gpu && !KeepsCyclesEqual(w, x)) return false;
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
    map_[w] = x;
    back_[x] = w;
    trail_.push_back(w);
    std::optional<int32_t>& move = move_of_tier_[TierOf(w)];
    if (!move) move = x - w;
    // Images in a row are a chain until it closes. Only its ends know each other.
    const int32_t start = start_[w], end = end_[x];
    if (start == x) {
      if (topology_.IsGpu(NodeId(w)) && closed_++ == 0) length_of_cycles_ = length_[start];
      return;
    }
    start_[end] = start;
    end_[start] = end;
    length_[start] += length_[x];
  }
  void TakeBackLast() {
    const int32_t w = trail_.back(), x = map_[w];
    trail_.pop_back();
    back_[x] = -1;
    map_[w] = -1;
    const int32_t start = start_[w], end = end_[x];
    if (start == x) {
      if (topology_.IsGpu(NodeId(w))) --closed_;
      return;
    }
    end_[start] = w;
    start_[end] = x;
    length_[start] -= length_[x];
  }
  // True if w -> x leaves room for cycles of equal length. Requires: a GPU x without a preimage.
  bool KeepsCyclesEqual(int32_t w, int32_t x) const {
    if (closed_ == 0) return true;
    const int32_t start = start_[static_cast<size_t>(w)], length = length_[static_cast<size_t>(start)];
    return x == start ? length == length_of_cycles_
                      : length + length_[static_cast<size_t>(x)] <= length_of_cycles_;
  }
  size_t TierOf(int32_t n) const {
    const auto kind = static_cast<size_t>(topology_.node(NodeId(n)).kind);
    return static_cast<size_t>(hops_[static_cast<size_t>(n)] + 1) * std::size(kNodeKinds) + kind;
  }

  // Sets candidates_ for w, best first, but not many more than `most`. u is a mapped neighbour of w, or -1.
  void Candidates(int32_t u, int32_t w, size_t most = std::numeric_limits<size_t>::max()) {
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
    const bool gpu = topology_.IsGpu(NodeId(w));
    const std::optional<int32_t>& move = move_of_tier_[TierOf(w)];
    const int32_t start = start_[static_cast<size_t>(w)];
    if (gpu) {
      moved(displacement_);
      add(start);
      moved(of_parent);
      return;
    }
    if (move && u >= 0 && IsDownward(u, w)) {
      moved(*move);
      add(start);
    }
    moved(0);
    moved(of_parent);
    if (move) moved(*move);
    moved(displacement_);
    add(start);
  }

  // From a switch down to a switch: all below it look alike, and a wrong image shows only at their GPUs. One
  // of them is guessed at a time, so that what is below it follows before the next.
  bool IsDownward(int32_t u, int32_t w) const {
    const auto is_switch = [&](int32_t n) { return topology_.node(NodeId(n)).kind == NodeKind::kSwitch; };
    return hops_[static_cast<size_t>(w)] < hops_[static_cast<size_t>(u)] && is_switch(u) && is_switch(w);
  }

  // Maps those neighbours of the next mapped node that have a preferred image.
  bool Spread() {
    const int32_t u = trail_[head_];
    for (const BondedNode& n : graph_.Of(u)) {
      if (map_[n.node] >= 0 || IsDownward(u, n.node)) continue;
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

  // Guesses an image for a neighbour that Spread left: the one with the fewest candidates among the next few.
  bool Guess() {
    constexpr int32_t kLook = 8;
    constexpr size_t kMany = 8;  // more candidates are not told apart, so that a wide switch costs no square
    int32_t best_u = -1, best_w = -1, looked = 0;
    size_t fewest = std::numeric_limits<size_t>::max();
    for (size_t i = scan_; i < trail_.size() && looked < kLook && fewest > 1; ++i) {
      const int32_t u = trail_[i];
      bool open = false;
      for (const BondedNode& n : graph_.Of(u)) {
        if (map_[n.node] >= 0) continue;
        open = true;
        if (looked++ >= kLook) break;
        Candidates(u, n.node, kMany);
        if (candidates_.size() >= fewest) continue;
        fewest = candidates_.size();
        best_u = u;
        best_w = n.node;
        if (fewest <= 1) break;
      }
      if (!open && i == scan_) ++scan_;
    }
    if (best_w < 0) {  // another component
      while (map_[lowest_] >= 0) ++lowest_;
      best_w = lowest_;
    }
    Candidates(best_u, best_w, 1);
    if (candidates_.empty()) return false;
    decisions_.push_back({best_u, best_w, 1, trail_.size(), head_, scan_});
    return Assign(best_w, candidates_[0]);
  }

  // Returns to the last decision that has another candidate, and takes that.
  bool TakeBack() {
    while (!decisions_.empty() && budget_ > 0) {
      Decision& last = decisions_.back();
      while (trail_.size() > last.trail) TakeBackLast();
      head_ = last.head;
      scan_ = last.scan;
      lowest_ = 0;
      Candidates(last.u, last.w);
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
  const SymmetryGraph& graph_;
  const std::vector<uint64_t>& colour_;
  const SymmetryGroup& group_;
  int64_t budget_;
  int32_t displacement_ = 0;
  static constexpr int32_t kSeveralOrbits = -1;
  std::vector<int32_t> map_, back_;   // image and preimage of a node, or -1
  std::vector<int32_t> start_, end_;  // of a chain of images: its start by its end, its end by its start
  std::vector<int32_t> length_;       // of a chain, by its start
  int32_t closed_ = 0, length_of_cycles_ = 0;         // cycles of GPUs that are closed, and their length
  std::vector<std::optional<int32_t>> move_of_tier_;  // by hops and kind: the first displacement there
  std::vector<int32_t> hops_;                         // by node: links to the nearest GPUs
  std::vector<int32_t> near_orbit_;                   // by node: their orbit
  std::vector<int32_t> trail_;                        // mapped nodes in order
  std::vector<Decision> decisions_;
  std::vector<int32_t> candidates_;
  size_t head_ = 0, scan_ = 0;  // positions in trail_: Spread is done before head_, Guess before scan_
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
  const SymmetryGraph graph(topology);
  const std::vector<uint64_t> colour = ColoursOf(topology, graph);
  std::map<uint64_t, int64_t> ranks_of_colour;
  for (int32_t r = 0; r < topology.num_ranks(); ++r)
    ++ranks_of_colour[colour[topology.NodeOf(Rank(r)).index()]];
  int64_t largest = 0;  // an upper bound on the group's order
  for (const auto& [unused, ranks] : ranks_of_colour) largest = std::gcd(largest, ranks);

  SymmetryGroup group(topology);
  const int32_t seed = topology.NodeOf(Rank(0)).value;
  int64_t left = kTotalWork * graph.size();
  Signatures signatures(graph, colour);
  std::optional<uint64_t> wanted;  // the signature of rank 0, once a search has failed
  while (group.order() < largest && left > 0) {
    std::optional<SymmetryGroup> best;
    int32_t found = 0;
    std::vector<bool> differs(static_cast<size_t>(group.num_rank_orbits()), false);  // from rank 0's orbit
    std::vector<bool> asked(differs.size(), false);
    for (int32_t r = 1; r < topology.num_ranks() && found < kFound && left > 0; ++r) {
      const int32_t target = topology.NodeOf(Rank(r)).value;
      if (group.OrbitOf(Rank(r)) == group.OrbitOf(Rank(0)) || colour[target] != colour[seed]) continue;
      const auto orbit = static_cast<size_t>(group.OrbitOf(Rank(r)));
      if (wanted && !asked[orbit]) {
        asked[orbit] = true;
        differs[orbit] = signatures.Of(target) != *wanted;
        left -= signatures.work();
      }
      if (differs[orbit]) continue;
      const int64_t budget = std::min(left, kSearchWork * graph.size());
      Search search(topology, graph, colour, group, budget);
      const bool complete = search.Run(seed, target);
      left -= budget - search.budget();
      if (!complete) {
        // An image of the target under the group would do as well.
        differs[orbit] = true;
        if (!wanted) wanted = signatures.Of(seed);
        continue;
      }
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
