// Routes one chunk after the other on the cheapest paths.
// 1. The price of a link is its latency plus the chunk's time on it × a factor (SetPrices). The factor grows
//    with the cube of (the link's load ÷ the heaviest load of the previous pass, in the first pass so far).
// 2. A chunk with one needer takes the cheapest path. One search from its holders serves a share of the
//    chunks that they hold (RouteSingles).
// 3. A chunk with several needers grows a tree (Takahashi and Matsuyama 1980): the nearest needer joins first
//    (Grow). Paths may then start at any rank of the tree, at depth_weight × its distance from the root.
// 4. A second pass routes all chunks again, at prices that include the loads of all chunks.
// Cost: searches × links × log.
#include "synth/greedy/trees.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <map>
#include <queue>

#include "base/random.h"
#include "base/units.h"
#include "synth/greedy/greedy_move.h"

namespace xccl::greedy {
namespace {

// Chunks with one needer and equal holders are routed in this many shares. A later share avoids the load of
// earlier shares.
constexpr int32_t kShares = 8;
// The most loaded link costs (1 + this value) × its time. A detour of up to this many hops is cheaper.
constexpr double kLoadedPrice = 8.0;

class TreeBuilder {
 public:
  TreeBuilder(const CopyProblem& problem, double depth_weight, uint64_t seed)
      : problem_(problem),
        topology_(*problem.topology),
        depth_weight_(depth_weight),
        random_(seed),
        costs_(LinkCosts(topology_, problem.model)),
        load_(costs_.size(), 0),
        price_(costs_.size(), 0),
        nodes_(static_cast<size_t>(topology_.num_nodes())) {
    routes_.paths = LinkPaths(topology_);
    for (int32_t c = 0; c < problem.chunks; ++c) {
      if (problem.needers[c].empty()) continue;
      if (problem.needers[c].size() == 1) {
        singles_[problem.holders[c]].push_back(c);
      } else {
        multiples_.push_back(c);
      }
    }
    chosen_.resize(static_cast<size_t>(problem.chunks));
  }

  Routes Build() {
    random_.Shuffle(std::span(multiples_));
    for (auto& [holders, chunks] : singles_) random_.Shuffle(std::span(chunks));
    RouteAll();
    RouteAll();  // again, at prices that include the loads of all chunks
    Emit();
    return std::move(routes_);
  }

 private:
  void RouteAll() {
    heaviest_ = *std::max_element(load_.begin(), load_.end());
    RouteSingles();
    for (int32_t chunk : multiples_) {
      Release(chunk);
      SetPrices(problem_.bytes[chunk]);
      Grow(chunk);
      Commit(chunk);
    }
  }

  struct NodeState {
    double distance = 0;
    double depth = 0;  // for nodes of the tree: distance from the root along the tree
    int32_t via = -1;  // the link over which the search reached the node
    int32_t search = 0;
    int32_t tree = 0;  // number of the search in which the node joined the tree
  };
  struct Label {
    double distance;
    int32_t node;
    auto operator<=>(const Label&) const = default;
  };

  double Busy(int32_t link, int64_t bytes) const {
    return static_cast<double>(BusyPs(costs_[link], bytes)) + 1;
  }

  void SetPrices(int64_t bytes) {
    double heaviest = heaviest_;
    if (heaviest <= 0) heaviest = *std::max_element(load_.begin(), load_.end());
    for (int32_t l = 0; l < topology_.num_links(); ++l) {
      const double busy = Busy(l, bytes);
      const double full = heaviest > 0 ? (load_[l] + busy) / (heaviest + busy) : 0;
      const double factor = 1 + kLoadedPrice * full * full * full;
      price_[l] = (static_cast<double>(costs_[l].delay_ps) + busy * factor) * (1 + 1e-4 * random_.Unit());
    }
    routes_.work += topology_.num_links();
  }

  void Reach(int32_t node, double distance, int32_t via) {
    NodeState& state = nodes_[node];
    if (state.search == search_ && state.distance <= distance) return;
    state.distance = distance;
    state.via = via;
    state.search = search_;
    heap_.push({distance, node});
  }

  void Start(const std::vector<int32_t>& holders) {
    ++search_;
    heap_ = {};
    for (int32_t rank : holders) {
      const int32_t node = topology_.NodeOf(Rank(rank)).value;
      Reach(node, 0, -1);
      nodes_[node].tree = search_;
      nodes_[node].depth = 0;
    }
  }

  // Takes the nearest node from the heap, reaches its neighbours, and returns the node. Returns nullopt if no
  // further node can be reached.
  std::optional<int32_t> Settle() {
    while (!heap_.empty()) {
      const Label label = heap_.top();
      heap_.pop();
      if (label.distance > nodes_[label.node].distance) continue;
      for (LinkId l : topology_.Out(NodeId(label.node)))
        Reach(topology_.link(l).to.value, label.distance + price_[l.index()], l.value);
      routes_.work += static_cast<int64_t>(topology_.Out(NodeId(label.node)).size()) + 4;
      return label.node;
    }
    return std::nullopt;
  }

