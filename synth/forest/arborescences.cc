// All trees grow level by level, in turns. An arc may join tree i when afterwards every set of nodes still
// has as much room on the arcs that enter it as there are trees that have yet to come in: that is a flow into
// the arc's head, from each other tree that has not reached it and from the arc's tail. What does not pass
// never will: a set that is full stays so until the last tree is in. So each arc is tested once a tree, and
// as long as the cuts allow k trees at the start, none gets stuck.
//
// First the trees are grown without tests, but that the root gives each only one arc where it has no more: on
// full meshes that makes one star below each neighbour of the root, and nothing is left to prove.
//
// Which arcs a tree gets depends on their order, and so does its depth. The trees therefore grow several
// times, with the arcs in other orders, and the shallowest are taken.
#include "synth/forest/arborescences.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/graph/grouped.h"
#include "base/random.h"

namespace xccl::forest {
namespace {

// Other orders of the arcs that are tried, since some make shallower trees.
constexpr int64_t kMostTries = 64;
constexpr int64_t kTestsOfTries = 400'000;  // trees × arcs, of all of them

struct Graph {
  int32_t nodes;
  std::span<const CapacityArc> arcs;
  Grouped<int32_t> out, in;  // arcs by the node that they leave, and enter
};

template <typename End>
Grouped<int32_t> ByEnd(int32_t nodes, std::span<const CapacityArc> arcs, End end) {
  return GroupItems<int32_t>(static_cast<size_t>(nodes), [&](auto add) {
    for (size_t a = 0; a < arcs.size(); ++a) add(arcs[a].*end, static_cast<int32_t>(a));
  });
}

// Growing with tests and without: a queue of nodes for each tree, taken in turns, level by level.
class Grower {
 public:
  Grower(const Graph& graph, int32_t root, int32_t k)
      : graph_(graph), root_(root), trees_(static_cast<size_t>(k)) {
    for (const CapacityArc& arc : graph.arcs) room_.push_back(arc.capacity);
  }

  // may_join(tree, arc): is the arc, which has room and leads out of the tree, good for it?
  // joined(tree, node): it was. False: a tree does not reach all nodes.
  template <typename MayJoin, typename Joined>
  bool Grow(MayJoin may_join, Joined joined) {
    const size_t k = trees_.size(), nodes = static_cast<size_t>(graph_.nodes);
    std::vector<bool> in(k * nodes, false);
    std::vector<std::vector<int32_t>> level(k, {root_}), next(k);
    for (size_t t = 0; t < k; ++t) in[t * nodes + static_cast<size_t>(root_)] = true;
    for (bool grown = true; grown;) {
      grown = false;
      for (size_t i = 0, left = k; left > 0; ++i) {
        left = 0;
        for (size_t turn = 0; turn < k; ++turn) {
          const size_t t = (turn + i) % k;
          if (i >= level[t].size()) continue;
          ++left;
          for (int32_t a : graph_.out[level[t][i]]) {
            const int32_t to = graph_.arcs[a].to;
            if (room_[a] == 0 || in[t * nodes + static_cast<size_t>(to)]) continue;
            if (!may_join(static_cast<int32_t>(t), a)) continue;
            --room_[a];
            in[t * nodes + static_cast<size_t>(to)] = true;
            trees_[t].arcs.push_back(a);
            next[t].push_back(to);
            joined(static_cast<int32_t>(t), to);
          }
        }
      }
      for (size_t t = 0; t < k; ++t) {
        grown |= !next[t].empty();
        trees_[t].depth += next[t].empty() ? 0 : 1;
        level[t].swap(next[t]);
        next[t].clear();
      }
    }
    return std::all_of(trees_.begin(), trees_.end(),
                       [&](const Arborescence& tree) { return tree.arcs.size() + 1 == nodes; });
  }

  int64_t Room(int32_t arc) const { return room_[arc]; }
  std::vector<Arborescence>& trees() { return trees_; }

