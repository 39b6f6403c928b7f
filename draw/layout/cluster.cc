// Units stand in a row at the bottom: hosts, or GPUs where a host holds one or the machine is one switched
// host. The switches that join them stand in tiers above, by distance from them. With one tier and many
// units, half of the units stand above it. Routers that are joined among themselves form groups (two routers
// are of one group if they are joined and have a common neighbour that is a router), which face each other in
// two rows.
//
// A row that would be wider than kMostWidth is folded: first each host becomes one item, then each run of
// neighbouring hosts does.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/graph/union_find.h"
#include "draw/layout/direct.h"
#include "draw/layout/hosts.h"
#include "draw/layout/rows.h"

namespace xccl {
namespace {

constexpr double kMostWidth = 2400;
constexpr double kTwoSided = 1000;  // a wider row over one tier is split in two
constexpr double kFabricGap = 90;   // between units and what joins them
constexpr int32_t kMostInTier = 24;

class ClusterDrawer {
 public:
  explicit ClusterDrawer(const Topology& topology)
      : topology_(topology), item_of_(static_cast<size_t>(topology.num_nodes()), -1) {}

  Sketch Draw() {
    FindUnits();
    FindTiers();
    if (const std::vector<std::vector<NodeId>> groups = RouterGroups(); groups.size() > 1)
      return DrawGroups(groups);
    DrawTiers();
    return std::move(sketch_);
  }

 private:
  // ---- What there is ----

  void FindUnits() {
    std::vector<std::vector<NodeId>> of_host(static_cast<size_t>(topology_.num_hosts()));
    bool has_ports = false;
    for (int32_t n = 0; n < topology_.num_nodes(); ++n) {
      const Node& node = topology_.node(NodeId(n));
      has_ports |= node.kind == NodeKind::kNic || node.kind == NodeKind::kCpu;
      if (node.host) {
        of_host[node.host->index()].push_back(NodeId(n));
      } else {
        fabric_.push_back(NodeId(n));
      }
    }
    if (topology_.num_hosts() > 1 || has_ports) {
      for (std::vector<NodeId>& nodes : of_host)
        if (!nodes.empty()) units_.push_back(std::move(nodes));
      return;
    }
    // One switched host: its GPUs are the units.
    for (int32_t n = 0; n < topology_.num_nodes(); ++n) {
      if (topology_.IsGpu(NodeId(n))) {
        units_.push_back({NodeId(n)});
      } else if (topology_.node(NodeId(n)).host) {
        fabric_.push_back(NodeId(n));
      }
    }
    std::ranges::sort(fabric_);
  }

  template <typename Visit>
  void ForEachNeighbour(NodeId node, Visit visit) const {
    for (const LinkId link : topology_.Out(node)) visit(topology_.link(link).to);
    for (const LinkId link : topology_.In(node)) visit(topology_.link(link).from);
  }

  // The fabric's nodes by distance from the units.
  void FindTiers() {
    std::vector<int32_t> distance(static_cast<size_t>(topology_.num_nodes()), 0);
    for (const NodeId node : fabric_) distance[node.index()] = -1;
    std::vector<NodeId> todo;
    for (const std::vector<NodeId>& unit : units_) todo.insert(todo.end(), unit.begin(), unit.end());
    for (size_t i = 0; i < todo.size(); ++i) {
      ForEachNeighbour(todo[i], [&](NodeId other) {
        if (distance[other.index()] >= 0) return;
        distance[other.index()] = distance[todo[i].index()] + 1;
        todo.push_back(other);
      });
    }
    for (const NodeId node : fabric_) {
      const size_t tier = static_cast<size_t>(std::max(distance[node.index()], 1));
      if (tiers_.size() < tier) tiers_.resize(tier);
      tiers_[tier - 1].push_back(node);
    }
  }

  // Groups of routers, if all of the fabric is one tier of routers that are joined in that way.
  std::vector<std::vector<NodeId>> RouterGroups() const {
    if (tiers_.size() != 1 || tiers_[0].size() < 4) return {};
    std::map<NodeId, int32_t> number;
    for (const NodeId node : tiers_[0]) number.emplace(node, static_cast<int32_t>(number.size()));
    std::vector<std::vector<int32_t>> neighbours(number.size());
    for (const auto& [node, n] : number) {
      ForEachNeighbour(node, [&, at = n](NodeId other) {
        if (const auto it = number.find(other); it != number.end())
          neighbours[static_cast<size_t>(at)].push_back(it->second);
      });
      std::ranges::sort(neighbours[static_cast<size_t>(n)]);
    }
    UnionFind groups(number.size());
    for (size_t a = 0; a < neighbours.size(); ++a) {
      if (neighbours[a].empty()) return {};
      for (const int32_t b : neighbours[a]) {
        const std::vector<int32_t>& other = neighbours[static_cast<size_t>(b)];
        const bool common = std::ranges::any_of(
            neighbours[a], [&](int32_t c) { return std::ranges::binary_search(other, c); });
        if (common) groups.Join(static_cast<int32_t>(a), b);
      }
    }
    return GroupsOf(groups, neighbours);
  }

