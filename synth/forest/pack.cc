// One tree at a time, all roots in turn. A tree is grown breadth first over the arcs with the most capacity
// left, as many trees of one form as fit; then one cut search tells whether the rest can still be packed
// (Edmonds: it can exactly when every root still reaches every node with all its remaining trees). If not,
// the cuts that fell short are kept: a full set of nodes may be entered once by a tree from outside and never
// by one from inside, which guides this tree's next form and all later trees. Where no form is found the tree
// is grown arc by arc, each tested by a flow: there is always an arc that can be taken.
#include "synth/forest/pack.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace xccl::forest {
namespace {

constexpr int32_t kCutsAtOnce = 8;
constexpr int32_t kForms = 12;  // tried of one weight before the weight is halved
constexpr size_t kMostCuts = 4096;

// Cuts that were violated once, with their slack, and, while a tree grows, how often it may enter each.
class CutPool {
 public:
  explicit CutPool(int32_t nodes) : nodes_(static_cast<size_t>(nodes)) {}

  size_t size() const { return slack_.size(); }
  void Add(const Cut& cut) {
    const size_t bit = slack_.size();
    if (bit >= kMostCuts) return;
    if (bit % 64 == 0) {  // one more word for every node
      std::vector<uint64_t> wider(nodes_ * (words_ + 1), 0);
      for (size_t n = 0; n < nodes_; ++n)
        std::copy_n(bits_.begin() + static_cast<int64_t>(n * words_), words_,
                    wider.begin() + static_cast<int64_t>(n * (words_ + 1)));
      bits_ = std::move(wider);
      ++words_;
    }
    for (size_t n = 0; n < nodes_; ++n)
      if (cut.inside[n]) bits_[n * words_ + bit / 64] |= uint64_t{1} << bit % 64;
    slack_.push_back(cut.slack);
    room_.push_back(0);
    full_.resize(words_, 0);
  }
  bool Inside(size_t cut, int32_t node) const {
    return bits_[static_cast<size_t>(node) * words_ + cut / 64] >> cut % 64 & 1;
  }
  // A tree of `weight` from `root` begins.
  void Begin(int32_t root, int64_t weight) {
    std::fill(full_.begin(), full_.end(), 0);
    for (size_t c = 0; c < slack_.size(); ++c) {
      room_[c] = slack_[c] / weight + (Inside(c, root) ? 0 : 1);
      if (room_[c] <= 0) full_[c / 64] |= uint64_t{1} << c % 64;
    }
  }
  bool Blocks(int32_t from, int32_t to) const {
    const uint64_t* into = bits_.data() + static_cast<size_t>(to) * words_;
    const uint64_t* out_of = bits_.data() + static_cast<size_t>(from) * words_;
    for (size_t w = 0; w < words_; ++w)
      if (into[w] & ~out_of[w] & full_[w]) return true;
    return false;
  }
  void Enter(int32_t from, int32_t to) {
    ForEachEntered(from, to, [&](size_t cut) {
      if (--room_[cut] <= 0) full_[cut / 64] |= uint64_t{1} << cut % 64;
    });
  }
  // The tree is taken (or, with a negative weight, given back).
  void Take(const CapacityGraph& graph, int32_t root, const std::vector<int32_t>& arcs, int64_t weight) {
    for (size_t c = 0; c < slack_.size(); ++c)
      if (!Inside(c, root)) slack_[c] += weight;
    for (int32_t a : arcs)
      ForEachEntered(graph.arc(a).from, graph.arc(a).to, [&](size_t cut) { slack_[cut] -= weight; });
  }

 private:
  template <typename Visit>
  void ForEachEntered(int32_t from, int32_t to, Visit visit) const {
    for (size_t w = 0; w < words_; ++w) {
      uint64_t entered =
          bits_[static_cast<size_t>(to) * words_ + w] & ~bits_[static_cast<size_t>(from) * words_ + w];
      for (; entered != 0; entered &= entered - 1)
        visit(64 * w + static_cast<size_t>(std::countr_zero(entered)));
    }
  }

