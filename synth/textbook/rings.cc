// Grids and full meshes get their rings by construction (synth/textbook/grid.h). Rings are searched on other
// machines, for some of the ranks of a machine, and for up to 64 ranks whose hops differ in bandwidth. For
// each of up to eight bandwidths of hops, FindAll searches rings one after another, each of which takes that
// bandwidth from its links. The bandwidth whose rings carry most together wins.
// DepthFirst searches one ring. It stays inside a domain until all members of the domain are on the ring. It
// walks every second domain in the opposite order, so that a ring that enters one host over NIC k leaves the
// next host over NIC k. The best next hop has the least latency; at a rank of at most 16 hops, then the most
// bandwidth left, then the fewest hops onwards. If DepthFirst fails, Rotate extends and rotates a path at
// random (Posa, 1976). All searches together take a bounded number of steps.
#include "synth/textbook/rings.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "base/graph/union_find.h"
#include "base/random.h"
#include "synth/textbook/grid.h"

namespace xccl {
namespace {

constexpr size_t kBranches = 12;  // the search keeps only the best hops from each vertex

class RingSearch {
 public:
  RingSearch(const RankGraph& graph, std::span<const Rank> members)
      : graph_(graph), members_(members), index_(static_cast<size_t>(graph.num_ranks()), -1) {
    for (size_t i = 0; i < members.size(); ++i) index_[members[i].index()] = static_cast<int32_t>(i);
  }

  std::set<int64_t, std::greater<>> Bandwidths() const {
    std::set<int64_t, std::greater<>> found;
    int64_t last = -1;
    for (Rank r : members_) {
      for (HopId h = graph_.FirstOut(r); h < graph_.EndOut(r); ++h.value) {
        const Hop& hop = graph_.hop(h);
        if (index_[hop.to.index()] < 0 || hop.bandwidth_bytes_per_s == last) continue;
        last = hop.bandwidth_bytes_per_s;
        found.insert(last);
      }
    }
    return found;
  }

  // Returns rings, each of which takes `bandwidth` from its links. `turn` chooses the member at which the
  // first search starts. Turn 0 must come first, because it sets the budget.
  std::vector<Ring> FindAll(int64_t bandwidth, int32_t turn) {
    bandwidth_ = bandwidth;
    if (turn == 0) expansions_left_ = 60'000 + 100 * static_cast<int64_t>(members_.size());
    left_.clear();
    for (int32_t l = 0; l < graph_.topology().num_links(); ++l)
      left_.push_back(graph_.topology().link(LinkId(l)).bandwidth_bytes_per_s);
    std::vector<Ring> rings;
    if (!Joined()) return rings;
    while (static_cast<int32_t>(rings.size()) < kMaxRings) {
      Ring ring;
      if (!DepthFirst(turn + static_cast<int32_t>(rings.size()), ring) && !Rotate(ring)) break;
      Take(ring, rings);
      std::vector<Rank> back = rings.back().order;
      std::reverse(back.begin(), back.end());
      Ring reversed;
      if (static_cast<int32_t>(rings.size()) < kMaxRings && members_.size() > 2 && Bind(back, reversed))
        Take(reversed, rings);
    }
    return rings;
  }