  // Routers without a common neighbour form pairs: two joined routers with neighbouring numbers.
  std::vector<std::vector<NodeId>> GroupsOf(UnionFind& groups,
                                            const std::vector<std::vector<int32_t>>& neighbours) const {
    const std::vector<NodeId>& routers = tiers_[0];
    std::map<int32_t, std::vector<NodeId>> by_root;
    for (size_t r = 0; r < routers.size(); ++r)
      by_root[groups.Find(static_cast<int32_t>(r))].push_back(routers[r]);
    if (by_root.size() == routers.size()) {
      by_root.clear();
      for (size_t r = 0; r + 1 < routers.size(); r += 2) {
        if (!std::ranges::binary_search(neighbours[r], static_cast<int32_t>(r + 1))) return {};
        by_root[static_cast<int32_t>(r)] = {routers[r], routers[r + 1]};
      }
      if (routers.size() % 2 != 0) return {};
    }
    std::vector<std::vector<NodeId>> made;
    for (auto& [root, nodes] : by_root) made.push_back(std::move(nodes));
    return made;
  }

  // ---- Tiers ----

  bool IsSingle(const std::vector<NodeId>& unit) const { return unit.size() == 1; }

  // Drawings of the units, as many as fit.
  std::vector<Sketch> DrawUnits(double most_width) {
    std::vector<Sketch> drawn;
    double width = 0;
    for (const std::vector<NodeId>& unit : units_) {
      drawn.push_back(IsSingle(unit) ? OneItem(unit)
                                     : HostSketch(topology_, *topology_.node(unit[0]).host, unit));
      width += drawn.back().width + kGap;
      if (width > most_width) return FoldedUnits(most_width);
    }
    return drawn;
  }

  std::vector<Sketch> FoldedUnits(double most_width) {
    std::vector<Sketch> drawn;
    double width = 0;
    for (const std::vector<NodeId>& unit : units_) {
      drawn.push_back(OneItem(unit));
      width += drawn.back().width + kGap;
    }
    if (width <= most_width && std::ssize(drawn) <= 2 * kMostInTier) return drawn;
    drawn.clear();
    const std::vector<int32_t> first = Runs(static_cast<int32_t>(units_.size()), 16);
    for (size_t r = 0; r + 1 < first.size(); ++r) {
      NodeGroup nodes;
      for (int32_t u = first[r]; u < first[r + 1]; ++u)
        nodes.insert(nodes.end(), units_[static_cast<size_t>(u)].begin(),
                     units_[static_cast<size_t>(u)].end());
      drawn.push_back(OneItem(nodes));
    }
    return drawn;
  }

  Sketch OneItem(const NodeGroup& nodes) const {
    Sketch sketch;
    sketch.items.push_back(MakeItem(topology_, nodes));
    sketch.width = sketch.items[0].width;
    sketch.height = sketch.items[0].height;
    sketch.items[0].x = sketch.width / 2;
    sketch.items[0].y = sketch.height / 2;
    return sketch;
  }

  // Items of each tier, the nearest first.
  std::vector<std::vector<int32_t>> AddTierItems() {
    std::vector<std::vector<int32_t>> rows;
    for (const std::vector<NodeId>& tier : tiers_) {
      rows.emplace_back();
      const auto count = static_cast<int32_t>(tier.size());
      const std::vector<int32_t> first = Runs(count, count > kMostInTier ? 16 : count);
      for (size_t r = 0; r + 1 < first.size(); ++r) {
        rows.back().push_back(static_cast<int32_t>(sketch_.items.size()));
        sketch_.items.push_back(
            MakeItem(topology_, NodeGroup(tier.begin() + first[r], tier.begin() + first[r + 1])));
      }
    }
    return rows;
  }

