// 1. Way gives each stream in turn the shortest way whose busiest link is least busy.
// 2. Relieve moves streams off busy links by Kempe chains (Exchange). A stream from x over node m to y goes
//    over another node m' instead. If the link from m' to y is then too busy, another stream on it goes over
//    m, and so on.
// If all leaf switches are joined alike to all spine switches, streams are edges of a bipartite graph: from
// the leaf that a stream leaves to the leaf that it enters. In such a graph a Kempe chain never comes back to
// its first leaf. The exchanges therefore end with an edge colouring of the fewest colours (König, 1916). The
// colours are the spines.
#include "synth/rails/fabric_routes.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "synth/common/cost_model.h"

namespace xccl {

FabricRoutes::FabricRoutes(const Topology& topology, int64_t fastest)
    : topology_(&topology), fastest_(fastest), number_(static_cast<size_t>(topology.num_nodes()), -1) {
  int32_t count = 0;
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    if (!topology.node(NodeId(n)).host && !topology.IsGpu(NodeId(n)))
      number_[static_cast<size_t>(n)] = count++;
  std::vector<LinkId> inside;
  for (int32_t l = 0; l < topology.num_links(); ++l)
    if (const Link& link = topology.link(LinkId(l));
        number_[link.from.index()] >= 0 && number_[link.to.index()] >= 0)
      inside.push_back(LinkId(l));
  std::ranges::stable_sort(inside, {}, [&](LinkId l) { return topology.link(l).to; });
  const auto links = [&](bool enters) {
    return GroupItems<LinkId>(static_cast<size_t>(count), [&](auto add) {
      for (LinkId l : inside) add(number_[(enters ? topology.link(l).to : topology.link(l).from).index()], l);
    });
  };
  out_ = links(false);
  in_ = links(true);
}

const std::vector<int32_t>& FabricRoutes::DistancesTo(NodeId to) {
  const auto known = distance_.find(to.value);
  if (known != distance_.end()) return known->second;
  if (static_cast<int64_t>(distance_.size() * out_.size()) > kMostCells) distance_.clear();
  std::vector<int32_t>& distance = distance_[to.value];
  distance.assign(out_.size(), -1);
  std::vector<int32_t> open = {number_[to.index()]};
  distance[static_cast<size_t>(open[0])] = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    for (LinkId l : in_[open[i]]) {
      const int32_t before = number_[topology_->link(l).from.index()];
      if (distance[static_cast<size_t>(before)] >= 0) continue;
      distance[static_cast<size_t>(before)] = distance[static_cast<size_t>(open[i])] + 1;
      open.push_back(before);
    }
  }
  return distance;
}

std::optional<std::vector<LinkId>> FabricRoutes::Way(const Stream& stream) {
  const auto [from, to] = stream;
  std::vector<LinkId> way;
  if (from == to) return way;
  const std::vector<int32_t>& distance = DistancesTo(to);
  const int32_t start = number_[from.index()];
  if (distance[static_cast<size_t>(start)] < 0) return std::nullopt;
  // A node on a shortest way, with the best way to it. The list `reached` is in the order of distance.
  struct Reached {
    int32_t node = 0;
    double busiest = 0, sum = 0;  // of the times for which the way's links are held
    std::optional<LinkId> last = {};
    int32_t before = 0;  // index into `reached`
  };
  std::vector<Reached> reached = {{.node = start}};
  std::vector<int32_t> open = {start};  // nodes that have a place in place_
  place_.resize(out_.size(), -1);
  place_[static_cast<size_t>(start)] = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    const Reached at = reached[i];
    for (LinkId l : out_[at.node]) {
      const int32_t next = number_[topology_->link(l).to.index()];
      if (distance[static_cast<size_t>(next)] != distance[static_cast<size_t>(at.node)] - 1) continue;
      const double after = Held(l, 1);
      const Reached by{next, std::max(at.busiest, after), at.sum + after, l, static_cast<int32_t>(i)};
      int32_t& place = place_[static_cast<size_t>(next)];
      if (place < 0) {
        place = static_cast<int32_t>(reached.size());
        reached.push_back(by);
        open.push_back(next);
      } else if (Reached& old = reached[static_cast<size_t>(place)];
                 std::pair(by.busiest, by.sum) < std::pair(old.busiest, old.sum)) {
        old = by;
      }
    }
  }
  for (const Reached* at = &reached[static_cast<size_t>(place_[number_[to.index()]])]; at->last;
       at = &reached[static_cast<size_t>(at->before)])
    way.push_back(*at->last);
  std::ranges::reverse(way);
  for (int32_t node : open) place_[static_cast<size_t>(node)] = -1;
  return way;
}

// Returns the least busy of the parallel links between two nodes, or nullopt if there is no link.
std::optional<LinkId> FabricRoutes::LeastHeld(NodeId from, NodeId to) const {
  const std::span<const LinkId> out = out_[number_[from.index()]];
  std::optional<LinkId> least;
  for (auto l = std::ranges::lower_bound(out, to, {}, [&](LinkId at) { return topology_->link(at).to; });
       l != out.end() && topology_->link(*l).to == to; ++l)
    if (!least || Held(*l, 1) < Held(*least, 1)) least = *l;
  return least;
}

