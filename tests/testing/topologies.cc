#include "tests/testing/topologies.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/random.h"

namespace xccl::testing {
namespace {

constexpr int64_t kGb = 1'000'000'000;

Node Gpu(int32_t id) {
  Node node;
  node.id = std::to_string(id);
  return node;
}

// A digraph as bits: one for each ordered pair of nodes, by source.
struct Arcs {
  int32_t nodes;
  uint32_t bits;
  bool Has(int32_t from, int32_t to) const { return bits >> (from * nodes + to) & 1; }
};

bool ReachesAll(const Arcs& arcs, bool forward) {
  uint32_t seen = 1;
  for (int32_t round = 0; round < arcs.nodes; ++round)
    for (int32_t a = 0; a < arcs.nodes; ++a)
      for (int32_t b = 0; b < arcs.nodes; ++b)
        if ((seen >> a & 1) && (forward ? arcs.Has(a, b) : arcs.Has(b, a))) seen |= 1u << b;
  return seen == (1u << arcs.nodes) - 1;
}

// The least bit pattern over all relabellings.
uint32_t Canonical(const Arcs& arcs) {
  std::vector<int32_t> label(static_cast<size_t>(arcs.nodes));
  std::iota(label.begin(), label.end(), 0);
  uint32_t least = UINT32_MAX;
  do {
    uint32_t bits = 0;
    for (int32_t a = 0; a < arcs.nodes; ++a)
      for (int32_t b = 0; b < arcs.nodes; ++b)
        if (arcs.Has(a, b)) bits |= 1u << (label[a] * arcs.nodes + label[b]);
    least = std::min(least, bits);
  } while (std::next_permutation(label.begin(), label.end()));
  return least;
}

Topology FromArcs(const Arcs& arcs) {
  TopologySpec spec;
  spec.name = fmt::format("digraph-{}-{:x}", arcs.nodes, arcs.bits);
  for (int32_t n = 0; n < arcs.nodes; ++n) spec.nodes.push_back(Gpu(n));
  for (int32_t a = 0; a < arcs.nodes; ++a)
    for (int32_t b = 0; b < arcs.nodes; ++b)
      if (arcs.Has(a, b)) spec.links.push_back(Link{NodeId(a), NodeId(b), kGb, 500'000});
  return Topology::Create(spec).value();
}

class MachineMaker {
 public:
  MachineMaker(uint64_t seed, const RandomMachine& options) : random_(seed), options_(options) {
    spec_.name = fmt::format("random-{}", seed);
  }

  Topology Make() {
    const int32_t hosts = 1 + Below(3);
    for (int32_t h = 0; h < hosts; ++h) spec_.hosts.push_back(Host{fmt::format("h{}", h)});
    const int32_t gpus = 1 + Below(options_.max_ranks), switches = Below(options_.max_switches + 1);
    for (int32_t g = 0; g < gpus; ++g) AddNode(NodeKind::kGpu, HostId(Below(hosts)));
    for (int32_t s = 0; s < switches; ++s)
      AddNode(NodeKind::kSwitch, Below(2) ? std::optional(HostId(Below(hosts))) : std::nullopt);
    for (int32_t extra = Below(3); extra > 0; --extra)
      AddNode(Below(2) ? NodeKind::kNic : NodeKind::kCpu, HostId(Below(hosts)));
    random_.Shuffle(std::span(spec_.nodes));
    const int32_t nodes = static_cast<int32_t>(spec_.nodes.size());
    for (int32_t n = 1; n < nodes; ++n) {
      const int32_t to = Below(n);
      AddLink(n, to);
      AddLink(to, n);
    }
    for (int32_t extra = Below(2 * nodes + 1); extra > 0 && nodes > 1; --extra) {
      const int32_t from = Below(nodes), to = (from + 1 + Below(nodes - 1)) % nodes;
      AddLink(from, to);
      if (Below(3) > 0) AddLink(to, from);
    }
    return Topology::Create(spec_).value();
  }

 private:
  int32_t Below(int32_t bound) { return static_cast<int32_t>(random_.Below(static_cast<uint64_t>(bound))); }
  void AddNode(NodeKind kind, std::optional<HostId> host) {
    Node node{kind, fmt::format("n{}", spec_.nodes.size()), host, false, false};
    if (kind == NodeKind::kSwitch) {
      node.multicast = Below(3) == 0;
      node.reduce = Below(3) == 0;
    }
    spec_.nodes.push_back(node);
  }
  void AddLink(int32_t from, int32_t to) {
    constexpr int64_t kBandwidths[] = {kGb, 2 * kGb, 3 * kGb, 7'500'000'000, 50 * kGb};
    constexpr int64_t kLatencies[] = {0, 100'000, 500'000, 730'000, 5'000'000};
    constexpr int64_t kOverheads[] = {0, 0, 0, 250'000};
    spec_.links.push_back(
        Link{NodeId(from), NodeId(to), kBandwidths[Below(5)], kLatencies[Below(5)], kOverheads[Below(4)]});
  }

  Random random_;
  RandomMachine options_;
  TopologySpec spec_;
};

}  // namespace

std::vector<Topology> StronglyConnectedDigraphs(int32_t ranks) {
  XCCL_CHECK(ranks >= 1 && ranks <= 4);
  std::vector<Topology> topologies;
  for (uint32_t bits = 0; bits < 1u << (ranks * ranks); ++bits) {
    const Arcs arcs{ranks, bits};
    bool loop = false;
    for (int32_t n = 0; n < ranks; ++n) loop |= arcs.Has(n, n);
    if (loop || !ReachesAll(arcs, true) || !ReachesAll(arcs, false)) continue;
    if (Canonical(arcs) == bits) topologies.push_back(FromArcs(arcs));
  }
  return topologies;
}

Topology MakeRandomMachine(uint64_t seed, const RandomMachine& options) {
  return MachineMaker(seed, options).Make();
}

}  // namespace xccl::testing
