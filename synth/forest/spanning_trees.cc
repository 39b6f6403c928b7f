// The room of an edge is the number of trees that may use it. An edge in more trees is too full.
// 1. Choice chooses the number of trees and the rooms, such that all partitions seen so far allow them
//    (Newton's method, as for the strength of a network).
// 2. Packer starts with breadth-first trees that share the edges evenly.
// 3. Packer::Search looks for a chain of exchanges that relieves an edge that is too full. An exchange puts
//    another edge into a tree in place of an edge on the cycle that the other edge closes. If the other edge
//    is then too full, it is exchanged in turn, until an edge with room enters a tree.
// 4. The search runs breadth-first from all edges with room, in all trees at once. It finds a shortest chain,
//    which PassOn can carry out exchange by exchange, beginning at the edge with room.
// 5. Exchanges that would make a tree too deep are left out as long as there are other chains.
// 6. If no chain exists at any depth, the edges that the search reached join the nodes into blocks. All edges
//    between blocks are full, and every tree crosses between blocks as seldom as it can. This partition
//    proves that the trees need more capacity. Choice adds the partition and chooses anew.
#include "synth/forest/spanning_trees.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/graph/grouped.h"
#include "base/graph/union_find.h"

namespace xccl::forest {
namespace {

struct Arc {
  int32_t to, edge;
};
using Adjacency = Grouped<Arc>;  // by node

Adjacency AdjacencyOf(int32_t nodes, std::span<const CapacityEdge> edges) {
  return GroupItems<Arc>(static_cast<size_t>(nodes), [&](auto add) {
    for (size_t e = 0; e < edges.size(); ++e) {
      add(edges[e].a, Arc{edges[e].b, static_cast<int32_t>(e)});
      add(edges[e].b, Arc{edges[e].a, static_cast<int32_t>(e)});
    }
  });
}

// Returns the number of edges from `from` to each node; -1 if there is no path. Sets `order` to the nodes
// that were reached, nearest first.
std::vector<int32_t> Distances(const Adjacency& adjacency, int32_t from, std::vector<int32_t>& order) {
  std::vector<int32_t> distance(adjacency.size(), -1);
  order.assign(1, from);
  distance[from] = 0;
  for (size_t i = 0; i < order.size(); ++i)
    for (const Arc& arc : adjacency[order[i]])
      if (distance[arc.to] < 0) distance[arc.to] = distance[order[i]] + 1, order.push_back(arc.to);
  return distance;
}

struct Tree {
  int32_t root = 0;
  std::vector<int32_t> parent, parent_edge;  // by node; -1 at the root
  std::vector<int32_t> depth, height;        // by node: edges up to the root; edges down to the deepest node
};

void SetDepths(Tree& tree) {
  const int32_t nodes = static_cast<int32_t>(tree.parent.size());
  tree.depth.assign(tree.parent.size(), -1);
  tree.height.assign(tree.parent.size(), 0);
  tree.depth[tree.root] = 0;
  std::vector<int32_t> up;
  for (int32_t n = 0; n < nodes; ++n) {
    int32_t at = n;
    for (; tree.depth[at] < 0; at = tree.parent[at]) up.push_back(at);
    for (int32_t d = tree.depth[at]; !up.empty(); up.pop_back()) tree.depth[up.back()] = ++d;
    for (int32_t h = 1, m = n; tree.parent[m] >= 0 && tree.height[tree.parent[m]] < h; ++h)
      tree.height[m = tree.parent[m]] = h;
  }
}

class Packer {
 public:
  // room: by edge, the number of trees that may use the edge.
  Packer(const Adjacency& adjacency, std::span<const CapacityEdge> edges, std::vector<int64_t> room,
         int32_t trees, std::span<const int32_t> roots, const std::function<bool()>& stopped, int64_t& work)
      : adjacency_(adjacency),
        edges_(edges),
        room_(std::move(room)),
        load_(edges.size(), 0),
        stopped_(stopped),
        work_(work) {
    for (int32_t t = 0; t < trees; ++t) {
      trees_.push_back(Balanced(roots[static_cast<size_t>(t) % roots.size()]));
      deepest_ = std::max(deepest_, trees_.back().height[trees_.back().root]);
    }
  }