  void NumberItems() {
    for (size_t i = 0; i < sketch_.items.size(); ++i)
      for (const NodeId node : sketch_.items[i].nodes) item_of_[node.index()] = static_cast<int32_t>(i);
  }

  void DrawTiers() {
    const bool one_tier = tiers_.size() == 1;
    std::vector<Sketch> units = DrawUnits(one_tier ? 2 * kMostWidth : kMostWidth);
    double width = 0, height = 0;
    for (const Sketch& unit : units) {
      width += unit.width + kGap;
      height = std::max(height, unit.height);
    }
    const bool two_sided = one_tier && units.size() > 3 && width > kTwoSided;
    const size_t below = two_sided ? (units.size() + 1) / 2 : units.size();
    // Units first, so that their items have the first numbers.
    std::vector<int32_t> tops, bottoms;
    double right = 0;
    for (size_t side = 0; side < 2; ++side) {
      double x = 0;
      for (size_t u = side == 0 ? 0 : below; u < (side == 0 ? below : units.size()); ++u) {
        // The upper side holds the first units, as people read.
        const size_t unit = two_sided ? (side == 0 ? u + units.size() - below : u - below) : u;
        if (side == 1) Flip(units[unit]);
        const double y = side == 0 ? 0 : height - units[unit].height;
        const auto first = static_cast<int32_t>(sketch_.items.size());
        Insert(units[unit], x, y, sketch_);
        for (auto i = first; i < std::ssize(sketch_.items); ++i) (side == 0 ? bottoms : tops).push_back(i);
        x += units[unit].width + kGap;
      }
      right = std::max(right, x - kGap);
    }
    PlaceTiers(tops, bottoms, right, height);
    Describe();
  }

  // Places the fabric over the units of the lower side, and the units of the upper side over the fabric.
  void PlaceTiers(const std::vector<int32_t>& tops, const std::vector<int32_t>& bottoms, double width,
                  double unit_height) {
    const std::vector<std::vector<int32_t>> tiers = AddTierItems();
    NumberItems();
    Sketch fabric = sketch_;
    fabric.shaped.clear();
    fabric.height = 0;
    std::vector<ItemRow> rows;
    for (size_t t = tiers.size(); t-- > 0;) rows.push_back({tiers[t], false});
    ItemRow units{bottoms, true};
    units.items.insert(units.items.end(), tops.begin(), tops.end());
    rows.push_back(units);
    std::vector<std::pair<int32_t, int32_t>> joined = JoinedItems(topology_, item_of_);
    // Within and between units, cables keep the form that their own drawing gave them.
    std::erase_if(joined,
                  [&](const auto& pair) { return pair.second < std::ssize(bottoms) + std::ssize(tops); });
    PlaceRows(rows, rows.size() - 1, 0, joined, width, fabric);
    double fabric_height = 0;
    for (const std::vector<int32_t>& tier : tiers)
      for (const int32_t i : tier)
        fabric_height = std::max(fabric_height, fabric.items[static_cast<size_t>(i)].y +
                                                    fabric.items[static_cast<size_t>(i)].height / 2);
    const double above = tops.empty() ? 0 : unit_height + kFabricGap;
    const double bottom = above + fabric_height + (fabric_.empty() ? 0 : kFabricGap);
    MoveUnits(bottoms, bottom);
    for (const std::vector<int32_t>& tier : tiers) {
      for (const int32_t i : tier) {
        DrawnItem& item = sketch_.items[static_cast<size_t>(i)];
        item = fabric.items[static_cast<size_t>(i)];
        item.y += above;
      }
    }
    for (DrawnCable& cable : fabric.shaped) {
      for (DrawnPoint& point : cable.points) point.y += above;
      sketch_.shaped.push_back(std::move(cable));
    }
  }

  // Moves the units of these items down, frames and cables with them.
  void MoveUnits(const std::vector<int32_t>& items, double dy) {
    std::vector<bool> moves(sketch_.items.size(), false);
    for (const int32_t i : items) {
      moves[static_cast<size_t>(i)] = true;
      sketch_.items[static_cast<size_t>(i)].y += dy;
    }
    const size_t lower = LowerFrames(items);
    for (size_t f = 0; f < lower; ++f) {
      sketch_.frames[f].top += dy;
      sketch_.frames[f].label_at.y += dy;
    }
    for (DrawnCable& cable : sketch_.shaped)
      if (moves[static_cast<size_t>(cable.a)])
        for (DrawnPoint& point : cable.points) point.y += dy;
  }
  // Units with a frame come in order; the units of the lower side come first.
  size_t LowerFrames(const std::vector<int32_t>& items) const {
    size_t frames = 0;
    std::optional<HostId> last;
    for (const int32_t i : items) {
      const DrawnItem& item = sketch_.items[static_cast<size_t>(i)];
      const std::optional<HostId> host = topology_.node(item.nodes[0]).host;
      if (item.folded || host == last) continue;
      last = host;
      frames += host && HostSize(*host) > 1 && !sketch_.frames.empty() ? 1 : 0;
    }
    return std::min(frames, sketch_.frames.size());
  }
  size_t HostSize(HostId host) const {
    for (const std::vector<NodeId>& unit : units_)
      if (topology_.node(unit[0]).host == host) return unit.size();
    return 0;
  }