  // Returns the links of the path from the tree, or from a holder, to the node, in order.
  std::vector<int32_t> PathTo(int32_t node) const {
    std::vector<int32_t> links;
    while (nodes_[node].tree != search_) {
      links.push_back(nodes_[node].via);
      node = topology_.link(LinkId(nodes_[node].via)).from.value;
    }
    std::reverse(links.begin(), links.end());
    return links;
  }

  void RouteSingles() {
    for (int32_t share = 0; share < kShares; ++share) {
      for (const auto& [holders, chunks] : singles_) {
        const size_t from = chunks.size() * share / kShares, to = chunks.size() * (share + 1) / kShares;
        if (from == to) continue;
        for (size_t i = from; i < to; ++i) Release(chunks[i]);
        SetPrices(problem_.bytes[chunks[from]]);
        Start(holders);
        while (Settle()) continue;
        for (size_t i = from; i < to; ++i) {
          const int32_t node = topology_.NodeOf(Rank(problem_.needers[chunks[i]][0])).value;
          if (nodes_[node].search != search_) {
            routes_.complete = false;
            continue;
          }
          chosen_[chunks[i]] = PathTo(node);
          Commit(chunks[i]);
        }
      }
    }
  }

  void Grow(int32_t chunk) {
    Start(problem_.holders[chunk]);
    std::vector<int32_t>& links = chosen_[chunk];
    needed_.assign(static_cast<size_t>(topology_.num_nodes()), 0);
    size_t left = problem_.needers[chunk].size();
    for (int32_t rank : problem_.needers[chunk]) needed_[topology_.NodeOf(Rank(rank)).index()] = 1;
    while (left > 0) {
      const std::optional<int32_t> node = Settle();
      if (!node) {
        routes_.complete = false;
        return;
      }
      if (!needed_[*node] || nodes_[*node].tree == search_) continue;
      // Every rank on the path joins the tree. Switches do not join, because they hold no data.
      const std::vector<int32_t> path = PathTo(*node);
      double depth = nodes_[topology_.link(LinkId(path.front())).from.index()].depth;
      for (int32_t l : path) {
        links.push_back(l);
        depth += price_[l];
        const NodeId head = topology_.link(LinkId(l)).to;
        if (!topology_.IsGpu(head)) continue;
        NodeState& state = nodes_[head.index()];
        if (needed_[head.index()] && state.tree != search_) --left;
        state.tree = search_;
        state.depth = depth;
        state.search = search_ - 1;  // forget the old distance, so that Reach sets the new one
        const int32_t via = state.via;
        Reach(head.value, depth * depth_weight_, via);
      }
    }
  }

  void Commit(int32_t chunk) {
    for (int32_t l : chosen_[chunk]) load_[l] += Busy(l, problem_.bytes[chunk]);
  }
  void Release(int32_t chunk) {
    for (int32_t l : chosen_[chunk]) load_[l] -= Busy(l, problem_.bytes[chunk]);
    chosen_[chunk].clear();
  }

  // Lists the transfers of each chunk in the order of its links. A transfer then stands after the transfer
  // that brings its chunk to the source.
  void Emit() {
    std::vector<int32_t> brought(static_cast<size_t>(topology_.num_nodes()), -1);
    std::vector<LinkId> path;
    for (int32_t c = 0; c < problem_.chunks; ++c) {
      std::vector<int32_t> reached;
      int32_t source = -1;
      for (int32_t l : chosen_[c]) {
        const Link& link = topology_.link(LinkId(l));
        if (path.empty()) source = link.from.value;
        path.push_back(LinkId(l));
        if (!topology_.IsGpu(link.to)) continue;
        brought[link.to.index()] = static_cast<int32_t>(routes_.transfers.size());
        reached.push_back(link.to.value);
        routes_.transfers.push_back({c, routes_.paths.Intern(path).value, brought[source]});
        path.clear();
      }
      for (int32_t node : reached) brought[node] = -1;
    }
  }

  const CopyProblem& problem_;
  const Topology& topology_;
  const double depth_weight_;
  Random random_;
  std::vector<LinkCost> costs_;
  std::vector<double> load_, price_;
  std::vector<NodeState> nodes_;
  std::vector<char> needed_;
  std::priority_queue<Label, std::vector<Label>, std::greater<>> heap_;
  int32_t search_ = 0;
  double heaviest_ = 0;
  std::map<std::vector<int32_t>, std::vector<int32_t>> singles_;  // chunks with one needer, by their holders
  std::vector<int32_t> multiples_;
  std::vector<std::vector<int32_t>> chosen_;  // by chunk: the links of the chunk's tree
  Routes routes_;
};

}  // namespace

Routes ChooseTrees(const CopyProblem& problem, double depth_weight, uint64_t seed) {
  return TreeBuilder(problem, depth_weight, seed).Build();
}

}  // namespace xccl::greedy