// Returns the two successive links of the stream's way of which `link` is the first (`is_up`) or the second.
// Returns nullopt if there is no second link after it (`is_up`), or no first link before it.
std::optional<FabricRoutes::Middle> FabricRoutes::MiddleAt(size_t stream, LinkId link, bool is_up) const {
  const std::vector<LinkId>& way = *ways_[stream];
  const auto at = static_cast<size_t>(std::ranges::find(way, link) - way.begin());
  if (is_up ? at + 1 == way.size() : at == 0) return std::nullopt;
  const size_t hop = is_up ? at : at - 1;
  return Middle{stream, hop, way[hop], way[hop + 1]};
}

// Returns the middle that joins the same two ends over `node`, or nullopt if the node is not joined to both.
std::optional<FabricRoutes::Middle> FabricRoutes::Instead(const Middle& old, NodeId node) const {
  const auto up = LeastHeld(topology_->link(old.up).from, node);
  const auto down = up ? LeastHeld(node, topology_->link(old.down).to) : std::nullopt;
  if (!down) return std::nullopt;
  return Middle{old.stream, old.hop, *up, *down};
}

void FabricRoutes::Move(const Middle& from, const Middle& to) {
  for (LinkId l : {from.up, from.down}) std::erase(users_[l.index()], from.stream);
  for (LinkId l : {to.up, to.down}) users_[l.index()].push_back(to.stream);
  (*ways_[to.stream])[to.hop] = to.up;
  (*ways_[to.stream])[to.hop + 1] = to.down;
}

// The limit is how busy the stream's first (`is_up`) or second link is. Moves the stream to `node` if its new
// link there stays below the limit. If its other new link reaches the limit and is busier than the link that
// it replaces was, another stream on the new link moves to the node just left, and so on. Returns false and
// restores all streams if the first move does not help, or if the chain gets stuck.
bool FabricRoutes::Exchange(Middle old, NodeId node, bool is_up) {
  const auto near = [&](const Middle& m) { return is_up ? m.up : m.down; };
  const auto far = [&](const Middle& m) { return is_up ? m.down : m.up; };
  const double limit = Held(near(old), 0);
  std::optional<Middle> by = Instead(old, node);
  if (!by || Held(near(*by), 1) >= limit) return false;
  std::vector<std::pair<Middle, Middle>> moved;
  std::set<size_t> streams;
  while (by) {
    const double before = Held(far(old), 0);
    const NodeId left = topology_->link(old.up).to;
    Move(old, *by);
    moved.emplace_back(old, *by);
    streams.insert(old.stream);
    const LinkId full = far(*by);
    if (Held(full, 0) < limit || Held(full, 0) <= before) return true;
    // Another stream on `full` moves to the node just left.
    by.reset();
    for (size_t other : users_[full.index()]) {
      if (streams.contains(other)) continue;
      const std::optional<Middle> at = MiddleAt(other, full, !is_up);
      if (at) by = Instead(*at, left);
      if (!by) continue;
      old = *at;
      break;
    }
    is_up = !is_up;
  }
  for (auto back = moved.rbegin(); back != moved.rend(); ++back) Move(back->second, back->first);
  return false;
}

// Moves a stream off the link by a chain of exchanges (Exchange). Returns false if no such chain ends.
bool FabricRoutes::Relieve(LinkId link) {
  const std::vector<size_t> users = users_[link.index()];
  for (size_t stream : users) {
    for (bool is_up : {true, false}) {
      const std::optional<Middle> old = MiddleAt(stream, link, is_up);
      if (!old) continue;
      std::optional<NodeId> last;
      for (LinkId up : out_[number_[topology_->link(old->up).from.index()]]) {
        const NodeId node = topology_->link(up).to;
        if (node == last) continue;  // a parallel link
        last = node;
        if (Exchange(*old, node, is_up)) return true;
      }
    }
  }
  return false;
}

std::vector<std::optional<std::vector<LinkId>>> FabricRoutes::Ways(std::span<const Stream> streams) {
  users_.assign(static_cast<size_t>(topology_->num_links()), {});
  ways_.clear();
  for (const Stream& stream : streams) {
    ways_.push_back(Way(stream));
    if (!ways_.back()) continue;
    for (LinkId l : *ways_.back()) users_[l.index()].push_back(ways_.size() - 1);
  }
  const double alone = 1 / static_cast<double>(fastest_);  // the time for which one stream holds a fast link
  for (bool changes = true; changes;) {
    changes = false;
    std::vector<LinkId> busy;
    for (LinkId l : out_.items)
      if (Held(l, 0) > alone) busy.push_back(l);
    std::ranges::stable_sort(busy, std::greater(), [&](LinkId l) { return Held(l, 0); });
    for (LinkId l : busy)
      while (Held(l, 0) > alone && Relieve(l)) changes = true;
  }
  return std::move(ways_);
}

}  // namespace xccl
