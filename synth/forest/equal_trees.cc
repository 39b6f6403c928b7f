// 1. The first pass grows the trees one by one. Each tree avoids the links that earlier trees load.
// 2. Each later pass takes out every tree in turn and grows it again. The new tree replaces the old tree if
//    it adds less to the sum of powers (EqualTreesAim).
// 3. If a pass replaces no tree, the power is raised. The search ends after the last power, or when work or
//    time runs out.
// The price of a link is the amount that one more use adds to the sum. A tree that enters several GPUs behind
// a switch uses a link repeatedly. The tree is then grown again, with the price of the link's last use.
#include "synth/forest/equal_trees.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "synth/common/cost_model.h"
#include "synth/common/tree_grower.h"

namespace xccl::forest {
namespace {

constexpr int64_t kImproving = 20'000'000;  // the most links that all passes after the first look at
constexpr int32_t kTries = 3;               // the most times that one tree is grown in a pass
constexpr double kSlowest = 1e6;            // the largest slowness, so that the powers stay finite

struct Tree {
  std::vector<PackedArc> arcs;
  std::vector<LinkId> links;  // the links of all arcs
};

double Power(double base, int32_t squarings) {
  for (int32_t i = 0; i < squarings; ++i) base *= base;
  return base;
}

// Returns the slowness of each link: its time for a byte ÷ the fastest link's time for a byte.
std::vector<double> SlownessOf(const Topology& topology) {
  int64_t fastest = 0;
  for (const Link& link : topology.spec().links) fastest = std::max(fastest, link.bandwidth_bytes_per_s);
  std::vector<double> slowness;
  for (const Link& link : topology.spec().links)
    slowness.push_back(
        std::min(kSlowest, static_cast<double>(fastest) / static_cast<double>(link.bandwidth_bytes_per_s)));
  return slowness;
}

// Keeps the loads of the links and grows one tree at a time at the prices that follow from them.
class EqualPacker {
 public:
  EqualPacker(const PackingProblem& problem, const EqualTreesAim& aim)
      : topology_(*problem.topology),
        squarings_(aim.first),
        latency_(aim.latency),
        grower_(topology_, problem.members, Branching::kNone),
        slowness_(SlownessOf(topology_)),
        load_(slowness_.size(), 0.0),
        prices_(slowness_.size(), 0.0),
        uses_(slowness_.size(), 0) {
    for (const Link& link : topology_.spec().links) latency_ps_ += static_cast<double>(link.latency_ps);
  }

  void SetSquarings(int32_t squarings) { squarings_ = squarings; }

  // Grows a tree that carries `bytes`. Replaces `tree` by the new tree if `tree` is empty or the new tree
  // adds less to the sum. Returns whether `tree` was replaced. Subtracts the links looked at from `work`.
  bool Improve(Rank root, double bytes, Tree& tree, int64_t& work) {
    Use(tree, -bytes);
    for (size_t l = 0; l < prices_.size(); ++l) prices_[l] = AddedBy(l, 1, bytes);
    double least = tree.arcs.empty() ? std::numeric_limits<double>::infinity() : AddedBy(tree, bytes);
    bool replaced = false;
    for (int32_t i = 0; i < kTries; ++i) {
      Tree grown;
      grown.arcs = grower_.Grow(root, prices_, LatencyPrice(), grown.links).arcs;
      work -= static_cast<int64_t>(prices_.size());
      const double added = AddedBy(grown, bytes);
      const bool again = PriceLastUses(grown, bytes);
      if (added < least * (1 - kRounding)) {
        least = added;
        tree = std::move(grown);
        replaced = true;
      }
      if (!again) break;
    }
    Use(tree, bytes);
    return replaced;
  }

  // Returns the largest load of a link: the bytes that the fastest link would carry in the same time.
  double MostLoad() const { return *std::max_element(load_.begin(), load_.end()); }

 private:
  void Use(const Tree& tree, double bytes) {
    for (const LinkId l : tree.links)
      load_[l.index()] = std::max(0.0, load_[l.index()] + bytes * slowness_[l.index()]);
  }