  // Exchanges edges until no edge is too full, or the work or time is used up. Returns true if some edge
  // stays too full because no chain exists at any depth.
  bool IsStuck() {
    while (true) {
      bool full = false;
      for (size_t e = 0; e < edges_.size(); ++e) full |= load_[e] > room_[e];
      if (!full || work_ <= 0 || (stopped_ && stopped_())) return false;
      Search();
      work_ -= static_cast<int64_t>(edges_.size());
      bool passed_on = false;
      for (int32_t e : found_)
        if (load_[e] > room_[e]) passed_on |= PassOn(e);
      if (passed_on) continue;
      // The search proves that no chain exists only if it left out no exchange because of its depth.
      if (!held_back_) return found_.empty();
      deepest_ += 1 + deepest_ / 8;
    }
  }

  // Joins the ends of all edges that the search reached, and counts the blocks of nodes. Returns their number
  // if the edges between blocks have too little room for all trees, otherwise 1. Requires that IsStuck() is
  // true.
  int32_t Blocks(UnionFind& joined) const {
    int32_t blocks = static_cast<int32_t>(adjacency_.size());
    for (size_t e = 0; e < edges_.size(); ++e)
      if (reached_[e]) blocks -= joined.Join(edges_[e].a, edges_[e].b) ? 1 : 0;
    int64_t room = 0;
    for (size_t e = 0; e < edges_.size(); ++e)
      if (joined.Find(edges_[e].a) != joined.Find(edges_[e].b)) room += room_[e];
    return room < static_cast<int64_t>(trees_.size()) * (blocks - 1) ? blocks : 1;
  }

  const std::vector<Tree>& trees() const { return trees_; }
  int64_t Load(size_t edge) const { return load_[edge]; }

 private:
  struct Copy {
    int32_t tree;
    Tree changed;
  };

  // Returns a breadth-first tree and adds it to the loads. Each node's parent is one edge nearer to the root,
  // over the least full edge.
  Tree Balanced(int32_t root) {
    std::vector<int32_t> order;
    const std::vector<int32_t> distance = Distances(adjacency_, root, order);
    Tree tree;
    tree.root = root;
    tree.parent.assign(distance.size(), -1);
    tree.parent_edge.assign(distance.size(), -1);
    for (int32_t n : order) {
      double least = std::numeric_limits<double>::infinity();
      for (const Arc& arc : adjacency_[n]) {
        if (distance[arc.to] != distance[n] - 1) continue;
        const double full =
            static_cast<double>(load_[arc.edge] + 1) / (static_cast<double>(room_[arc.edge]) + 0.25);
        if (full >= least) continue;
        least = full;
        tree.parent[n] = arc.to;
        tree.parent_edge[n] = arc.edge;
      }
      if (n != root) ++load_[tree.parent_edge[n]];
    }
    SetDepths(tree);
    return tree;
  }

  // Fills found_ with the nearest edges that are too full. Records the chains that lead to them: tree
  // by_tree_[e] may replace edge e by edge by_edge_[e]. Edges of a tree that were reached or passed are
  // contracted, so that later paths skip them.
  void Search() {
    const size_t nodes = adjacency_.size();
    held_back_ = false;
    reached_.assign(edges_.size(), false);
    by_edge_.assign(edges_.size(), -1);
    by_tree_.assign(edges_.size(), -1);
    found_.clear();
    top_.resize(trees_.size() * nodes);
    for (size_t i = 0; i < top_.size(); ++i) top_[i] = static_cast<int32_t>(i % nodes);
    std::vector<int32_t> queue, level(edges_.size(), 0);
    for (size_t e = 0; e < edges_.size(); ++e)
      if (load_[e] < room_[e]) reached_[e] = true, queue.push_back(static_cast<int32_t>(e));
    int32_t last_level = std::numeric_limits<int32_t>::max();
    for (size_t i = 0; i < queue.size(); ++i) {
      const int32_t edge = queue[i];
      if (level[edge] >= last_level) return;
      for (size_t t = 0; t < trees_.size(); ++t) {
        for (int32_t e : Reach(edge, static_cast<int32_t>(t))) {
          level[e] = level[edge] + 1;
          queue.push_back(e);
          if (load_[e] > room_[e]) found_.push_back(e), last_level = level[e];
        }
      }
      work_ -= static_cast<int64_t>(trees_.size());
    }
  }