 private:
  // Returns whether free hops join all members. If they do not, there is no ring.
  bool Joined() const {
    UnionFind parts(members_.size());
    size_t joined = 1;
    for (Rank r : members_) {
      for (HopId h = graph_.FirstOut(r); h < graph_.EndOut(r); ++h.value) {
        const int32_t to = index_[graph_.hop(h).to.index()];
        if (to >= 0 && Free(h) && parts.Join(index_[r.index()], to)) ++joined;
      }
    }
    return joined == members_.size();
  }
  bool Free(HopId h) const {
    for (LinkId l : graph_.Links(h))
      if (left_[l.index()] < bandwidth_) return false;
    return true;
  }
  std::optional<HopId> FreeHop(Rank a, Rank b) const {
    const std::optional<HopId> best = graph_.Find(a, b);
    if (!best) return std::nullopt;
    for (int32_t i = 0, n = graph_.Parallel(*best); i < n; ++i)
      if (Free(HopId(best->value + i))) return HopId(best->value + i);
    return std::nullopt;
  }
  // Sets `ring` to a ring with this order of ranks. Returns false if some hop is missing or not Free.
  bool Bind(const std::vector<Rank>& order, Ring& ring) {
    ring = Ring{order, {}};
    bool bound = true;
    for (size_t i = 0; i < order.size() && bound; ++i) {
      const std::optional<HopId> hop = FreeHop(order[i], order[(i + 1) % order.size()]);
      bound = hop.has_value();
      if (bound) Use(*hop, -1), ring.hops.push_back(*hop);
    }
    for (HopId h : ring.hops) Use(h, 1);
    return bound;
  }
  void Use(HopId h, int sign) {
    for (LinkId l : graph_.Links(h)) left_[l.index()] += sign * bandwidth_;
  }
  void Take(const Ring& ring, std::vector<Ring>& rings) {
    for (HopId h : ring.hops) Use(h, -1);
    rings.push_back(ring);
  }

  struct Candidate {
    int64_t latency_ps, minus_left;
    int32_t onward, offset;
    HopId hop;
    auto operator<=>(const Candidate&) const = default;
  };

  void Candidates(Rank at, std::vector<Candidate>& out) const {
    out.clear();
    const int32_t domain = graph_.Domain(at), n = static_cast<int32_t>(members_.size());
    const bool stay = unvisited_in_[domain] > 0;
    const bool sparse = graph_.EndOut(at).value - graph_.FirstOut(at).value <= 16;
    std::optional<Rank> last;
    for (HopId h = graph_.FirstOut(at); h < graph_.EndOut(at); ++h.value) {
      const Hop& hop = graph_.hop(h);
      const int32_t to = index_[hop.to.index()];
      if (to < 0 || visited_[to] || (last && *last == hop.to) || !Free(h)) continue;
      if (stay && graph_.Domain(hop.to) != domain) continue;
      last = hop.to;
      Candidate c{hop.latency_ps, 0, 0, 0, h};
      const int32_t along = (to - index_[at.index()] + n) % n;
      c.offset = stay && domains_done_ % 2 == 1 ? n - along : along;
      if (sparse) {
        int64_t most = 0;
        for (LinkId l : graph_.Links(h)) most = std::max(most, left_[l.index()]);
        c.minus_left = -most;
        for (HopId g = graph_.FirstOut(hop.to); g < graph_.EndOut(hop.to); ++g.value) {
          const int32_t onto = index_[graph_.hop(g).to.index()];
          if (onto >= 0 && !visited_[onto] && Free(g)) ++c.onward;
        }
      }
      out.push_back(c);
    }
    const size_t keep = std::min(out.size(), kBranches);
    std::partial_sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(keep), out.end());
    out.resize(keep);
  }

