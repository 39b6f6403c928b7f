#include "topologies/symmetry_graph.h"

#include <tuple>
#include <unordered_map>

namespace xccl {
namespace {

constexpr int64_t kRefineWork = 40'000'000;  // neighbours visited by colour refinement

}  // namespace

uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t FirstColour(const Node& node) {
  return MixBits(static_cast<uint64_t>(node.kind) * 4 + (node.multicast ? 2 : 0) + (node.reduce ? 1 : 0) + 1);
}

void RefineColours(const SymmetryGraph& graph, std::vector<uint64_t>& colour, std::vector<uint64_t>& next,
                   const std::vector<bool>& kept) {
  next.resize(colour.size());
  for (size_t n = 0; n < colour.size(); ++n) {
    if (!kept.empty() && kept[n]) {
      next[n] = colour[n];
      continue;
    }
    next[n] = MixBits(colour[n]);
    for (const BondedNode& w : graph.Of(static_cast<int32_t>(n)))
      next[n] += MixBits(colour[static_cast<size_t>(w.node)] * 0x9e3779b97f4a7c15ULL +
                         static_cast<uint64_t>(w.bond));
  }
  colour.swap(next);
}

SymmetryGraph::SymmetryGraph(const Topology& topology) {
  std::vector<int32_t>& first = neighbours_.first;
  first.assign(1, 0);
  // Each link gives one entry per end; once sorted, a node's entries of one bond are adjacent.
  std::vector<std::tuple<int32_t, bool, int64_t, int64_t, int64_t>> ends;
  std::unordered_map<uint64_t, int32_t> bonds;  // by hash
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    ends.clear();
    for (const bool out : {false, true})
      for (const LinkId id : out ? topology.Out(NodeId(n)) : topology.In(NodeId(n))) {
        const Link& l = topology.link(id);
        ends.emplace_back((out ? l.to : l.from).value, out, l.bandwidth_bytes_per_s, l.latency_ps,
                          l.overhead_ps);
      }
    std::sort(ends.begin(), ends.end());
    for (size_t i = 0; i < ends.size();) {
      uint64_t hash = 0;
      const int32_t w = std::get<0>(ends[i]);
      for (; i < ends.size() && std::get<0>(ends[i]) == w; ++i) {
        const auto& [to, outward, bandwidth, latency, overhead] = ends[i];
        for (int64_t number : {int64_t{outward}, bandwidth, latency, overhead})
          hash = MixBits(hash * 31 + static_cast<uint64_t>(number) + 1);
      }
      neighbours_.items.push_back({w, bonds.try_emplace(hash, std::ssize(bonds)).first->second});
    }
    first.push_back(static_cast<int32_t>(neighbours_.items.size()));
  }
}

std::vector<uint64_t> ColoursOf(const Topology& topology, const SymmetryGraph& graph) {
  std::vector<uint64_t> colour, next, sorted;
  for (const Node& node : topology.spec().nodes) colour.push_back(FirstColour(node));
  size_t classes = 0;
  for (int64_t work = 0; work < kRefineWork; work += graph.size()) {
    sorted = colour;
    std::sort(sorted.begin(), sorted.end());
    const size_t found = static_cast<size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
    if (found == classes || found == colour.size()) break;
    classes = found;
    RefineColours(graph, colour, next);
  }
  return colour;
}

uint64_t Signatures::Of(int32_t node) {
  constexpr uint64_t kOwn = 0x2545f4914f6cdd1dULL;
  std::vector<uint64_t> colour = colour_, next;
  colour[static_cast<size_t>(node)] = MixBits(colour[static_cast<size_t>(node)] ^ kOwn);
  for (int32_t round = 0; round < kRounds; ++round) RefineColours(graph_, colour, next);
  uint64_t sum = 0;
  for (const uint64_t c : colour) sum += MixBits(c);
  return sum;
}

}  // namespace xccl