  // Returns the edges of tree t that lie on the cycle that `in` closes and were not reached before. Leaves
  // out edges whose exchange would make the tree deeper than deepest_, and sets held_back_.
  std::span<const int32_t> Reach(int32_t in, int32_t t) {
    const Tree& tree = trees_[t];
    int32_t* top = top_.data() + static_cast<size_t>(t) * adjacency_.size();
    const auto above = [top](int32_t n) {
      while (top[n] != n) n = top[n] = top[top[n]];
      return n;
    };
    reach_.clear();
    int32_t a = edges_[in].a, b = edges_[in].b;
    int32_t u = above(a), v = above(b);  // climb from a and from b
    while (u != v) {
      if (tree.depth[u] < tree.depth[v]) std::swap(u, v), std::swap(a, b);
      const int32_t cut = u, out = tree.parent_edge[u];
      u = above(tree.parent[u]);
      --work_;
      // After the exchange the part below `cut` would hang from b through a, at most this deep.
      if (!reached_[out] &&
          tree.depth[b] + 1 + tree.depth[a] - tree.depth[cut] + tree.height[cut] > deepest_) {
        held_back_ = true;
        continue;
      }
      top[cut] = u;
      if (reached_[out]) continue;
      reached_[out] = true;
      by_edge_[out] = in;
      by_tree_[out] = t;
      reach_.push_back(out);
    }
    return reach_;
  }

  // Carries out the chain that relieves edge `full`. Returns false and changes nothing if the last edge has
  // no more room or some exchange is no longer possible. Earlier chains of the same search may have changed
  // trees, and chains that avoid deep trees may not be the shortest.
  bool PassOn(int32_t full) {
    chain_.clear();
    for (int32_t e = full; by_edge_[e] >= 0; e = by_edge_[e]) chain_.push_back(e);
    const int32_t with_room = by_edge_[chain_.back()];
    if (load_[with_room] >= room_[with_room]) return false;
    std::vector<Copy> copies;
    for (size_t i = chain_.size(); i-- > 0;) {
      const int32_t t = by_tree_[chain_[i]];
      auto copy = std::find_if(copies.begin(), copies.end(), [&](const Copy& c) { return c.tree == t; });
      if (copy == copies.end()) copy = copies.insert(copy, {t, trees_[t]});
      if (!Exchange(copy->changed, chain_[i], by_edge_[chain_[i]])) return false;
    }
    --load_[full];
    ++load_[with_room];
    for (Copy& copy : copies) trees_[copy.tree] = std::move(copy.changed);
    return true;
  }

  // Replaces `out` by `in` in the tree. Returns false if `out` is not on the cycle that `in` closes.
  bool Exchange(Tree& tree, int32_t out, int32_t in) const {
    int32_t a = edges_[in].a, b = edges_[in].b, u = a, v = b;
    while (true) {
      if (u == v) return false;
      if (tree.depth[u] < tree.depth[v]) std::swap(u, v), std::swap(a, b);
      if (tree.parent_edge[u] == out) break;
      u = tree.parent[u];
    }
    // The part below `out` is turned round, so that it hangs from b through a.
    for (int32_t node = a, parent = b, edge = in;;) {
      const int32_t old_parent = tree.parent[node], old_edge = tree.parent_edge[node];
      tree.parent[node] = parent;
      tree.parent_edge[node] = edge;
      if (node == u) break;
      parent = node;
      edge = old_edge;
      node = old_parent;
    }
    SetDepths(tree);
    return true;
  }