  // Returns the amount that the use-th use of a link by one tree adds to the sum.
  double AddedBy(size_t link, int32_t use, double bytes) const {
    const double each = bytes * slowness_[link];
    return Power(load_[link] + use * each, squarings_) - Power(load_[link] + (use - 1) * each, squarings_);
  }
  double AddedBy(const Tree& tree, double bytes) {
    double added = 0;
    for (const LinkId l : tree.links) added += AddedBy(l.index(), ++uses_[l.index()], bytes);
    for (const LinkId l : tree.links) uses_[l.index()] = 0;
    return added;
  }

  // Gives each link that the tree uses repeatedly the price of its last use. Returns whether there is any.
  bool PriceLastUses(const Tree& tree, double bytes) {
    bool any = false;
    for (const LinkId l : tree.links) {
      if (++uses_[l.index()] == 1) continue;
      prices_[l.index()] = std::max(prices_[l.index()], AddedBy(l.index(), uses_[l.index()], bytes));
      any = true;
    }
    for (const LinkId l : tree.links) uses_[l.index()] = 0;
    return any;
  }

  // Returns the price of one picosecond of latency.
  double LatencyPrice() const {
    if (latency_ == 0 || latency_ps_ == 0) return 0;
    double sum = 0;
    for (const double price : prices_) sum += price;
    return latency_ * sum / latency_ps_;
  }

  const Topology& topology_;
  int32_t squarings_;
  const double latency_;
  TreeGrower grower_;
  const std::vector<double> slowness_;
  std::vector<double> load_, prices_;
  std::vector<int32_t> uses_;
  double latency_ps_ = 0;  // sum over all links
};

PackedTree Laid(const Tree& tree, Rank root, PartId part, PathTable& paths) {
  PackedTree laid{.part = part, .root = root, .weight = 1, .arcs = {}};
  for (const PackedArc& arc : tree.arcs) {
    const std::span<const LinkId> links(tree.links);
    const PathId path =
        paths.Intern(links.subspan(static_cast<size_t>(arc.first_link), static_cast<size_t>(arc.num_links)));
    laid.arcs.push_back({arc.from, arc.to, path, arc.depth});
  }
  return laid;
}

}  // namespace

StatusOr<EqualTrees> PackEqualTrees(const PackingProblem& problem, std::span<const PartId> part_of,
                                    int64_t trees, const EqualTreesAim& aim, int64_t work) {
  const size_t roots = problem.roots.size();
  std::vector<Tree> packed(roots * static_cast<size_t>(trees));  // tree t belongs to root t mod roots
  EqualPacker packer(problem, aim);
  const auto improve = [&](size_t t) {
    const double bytes = problem.demand[t % roots] / static_cast<double>(trees);
    return packer.Improve(problem.roots[t % roots], bytes, packed[t], work);
  };
  for (size_t t = 0; t < packed.size(); ++t) {
    if (work < 0) return LimitReached("forest: the limit of work was reached while trees were packed");
    improve(t);
  }
  work = std::min(work, kImproving);
  for (int32_t squarings = aim.first; squarings <= aim.last; ++squarings) {
    packer.SetSquarings(squarings);
    for (bool changed = true; changed && !(problem.stopped && problem.stopped());) {
      changed = false;
      for (size_t t = 0; t < packed.size() && work > 0; ++t) changed |= improve(t);
    }
  }

  int64_t fastest = 0;
  for (const Link& link : problem.topology->spec().links)
    fastest = std::max(fastest, link.bandwidth_bytes_per_s);
  EqualTrees made;
  made.s_per_byte = packer.MostLoad() / static_cast<double>(fastest);
  for (size_t root = 0; root < roots; ++root)
    for (size_t t = root; t < packed.size(); t += roots)
      made.trees.trees.push_back(Laid(packed[t], problem.roots[root], part_of[root], made.trees.paths));
  return made;
}

}  // namespace xccl::forest
