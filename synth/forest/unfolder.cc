// 1. Enter grows a tree inside a host, from the GPU at which the data arrives.
// 2. Cross finds the cheapest way for an arc, place by place: LeaveTo starts at all cables to the first
//    switches, GoOnTo follows all links to the switches of the next place, and the last step ends at the
//    cables of the host that receives.
// 3. Add puts the arc's share on its links. Later arcs and trees see the higher prices.
#include "synth/forest/unfolder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace xccl::forest {
namespace {

// The price of a link is about 1 / kPower of what a tree's use adds to this power of the link's load, plus a
// price for latency. A high power keeps the load of the fullest link low; with a low power, short paths count
// as well. Loads and prices are in units of LinkLoads::aim_s_per_byte.
constexpr int32_t kPower = 4;

}  // namespace

Unfolder::Unfolder(const Topology& machine, const FoldedHosts& folded, LinkLoads& loads)
    : machine_(machine),
      folded_(folded),
      loads_(loads),
      out_(static_cast<size_t>(folded.topology.num_ranks())),
      in_(out_.size()),
      label_(static_cast<size_t>(machine.num_nodes())) {
  for (int32_t l = 0; l < machine.num_links(); ++l) {
    const Link& link = machine.link(LinkId(l));
    const NodeId from = folded.place[link.from.index()], to = folded.place[link.to.index()];
    if (from == to) continue;
    const auto add = [&](std::vector<std::vector<Port>>& ports, NodeId place, NodeId node, NodeId outside,
                         Way way) {
      if (!folded.topology.IsGpu(place)) return;
      NearGpus near = NearestGpus(machine, folded.place, node, way);
      if (!near.gpus.empty()) ports[place.index()].push_back({LinkId(l), outside, std::move(near.gpus)});
    };
    add(out_, from, link.from, link.to, Way::kOut);
    add(in_, to, link.to, link.from, Way::kIn);
  }
  for (int32_t h = 0; h < folded.topology.num_ranks(); ++h) AddInside(Rank(h));
}

void Unfolder::AddInside(Rank host) {
  const NodeId place = folded_.topology.NodeOf(host);
  TopologySpec spec;
  spec.name = "host";
  spec.hosts.push_back({"h"});
  std::vector<Rank> rank;
  std::vector<LinkId> link;
  std::vector<std::optional<NodeId>> here(static_cast<size_t>(machine_.num_nodes()));
  for (int32_t n = 0; n < machine_.num_nodes(); ++n) {
    if (folded_.place[static_cast<size_t>(n)] != place) continue;
    here[static_cast<size_t>(n)] = NodeId(static_cast<int64_t>(spec.nodes.size()));
    spec.nodes.push_back(machine_.node(NodeId(n)));
    spec.nodes.back().host = HostId(0);
    if (const std::optional<Rank> r = machine_.RankOf(NodeId(n))) rank.push_back(*r);
  }
  for (int32_t n = 0; n < machine_.num_nodes(); ++n) {
    if (!here[static_cast<size_t>(n)]) continue;
    for (const LinkId l : machine_.Out(NodeId(n))) {
      const Link& whole = machine_.link(l);
      if (!here[whole.to.index()]) continue;
      spec.links.push_back(whole);
      spec.links.back().from = *here[whole.from.index()];
      spec.links.back().to = *here[whole.to.index()];
      link.push_back(l);
    }
  }
  StatusOr<Topology> topology = Topology::Create(std::move(spec));
  XCCL_CHECK(topology.ok());  // part of a valid machine
  Inside& inside = inside_.emplace_back(Inside{*std::move(topology), std::move(link), std::move(rank), {}});
  inside.members = AllRanks(inside.topology.num_ranks());
  inside.grower.emplace(inside.topology, inside.members, Branching::kNone);
}

double Unfolder::PriceOf(LinkId l) const {
  const Link& link = machine_.link(l);
  const double aim = loads_.aim_s_per_byte;
  const double more = share_ / static_cast<double>(link.bandwidth_bytes_per_s);
  const double load = (loads_.s_per_byte[l.index()] + more) / aim;
  return more / aim * std::pow(load, kPower - 1) + static_cast<double>(link.latency_ps + link.overhead_ps) *
                                                       loads_.latency_s_per_byte_ps * share_ / aim;
}

double Unfolder::PriceOf(std::span<const LinkId> path) const {
  double price = 0;
  for (const LinkId l : path) price += PriceOf(l);
  return price;
}

void Unfolder::Add(Rank from, Rank to, std::vector<LinkId> links) {
  for (const LinkId l : links)
    loads_.s_per_byte[l.index()] += share_ / static_cast<double>(machine_.link(l).bandwidth_bytes_per_s);
  depth_[to.index()] = depth_[from.index()] + 1;
  made_.push_back({from, to, depth_[to.index()], std::move(links)});
}