  const Adjacency& adjacency_;
  std::span<const CapacityEdge> edges_;
  std::vector<int64_t> room_, load_;
  const std::function<bool()>& stopped_;
  int64_t& work_;
  int32_t deepest_ = 0;     // exchanges that may make a tree deeper are left out
  bool held_back_ = false;  // did the last search leave out an exchange?
  std::vector<Tree> trees_;
  std::vector<bool> reached_;
  std::vector<int32_t> by_edge_, by_tree_, found_, top_, chain_, reach_;
};

// The most arcs that the search for central nodes looks at: about half a second. On larger graphs the search
// starts from fewer nodes, evenly spaced.
constexpr int64_t kCentralArcs = 1 << 26;

// Returns the central nodes among those tried, the most central first. From a central node, the farthest node
// is at most about a quarter farther away than from the most central node.
std::vector<int32_t> CentralNodes(const Adjacency& adjacency) {
  const int64_t nodes = static_cast<int64_t>(adjacency.size());
  const int64_t tried = std::clamp<int64_t>(kCentralArcs / std::ssize(adjacency.items), 1, nodes);
  std::vector<int32_t> central, farthest(adjacency.size(), 0), order;
  for (int64_t i = 0; i < tried; ++i) {
    const auto n = static_cast<int32_t>(i * nodes / tried);
    const std::vector<int32_t> distance = Distances(adjacency, n, order);
    farthest[n] = distance[order.back()];
    central.push_back(n);
  }
  const int32_t least =
      farthest[*std::ranges::min_element(central, {}, [&](int32_t n) { return farthest[n]; })];
  std::erase_if(central, [&](int32_t n) { return farthest[n] > least + (least + 3) / 4; });
  std::stable_sort(central.begin(), central.end(),
                   [&](int32_t a, int32_t b) { return farthest[a] < farthest[b]; });
  return central;
}

// Returns the tree, rooted in the middle of a longest path.
SpanningTree Centred(const Tree& tree, std::span<const CapacityEdge> edges) {
  const int32_t nodes = static_cast<int32_t>(tree.parent.size());
  std::vector<CapacityEdge> kept;
  std::vector<int32_t> id, order;
  for (int32_t e : tree.parent_edge)
    if (e >= 0) id.push_back(e);
  std::sort(id.begin(), id.end());
  for (int32_t e : id) kept.push_back(edges[e]);
  const Adjacency adjacency = AdjacencyOf(nodes, kept);
  Distances(adjacency, tree.root, order);
  const std::vector<int32_t> from_end = Distances(adjacency, order.back(), order);
  const int32_t other = order.back(), length = from_end[other];
  const std::vector<int32_t> from_other = Distances(adjacency, other, order);
  SpanningTree centred;
  for (int32_t n = 0; n < nodes; ++n)
    if (from_end[n] == length / 2 && from_other[n] == length - length / 2) centred.root = n;
  const std::vector<int32_t> distance = Distances(adjacency, centred.root, order);
  centred.depth = distance[order.back()];
  for (int32_t n : order)
    for (const Arc& arc : adjacency[n])
      if (distance[arc.to] == distance[n] - 1) centred.edges.push_back(id[arc.edge]);
  return centred;
}

// Keeps the partitions seen so far. Chooses the number of trees and the rooms that all partitions allow.
class Choice {
 public:
  void Add(std::span<const CapacityEdge> edges, UnionFind& joined, int32_t blocks) {
    Partition& partition = partitions_.emplace_back(Partition{blocks, {}});
    int64_t between = 0;
    for (const CapacityEdge& edge : edges) {
      if (joined.Find(edge.a) == joined.Find(edge.b)) continue;
      ++partition.edges[edge.capacity];
      between += edge.capacity;
    }
    bound_ = std::min(bound_, static_cast<double>(between) / (blocks - 1));
  }