 private:
  const Graph& graph_;
  int32_t root_;
  std::vector<Arborescence> trees_;
  std::vector<int64_t> room_;
};

// Does every set still have room enough when tree t takes an arc?
class LookAhead {
 public:
  LookAhead(const Graph& graph, int32_t root, int32_t k, const Grower& grower)
      : graph_(graph),
        grower_(grower),
        all_(k == 64 ? ~uint64_t{0} : (uint64_t{1} << k) - 1),
        trees_at_(static_cast<size_t>(graph.nodes), 0),
        flow_(graph.arcs.size(), 0),
        seen_(static_cast<size_t>(graph.nodes), 0),
        from_(static_cast<size_t>(graph.nodes)),
        entry_(static_cast<size_t>(k), -1),
        tree_seen_(static_cast<size_t>(k), 0),
        tree_from_(static_cast<size_t>(k), -1) {
    trees_at_[root] = all_;
  }

  void Joined(int32_t tree, int32_t node) { trees_at_[node] |= uint64_t{1} << tree; }

  bool MayJoin(int32_t tree, int32_t arc) {
    const int32_t tail = graph_.arcs[arc].from, head = graph_.arcs[arc].to;
    const uint64_t wanted = all_ & ~trees_at_[head] & ~(uint64_t{1} << tree);
    int64_t room = -1;
    for (int32_t a : graph_.in[head]) room += grower_.Room(a);
    if (room < std::popcount(wanted)) return false;
    unused_ = wanted;
    used_ = 0;
    flow_[arc] = 1;  // the tree's own
    touched_.assign(1, arc);
    bool fits = true;
    for (int32_t unit = std::popcount(wanted); unit > 0 && fits; --unit) fits = Augment(tail, head);
    for (int32_t a : touched_) flow_[a] = 0;
    return fits;
  }

 private:
  struct From {
    int32_t arc = -1;   // on the path to the head, or, where `undo`, taken back
    int32_t tree = -1;  // entered the graph here and is to enter elsewhere
    bool undo = false;
  };

  // One more unit into `head`, from `tail` or from a tree that supplies none: breadth first, backwards.
  bool Augment(int32_t tail, int32_t head) {
    ++stamp_;
    queue_.assign(1, head);
    seen_[head] = stamp_;
    for (size_t i = 0; i < queue_.size(); ++i) {
      const int32_t v = queue_[i];
      const uint64_t here = trees_at_[v];
      if (v == tail) return Apply(v, head, -1);
      if ((here & unused_) != 0) return Apply(v, head, std::countr_zero(here & unused_));
      for (uint64_t rest = here & used_; rest != 0; rest &= rest - 1) {
        const int32_t t = std::countr_zero(rest);
        if (tree_seen_[t] == stamp_) continue;
        tree_seen_[t] = stamp_;
        tree_from_[t] = v;
        Visit(entry_[t], {-1, t, false});
      }
      for (int32_t a : graph_.in[v])
        if (flow_[a] < grower_.Room(a)) Visit(graph_.arcs[a].from, {a, -1, false});
      for (int32_t a : graph_.out[v])
        if (flow_[a] > 0 && a != touched_[0]) Visit(graph_.arcs[a].to, {a, -1, true});
    }
    return false;
  }

  void Visit(int32_t node, From from) {
    if (seen_[node] == stamp_) return;
    seen_[node] = stamp_;
    from_[node] = from;
    queue_.push_back(node);
  }

  // The unit that starts at v, in `tree` or, where that is -1, in the arc's tail.
  bool Apply(int32_t v, int32_t head, int32_t tree) {
    if (tree >= 0) {
      unused_ &= ~(uint64_t{1} << tree);
      used_ |= uint64_t{1} << tree;
      entry_[tree] = v;
    }
    while (v != head) {
      const From from = from_[v];
      if (from.tree >= 0) {
        v = tree_from_[from.tree];
        entry_[from.tree] = v;
      } else if (from.undo) {
        --flow_[from.arc];
        v = graph_.arcs[from.arc].from;
      } else {
        ++flow_[from.arc];
        touched_.push_back(from.arc);
        v = graph_.arcs[from.arc].to;
      }
    }
    return true;
  }

