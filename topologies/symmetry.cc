// Permutations are kept as cycles, so a power is one addition. Orbits are the sets that the cycles of all
// generators join. Links are matched by sorting both sides by (ends, numbers, id). Linear in
// generators × (nodes + links), except for that sort.
#include "topologies/symmetry.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/graph/union_find.h"

namespace xccl {
namespace {

// Sets the node that each is the image of. Errors: `image` is no permutation of like nodes.
Status Invert(const Topology& topology, std::span<const NodeId> image, std::vector<NodeId>& before) {
  const size_t nodes = static_cast<size_t>(topology.num_nodes());
  if (image.size() != nodes)
    return InvalidInput(fmt::format("{} images; {} has {} nodes", image.size(), topology.name(), nodes));
  constexpr NodeId kNone(-1);
  before.assign(nodes, kNone);
  for (size_t n = 0; n < nodes; ++n) {
    const NodeId to = image[n], from(static_cast<int64_t>(n));
    if (to.value < 0 || to.index() >= nodes)
      return InvalidInput(fmt::format("takes node {} to {}; nodes are 0..{}", n, to.value, nodes - 1));
    if (before[to.index()] != kNone)
      return InvalidInput(fmt::format("takes two nodes to {}", topology.NodeName(to)));
    before[to.index()] = from;
    const Node &a = topology.node(from), &b = topology.node(to);
    if (a.kind != b.kind || a.multicast != b.multicast || a.reduce != b.reduce)
      return InvalidInput(
          fmt::format("takes {} to {}, which differs", topology.NodeName(from), topology.NodeName(to)));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<LinkId>> LinkImages(const Topology& topology, std::span<const NodeId> image) {
  std::vector<NodeId> before;
  XCCL_RETURN_IF_ERROR(Invert(topology, image, before));
  const auto numbers = [&](LinkId l) {
    const Link& link = topology.link(l);
    return std::tuple(link.bandwidth_bytes_per_s, link.latency_ps, link.overhead_ps);
  };
  const auto to = [&](LinkId l) { return topology.link(l).to; };
  const auto to_image = [&](LinkId l) { return image[to(l).index()]; };
  // A node's outgoing links in the order of (head, numbers, id). `head` gives a link's head or the image of
  // its head. In an automorphism, the links of a node by the images of their heads correspond, one by one, to
  // the links of the node's image by their heads.
  const auto sorted_by = [&](NodeId tail, const auto& head) {
    std::vector<LinkId> order(topology.Out(tail).begin(), topology.Out(tail).end());
    std::ranges::sort(order, {}, [&](LinkId l) { return std::tuple(head(l), numbers(l), l); });
    return order;
  };
  std::vector<LinkId> images(static_cast<size_t>(topology.num_links()));
  for (size_t n = 0; n < image.size(); ++n) {
    const NodeId tail(static_cast<int64_t>(n));
    const std::vector<LinkId> target = sorted_by(tail, to), source = sorted_by(before[n], to_image);
    for (size_t i = 0; i < source.size(); ++i) {
      const LinkId s = source[i];
      if (i >= target.size() || to_image(s) != to(target[i]) || numbers(s) != numbers(target[i]))
        return InvalidInput(fmt::format("takes link {} to {} -> {}, which have no such link",
                                        topology.LinkName(s), topology.NodeName(tail),
                                        topology.NodeName(to_image(s))));
      images[s.index()] = target[i];
    }
  }
  return images;
}

SymmetryGroup::SymmetryGroup(const Topology& topology) {
  for (int32_t r = 0; r < topology.num_ranks(); ++r) node_of_rank_.push_back(topology.NodeOf(Rank(r)).value);
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    rank_of_node_.push_back(topology.RankOf(NodeId(n)).value_or(Rank(0)).value);
  num_links_ = static_cast<size_t>(topology.num_links());
  XCCL_CHECK(FindOrbits().ok());
}

StatusOr<SymmetryGroup> SymmetryGroup::Create(const Topology& topology,
                                              std::vector<Automorphism> generators) {
  SymmetryGroup group(topology);
  for (size_t g = 0; g < generators.size(); ++g) {
    const Status added = group.AddGenerator(topology, std::move(generators[g]));
    if (!added.ok()) return Annotate(added, fmt::format("generator {}", g));
  }
  XCCL_RETURN_IF_ERROR(group.FindOrbits());
  return group;
}

StatusOr<SymmetryGroup> SymmetryGroup::With(const Topology& topology, Automorphism generator) const {
  SymmetryGroup group = *this;
  XCCL_RETURN_IF_ERROR(group.AddGenerator(topology, std::move(generator)));
  XCCL_RETURN_IF_ERROR(group.FindOrbits());
  return group;
}

SymmetryGroup::Cycles SymmetryGroup::CyclesOf(std::span<const int32_t> image) {
  Cycles cycles;
  cycles.place.resize(image.size());
  cycles.cycle.reserve(image.size());
  std::vector<bool> seen(image.size(), false);
  for (size_t x = 0; x < image.size(); ++x) {
    if (seen[x]) continue;
    const int32_t first = static_cast<int32_t>(cycles.cycle.size());
    for (size_t y = x; !seen[y]; y = static_cast<size_t>(image[y])) {
      seen[y] = true;
      cycles.place[y] = {first, static_cast<int32_t>(cycles.cycle.size()) - first, 0};
      cycles.cycle.push_back(static_cast<int32_t>(y));
    }
    const int32_t length = static_cast<int32_t>(cycles.cycle.size()) - first;
    for (int32_t i = 0; i < length; ++i) cycles.place[cycles.cycle[first + i]].length = length;
  }
  return cycles;
}

int32_t SymmetryGroup::Apply(int64_t e, const std::vector<Cycles>& generators, int32_t x) const {
  for (size_t g = 0; g < generators.size() && e != 0; ++g) {
    const int64_t order = generators_[g].order;
    const int64_t power = e % order;
    e /= order;
    if (power == 0) continue;
    const Cycles::Place& place = generators[g].place[x];
    x = generators[g].cycle[place.first + (place.offset + power) % place.length];
  }
  return x;
}

Status SymmetryGroup::AddGenerator(const Topology& topology, Automorphism generator) {
  StatusOr<std::vector<LinkId>> links = LinkImages(topology, generator.image);
  if (!links.ok()) return links.status();
  std::vector<int32_t> nodes;
  for (NodeId n : generator.image) nodes.push_back(n.value);
  Cycles cycles = CyclesOf(nodes);
  int64_t order = 1;
  for (const Cycles::Place& place : cycles.place)
    order = std::min<int64_t>(std::lcm(order, int64_t{place.length}), std::numeric_limits<int32_t>::max());
  if (order != generator.order || order < 2)
    return InvalidInput(fmt::format("order {}; its images have order {}", generator.order, order));
  for (size_t g = 0; g < generators_.size(); ++g)
    for (size_t n = 0; n < nodes.size(); ++n)
      if (generators_[g].image[nodes[n]] != generator.image[generators_[g].image[n].index()])
        return InvalidInput(fmt::format("does not commute with generator {} at {}", g,
                                        topology.NodeName(NodeId(static_cast<int64_t>(n)))));
  if (order_ > topology.num_ranks() / order)
    return InvalidInput(fmt::format("makes a group of order {}; {} ranks can be moved by no more",
                                    order_ * order, topology.num_ranks()));
  order_ *= order;
  std::vector<int32_t> images;
  for (LinkId l : *links) images.push_back(l.value);
  on_nodes_.push_back(std::move(cycles));
  on_links_.push_back(CyclesOf(images));
  generators_.push_back(std::move(generator));
  return OkStatus();
}

// The group is abelian, so an element that keeps one rank of an orbit keeps all of it. Hence the group is
// free if every orbit has as many ranks as the group has elements.
Status SymmetryGroup::FindOrbits() {
  // Numbers the orbits by lowest item.
  const auto find = [](const std::vector<Cycles>& generators, size_t items, std::vector<int64_t>& sizes) {
    UnionFind sets(items);
    for (const Cycles& cycles : generators)
      for (size_t x = 0; x < items; ++x)
        sets.Join(static_cast<int32_t>(x), cycles.cycle[cycles.place[x].first]);
    std::vector<int32_t> orbit(items), number(items, -1);
    sizes.clear();
    for (size_t x = 0; x < items; ++x) {
      int32_t& known = number[sets.Find(static_cast<int32_t>(x))];
      if (known < 0) {
        known = static_cast<int32_t>(sizes.size());
        sizes.push_back(0);
      }
      orbit[x] = known;
      ++sizes[known];
    }
    return orbit;
  };
  node_orbit_ = find(on_nodes_, rank_of_node_.size(), node_orbit_size_);
  link_orbit_ = find(on_links_, num_links_, link_orbit_size_);
  link_representatives_.resize(link_orbit_size_.size());
  for (size_t l = num_links_; l-- > 0;)
    link_representatives_[link_orbit_[l]] = LinkId(static_cast<int64_t>(l));
  for (size_t r = 0; r < node_of_rank_.size(); ++r)
    if (const int64_t size = node_orbit_size_[node_orbit_[node_of_rank_[r]]]; size != order_)
      return InvalidInput(
          fmt::format("rank {} is taken to {} ranks by {} elements; expected as many", r, size, order_));
  representatives_.clear();
  rank_orbit_.assign(node_of_rank_.size(), -1);
  element_of_rank_.assign(node_of_rank_.size(), 0);
  for (size_t r = 0; r < node_of_rank_.size(); ++r) {
    if (rank_orbit_[r] >= 0) continue;
    const Rank first(static_cast<int64_t>(r));
    for (int64_t e = 0; e < order_; ++e) {
      const size_t image = Image(e, first).index();
      rank_orbit_[image] = num_rank_orbits();
      element_of_rank_[image] = e;
    }
    representatives_.push_back(first);
  }
  return OkStatus();
}

int64_t SymmetryGroup::Compose(int64_t e, int64_t f) const {
  int64_t result = 0, unit = 1;
  for (const Automorphism& generator : generators_) {
    result += unit * ((e % generator.order + f % generator.order) % generator.order);
    e /= generator.order;
    f /= generator.order;
    unit *= generator.order;
  }
  return result;
}

int64_t SymmetryGroup::Inverse(int64_t e) const {
  int64_t result = 0, unit = 1;
  for (const Automorphism& generator : generators_) {
    result += unit * ((generator.order - e % generator.order) % generator.order);
    e /= generator.order;
    unit *= generator.order;
  }
  return result;
}

}  // namespace xccl