// Grows a tree from `gpu` to all GPUs of its host. Returns whether it reaches all of them.
bool Unfolder::Enter(Rank gpu, int32_t depth) {
  Inside& inside = inside_[folded_.host_of_rank[gpu.index()].index()];
  depth_[gpu.index()] = depth;
  if (inside.rank.size() == 1) return true;
  std::vector<double> prices;
  for (const LinkId l : inside.link) prices.push_back(PriceOf(l));
  std::vector<LinkId> links;
  const auto root = std::ranges::find(inside.rank, gpu) - inside.rank.begin();
  const GrownTree tree = inside.grower->Grow(Rank(root), prices, 0, links);
  for (const PackedArc& arc : tree.arcs) {
    std::vector<LinkId> whole;
    for (int32_t k = 0; k < arc.num_links; ++k)
      whole.push_back(inside.link[links[static_cast<size_t>(arc.first_link + k)].index()]);
    Add(inside.rank[arc.from.index()], inside.rank[arc.to.index()], std::move(whole));
  }
  return tree.arcs.size() + 1 == inside.rank.size();
}

// Sets the label of a node unless the present search has set a cheaper label there.
void Unfolder::Offer(NodeId node, const Label& label) {
  Label& known = label_[node.index()];
  if (known.round == round_ && known.price <= label.price) return;
  if (known.round != round_) reached_.push_back(node);
  known = label;
  known.round = round_;
}

// Starts a search at all cables of the host that lead to `place`.
void Unfolder::LeaveTo(Rank host, NodeId place) {
  ++round_;
  reached_.clear();
  for (const Port& port : out_[host.index()]) {
    if (folded_.place[port.outside.index()] != place) continue;
    const double cable = PriceOf(port.cable);
    for (size_t g = 0; g < port.gpus.size(); ++g) {
      const int32_t depth = depth_[machine_.RankOf(port.gpus[g].gpu)->index()];
      // A GPU that is deeper in the tree has the data later, by about the cable's latency for each arc.
      const double later = depth * machine_.link(port.cable).latency_ps * loads_.latency_s_per_byte_ps *
                           share_ / loads_.aim_s_per_byte;
      Offer(
          port.outside,
          {.price = cable + PriceOf(port.gpus[g].path) + later, .via = port.cable, .port = &port, .gpu = g});
    }
  }
}

// Follows all links from the nodes that the search has reached to nodes of `place`.
void Unfolder::GoOnTo(NodeId place) {
  const std::vector<NodeId> from = std::exchange(reached_, {});
  for (const NodeId node : from) {
    Label label = label_[node.index()];
    const double price = label.price;
    for (const LinkId l : machine_.Out(node)) {
      const NodeId to = machine_.link(l).to;
      if (folded_.place[to.index()] != place) continue;
      label.price = price + PriceOf(l);
      label.via = l;
      Offer(to, label);
    }
  }
}

// Adds the arc over its cheapest path, and then the tree inside the host that it enters. Returns false if
// either fails. An arc of two nodes, its hosts, crosses one cable, which is a port of both hosts.
bool Unfolder::Cross(const HostArc& arc) {
  const Rank from = *folded_.topology.RankOf(arc.front()), to = *folded_.topology.RankOf(arc.back());
  LeaveTo(from, arc[1]);
  for (size_t i = 2; i + 1 < arc.size(); ++i) GoOnTo(arc[i]);
  const Port* best = nullptr;
  const NearGpu* arrival = nullptr;
  double best_price = 0;
  for (const Port& port : in_[to.index()]) {
    const NodeId before = arc.size() == 2 ? machine_.link(port.cable).to : port.outside;
    const Label& label = label_[before.index()];
    if (label.round != round_ || (arc.size() == 2 && label.via != port.cable)) continue;
    const double cable = arc.size() == 2 ? 0 : PriceOf(port.cable);
    for (const NearGpu& near : port.gpus) {
      const double price = label.price + cable + PriceOf(near.path);
      if (best != nullptr && price >= best_price) continue;
      best = &port;
      arrival = &near;
      best_price = price;
    }
  }
  if (best == nullptr) return false;
  std::vector<LinkId> links = arrival->path;
  std::reverse(links.begin(), links.end());
  if (arc.size() > 2) links.push_back(best->cable);
  NodeId at = arc.size() == 2 ? machine_.link(best->cable).to : best->outside;
  const Label last = label_[at.index()];
  const NearGpu& departure = last.port->gpus[last.gpu];
  while (true) {
    const LinkId via = label_[at.index()].via;
    links.push_back(via);
    at = machine_.link(via).from;
    if (via == last.port->cable) break;
  }
  for (size_t i = departure.path.size(); i-- > 0;) links.push_back(departure.path[i]);
  std::reverse(links.begin(), links.end());
  const Rank source = *machine_.RankOf(departure.gpu), destination = *machine_.RankOf(arrival->gpu);
  Add(source, destination, std::move(links));
  return Enter(destination, depth_[destination.index()]);
}

std::optional<std::vector<UnfoldedArc>> Unfolder::Unfold(Rank root, std::span<const HostArc> arcs,
                                                         double share) {
  share_ = share;
  depth_.assign(static_cast<size_t>(machine_.num_ranks()), -1);
  made_.clear();
  if (!Enter(root, 0)) return std::nullopt;
  for (const HostArc& arc : arcs)
    if (!Cross(arc)) return std::nullopt;
  if (static_cast<int32_t>(made_.size()) + 1 != machine_.num_ranks()) return std::nullopt;
  return std::move(made_);
}

}  // namespace xccl::forest
