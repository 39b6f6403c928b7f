// A node is taken out in rounds. A round proposes how much of its capacity joins each pair of ports: as
// evenly as whole numbers allow, first between ports that nothing faster joins, in rotation, so that equal
// ports stay alike. The cut search then names the cuts that the proposal would overload; the pairs that load
// them share the loss, and the cuts are kept, so that later proposals leave full cuts alone. A round that is
// accepted is never taken back; what is left when no pair can be joined is of no use to anyone.
//
// Joining u -> w -> t takes from exactly the cuts that have u and t on one side and w on the other, one unit
// each, so a cut's loss is the sum of such pairs.
#include "synth/forest/split.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/graph/union_find.h"

namespace xccl::forest {
namespace {

constexpr int32_t kCutsAtOnce = 64;

struct Port {
  int32_t node = 0;
  int32_t in_arc = -1, out_arc = -1;  // from the port into the relay, and back
  int64_t in = 0, out = 0;            // capacity not yet given away in this round
  int64_t weight = 1;                 // members behind it
  int32_t island = 0, place = 0;      // where it stands: the place-th port of its island
  bool member = false;
};

// Amount to be joined from one port to another.
struct Pair {
  int32_t from, to;  // ports
  int64_t amount;
};

// Which pairs may be joined, the best first: those whose shortest way leads over the relay, and of them those
// at the same place of two islands, which makes few and wide capacities, as rails are.
enum class Preference : uint8_t { kSamePlaces, kShortWays, kAny };

class Splitter {
 public:
  Splitter(const Topology& topology, Network& network, int64_t& work)
      : topology_(topology),
        network_(network),
        graph_(network.graph),
        oracle_(network.graph, network.members),
        work_(work),
        member_(static_cast<size_t>(graph_.num_nodes()), false) {
    for (int32_t node : network.members) member_[node] = true;
    MeasureHops();
  }

  Status Run() {
    ContractThin();
    for (int32_t relay : Order()) {
      XCCL_RETURN_IF_ERROR(Remove(relay));
      ContractThin();
    }
    return OkStatus();
  }

 private:
  // Hops in the whole network, before anything was taken out.
  void MeasureHops() {
    const size_t nodes = member_.size();
    hops_.assign(nodes * nodes, graph_.num_nodes());
    std::vector<int32_t> queue;
    for (size_t start = 0; start < nodes; ++start) {
      int32_t* const hops = &hops_[start * nodes];
      hops[start] = 0;
      queue.assign(1, static_cast<int32_t>(start));
      for (size_t i = 0; i < queue.size(); ++i)
        for (const CapacityGraph::Incident& incident : graph_.At(queue[i])) {
          if (!(incident.code & 1) || hops[incident.other] < graph_.num_nodes()) continue;
          hops[incident.other] = hops[queue[i]] + 1;
          queue.push_back(incident.other);
        }
    }
  }
  int32_t Hops(int32_t from, int32_t to) const {
    return hops_[static_cast<size_t>(from) * member_.size() + static_cast<size_t>(to)];
  }

  // Neighbours with capacity to or from the node, sorted.
  std::vector<Port> PortsOf(int32_t node) const {
    std::vector<Port> ports;
    const auto port = [&](int32_t other) -> Port& {
      for (Port& known : ports)
        if (known.node == other) return known;
      ports.push_back({.node = other, .member = member_[other]});
      return ports.back();
    };
    for (const CapacityGraph::Incident& incident : graph_.At(node)) {
      const int32_t arc = incident.code / 2;
      if (graph_.arc(arc).capacity == 0) continue;
      Port& at = port(incident.other);
      if (incident.code & 1) {
        at.out_arc = arc;
        at.out = graph_.arc(arc).capacity;
      } else {
        at.in_arc = arc;
        at.in = graph_.arc(arc).capacity;
      }
    }
    std::sort(ports.begin(), ports.end(), [](const Port& a, const Port& b) { return a.node < b.node; });
    return ports;
  }

  void Clear(int32_t node) {
    for (const CapacityGraph::Incident& incident : graph_.At(node)) {
      graph_.capacity(incident.code / 2) = 0;
      network_.pieces[incident.code / 2].clear();
    }
  }

  // Relays between two neighbours, and dead ends: there is only one way to join.
  void ContractThin() {
    for (bool changed = true; changed;) {
      changed = false;
      for (int32_t node = 0; node < graph_.num_nodes(); ++node) {
        if (member_[node]) continue;
        const std::vector<Port> ports = PortsOf(node);
        if (ports.empty() || ports.size() > 2) continue;
        if (ports.size() == 2) {
          for (int32_t from : {0, 1}) {
            const int64_t amount = std::min(ports[from].in, ports[1 - from].out);
            if (amount > 0) Join(ports[from].in_arc, ports[1 - from].out_arc, amount);
          }
        }
        Clear(node);
        changed = true;
      }
    }
  }