  size_t nodes_, words_ = 0;
  std::vector<uint64_t> bits_;  // by node and word: the cuts that it is inside
  std::vector<uint64_t> full_;
  std::vector<int64_t> slack_, room_;
};

class Packer {
 public:
  Packer(const CapacityGraph& graph, const Demands& demands, const std::vector<int32_t>& members,
         const PackOptions& options, int64_t& work)
      : members_(members),
        graph_(static_cast<int32_t>(members.size())),
        oracle_(graph_, sinks_),
        pool_(static_cast<int32_t>(members.size())),
        work_(work) {
    std::vector<int32_t> place(static_cast<size_t>(graph.num_nodes()), -1);
    for (size_t m = 0; m < members.size(); ++m) {
      place[members[m]] = static_cast<int32_t>(m);
      sinks_.push_back(static_cast<int32_t>(m));
      left_.at.push_back(demands.at[members[m]]);
      most_.push_back((left_.at.back() + options.grain - 1) / options.grain);
    }
    left_.total = demands.total;
    for (int32_t a = 0; a < graph.num_arcs(); ++a) {
      const CapacityGraph::Arc& arc = graph.arc(a);
      if (arc.capacity == 0 || place[arc.from] < 0 || place[arc.to] < 0) continue;
      graph_.capacity(graph_.ArcOf(place[arc.from], place[arc.to])) = arc.capacity;
      original_arc_.push_back(a);
    }
    depth_.assign(members.size(), 0);
  }

  StatusOr<std::vector<LogicalTree>> Run() {
    while (left_.total > 0) {
      for (int32_t root = 0; root < graph_.num_nodes(); ++root) {
        if (left_.at[root] == 0) continue;
        if (work_ < 0) return LimitReached("forest: the limit of work was reached while trees were packed");
        XCCL_RETURN_IF_ERROR(PlaceTree(root));
      }
    }
    return std::move(trees_);
  }

 private:
  Status PlaceTree(int32_t root) {
    for (int64_t weight = std::min(left_.at[root], most_[root]); weight > 0; weight /= 2) {
      for (int32_t form = 0; form < kForms; ++form) {
        if (!Grow(root, weight)) break;
        if (Settle(root, weight)) return OkStatus();
      }
    }
    return GrowByFlows(root);
  }

  void Take(int32_t root, int64_t weight) {
    for (int32_t a : arcs_) graph_.capacity(a) -= weight;
    left_.at[root] -= weight;
    left_.total -= weight;
    pool_.Take(graph_, root, arcs_, weight);
  }

  void Keep(int32_t root, int64_t weight) {
    LogicalTree tree{.root = members_[root], .weight = weight, .arcs = {}, .depth = {}};
    for (int32_t a : arcs_) {
      tree.arcs.push_back(original_arc_[a]);
      tree.depth.push_back(depth_[graph_.arc(a).to]);
    }
    trees_.push_back(std::move(tree));
  }

  // Takes the tree if the rest can be packed without it; else learns why not.
  bool Settle(int32_t root, int64_t weight) {
    Take(root, weight);
    const int64_t before = oracle_.work();
    const std::vector<Cut> violated = oracle_.FindViolated(left_, kCutsAtOnce);
    work_ -= oracle_.work() - before;
    if (violated.empty()) {
      Keep(root, weight);
      return true;
    }
    for (const Cut& cut : violated) pool_.Add(cut);
    Take(root, -weight);
    return false;
  }

  void Start(int32_t root) {
    std::fill(depth_.begin(), depth_.end(), -1);
    depth_[root] = 0;
    arcs_.clear();
    open_.clear();
    // Those behind the root first, so that roots differ.
    for (int32_t i = 1; i < graph_.num_nodes(); ++i) open_.push_back((root + i) % graph_.num_nodes());
  }