  void Describe() {
    const int32_t hosts = topology_.num_hosts();
    const std::string units =
        hosts > 1 ? fmt::format("{} hosts", hosts) : fmt::format("{} GPUs", topology_.num_ranks());
    if (fabric_.empty()) {
      sketch_.shape = hosts > 1 ? units : "one host";
    } else {
      sketch_.shape =
          fmt::format("{} under {} tier{} of switches", units, tiers_.size(), tiers_.size() == 1 ? "" : "s");
    }
  }

  // ---- Groups of routers ----

  // The units of each router, by the first router that they are joined to.
  std::vector<std::vector<size_t>> UnitsOfRouters(const std::vector<std::vector<NodeId>>& groups) const {
    std::vector<int32_t> group_of(static_cast<size_t>(topology_.num_nodes()), -1);
    for (size_t g = 0; g < groups.size(); ++g)
      for (const NodeId router : groups[g]) group_of[router.index()] = static_cast<int32_t>(g);
    std::vector<std::vector<size_t>> of_group(groups.size());
    for (size_t u = 0; u < units_.size(); ++u) {
      int32_t group = -1;
      for (const NodeId node : units_[u])
        ForEachNeighbour(node, [&](NodeId other) {
          if (group < 0) group = group_of[other.index()];
        });
      of_group[static_cast<size_t>(std::max(group, 0))].push_back(u);
    }
    return of_group;
  }

  // Routers of a group in a row over its units.
  Sketch DrawGroup(const std::vector<NodeId>& routers, const std::vector<size_t>& units, size_t number) {
    Sketch group;
    ItemRow upper, lower{{}, true};
    for (const size_t u : units) {
      lower.items.push_back(static_cast<int32_t>(group.items.size()));
      group.items.push_back(MakeItem(topology_, units_[u]));
    }
    for (const NodeId router : routers) {
      upper.items.push_back(static_cast<int32_t>(group.items.size()));
      group.items.push_back(MakeItem(topology_, {router}));
    }
    std::vector<int32_t> item_of(static_cast<size_t>(topology_.num_nodes()), -1);
    for (size_t i = 0; i < group.items.size(); ++i)
      for (const NodeId node : group.items[i].nodes) item_of[node.index()] = static_cast<int32_t>(i);
    double right = PlaceSideBySide(lower.items, 0, group);
    if (units.empty()) right = PlaceSideBySide(upper.items, 0, group);
    double router_width = -kGap;
    for (const int32_t i : upper.items) router_width += group.items[static_cast<size_t>(i)].width + kGap;
    right = std::max(right, router_width);
    // Arcs between routers are on the side of the units, so that the other side is free for other groups.
    upper.arcs_down = true;
    PlaceRows({upper, lower}, 1, 0, JoinedItems(topology_, item_of), right, group);
    double left = 0;
    for (const DrawnItem& item : group.items) {
      left = std::min(left, item.x - item.width / 2);
      right = std::max(right, item.x + item.width / 2);
    }
    Shift(group, kGap - left, kGap);
    group.width = right - left + 2 * kGap;
    group.height += 2 * kGap + 16;
    group.frames.push_back(
        {fmt::format("group {}", number), 0, 0, group.width, group.height, {kGap, group.height - 13}});
    return group;
  }

  Sketch DrawGroups(const std::vector<std::vector<NodeId>>& groups) {
    const std::vector<std::vector<size_t>> units = UnitsOfRouters(groups);
    std::vector<Sketch> drawn;
    double width = 0;
    for (size_t g = 0; g < groups.size() && width <= 2 * kMostWidth; ++g) {
      drawn.push_back(DrawGroup(groups[g], units[g], g));
      width += drawn.back().width + kGap;
    }
    const std::string shape = fmt::format("{} groups of {} routers", groups.size(), groups[0].size());
    if (width > 2 * kMostWidth) {
      DrawFoldedGroups(groups, units);
    } else {
      FaceGroups(drawn);
    }
    sketch_.shape = shape;
    return std::move(sketch_);
  }

