// 1. A depth-first search through nodes that are not GPUs finds all paths between GPUs. Parallel links count
//    as one.
// 2. If the paths have too many nodes, only the best path of each pair of neighbours is taken.
// 3. At most kMostPaths paths of a pair are kept, the shortest first. Each path becomes an edge.
// 4. The parallel links of each hop become a capacity. If paths were left out, the chunks that a rank can
//    take in or give away in a round are still counted over all its links.
// Images come from the machine's translations. They are used only if each of them maps every edge to an edge.
#include "synth/smt/instance.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "topologies/paths.h"
#include "topologies/symmetry.h"

namespace xccl::smt {
namespace {

// The most paths of one pair of GPUs. Every path is an edge with variables of its own.
constexpr size_t kMostPaths = 4;
// The most nodes of all partial paths that the searches of all GPUs make, in a fraction of a second. A node
// counts once for each path.
constexpr int64_t kMostNodesSeen = 1'000'000;

class MachineMaker {
 public:
  MachineMaker(const Topology& topology, const Topology& named) : topology_(topology), named_(named) {}

  Machine Make() {
    machine_.ranks = topology_.num_ranks();
    for (const Node& node : topology_.spec().nodes)
      if (node.kind == NodeKind::kSwitch && (node.multicast || node.reduce)) machine_.complete = false;
    if (!FindPaths()) {
      machine_.complete = false;
      TakeBestPaths();
    }
    DropLongest();
    NumberCapacities();
    Index();
    return std::move(machine_);
  }

 private:
  using Path = std::vector<int32_t>;  // nodes, both ends included

  // Searches depth first, next nodes in order of their numbers. Returns false if the paths have too many
  // nodes.
  bool FindPaths() {
    int64_t seen = 0;
    for (int32_t r = 0; r < machine_.ranks; ++r)
      for (std::vector<Path> open = {{topology_.NodeOf(Rank(r)).value}}; !open.empty();) {
        const Path path = std::move(open.back());
        open.pop_back();
        const std::optional<Rank> to = topology_.RankOf(NodeId(path.back()));
        if (to && path.size() > 1) {
          paths_[{r, to->value}].push_back(path);
          continue;
        }
        if ((seen += std::ssize(path)) > kMostNodesSeen) return false;
        std::set<int32_t, std::greater<>> heads;
        for (LinkId l : topology_.Out(NodeId(path.back()))) heads.insert(topology_.link(l).to.value);
        for (int32_t head : heads) {
          if (std::ranges::find(path, head) != path.end()) continue;
          open.push_back(path);
          open.back().push_back(head);
        }
      }
    return true;
  }

  void TakeBestPaths() {
    paths_.clear();
    const NeighbourTable neighbours = GpuNeighbours(topology_);
    for (int32_t r = 0; r < machine_.ranks; ++r)
      for (const Neighbour& neighbour : neighbours[Rank(r)]) {
        Path path = {topology_.NodeOf(Rank(r)).value};
        for (LinkId l : neighbour.path) path.push_back(topology_.link(l).to.value);
        paths_[{r, neighbour.rank.value}].push_back(std::move(path));
      }
  }

  void DropLongest() {
    for (auto& [pair, paths] : paths_) {
      std::stable_sort(paths.begin(), paths.end(),
                       [](const Path& a, const Path& b) { return a.size() < b.size(); });
      if (paths.size() <= kMostPaths) continue;
      paths.resize(kMostPaths);
      machine_.complete = false;
    }
  }

