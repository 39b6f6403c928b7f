// Repairs trees in two phases.
// 1. JoinAll joins every rank that is cut off. Join searches from that rank, over links and through switches
//    and ranks, for the nearest rank that has a way to the root. In a tree of copies the search follows links
//    against their direction. Connect turns the path into edges. Ranks on the path become relays, or get a
//    new edge if they were cut off too.
// 2. Balance takes edges off busy links. Relieve cuts an edge off (CutOff) and joins its rank again over
//    links that stay less busy. If there is no such path, RollBack restores the edge.
// If balancing does not make the busiest link less busy, Repair returns the trees of phase 1.
#include "synth/replan/repair.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

#include "synth/common/cost_model.h"
#include "synth/common/problem.h"

namespace xccl::replan {
namespace {

class Repairer {
 public:
  Repairer(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
           TimeModel model, int64_t most_work, Trees& trees)
      : topology_(topology),
        most_work_(most_work),
        trees_(trees),
        load_(static_cast<size_t>(topology.num_links()), 0),
        users_(load_.size()),
        needed_(trees.places.size(), false),
        children_(trees.places.size(), 0),
        label_(static_cast<size_t>(topology.num_nodes())) {
    FillBusy(sizes, model);
    std::vector<Holding> holdings;
    for (int32_t t = 0; t < static_cast<int32_t>(trees_.trees.size()); ++t) {
      const Tree& tree = trees_.trees[static_cast<size_t>(t)];
      tree.sums ? collective.Before(tree.chunks.front(), holdings)
                : collective.After(tree.chunks.front(), holdings);
      for (const Holding& h : holdings) needed_[trees_.Index(t, h.rank.value)] = true;
      for (int32_t r = 0; r < trees_.num_ranks; ++r)
        if (trees_.At(t, r).next >= 0) Load(t, trees_.At(t, r), +1);
    }
  }

  StatusOr<RepairResult> Run() {
    const std::vector<Place> planned = trees_.places;
    XCCL_RETURN_IF_ERROR(JoinAll());
    const Trees joined = trees_;
    const int64_t before_ps = Busiest();
    work_ = 0;
    users_.assign(load_.size(), {});
    for (size_t p = 0; p < trees_.places.size(); ++p)
      if (trees_.places[p].next >= 0) AddUser(p);
    Balance();
    // If the busiest link stays as busy as before, the moves only made paths longer.
    if (IsNear(before_ps, Busiest())) {
      trees_ = joined;
      result_.moved = 0;
    }
    for (size_t p = 0; p < planned.size(); ++p) {
      const Place &old = planned[p], &place = trees_.places[p];
      if (place.next < 0) continue;
      ++result_.edges;
      if (place.next == old.next && place.path == old.path) ++result_.kept;
    }
    return result_;
  }

 private:
  // A path's cost; smaller is better. `beyond` is the amount by which the load of the path's busiest link
  // exceeds `soft_`, or 0. `delay` is the path's latency. It decides between paths with equal `beyond`.
  struct Cost {
    int64_t beyond = 0;
    int64_t delay = 0;
    auto operator<=>(const Cost&) const = default;
  };
  struct Label {
    uint32_t stamp = 0;
    bool done = false;
    Cost cost;
    LinkId by;  // the link over which the search reached the node
  };
  struct Undo {
    int32_t tree = 0, rank = 0;
    Place place;
  };

  // Returns true if the larger time exceeds the smaller by at most the factor kNear.
  static bool IsNear(int64_t larger_ps, int64_t smaller_ps) {
    return static_cast<double>(larger_ps) <= kNear * static_cast<double>(smaller_ps);
  }
  int64_t Busiest() const { return load_.empty() ? 0 : *std::max_element(load_.begin(), load_.end()); }

  // Fills busy_. Trees of equal bytes and equal numbers of chunks share a row, because many trees are equal.
  void FillBusy(const CollectiveSizes& sizes, TimeModel model) {
    std::map<std::pair<int64_t, int64_t>, int32_t> rows;
    const std::vector<LinkCost> costs = LinkCosts(topology_, model);
    for (const Tree& tree : trees_.trees) {
      int64_t bytes = 0;
      const int64_t chunks = static_cast<int64_t>(tree.chunks.size());
      for (ChunkId c : tree.chunks) bytes += sizes.ChunkBytes(c);
      const auto [row, fresh] = rows.emplace(std::pair(bytes, chunks), static_cast<int32_t>(rows.size()));
      busy_row_.push_back(row->second);
      if (!fresh) continue;
      for (const LinkCost& cost : costs) busy_.push_back(BusyPs(cost, bytes) + (chunks - 1) * cost.fixed_ps);
    }
  }

  int64_t Busy(int32_t tree, LinkId l) const {
    return busy_[static_cast<size_t>(busy_row_[static_cast<size_t>(tree)]) * load_.size() + l.index()];
  }

  void Load(int32_t tree, const Place& place, int32_t sign) {
    for (LinkId l : trees_.paths[place.path]) load_[l.index()] += sign * Busy(tree, l);
    children_[trees_.Index(tree, place.next)] += sign;
  }

