// A worst cut X (a sink inside, supply outside) can be had with both sides connected: of several parts of
// one side one alone is as bad. So beside the cuts around nodes alone, which are looked at:
// - no cut need part a node with one neighbour from it;
// - no cut need part neighbours u and v of two neighbours each, a - u - v - b, where c(u,a) <= c(v,u) and
//   c(v,b) <= c(u,v): if u is inside and v outside, so is a inside, and moving u out costs c(u,a) for c(v,u)
//   and adds to the supply outside. A sink u must leave another inside: then a has to be one.
// The widest cable of a ring is such a pair. Tests of this kind: Padberg and Rinaldi (1990).
#include "base/graph/contract_cuts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/graph/grouped.h"
#include "base/graph/union_find.h"

namespace xccl {
namespace {

class Contraction {
 public:
  explicit Contraction(const RatioCutProblem& problem)
      : problem_(problem), sets_(problem.supply.size()), part_(problem.supply.size()) {
    for (size_t n = 0; n < sets_.size(); ++n) total_supply_ += sets_[n].supply = problem.supply[n];
    for (int32_t sink : problem.sinks) sets_[sink].sinks = 1;
    for (const CapacityArc& arc : problem.arcs) {
      if (arc.from == arc.to) continue;
      sets_[arc.from].out += arc.capacity;
      sets_[arc.to].in += arc.capacity;
    }
    JoinParallel();
  }

  std::optional<ContractedCuts> Run() {
    const int32_t nodes = static_cast<int32_t>(sets_.size());
    for (int32_t n = 0; n < nodes; ++n) Open(n);
    while (!open_.empty()) {
      const int32_t node = open_.back();
      open_.pop_back();
      if (part_.Find(node) == node) Process(node);
    }
    for (int32_t n = 0; n < nodes; ++n)
      if (part_.Find(n) == n) Take(sets_[n]);
    if (cut_off_) return std::nullopt;
    return ContractedCuts{Left(), worst_};
  }

 private:
  struct Set {
    int64_t supply = 0, in = 0, out = 0;  // capacity of the arcs that enter it, that leave it
    size_t sinks = 0;
    int32_t degree = 0;    // edges that lead out of it
    int32_t edge[2] = {};  // them, once they are at most two
  };
  // All arcs between two nodes.
  struct Edge {
    int32_t a, b;
    int64_t to_a, to_b;
    bool gone = false;
  };

  void JoinParallel() {
    const std::vector<CapacityArc>& arcs = problem_.arcs;
    const auto by_lower = GroupItems<int32_t>(sets_.size(), [&](auto add) {
      for (size_t i = 0; i < arcs.size(); ++i)
        if (arcs[i].from != arcs[i].to) add(std::min(arcs[i].from, arcs[i].to), static_cast<int32_t>(i));
    });
    std::vector<size_t> edge_to(sets_.size(), 0);  // by upper node; stale where it is of another lower one
    for (int32_t a = 0; a < static_cast<int32_t>(sets_.size()); ++a) {
      const size_t mine = edges_.size();
      for (int32_t i : by_lower[a]) {
        const int32_t b = std::max(arcs[i].from, arcs[i].to);
        size_t& e = edge_to[b];
        if (e < mine || e >= edges_.size() || edges_[e].b != b) {
          e = edges_.size();
          edges_.push_back({a, b, 0, 0});
          ++sets_[a].degree;
          ++sets_[b].degree;
        }
        (arcs[i].to == a ? edges_[e].to_a : edges_[e].to_b) += arcs[i].capacity;
      }
    }
    edges_at_ = GroupItems<int32_t>(sets_.size(), [&](auto add) {
      for (size_t e = 0; e < edges_.size(); ++e) {
        add(edges_[e].a, static_cast<int32_t>(e));
        add(edges_[e].b, static_cast<int32_t>(e));
      }
    });
  }

  // The edge's other end.
  int32_t Other(int32_t edge, int32_t node) {
    const int32_t a = part_.Find(edges_[edge].a);
    return a == node ? part_.Find(edges_[edge].b) : a;
  }
  int64_t CapacityInto(int32_t edge, int32_t node) {
    return part_.Find(edges_[edge].a) == node ? edges_[edge].to_a : edges_[edge].to_b;
  }