  void NumberCapacities() {
    std::map<std::pair<int32_t, int32_t>, int32_t> number;
    int64_t divisor = 0;
    for (const auto& [pair, paths] : paths_) {
      for (const Path& path : paths) {
        Edge edge{.from = pair.first, .to = pair.second, .over = {}};
        int64_t fixed = 0;
        for (size_t i = 0; i + 1 < path.size(); ++i) {
          const auto [at, added] =
              number.try_emplace({path[i], path[i + 1]}, static_cast<int32_t>(machine_.capacities.size()));
          if (added) {
            Capacity& capacity = machine_.capacities.emplace_back();
            for (LinkId l : topology_.Out(NodeId(path[i])))
              if (topology_.link(l).to.value == path[i + 1]) capacity.links.push_back(l);
            capacity.name = named_.LinkName(capacity.links[0]);
          }
          edge.over.push_back(at->second);
          int64_t most = 0;
          for (LinkId l : machine_.capacities[at->second].links) {
            divisor = std::gcd(divisor, topology_.link(l).bandwidth_bytes_per_s);
            most = std::max(most, topology_.link(l).latency_ps + topology_.link(l).overhead_ps);
          }
          fixed += most;
        }
        machine_.alpha_ps = std::max(machine_.alpha_ps, fixed);
        machine_.edges.push_back(std::move(edge));
      }
    }
    machine_.bytes_per_s_of_one = std::max<int64_t>(1, divisor);
    for (Capacity& capacity : machine_.capacities) {
      int64_t sum = 0;
      for (LinkId l : capacity.links)
        sum += topology_.link(l).bandwidth_bytes_per_s / machine_.bytes_per_s_of_one;
      capacity.per_round = static_cast<int32_t>(std::min<int64_t>(sum, std::numeric_limits<int32_t>::max()));
    }
  }

  void Index() {
    const size_t ranks = static_cast<size_t>(machine_.ranks);
    machine_.out.resize(ranks);
    machine_.in.resize(ranks);
    machine_.in_per_round.assign(ranks, 0);
    machine_.out_per_round.assign(ranks, 0);
    machine_.users.resize(machine_.capacities.size());
    for (size_t e = 0; e < machine_.edges.size(); ++e) {
      const Edge& edge = machine_.edges[e];
      machine_.out[edge.from].push_back(static_cast<int32_t>(e));
      machine_.in[edge.to].push_back(static_cast<int32_t>(e));
      for (int32_t c : edge.over) machine_.users[c].push_back(static_cast<int32_t>(e));
    }
    for (const Edge& edge : machine_.edges) machine_.splits = machine_.splits && edge.over.size() <= 2;
    const auto count = [&](const Link& link, int64_t per_round) {
      if (const auto tail = topology_.RankOf(link.from)) machine_.out_per_round[tail->index()] += per_round;
      if (const auto head = topology_.RankOf(link.to)) machine_.in_per_round[head->index()] += per_round;
    };
    const int64_t one = machine_.bytes_per_s_of_one;
    if (machine_.complete) {
      for (const Capacity& capacity : machine_.capacities)
        count(topology_.link(capacity.links[0]), capacity.per_round);
    } else {
      // Counts all links, rounded up, because the bandwidth of a link outside all listed paths may not be a
      // multiple of the divisor.
      for (const Link& link : topology_.spec().links) count(link, (link.bandwidth_bytes_per_s - 1) / one + 1);
    }
  }