  void AddUser(size_t place) {
    for (LinkId l : trees_.paths[trees_.places[place].path]) users_[l.index()].push_back(place);
  }

  // Gives rank r another place in the tree, and pushes the old place on undo_.
  void Set(int32_t tree, int32_t r, const Place& place) {
    Place& old = trees_.At(tree, r);
    undo_.push_back({tree, r, old});
    if (old.next >= 0) Load(tree, old, -1);
    old = place;
    if (place.next < 0) return;
    Load(tree, place, +1);
    AddUser(trees_.Index(tree, r));
  }

  void RollBack() {
    for (; !undo_.empty(); undo_.pop_back()) {
      const Undo& undo = undo_.back();
      Place& place = trees_.At(undo.tree, undo.rank);
      if (place.next >= 0) Load(undo.tree, place, -1);
      place = undo.place;
      if (place.next >= 0) Load(undo.tree, place, +1);
    }
  }

  bool IsRelay(int32_t tree, int32_t r) const { return !needed_[trees_.Index(tree, r)]; }

  // Cuts rank r off its tree, and removes relays that become useless. From r away from the root, it removes
  // relays that have exactly one child. From r towards the root, it removes relays that have no other child.
  // Returns the rank that is cut off afterwards, or nullopt if no rank is left to serve.
  std::optional<int32_t> CutOff(int32_t tree, int32_t r) {
    int32_t before = trees_.At(tree, r).next;
    int32_t at = r;
    while (IsRelay(tree, at) && children_[trees_.Index(tree, at)] == 1) {
      int32_t child = 0;
      while (trees_.At(tree, child).next != at) ++child;
      Set(tree, at, {});
      at = child;
    }
    const bool serves = !IsRelay(tree, at) || children_[trees_.Index(tree, at)] > 0;
    Set(tree, at, {.next = serves ? kCutOff : kAbsent, .path = {}, .step = 0});
    while (before >= 0 && trees_.At(tree, before).next >= 0 && IsRelay(tree, before) &&
           children_[trees_.Index(tree, before)] == 0) {
      const int32_t further = trees_.At(tree, before).next;
      Set(tree, before, {});
      before = further;
    }
    return serves ? std::optional(at) : std::nullopt;
  }

  Status JoinAll() {
    soft_ = Busiest();
    for (int32_t l = 0; l < topology_.num_links(); ++l) soft_ = std::max(soft_, Latency(LinkId(l)));
    for (int32_t t = 0; t < static_cast<int32_t>(trees_.trees.size()); ++t) {
      for (int32_t r = 0; r < trees_.num_ranks; ++r) {
        if (trees_.At(t, r).next != kCutOff) continue;
        const std::optional<int32_t> cut_off = CutOff(t, r);
        if (!cut_off) continue;
        if (!Join(t, *cut_off))
          return InvalidInput(fmt::format("rank {} cannot be reached over what is left of the machine", r));
        ++result_.joined;
      }
    }
    undo_.clear();
    return OkStatus();
  }

  int64_t Latency(LinkId l) const { return topology_.link(l).latency_ps + topology_.link(l).overhead_ps + 1; }

  // Returns the latency between r and the root, or nullopt if r has no way to a root.
  std::optional<int64_t> DelayToRoot(int32_t tree, int32_t r) const {
    int64_t delay = 0;
    int32_t at = r;
    for (; trees_.At(tree, at).next >= 0; at = trees_.At(tree, at).next)
      for (LinkId l : trees_.paths[trees_.At(tree, at).path]) delay += Latency(l);
    return trees_.At(tree, at).next == kRoot ? std::optional(delay) : std::nullopt;
  }

  // Joins the cut-off rank v, by one or more edges, to a rank that has a way to the root. Uses only links
  // whose load stays below `hard_`. Returns false if there is no such path.
  bool Join(int32_t tree, int32_t v) {
    ++stamp_;
    const bool sums = trees_.trees[static_cast<size_t>(tree)].sums;
    using Entry = std::tuple<Cost, int32_t, bool>;  // cost, node, whether cost includes the way to the root
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const NodeId start = topology_.NodeOf(Rank(v));
    label_[start.index()] = {.stamp = stamp_, .done = false, .cost = {}, .by = {}};
    queue.push({Cost{}, start.value, false});
    while (!queue.empty()) {
      const auto [cost, at, ends] = queue.top();
      queue.pop();
      const NodeId node(at);
      if (ends) return Connect(tree, v, *topology_.RankOf(node));
      Label& label = label_[node.index()];
      if (label.done) continue;
      label.done = true;
      if (const std::optional<Rank> rank = topology_.RankOf(node); rank && node != start) {
        if (const std::optional<int64_t> delay = DelayToRoot(tree, rank->value)) {
          queue.push({Cost{cost.beyond, cost.delay + *delay}, at, true});
          continue;
        }
      }
      for (LinkId l : sums ? topology_.Out(node) : topology_.In(node)) {
        ++work_;
        const NodeId next = sums ? topology_.link(l).to : topology_.link(l).from;
        const int64_t load = load_[l.index()] + Busy(tree, l);
        if (load >= hard_) continue;
        const Cost reached{std::max(cost.beyond, load - soft_), cost.delay + Latency(l)};
        Label& other = label_[next.index()];
        if (other.stamp == stamp_ && (other.done || other.cost <= reached)) continue;
        other = {.stamp = stamp_, .done = false, .cost = reached, .by = l};
        queue.push({reached, next.value, false});
      }
    }
    return false;
  }