  // A spanning tree that no known cut forbids, level by level; false: none was found.
  bool Grow(int32_t root, int64_t weight) {
    Start(root);
    pool_.Begin(root, weight);
    for (int32_t level = 1; !open_.empty(); ++level) {
      std::vector<int32_t> rest;
      for (int32_t node : open_) {
        int32_t best = -1;
        for (const CapacityGraph::Incident& incident : graph_.At(node)) {
          if (incident.code & 1) continue;
          const int32_t a = incident.code / 2, from = incident.other;
          if (depth_[from] < 0 || depth_[from] >= level || graph_.arc(a).capacity < weight) continue;
          if (best >= 0 && graph_.arc(a).capacity <= graph_.arc(best).capacity) continue;
          if (pool_.Blocks(from, node)) continue;
          best = a;
        }
        work_ -= static_cast<int64_t>(graph_.At(node).size());
        if (best < 0) {
          rest.push_back(node);
          continue;
        }
        pool_.Enter(graph_.arc(best).from, node);
        depth_[node] = level;
        arcs_.push_back(best);
      }
      if (rest.size() == open_.size()) return false;
      open_ = std::move(rest);
    }
    return true;
  }

  // The exact way. While the tree is unfinished its trees are out of the demands, and a set that it has
  // reached may be entered again only with slack to spare.
  Status GrowByFlows(int32_t root) {
    int64_t weight = left_.at[root];
    Start(root);
    Take(root, weight);  // no arcs yet
    rejected_.assign(static_cast<size_t>(graph_.num_arcs()), false);
    for (int32_t level = 1; !open_.empty(); ++level) {
      std::vector<int32_t> rest;
      for (int32_t node : open_) {
        int32_t best = -1;
        int64_t best_weight = 0;
        for (const CapacityGraph::Incident& incident : graph_.At(node)) {
          if (incident.code & 1 || depth_[incident.other] < 0 || depth_[incident.other] >= level) continue;
          const int32_t a = incident.code / 2;
          const int64_t most = std::min(weight, graph_.arc(a).capacity);
          if (most <= best_weight || rejected_[a]) continue;
          const int64_t before = oracle_.work();
          const int64_t fits = oracle_.LeastSlack(left_, node, incident.other, most);
          work_ -= oracle_.work() - before;
          if (fits <= 0) rejected_[a] = true;  // for good: the tree only grows
          if (fits <= best_weight) continue;
          best = a;
          best_weight = fits;
          if (best_weight == weight) break;
        }
        if (best < 0) {
          rest.push_back(node);
          continue;
        }
        Shrink(root, weight, best_weight);
        weight = best_weight;
        depth_[node] = level;
        graph_.capacity(best) -= weight;
        arcs_.push_back(best);
      }
      XCCL_CHECK(level <= graph_.num_nodes() ||
                 rest.size() < open_.size());  // else the demands cannot be met
      open_ = std::move(rest);
    }
    for (int32_t a : arcs_) graph_.capacity(a) += weight;
    pool_.Take(graph_, root, {}, -weight);
    left_.at[root] += weight;
    left_.total += weight;
    Take(root, weight);
    Keep(root, weight);
    return OkStatus();
  }

  // The unfinished tree stands for fewer trees; the others are given back to the root.
  void Shrink(int32_t root, int64_t weight, int64_t fewer) {
    for (int32_t a : arcs_) graph_.capacity(a) += weight - fewer;
    left_.at[root] += weight - fewer;
    left_.total += weight - fewer;
    pool_.Take(graph_, root, {}, fewer - weight);
  }

  const std::vector<int32_t>& members_;
  CapacityGraph graph_;  // what is left, on members
  std::vector<int32_t> original_arc_, sinks_;
  CutOracle oracle_;
  CutPool pool_;
  int64_t& work_;
  Demands left_;
  std::vector<int64_t> most_;  // by root: weight of one tree
  std::vector<LogicalTree> trees_;
  // The tree at hand.
  std::vector<int32_t> depth_, arcs_, open_;
  std::vector<bool> rejected_;  // arcs that no tree of this beginning can take
};

}  // namespace

StatusOr<std::vector<LogicalTree>> PackTrees(const CapacityGraph& graph, const Demands& demands,
                                             const std::vector<int32_t>& members, const PackOptions& options,
                                             int64_t& work) {
  return Packer(graph, demands, members, options, work).Run();
}

}  // namespace xccl::forest