  const Topology& topology_;
  const Topology& named_;
  Machine machine_;
  std::map<std::pair<int32_t, int32_t>, std::vector<Path>> paths_;
};

std::vector<int32_t> Distances(const Machine& machine, const std::vector<int32_t>& ranks, bool forwards) {
  std::vector<int32_t> distance(static_cast<size_t>(machine.ranks), kFar);
  std::vector<int32_t> queue;
  for (int32_t r : ranks) {
    distance[r] = 0;
    queue.push_back(r);
  }
  for (size_t i = 0; i < queue.size(); ++i) {
    const int32_t r = queue[i];
    for (int32_t e : forwards ? machine.out[r] : machine.in[r]) {
      const int32_t next = forwards ? machine.edges[e].to : machine.edges[e].from;
      if (distance[next] < kFar) continue;
      distance[next] = distance[r] + 1;
      queue.push_back(next);
    }
  }
  return distance;
}

}  // namespace

Machine MakeMachine(const Topology& topology) { return MachineMaker(topology, topology).Make(); }
Machine MakeMachine(const Topology& topology, const Topology& named) {
  return MachineMaker(topology, named).Make();
}

Image Identity(const Machine& machine) {
  Image image;
  image.rank.resize(static_cast<size_t>(machine.ranks));
  image.edge.resize(machine.edges.size());
  image.capacity.resize(machine.capacities.size());
  for (std::vector<int32_t>* of : {&image.rank, &image.edge, &image.capacity})
    std::iota(of->begin(), of->end(), 0);
  return image;
}

std::vector<Image> ImagesOf(const Topology& topology, const Machine& machine, int64_t most) {
  const SymmetryGroup group = FindTranslations(topology);
  const int64_t order = group.order() <= most ? group.order() : 1;
  std::map<LinkId, int32_t> capacity_of;
  for (size_t c = 0; c < machine.capacities.size(); ++c)
    for (LinkId l : machine.capacities[c].links) capacity_of[l] = static_cast<int32_t>(c);
  std::map<std::pair<std::pair<int32_t, int32_t>, std::vector<int32_t>>, int32_t> edge_of;
  for (size_t e = 0; e < machine.edges.size(); ++e) {
    const Edge& edge = machine.edges[e];
    edge_of[{{edge.from, edge.to}, edge.over}] = static_cast<int32_t>(e);
  }
  std::vector<Image> images;
  for (int64_t g = 0; g < order; ++g) {
    Image image;
    for (int32_t r = 0; r < machine.ranks; ++r) image.rank.push_back(group.Image(g, Rank(r)).value);
    for (const Capacity& capacity : machine.capacities) {
      const auto at = capacity_of.find(group.Image(g, capacity.links[0]));
      image.capacity.push_back(at == capacity_of.end() ? -1 : at->second);
    }
    for (const Edge& edge : machine.edges) {
      std::vector<int32_t> over;
      for (int32_t c : edge.over) over.push_back(image.capacity[c]);
      const auto at = edge_of.find({{image.rank[edge.from], image.rank[edge.to]}, over});
      image.edge.push_back(at == edge_of.end() ? -1 : at->second);
    }
    // If paths were left out, a translation may map a listed path to a path that is not listed.
    if (std::count(image.edge.begin(), image.edge.end(), -1) == 0) images.push_back(std::move(image));
  }
  if (static_cast<int64_t>(images.size()) < order) images.resize(1);
  return images;
}

std::vector<int32_t> DistancesFrom(const Machine& machine, const std::vector<int32_t>& ranks) {
  return Distances(machine, ranks, true);
}
std::vector<int32_t> DistancesTo(const Machine& machine, const std::vector<int32_t>& ranks) {
  return Distances(machine, ranks, false);
}

Ends Moved(const Image& image, Ends ends) {
  for (std::vector<int32_t>* ranks : {&ends.holders, &ends.needers}) {
    for (int32_t& r : *ranks) r = image.rank[r];
    std::sort(ranks->begin(), ranks->end());
  }
  return ends;
}

std::map<Ends, std::vector<int32_t>> ClassesOf(const CopyProblem& problem) {
  std::map<Ends, std::vector<int32_t>> classes;
  for (int32_t c = 0; c < problem.chunks; ++c)
    if (!problem.needers[c].empty()) classes[{problem.holders[c], problem.needers[c]}].push_back(c);
  return classes;
}

std::vector<Image> ImagesThatKeep(const std::vector<Image>& images, const CopyProblem& problem) {
  const std::map<Ends, std::vector<int32_t>> classes = ClassesOf(problem);
  std::vector<Image> kept;
  for (const Image& image : images) {
    const bool keeps = std::all_of(classes.begin(), classes.end(), [&](const auto& one) {
      const auto at = classes.find(Moved(image, one.first));
      return at != classes.end() && at->second.size() == one.second.size();
    });
    if (keeps) kept.push_back(image);
  }
  return kept;
}

}  // namespace xccl::smt