  bool DepthFirst(int32_t turn, Ring& ring) {
    const size_t n = members_.size();
    visited_.assign(n, false);
    unvisited_in_.assign(static_cast<size_t>(graph_.num_domains()), 0);
    for (Rank r : members_) ++unvisited_in_[graph_.Domain(r)];
    const int32_t home = graph_.Domain(members_[0]);
    std::vector<Rank> starts;
    for (Rank r : members_)
      if (graph_.Domain(r) == home) starts.push_back(r);
    domains_done_ = 0;
    struct Frame {
      std::vector<Candidate> candidates;
      size_t next = 0;
    };
    std::vector<Frame> frames;
    ring = Ring{};
    const auto enter = [&](Rank r) {
      visited_[index_[r.index()]] = true;
      if (--unvisited_in_[graph_.Domain(r)] == 0) ++domains_done_;
      ring.order.push_back(r);
      frames.emplace_back();
      Candidates(r, frames.back().candidates);
    };
    const auto leave = [&] {
      const Rank r = ring.order.back();
      visited_[index_[r.index()]] = false;
      if (unvisited_in_[graph_.Domain(r)]++ == 0) --domains_done_;
      ring.order.pop_back();
      frames.pop_back();
      if (!ring.hops.empty()) Use(ring.hops.back(), 1), ring.hops.pop_back();
    };
    enter(starts[static_cast<size_t>(turn) % starts.size()]);
    int64_t budget = 20'000 + 4 * static_cast<int64_t>(n);
    while (!frames.empty() && budget-- > 0 && expansions_left_-- > 0) {
      if (ring.order.size() == n) {
        if (const auto close = FreeHop(ring.order.back(), ring.order.front())) {
          for (HopId h : ring.hops) Use(h, 1);
          ring.hops.push_back(*close);
          return true;
        }
        leave();
        continue;
      }
      Frame& frame = frames.back();
      if (frame.next == frame.candidates.size()) {
        leave();
        continue;
      }
      const HopId h = frame.candidates[frame.next++].hop;
      Use(h, -1);
      ring.hops.push_back(h);
      enter(graph_.hop(h).to);
    }
    for (HopId h : ring.hops) Use(h, 1);
    return false;
  }

  // Searches a ring by random extension and rotation of a path, over hops that are free in both directions.
  bool Rotate(Ring& ring) {
    const size_t n = members_.size();
    if (n < 16) return false;
    std::vector<std::vector<int32_t>> near(n);
    size_t edges = 0;
    for (size_t i = 0; i < n; ++i) {
      for (HopId h = graph_.FirstOut(members_[i]); h < graph_.EndOut(members_[i]); ++h.value) {
        const int32_t to = index_[graph_.hop(h).to.index()];
        if (to < 0 || (!near[i].empty() && near[i].back() == to)) continue;
        if (!FreeHop(members_[i], members_[to]) || !FreeHop(members_[to], members_[i])) continue;
        near[i].push_back(to);
      }
      edges += near[i].size();
      if (near[i].size() < 2 || edges > 12 * n) return false;
    }
    Random random(n);
    std::vector<int32_t> path = {0}, place(n, -1);
    place[0] = 0;
    int64_t budget = std::min<int64_t>(1'000'000, rotations_left_);
    const int64_t before = budget;
    const auto spent = [&](bool found) {
      rotations_left_ -= before - std::max<int64_t>(budget, 0);
      return found;
    };
    while (budget > 0) {
      const std::vector<int32_t>& next = near[path.back()];
      const auto open = std::find_if(next.begin(), next.end(), [&](int32_t v) { return place[v] < 0; });
      --budget;
      if (open != next.end()) {
        place[*open] = static_cast<int32_t>(path.size());
        path.push_back(*open);
        continue;
      }
      if (path.size() == n && std::find(next.begin(), next.end(), path[0]) != next.end()) {
        std::vector<Rank> order;
        for (int32_t v : path) order.push_back(members_[v]);
        if (Bind(order, ring)) return spent(true);
      }
      size_t from = static_cast<size_t>(place[next[random.Below(next.size())]]) + 1;
      if (from + 1 >= path.size() || random.Below(16) == 0) from = 0;  // reverse the whole path
      std::reverse(path.begin() + static_cast<std::ptrdiff_t>(from), path.end());
      for (size_t i = from; i < path.size(); ++i) place[path[i]] = static_cast<int32_t>(i);
      budget -= static_cast<int64_t>(path.size() - from);
    }
    return spent(false);
  }

