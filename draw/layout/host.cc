#include <algorithm>
#include <deque>

#include "draw/layout/hosts.h"
#include "draw/layout/rows.h"

namespace xccl {
namespace {

class HostDrawer {
 public:
  HostDrawer(const Topology& topology, const std::vector<NodeId>& nodes)
      : topology_(topology), nodes_(nodes), here_(static_cast<size_t>(topology.num_nodes()), -1) {
    for (size_t i = 0; i < nodes.size(); ++i) here_[nodes[i].index()] = static_cast<int32_t>(i);
  }

  Sketch Draw(const std::string& name) {
    for (const NodeId node : nodes_) sketch_.items.push_back(MakeItem(topology_, {node}));
    FindOutward();
    MakeRows();
    const double right = PlaceBase();
    PlaceRows(rows_, base_, 0, JoinedItems(topology_, here_), right, sketch_);
    Frame(name);
    return std::move(sketch_);
  }

 private:
  bool IsSwitch(size_t i) const { return sketch_.items[i].kind == NodeKind::kSwitch; }
  template <typename Visit>
  void ForEachNeighbour(size_t i, Visit visit) const {
    for (const LinkId link : topology_.Out(nodes_[i]))
      if (const int32_t other = here_[topology_.link(link).to.index()]; other >= 0)
        visit(static_cast<size_t>(other));
    for (const LinkId link : topology_.In(nodes_[i]))
      if (const int32_t other = here_[topology_.link(link).from.index()]; other >= 0)
        visit(static_cast<size_t>(other));
  }

  // Marks the nodes that NICs, CPUs and nodes outside reach without passing a GPU, and measures how far
  // switches are from GPUs.
  void FindOutward() {
    outward_.assign(nodes_.size(), false);
    distance_.assign(nodes_.size(), -1);
    std::deque<size_t> todo;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const NodeKind kind = sketch_.items[i].kind;
      if (kind != NodeKind::kNic && kind != NodeKind::kCpu) continue;
      outward_[i] = true;
      todo.push_back(i);
    }
    while (!todo.empty()) {
      const size_t at = todo.front();
      todo.pop_front();
      ForEachNeighbour(at, [&](size_t other) {
        if (outward_[other] || !IsSwitch(other)) return;
        outward_[other] = true;
        todo.push_back(other);
      });
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!topology_.IsGpu(nodes_[i])) continue;
      distance_[i] = 0;
      todo.push_back(i);
    }
    while (!todo.empty()) {
      const size_t at = todo.front();
      todo.pop_front();
      ForEachNeighbour(at, [&](size_t other) {
        if (distance_[other] >= 0 || !IsSwitch(other)) return;
        distance_[other] = distance_[at] + 1;
        todo.push_back(other);
      });
    }
  }

  // From the top: NICs and CPUs; switches, the farthest first; GPUs; switches that only join GPUs.
  void MakeRows() {
    const bool has_ports = std::ranges::find(outward_, true) != outward_.end();
    std::vector<ItemRow> above, below;
    ItemRow gpus{{}, true}, ports;
    const auto put = [](std::vector<ItemRow>& rows, int32_t distance, int32_t item) {
      const size_t at = static_cast<size_t>(std::max(distance, 1)) - 1;
      if (rows.size() <= at) rows.resize(at + 1);
      rows[at].items.push_back(item);
    };
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto item = static_cast<int32_t>(i);
      if (topology_.IsGpu(nodes_[i])) {
        gpus.items.push_back(item);
      } else if (!IsSwitch(i)) {
        ports.items.push_back(item);
      } else {
        put(outward_[i] || !has_ports ? above : below, distance_[i], item);
      }
    }
    gpus.arcs_down = below.empty() || !above.empty();
    std::ranges::sort(gpus.items, {},
                      [&](int32_t i) { return topology_.RankOf(nodes_[static_cast<size_t>(i)]); });
    rows_.push_back(ports);
    std::ranges::reverse(above);
    rows_.insert(rows_.end(), above.begin(), above.end());
    base_ = rows_.size();
    rows_.push_back(gpus);
    for (ItemRow& row : below) row.arcs_down = true;
    rows_.insert(rows_.end(), below.begin(), below.end());
    if (gpus.items.empty()) base_ = 0;
  }

  // Sets the GPUs side by side, over most of the width that the widest row needs. Returns their right end.
  double PlaceBase() {
    const std::vector<int32_t>& gpus = rows_[base_].items;
    const double natural = PlaceSideBySide(gpus, 0, sketch_);
    double widest = 0;
    for (const ItemRow& row : rows_) {
      double width = -kGap;
      for (const int32_t i : row.items) width += sketch_.items[static_cast<size_t>(i)].width + kGap;
      widest = std::max(widest, width);
    }
    const double more = 0.85 * widest - natural;
    if (more <= 0 || gpus.size() < 2) return natural;
    for (size_t i = 0; i < gpus.size(); ++i)
      sketch_.items[static_cast<size_t>(gpus[i])].x +=
          more * static_cast<double>(i) / static_cast<double>(gpus.size() - 1);
    return natural + more;
  }

  void Frame(const std::string& name) {
    double left = 0, right = 0, bottom = sketch_.height;
    for (const DrawnItem& item : sketch_.items) {
      left = std::min(left, item.x - item.width / 2);
      right = std::max(right, item.x + item.width / 2);
    }
    double top = 0;
    for (const DrawnCable& cable : sketch_.shaped) {
      if (cable.form != DrawnCable::Form::kCurve) continue;
      const double apex = (cable.points[0].y + cable.points[1].y) / 2;
      bottom = std::max(bottom, apex + 2);
      top = std::min(top, apex - 2);
    }
    right = std::max(right, left + TextWidth(name));
    Shift(sketch_, kGap - left, kGap - top);
    sketch_.width = right - left + 2 * kGap;
    sketch_.height = bottom - top + 2 * kGap + 16;
    sketch_.frames.push_back({name, 0, 0, sketch_.width, sketch_.height, {kGap, sketch_.height - 13}});
  }

  const Topology& topology_;
  const std::vector<NodeId>& nodes_;
  std::vector<int32_t> here_;  // by node: its item, or -1
  std::vector<bool> outward_;
  std::vector<int32_t> distance_;  // links from each switch to the nearest GPU; -1: no way
  std::vector<ItemRow> rows_;
  size_t base_ = 0;
  Sketch sketch_;
};

}  // namespace

Sketch HostSketch(const Topology& topology, HostId host, const std::vector<NodeId>& nodes) {
  return HostDrawer(topology, nodes).Draw(topology.spec().hosts[host.index()].name);
}

}  // namespace xccl