  // Turns the path that Join found into edges, from `root_side` back to v, rank by rank.
  bool Connect(int32_t tree, int32_t v, Rank root_side) {
    const bool sums = trees_.trees[static_cast<size_t>(tree)].sums;
    NodeId at = topology_.NodeOf(root_side);
    int32_t next = root_side.value;
    std::vector<LinkId> links;  // links of the next edge, from the root outwards
    while (at != topology_.NodeOf(Rank(v))) {
      const LinkId by = label_[at.index()].by;
      links.push_back(by);
      at = sums ? topology_.link(by).from : topology_.link(by).to;
      const std::optional<Rank> rank = topology_.RankOf(at);
      if (!rank) continue;
      if (sums) std::reverse(links.begin(), links.end());
      Set(tree, rank->value, {.next = next, .path = trees_.paths.Intern(links), .step = 0});
      next = rank->value;
      links.clear();
    }
    return true;
  }

  // Relieves links in rounds, busy links first. Ends when the busiest link is near the mean, when a round
  // moves no edge or leaves the busiest link as busy as before, or when the work is used up. A link that no
  // edge can leave waits until the links around it are less busy. Every move makes the sorted list of loads
  // smaller, so the rounds end.
  void Balance() {
    const int64_t links = std::max<int64_t>(1, static_cast<int64_t>(load_.size()));
    int64_t mean = 0;
    for (int64_t load : load_) mean += load / links;
    std::vector<int32_t> order(load_.size());
    std::iota(order.begin(), order.end(), 0);
    int64_t busiest = std::numeric_limits<int64_t>::max();
    for (bool moved = true; moved && work_ < most_work_;) {
      const int64_t now = Busiest();
      if (IsNear(now, mean) || now >= busiest) break;
      busiest = now;
      moved = false;
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return load_[static_cast<size_t>(a)] > load_[static_cast<size_t>(b)];
      });
      for (int32_t l : order) {
        if (load_[static_cast<size_t>(l)] <= mean) break;
        while (work_ < most_work_ && Relieve(LinkId(l))) {
          ++result_.moved;
          moved = true;
        }
      }
    }
  }

  // Takes one edge off a link: drops it if it is not needed, or moves it to links that stay less busy than
  // this link is. Returns false if no edge can move or the work is used up.
  bool Relieve(LinkId l) {
    hard_ = load_[l.index()];
    soft_ = hard_ - hard_ / 8;
    std::vector<size_t>& users = users_[l.index()];
    for (size_t tried = users.size(); tried-- > 0 && work_ < most_work_;) {
      const size_t index = users[tried];
      const int32_t tree = static_cast<int32_t>(index / static_cast<size_t>(trees_.num_ranks));
      const int32_t r = static_cast<int32_t>(index % static_cast<size_t>(trees_.num_ranks));
      const Place before = trees_.places[index];
      const std::span<const LinkId> path =
          before.next >= 0 ? trees_.paths[before.path] : std::span<const LinkId>();
      if (std::find(path.begin(), path.end(), l) == path.end() || Busy(tree, l) == 0) {
        users[tried] = users.back();  // the edge has left this link or does not load it
        users.pop_back();
        continue;
      }
      undo_.clear();
      const std::optional<int32_t> cut_off = CutOff(tree, r);
      if (!cut_off || Join(tree, *cut_off)) return true;
      RollBack();
    }
    return false;
  }

  const Topology& topology_;
  const int64_t most_work_;
  Trees& trees_;
  std::vector<int32_t> busy_row_;           // by tree
  std::vector<int64_t> busy_;               // [row × links + link]: ps for which a tree occupies the link
  std::vector<int64_t> load_;               // by link: ps for which all trees together occupy the link
  std::vector<std::vector<size_t>> users_;  // by link: places whose edge uses, or used, the link
  std::vector<bool> needed_;                // by place: the rank is more than a relay
  std::vector<int32_t> children_;           // by place: number of children
  std::vector<Undo> undo_;
  // Loads in ps: paths above soft_ cost more, and Join uses no link that would reach hard_.
  int64_t soft_ = 0, hard_ = std::numeric_limits<int64_t>::max();
  std::vector<Label> label_;
  uint32_t stamp_ = 0;
  int64_t work_ = 0;  // links looked at while balancing
  RepairResult result_;
};

}  // namespace

StatusOr<RepairResult> Repair(const Topology& topology, const Collective& collective,
                              const CollectiveSizes& sizes, TimeModel model, int64_t work, Trees& trees) {
  return Repairer(topology, collective, sizes, model, work, trees).Run();
}

}  // namespace xccl::replan