  const RankGraph& graph_;
  std::span<const Rank> members_;
  std::vector<int32_t> index_;  // by rank: place in members_; -1: no member
  int64_t bandwidth_ = 0;
  std::vector<int64_t> left_;  // by link: bandwidth that no ring has taken
  // Work left: steps of DepthFirst at this bandwidth, and vertices that all rotations together may move.
  int64_t expansions_left_ = 0, rotations_left_ = 3'000'000;
  std::vector<bool> visited_;
  std::vector<int32_t> unvisited_in_;
  int32_t domains_done_ = 0;
};

Rings Measure(const RankGraph& graph, std::vector<Ring> rings, std::optional<int64_t> bandwidth) {
  Rings measured;
  measured.rings = std::move(rings);
  int64_t narrowest = std::numeric_limits<int64_t>::max();
  for (const Ring& ring : measured.rings) {
    for (HopId h : ring.hops) {
      narrowest = std::min(narrowest, graph.hop(h).bandwidth_bytes_per_s);
      measured.latency_ps = std::max(measured.latency_ps, graph.hop(h).latency_ps);
    }
  }
  measured.bandwidth_bytes_per_s = bandwidth.value_or(narrowest);
  return measured;
}

// Returns up to kMaxRings rings: one for each direction of each cycle. Returns none if a hop is missing.
std::vector<Ring> BothDirections(const RankGraph& graph, const std::vector<std::vector<int32_t>>& cycles) {
  std::vector<Ring> rings;
  for (std::vector<int32_t> cycle : cycles) {
    for (int direction = 0; direction < 2; ++direction) {
      if (static_cast<int32_t>(rings.size()) == kMaxRings) return rings;
      Ring ring;
      for (int32_t v : cycle) ring.order.push_back(Rank(v));
      for (size_t i = 0; i < cycle.size(); ++i) {
        const auto hop = graph.Find(ring.order[i], ring.order[(i + 1) % cycle.size()]);
        if (!hop) return {};
        ring.hops.push_back(*hop);
      }
      rings.push_back(std::move(ring));
      std::reverse(cycle.begin(), cycle.end());
    }
  }
  return rings;
}

std::vector<Ring> Constructed(const RankGraph& graph) {
  const int32_t n = graph.num_ranks();
  bool all_direct = graph.num_hops() == int64_t{n} * (n - 1);
  for (int32_t h = 0; h < graph.num_hops() && all_direct; ++h)
    all_direct = graph.hop(HopId(h)).num_links == 1;
  if (all_direct) return BothDirections(graph, CompleteCycles(n));
  if (const std::optional<Grid> grid = DetectGrid(graph)) return BothDirections(graph, DisjointCycles(*grid));
  return {};
}

}  // namespace

StatusOr<Rings> PlaceRings(const RankGraph& graph, std::span<const Rank> members, std::string_view engine) {
  Rings best;
  if (members.size() == 1) {
    best.rings = {Ring{{members[0]}, {}}};
    return best;
  }
  RingSearch search(graph, members);
  if (static_cast<int32_t>(members.size()) == graph.num_ranks() && members.size() > 2) {
    const bool uniform = search.Bandwidths().size() == 1;
    std::vector<Ring> rings = Constructed(graph);
    if (!rings.empty()) best = Measure(graph, std::move(rings), std::nullopt);
    if (!best.rings.empty() && (uniform || members.size() > 64)) return best;
  }
  const auto total = [](const Rings& rings) {
    return static_cast<double>(rings.bandwidth_bytes_per_s) * static_cast<double>(rings.rings.size());
  };
  const int32_t turns = members.size() <= 16 ? static_cast<int32_t>(members.size()) : 1;
  int32_t levels = 0;
  for (int64_t bandwidth : search.Bandwidths()) {
    if (++levels > 8) break;
    for (int32_t turn = 0; turn < turns; ++turn) {
      std::vector<Ring> rings = search.FindAll(bandwidth, turn);
      if (rings.empty()) break;
      Rings found = Measure(graph, std::move(rings), bandwidth);
      if (best.rings.empty() || total(found) > total(best)) best = std::move(found);
    }
  }
  if (best.rings.empty())
    return InvalidInput(fmt::format(
        "{}: found no cycle through all {} ranks over paths between neighbours; hint: --engine=greedy",
        engine, members.size()));
  return best;
}

}  // namespace xccl