  // Far from the members first, then narrow ones.
  std::vector<int32_t> Order() const {
    std::vector<int32_t> distance(member_.size(), graph_.num_nodes()), queue;
    for (int32_t node : network_.members) {
      distance[node] = 0;
      queue.push_back(node);
    }
    for (size_t i = 0; i < queue.size(); ++i)
      for (const CapacityGraph::Incident& incident : graph_.At(queue[i])) {
        if (graph_.arc(incident.code / 2).capacity == 0) continue;
        if (distance[incident.other] <= distance[queue[i]] + 1) continue;
        distance[incident.other] = distance[queue[i]] + 1;
        queue.push_back(incident.other);
      }
    std::vector<int64_t> widest(member_.size(), 0);
    for (const CapacityGraph::Arc& arc : graph_.arcs()) {
      widest[arc.from] = std::max(widest[arc.from], arc.capacity);
      widest[arc.to] = std::max(widest[arc.to], arc.capacity);
    }
    std::vector<int32_t> order;
    for (int32_t node = 0; node < graph_.num_nodes(); ++node)
      if (!member_[node]) order.push_back(node);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      if (distance[a] != distance[b]) return distance[a] > distance[b];
      return widest[a] < widest[b];
    });
    return order;
  }

  // Islands: joined, without the relay, by more than its widest port. Weights: members behind a port.
  void Describe(int32_t relay, std::vector<Port>& ports) const {
    int64_t widest = 0;
    std::vector<bool> is_port(member_.size(), false);
    for (const Port& port : ports) {
      widest = std::max({widest, port.in, port.out});
      is_port[port.node] = true;
    }
    UnionFind groups(member_.size());
    for (const CapacityGraph::Arc& arc : graph_.arcs())
      if (arc.capacity > widest && arc.from != relay && arc.to != relay) groups.Join(arc.from, arc.to);
    std::vector<int32_t> next_place(member_.size(), 0), island(member_.size(), -1);
    int32_t islands = 0;
    for (Port& port : ports) {
      const int32_t group = groups.Find(port.node);
      if (island[group] < 0) island[group] = islands++;
      port.island = island[group];
      port.place = next_place[group]++;
      if (!port.member) port.weight = std::max<int64_t>(1, MembersBehind(relay, port.node, is_port));
    }
  }

  int64_t MembersBehind(int32_t relay, int32_t port, const std::vector<bool>& is_port) const {
    std::vector<bool> seen(member_.size(), false);
    std::vector<int32_t> queue = {port};
    seen[port] = seen[relay] = true;
    int64_t members = 0;
    for (size_t i = 0; i < queue.size(); ++i)
      for (const CapacityGraph::Incident& incident : graph_.At(queue[i])) {
        const int32_t other = incident.other;
        if (seen[other] || is_port[other] || graph_.arc(incident.code / 2).capacity == 0) continue;
        seen[other] = true;
        if (member_[other]) {
          ++members;
        } else {
          queue.push_back(other);
        }
      }
    return members;
  }

  // Which pairs of ports may be joined: [from × ports + to].
  std::vector<bool> Allowed(int32_t relay, const std::vector<Port>& ports, Preference preference) {
    const size_t n = ports.size();
    std::vector<bool> allowed(n * n, false);
    std::vector<const Cut*> full;
    for (Cut& cut : cuts_) {
      cut.slack = SlackOf(graph_, network_.demands, cut.inside);
      if (cut.slack == 0) full.push_back(&cut);
    }
    work_ -= static_cast<int64_t>(cuts_.size()) * graph_.num_arcs();
    for (size_t u = 0; u < n; ++u) {
      if (ports[u].in == 0) continue;
      for (size_t t = 0; t < n; ++t) {
        if (t == u || ports[t].out == 0) continue;
        if (preference != Preference::kAny &&
            Hops(ports[u].node, ports[t].node) != Hops(ports[u].node, relay) + Hops(relay, ports[t].node))
          continue;
        if (preference == Preference::kSamePlaces &&
            (ports[u].place != ports[t].place || ports[u].island == ports[t].island))
          continue;
        bool good = true;
        for (const Cut* cut : full) good &= !Lowers(cut->inside, ports[u].node, relay, ports[t].node);
        allowed[u * n + t] = good;
      }
    }
    return allowed;
  }

  static bool Lowers(const std::vector<bool>& inside, int32_t from, int32_t relay, int32_t to) {
    return inside[from] == inside[to] && inside[from] != inside[relay];
  }

