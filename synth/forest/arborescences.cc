// All trees grow level by level and take turns. The room of an arc is the number of further trees that may
// use it.
// 1. Grown first grows the trees without tests. The root gives each tree one arc, and further arcs only if it
//    has more than k. On full meshes this makes one star below each neighbour of the root.
// 2. If some tree does not reach all nodes, Grown starts again with tests. An arc may join a tree if every
//    set of nodes keeps enough room: as much on the arcs into the set as there are trees that have not
//    reached the set.
// 3. LookAhead tests this by a flow into the arc's head: one unit for each other tree that has not reached
//    the head. Each of those trees can supply one unit at any of its nodes; the arc's tail can supply any
//    number, because a set that holds the tail loses no room.
// 4. PackArborescences repeats the growth with the arcs in other orders and keeps the shallowest trees.
// An arc that fails for a tree fails forever, because no set ever gets more room to spare. Each arc is
// therefore tested once for each tree. No tree gets stuck if the cuts allow k trees.
#include "synth/forest/arborescences.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/graph/grouped.h"
#include "base/random.h"

namespace xccl::forest {
namespace {

// The most other orders of the arcs that are tried for shallower trees.
constexpr int64_t kMostTries = 64;
constexpr int64_t kTestsOfTries = 400'000;  // the most trees × arcs × orders

struct Graph {
  int32_t nodes;
  std::span<const CapacityArc> arcs;
  Grouped<int32_t> out, in;  // arcs by tail, and arcs by head
};

template <typename End>
Grouped<int32_t> ByEnd(int32_t nodes, std::span<const CapacityArc> arcs, End end) {
  return GroupItems<int32_t>(static_cast<size_t>(nodes), [&](auto add) {
    for (size_t a = 0; a < arcs.size(); ++a) add(arcs[a].*end, static_cast<int32_t>(a));
  });
}

// Grows k trees breadth-first, level by level. The trees take turns, one node at a time.
class Grower {
 public:
  Grower(const Graph& graph, int32_t root, int32_t k)
      : graph_(graph), root_(root), trees_(static_cast<size_t>(k)) {
    for (const CapacityArc& arc : graph.arcs) room_.push_back(arc.capacity);
  }

  // Grows all trees; returns false if some tree misses a node. may_join(tree, arc) says whether an arc with
  // room that leads out of the tree may join it. joined(tree, node) is called once the node is in the tree.
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

// Tests whether every set of nodes still has enough room after a tree takes an arc.
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
    flow_[arc] = 1;  // the unit of `tree` itself
    touched_.assign(1, arc);
    bool fits = true;
    for (int32_t unit = std::popcount(wanted); unit > 0 && fits; --unit) fits = Augment(tail, head);
    for (int32_t a : touched_) flow_[a] = 0;
    return fits;
  }

 private:
  struct From {
    int32_t arc = -1;   // next arc to the head; with `undo`, the arc that loses a unit
    int32_t tree = -1;  // tree whose unit moves from here to another of its nodes
    bool undo = false;
  };

  // Adds one unit of flow into `head`, from `tail` or from a tree that supplies no unit yet. Searches
  // breadth-first and backwards from `head`. Returns false if there is no path.
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

  // Sends one unit from v to `head` along the path that the search found. The unit comes from `tree`; -1:
  // from the arc's tail. Returns true.
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
  std::vector<uint64_t> trees_at_;  // by node: the trees that have reached the node, as bits
  std::vector<int32_t> flow_;       // by arc
  std::vector<int32_t> seen_;       // by node: stamp of the last search that reached the node
  std::vector<From> from_;          // by node: how the search reached the node
  std::vector<int32_t> entry_;      // by tree that supplies a unit: the node where the unit starts
  std::vector<int32_t> tree_seen_, tree_from_;
  uint64_t unused_ = 0, used_ = 0;  // trees that do not supply a unit yet; trees that do
  int32_t stamp_ = 0;
  std::vector<int32_t> queue_, touched_;
};

// Returns the trees that grow with the arcs in the given order, or nullopt if some tree gets stuck.
std::optional<std::vector<Arborescence>> Grown(int32_t nodes, int32_t root, int32_t k,
                                               std::span<const CapacityArc> arcs) {
  const Graph graph{nodes, arcs, ByEnd(nodes, arcs, &CapacityArc::from),
                    ByEnd(nodes, arcs, &CapacityArc::to)};
  {
    Grower grower(graph, root, k);
    std::vector<int32_t> given(static_cast<size_t>(k), 0);  // by tree: arcs of the root offered to the tree
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