  const Graph& graph_;
  const Grower& grower_;
  const uint64_t all_;
  std::vector<uint64_t> trees_at_;  // by node: the trees that have reached it
  std::vector<int32_t> flow_;       // by arc
  std::vector<int32_t> seen_;       // by node: stamp of the last search that came by
  std::vector<From> from_;          // by node: where the search came from
  std::vector<int32_t> entry_;      // by tree that supplies a unit: the node where it leaves the tree
  std::vector<int32_t> tree_seen_, tree_from_;
  uint64_t unused_ = 0, used_ = 0;  // trees that have yet to supply a unit, that do supply one
  int32_t stamp_ = 0;
  std::vector<int32_t> queue_, touched_;
};

// The trees that grow with the arcs in this order.
std::optional<std::vector<Arborescence>> Grown(int32_t nodes, int32_t root, int32_t k,
                                               std::span<const CapacityArc> arcs) {
  const Graph graph{nodes, arcs, ByEnd(nodes, arcs, &CapacityArc::from),
                    ByEnd(nodes, arcs, &CapacityArc::to)};
  {
    Grower grower(graph, root, k);
    std::vector<int32_t> given(static_cast<size_t>(k), 0);  // arcs that the root gave
    int64_t spare = -int64_t{k};
    for (int32_t a : graph.out[root]) spare += graph.arcs[a].capacity;
    const auto may_join = [&](int32_t tree, int32_t arc) {
      if (graph.arcs[arc].from != root || given[tree]++ == 0) return true;
      return spare-- > 0;
    };
    if (grower.Grow(may_join, [](int32_t, int32_t) {})) return std::move(grower.trees());
  }
  if (k > kMostArborescences) return std::nullopt;
  Grower grower(graph, root, k);
  LookAhead ahead(graph, root, k, grower);
  if (!grower.Grow([&](int32_t tree, int32_t arc) { return ahead.MayJoin(tree, arc); },
                   [&](int32_t tree, int32_t node) { ahead.Joined(tree, node); }))
    return std::nullopt;
  return std::move(grower.trees());
}

}  // namespace

int32_t DepthOf(std::span<const Arborescence> trees) {
  int32_t depth = 0;
  for (const Arborescence& tree : trees) depth = std::max(depth, tree.depth);
  return depth;
}

std::optional<std::vector<Arborescence>> PackArborescences(int32_t nodes, int32_t root, int32_t k,
                                                           std::span<const CapacityArc> arcs) {
  std::optional<std::vector<Arborescence>> best = Grown(nodes, root, k, arcs);
  if (!best || k == 1) return best;
  int32_t depth = DepthOf(*best);
  const int32_t least = DepthOf(*Grown(nodes, root, 1, arcs));
  const int64_t tries = std::min<int64_t>(kMostTries, kTestsOfTries / (k * std::ssize(arcs)));
  Random random(0);
  std::vector<int32_t> order(arcs.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<CapacityArc> mixed(arcs.size());
  for (int64_t i = 0; i < tries && depth > least; ++i) {
    random.Shuffle(std::span(order));
    for (size_t a = 0; a < arcs.size(); ++a) mixed[a] = arcs[order[a]];
    std::optional<std::vector<Arborescence>> trees = Grown(nodes, root, k, mixed);
    if (!trees || DepthOf(*trees) >= depth) continue;
    depth = DepthOf(*trees);
    for (Arborescence& tree : *trees)
      for (int32_t& a : tree.arcs) a = order[a];
    best = std::move(trees);
  }
  return best;
}

}  // namespace xccl::forest