  // As even as whole numbers allow: multiples of the weights while they fit, then single units in rotation.
  std::vector<Pair> Fill(std::vector<Port>& ports, const std::vector<bool>& allowed) {
    const size_t n = ports.size();
    std::vector<int64_t> amount(n * n, 0), row(n), column(n);
    const auto open = [&](size_t u, size_t t) {
      return allowed[u * n + t] && ports[u].in > 0 && ports[t].out > 0;
    };
    while (true) {
      std::fill(row.begin(), row.end(), 0);
      std::fill(column.begin(), column.end(), 0);
      for (size_t u = 0; u < n; ++u)
        for (size_t t = 0; t < n; ++t) {
          if (!open(u, t)) continue;
          row[u] += ports[u].weight * ports[t].weight;
          column[t] += ports[u].weight * ports[t].weight;
        }
      work_ -= static_cast<int64_t>(n * n);
      int64_t times = INT64_MAX;
      for (size_t p = 0; p < n; ++p) {
        if (row[p] > 0) times = std::min(times, ports[p].in / row[p]);
        if (column[p] > 0) times = std::min(times, ports[p].out / column[p]);
      }
      if (times == INT64_MAX) break;
      const auto give = [&](size_t u, size_t t, int64_t units) {
        amount[u * n + t] += units;
        ports[u].in -= units;
        ports[t].out -= units;
      };
      if (times > 0) {
        // Which pairs are open must not change on the way.
        std::vector<std::pair<size_t, size_t>> pairs;
        for (size_t u = 0; u < n; ++u)
          for (size_t t = 0; t < n; ++t)
            if (open(u, t)) pairs.emplace_back(u, t);
        for (const auto& [u, t] : pairs) give(u, t, times * ports[u].weight * ports[t].weight);
        continue;
      }
      Rotate(ports, [&](size_t u, size_t t) {
        if (!open(u, t)) return;
        if (ports[u].in < row[u] || ports[t].out < column[t]) give(u, t, 1);
      });
    }
    std::vector<Pair> pairs;
    for (size_t u = 0; u < n; ++u)
      for (size_t t = 0; t < n; ++t)
        if (amount[u * n + t] > 0)
          pairs.push_back({static_cast<int32_t>(u), static_cast<int32_t>(t), amount[u * n + t]});
    return pairs;
  }

  // Calls visit(from, to) for all pairs in an order in which equal islands of equal ports meet in
  // permutations: same places first.
  template <typename Visit>
  void Rotate(const std::vector<Port>& ports, Visit visit) const {
    std::vector<std::vector<size_t>> islands;
    for (size_t p = 0; p < ports.size(); ++p) {
      if (ports[p].island >= static_cast<int32_t>(islands.size())) islands.resize(islands.size() + 1);
      islands[ports[p].island].push_back(p);
    }
    size_t most = 0;
    for (const std::vector<size_t>& island : islands) most = std::max(most, island.size());
    for (size_t by_place = 0; by_place < most; ++by_place)
      for (size_t by_island = 0; by_island < islands.size(); ++by_island)
        for (size_t u = 0; u < ports.size(); ++u) {
          const std::vector<size_t>& other =
              islands[(static_cast<size_t>(ports[u].island) + by_island) % islands.size()];
          const size_t place = (static_cast<size_t>(ports[u].place) + by_place) % most;
          if (place < other.size() && other[place] != u) visit(u, other[place]);
        }
  }

  void Apply(const std::vector<Port>& ports, const Pair& pair, int64_t amount) {
    graph_.capacity(ports[pair.from].in_arc) -= amount;
    graph_.capacity(ports[pair.to].out_arc) -= amount;
    graph_.capacity(graph_.ArcOf(ports[pair.from].node, ports[pair.to].node)) += amount;
    network_.pieces.resize(static_cast<size_t>(graph_.num_arcs()));
  }

  // One round. False: nothing can be joined, and no cut was learnt.
  StatusOr<bool> Round(int32_t relay, Preference preference) {
    std::vector<Port> ports = PortsOf(relay);
    Describe(relay, ports);
    std::vector<Pair> pairs = Fill(ports, Allowed(relay, ports, preference));
    if (pairs.empty()) return false;
    for (const Pair& pair : pairs) Apply(ports, pair, pair.amount);
    const size_t known = cuts_.size();
    while (true) {
      const int64_t before = oracle_.work();
      const std::vector<Cut> violated = oracle_.FindViolated(network_.demands, kCutsAtOnce);
      work_ -= oracle_.work() - before;
      if (violated.empty()) break;
      if (work_ < 0)
        return LimitReached("forest: the limit of work was reached while switches were taken out");
      for (const Cut& cut : violated) {
        Trim(relay, ports, cut, pairs);
        cuts_.push_back(cut);
      }
    }
    int64_t joined = static_cast<int64_t>(cuts_.size() - known);
    for (const Pair& pair : pairs) {
      joined += pair.amount;
      if (pair.amount > 0) MovePieces(ports[pair.from].in_arc, ports[pair.to].out_arc, pair.amount);
    }
    return joined > 0;
  }