  // Every group becomes an item on a circle.
  void DrawFoldedGroups(const std::vector<std::vector<NodeId>>& groups,
                        const std::vector<std::vector<size_t>>& units) {
    const std::vector<int32_t> first = Runs(static_cast<int32_t>(groups.size()), 48);
    for (size_t r = 0; r + 1 < first.size(); ++r) {
      NodeGroup nodes;
      for (auto g = static_cast<size_t>(first[r]); g < static_cast<size_t>(first[r + 1]); ++g) {
        nodes.insert(nodes.end(), groups[g].begin(), groups[g].end());
        for (const size_t u : units[g]) nodes.insert(nodes.end(), units_[u].begin(), units_[u].end());
      }
      DrawnItem item = MakeItem(topology_, nodes);
      item.lines = {fmt::format("group {}", first[r]), fmt::format("{} GPUs", item.ranks)};
      if (first[r + 1] - first[r] > 1) item.lines[0] = fmt::format("{} groups", first[r + 1] - first[r]);
      item.width = 12 + std::max(TextWidth(item.lines[0]), TextWidth(item.lines[1]));
      sketch_.items.push_back(item);
    }
    std::vector<int32_t> place(sketch_.items.size());
    std::iota(place.begin(), place.end(), 0);
    PlaceCircle(place, sketch_);
  }

  // Places the first half of the groups above, upside down, and the second half below, so that all routers
  // face the middle.
  void FaceGroups(std::vector<Sketch>& groups) {
    const size_t above = groups.size() / 2;
    double height = 0, upper = 0;
    for (const Sketch& group : groups) height = std::max(height, group.height);
    const double gap = 120 + 18 * static_cast<double>(groups.size());
    for (size_t g = 0; g < above; ++g) {
      Flip(groups[g]);
      Insert(groups[g], upper, height - groups[g].height, sketch_);
      upper += groups[g].width + kGap;
    }
    const size_t lower_items = sketch_.items.size();
    double lower = 0;
    for (size_t g = above; g < groups.size(); ++g) {
      Insert(groups[g], lower, height + gap, sketch_);
      lower += groups[g].width + kGap;
    }
    // The shorter row is centred.
    const bool shift_upper = upper < lower;
    const double dx = std::abs(upper - lower) / 2;
    for (size_t i = 0; i < sketch_.items.size(); ++i)
      if ((i < lower_items) == shift_upper) sketch_.items[i].x += dx;
    for (size_t f = 0; f < sketch_.frames.size(); ++f) {
      if ((f < above) != shift_upper) continue;
      sketch_.frames[f].left += dx;
      sketch_.frames[f].label_at.x += dx;
    }
    for (DrawnCable& cable : sketch_.shaped)
      if ((static_cast<size_t>(cable.a) < lower_items) == shift_upper)
        for (DrawnPoint& point : cable.points) point.x += dx;
    JoinGroups(lower_items);
  }

  // Cables between groups of one side bend into the middle.
  void JoinGroups(size_t lower_items) {
    NumberItems();
    std::vector<std::pair<int32_t, int32_t>> within;
    for (const DrawnCable& cable : sketch_.shaped)
      within.emplace_back(std::min(cable.a, cable.b), std::max(cable.a, cable.b));
    std::ranges::sort(within);
    for (const auto& [a, b] : JoinedItems(topology_, item_of_)) {
      const DrawnItem &from = sketch_.items[static_cast<size_t>(a)],
                      &to = sketch_.items[static_cast<size_t>(b)];
      if (from.y != to.y || std::ranges::binary_search(within, std::pair(a, b))) continue;
      sketch_.shaped.push_back(ArcBetween(sketch_, a, b, static_cast<size_t>(a) < lower_items));
    }
  }

  const Topology& topology_;
  std::vector<int32_t> item_of_;  // by node
  std::vector<std::vector<NodeId>> units_;
  std::vector<NodeId> fabric_;
  std::vector<std::vector<NodeId>> tiers_;
  Sketch sketch_;
};

}  // namespace

Sketch ClusterSketch(const Topology& topology) { return ClusterDrawer(topology).Draw(); }

}  // namespace xccl