  // Returns the least scale (room of an edge ÷ its capacity) at which all partitions have room for `trees`
  // trees.
  double Scale(int32_t trees) const {
    double low = 0, high = trees / bound_;
    while (!Allows(trees, high)) low = high, high *= 2;
    for (int32_t i = 0; i < 60 && high - low > high * 1e-12; ++i) {
      const double middle = (low + high) / 2;
      (Allows(trees, middle) ? high : low) = middle;
    }
    return high;
  }

  int32_t Trees(int32_t nodes, const TreePackingLimits& limits) const {
    if (limits.trees) return *limits.trees;
    int32_t best = 1;
    double best_rate = 0;
    const int32_t most = std::clamp(32768 / nodes, 128, 1024);
    for (int32_t trees = 1; trees <= most; ++trees) {
      const double rate = trees / Scale(trees);
      if (rate > best_rate * (1 + 1e-9)) best = trees, best_rate = rate;
      if (rate >= bound_ * (1 - kTreeTolerance)) break;
    }
    return best;
  }

  double bound() const { return bound_; }

  static int64_t Room(int64_t capacity, double scale) {
    return static_cast<int64_t>(std::floor(static_cast<double>(capacity) * scale * (1 + 1e-11)));
  }

 private:
  struct Partition {
    int32_t blocks;
    std::map<int64_t, int64_t> edges;  // by capacity: the number of edges between blocks
  };

  bool Allows(int32_t trees, double scale) const {
    for (const Partition& partition : partitions_) {
      double room = 0;
      for (const auto& [capacity, edges] : partition.edges)
        room += static_cast<double>(edges) * static_cast<double>(Room(capacity, scale));
      if (room < static_cast<double>(trees) * (partition.blocks - 1)) return false;
    }
    return true;
  }

  std::vector<Partition> partitions_;
  double bound_ = std::numeric_limits<double>::infinity();
};

void Finish(const Packer& packer, std::span<const CapacityEdge> edges, TreePacking& packing) {
  packing.rate = std::numeric_limits<double>::infinity();
  const int64_t trees = static_cast<int64_t>(packer.trees().size());
  for (size_t e = 0; e < edges.size(); ++e)
    if (packer.Load(e) > 0)
      packing.rate = std::min(
          packing.rate, static_cast<double>(edges[e].capacity * trees) / static_cast<double>(packer.Load(e)));
  for (const Tree& tree : packer.trees()) packing.trees.push_back(Centred(tree, edges));
}

}  // namespace

std::optional<TreePacking> PackSpanningTrees(int32_t nodes, std::span<const CapacityEdge> edges,
                                             const TreePackingLimits& limits) {
  __int128 total = 0;
  for (const CapacityEdge& edge : edges) total += edge.capacity;
  if (nodes < 2 || total >= (static_cast<__int128>(1) << 40)) return std::nullopt;
  const Adjacency adjacency = AdjacencyOf(nodes, edges);
  std::vector<int32_t> order;
  Distances(adjacency, 0, order);
  if (order.size() != static_cast<size_t>(nodes)) return std::nullopt;

  const std::vector<int32_t> roots = CentralNodes(adjacency);
  TreePacking packing;
  Choice choice;
  UnionFind apart(static_cast<size_t>(nodes));
  choice.Add(edges, apart, nodes);
  int64_t work = limits.work;
  while (true) {
    const int32_t trees = choice.Trees(nodes, limits);
    const double scale = choice.Scale(trees);
    std::vector<int64_t> room;
    for (const CapacityEdge& edge : edges) room.push_back(Choice::Room(edge.capacity, scale));
    Packer packer(adjacency, edges, std::move(room), trees, roots, limits.stopped, work);
    UnionFind joined(static_cast<size_t>(nodes));
    const int32_t blocks = packer.IsStuck() ? packer.Blocks(joined) : 1;
    if (blocks == 1) {
      packing.bound = choice.bound();
      Finish(packer, edges, packing);
      return packing;
    }
    choice.Add(edges, joined, blocks);
  }
}

}  // namespace xccl::forest