  // The pairs that load the cut share what it lacks.
  void Trim(int32_t relay, const std::vector<Port>& ports, const Cut& cut, std::vector<Pair>& pairs) {
    int64_t lacking = -SlackOf(graph_, network_.demands, cut.inside);  // less, if others were trimmed before
    int64_t loading = 0;
    for (const Pair& pair : pairs)
      if (Lowers(cut.inside, ports[pair.from].node, relay, ports[pair.to].node)) loading += pair.amount;
    if (lacking <= 0) return;
    XCCL_CHECK(loading >= lacking);
    const int64_t all = loading, lost = lacking;
    for (Pair& pair : pairs) {
      if (lacking == 0) break;
      if (!Lowers(cut.inside, ports[pair.from].node, relay, ports[pair.to].node) || pair.amount == 0)
        continue;
      const __int128 share = (static_cast<__int128>(pair.amount) * lost + all - 1) / all;
      const int64_t less = std::min({lacking, pair.amount, static_cast<int64_t>(share)});
      Apply(ports, pair, -less);
      pair.amount -= less;
      lacking -= less;
    }
  }

  void Join(int32_t in_arc, int32_t out_arc, int64_t amount) {
    graph_.capacity(in_arc) -= amount;
    graph_.capacity(out_arc) -= amount;
    graph_.capacity(graph_.ArcOf(graph_.arc(in_arc).from, graph_.arc(out_arc).to)) += amount;
    network_.pieces.resize(static_cast<size_t>(graph_.num_arcs()));
    MovePieces(in_arc, out_arc, amount);
  }

  // Joins the links behind `amount` of two capacities, whole pieces where they fit each other.
  void MovePieces(int32_t in_arc, int32_t out_arc, int64_t amount) {
    const int32_t arc = graph_.ArcOf(graph_.arc(in_arc).from, graph_.arc(out_arc).to);
    std::vector<Piece>&in = network_.pieces[in_arc], &out = network_.pieces[out_arc];
    while (amount > 0) {
      XCCL_CHECK(!in.empty() && !out.empty());
      const int64_t part = std::min({amount, in.back().amount, out.back().amount});
      const int32_t path = network_.paths.Join(in.back().path, out.back().path);
      network_.pieces[arc].push_back({path, part});
      amount -= part;
      for (std::vector<Piece>* pieces : {&in, &out}) {
        pieces->back().amount -= part;
        if (pieces->back().amount == 0) pieces->pop_back();
      }
    }
  }

  Status Remove(int32_t relay) {
    for (Preference preference : {Preference::kSamePlaces, Preference::kShortWays, Preference::kAny}) {
      while (true) {
        XCCL_ASSIGN_OR_RETURN(const bool joined, Round(relay, preference));
        if (!joined) break;
        if (work_ < 0)
          return LimitReached("forest: the limit of work was reached while switches were taken out");
      }
    }
    Clear(relay);
    if (oracle_.FindViolated(network_.demands, 1).empty()) return OkStatus();
    int64_t in = 0, out = 0;
    const NodeId node(relay);
    for (LinkId link : topology_.In(node)) in += topology_.link(link).bandwidth_bytes_per_s;
    for (LinkId link : topology_.Out(node)) out += topology_.link(link).bandwidth_bytes_per_s;
    return InvalidInput(
        fmt::format("forest: {} cannot be taken out of the machine at the best rate: {} GB/s enter it and {} "
                    "GB/s leave it; "
                    "expected as much as enters to leave, here and at all GPUs",
                    topology_.NodeName(node), static_cast<double>(in) / 1e9, static_cast<double>(out) / 1e9));
  }

  const Topology& topology_;
  Network& network_;
  CapacityGraph& graph_;
  CutOracle oracle_;
  int64_t& work_;
  std::vector<bool> member_;
  std::vector<int32_t> hops_;  // [from × nodes + to]
  std::vector<Cut> cuts_;      // that were violated once: the first to look at
};

}  // namespace

Status RemoveRelays(const Topology& topology, Network& network, int64_t& work) {
  network.pieces.resize(static_cast<size_t>(network.graph.num_arcs()));
  return Splitter(topology, network, work).Run();
}

}  // namespace xccl::forest