  // Puts a node on the list that has come down to two edges. Nothing but leaves has joined it before.
  void Open(int32_t node) {
    Set& set = sets_[node];
    if (set.degree == 0 || set.degree > 2) return;
    int32_t found = 0;
    for (int32_t e : edges_at_[node])
      if (!edges_[e].gone) set.edge[found++] = e;
    open_.push_back(node);
  }

  void Take(const Set& set) {
    const auto raise = [&](int64_t supply, int64_t capacity) {
      if (supply == 0) return;
      if (capacity == 0) {
        cut_off_ = true;
      } else if (worst_.IsLessThan({supply, capacity})) {
        worst_ = {supply, capacity};
      }
    };
    if (set.sinks > 0) raise(total_supply_ - set.supply, set.in);
    if (set.sinks < problem_.sinks.size()) raise(set.supply, set.out);
  }

  void Process(int32_t node) {
    Set& set = sets_[node];
    if (set.degree == 0) return;
    Take(set);
    const int32_t first = Other(set.edge[0], node);
    if (set.degree == 1 || Other(set.edge[1], node) == first) return HangOn(node, first);
    if (!JoinNext(node, 0)) JoinNext(node, 1);
  }

  // The node becomes a part of its only neighbour.
  void HangOn(int32_t node, int32_t neighbour) {
    const int32_t lost = sets_[node].degree;
    for (int32_t k = 0; k < lost; ++k) edges_[sets_[node].edge[k]].gone = true;
    Set& set = sets_[neighbour];
    // The node has no other neighbour, so all capacity into the node is capacity out of the neighbour.
    set.out -= sets_[node].in;
    set.in -= sets_[node].out;
    Add(node, neighbour);
    set.degree -= lost;
    if (set.degree == 1 && edges_[set.edge[0]].gone) std::swap(set.edge[0], set.edge[1]);
    set.degree + lost > 2 ? Open(neighbour) : open_.push_back(neighbour);
  }

  // Joins u to its neighbour over edge[side], where no cut need part them.
  bool JoinNext(int32_t u, int32_t side) {
    const int32_t between = sets_[u].edge[side], e = sets_[u].edge[1 - side];
    const int32_t v = Other(between, u);
    Set& set = sets_[u];
    const Set& next = sets_[v];
    if (next.degree != 2) return false;
    const int32_t f = next.edge[0] == between ? next.edge[1] : next.edge[0];
    const int32_t a = Other(e, u), b = Other(f, v);
    if (CapacityInto(e, a) > CapacityInto(between, u) || CapacityInto(f, b) > CapacityInto(between, v))
      return false;
    if ((set.sinks > 0 && sets_[a].sinks == 0) || (next.sinks > 0 && sets_[b].sinks == 0)) return false;
    Take(next);
    const int64_t inside = CapacityInto(between, u) + CapacityInto(between, v);
    set.in += next.in - inside;
    set.out += next.out - inside;
    Add(v, u);
    set.edge[0] = e;
    set.edge[1] = f;
    open_.push_back(u);
    return true;
  }

  void Add(int32_t node, int32_t to) {
    sets_[to].supply += sets_[node].supply;
    sets_[to].sinks += sets_[node].sinks;
    part_.Join(node, to);
  }

  RatioCutProblem Left() {
    RatioCutProblem left;
    std::vector<int32_t> number(sets_.size());
    for (size_t n = 0; n < sets_.size(); ++n) {
      if (part_.Find(static_cast<int32_t>(n)) != static_cast<int32_t>(n)) continue;
      number[n] = static_cast<int32_t>(left.supply.size());
      if (sets_[n].sinks > 0) left.sinks.push_back(number[n]);
      left.supply.push_back(sets_[n].supply);
    }
    for (const CapacityArc& arc : problem_.arcs) {
      const int32_t from = part_.Find(arc.from), to = part_.Find(arc.to);
      if (from != to) left.arcs.push_back({number[from], number[to], arc.capacity});
    }
    return left;
  }

  const RatioCutProblem& problem_;
  std::vector<Set> sets_;  // by representative
  UnionFind part_;
  std::vector<Edge> edges_;
  Grouped<int32_t> edges_at_;  // by node
  std::vector<int32_t> open_;
  int64_t total_supply_ = 0;
  RatioCut worst_;
  bool cut_off_ = false;
};

}  // namespace

std::optional<ContractedCuts> ContractCuts(const RatioCutProblem& problem) {
  return Contraction(problem).Run();
}

}  // namespace xccl
