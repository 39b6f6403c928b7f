// time = latency + bytes ÷ bandwidth, for each algorithm and protocol that NCCL offers.
// 1. The latency is a base time plus the times of the hops.
// 2. The bandwidth is that of all channels × an efficiency, limited by the generation of the GPUs.
// 3. A tree reaches only a share of the bandwidth, which depends on the protocol and the size.
// 4. NCCL's choice is the estimate with the least time.
// The constants are in figures.h. The factors in the formulas come from NCCL's ncclTopoTuneModel.
#include "pipeline/nccl/model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "pipeline/nccl/figures.h"
#include "runtime/nccl/tuner/table.h"

namespace xccl::nccl {
namespace {

using nccl_tuner::Algorithm;
using nccl_tuner::Protocol;
using Kind = nccl_tuner::Collective;

struct Case {
  const Graphs& graphs;
  Kind kind;
  Algorithm algorithm;
  Protocol protocol;

  const GenerationFigures& generation() const {
    return kFigures.generations[static_cast<size_t>(graphs.generation)];
  }
  size_t scale() const { return graphs.nodes == 1 ? 0 : graphs.nodes == 2 ? 1 : 2; }
  const Channels& channels() const { return algorithm == Algorithm::kNvls ? graphs.nvls : graphs.ring; }
  bool Is(Algorithm a, Protocol p) const { return algorithm == a && protocol == p; }
  // Returns the steps of a ring of `members`. With hosts as members, these are the steps between hosts.
  int32_t Steps(int32_t members) const {
    return kind == Kind::kAllreduce                                   ? 2 * (members - 1)
           : kind == Kind::kAllgather || kind == Kind::kReduceScatter ? members - 1
                                                                      : members;
  }
};

// Returns whether NCCL runs this algorithm and protocol by default.
bool IsOffered(const Case& c) {
  if (c.channels().count == 0 || !nccl_tuner::HasKernels(c.kind, c.algorithm, c.protocol)) return false;
  if (c.protocol == Protocol::kLl128 && !c.graphs.nvlink) return false;
  switch (c.algorithm) {
    case Algorithm::kTree:
    case Algorithm::kRing:
      return true;
    case Algorithm::kNvls:
      return c.graphs.nvls.count >= 2;
    case Algorithm::kPat:
      return c.graphs.nodes == c.graphs.ranks;
    default:
      return false;  // CollNet needs a plugin; NVLS trees need NVLS on several hosts
  }
}

// Returns the rate in GB/s at which an algorithm moves the bytes of a call.
double Bandwidth(const Case& c) {
  const Channels& channels = c.channels();
  const double n = c.graphs.ranks, count = channels.count;
  const double one = c.graphs.nodes <= 2 ? channels.intra_gb_per_s : channels.inter_gb_per_s;
  const GenerationFigures& figures = c.generation();
  const size_t scale = c.scale();
  double bus = count * one;
  // On several hosts NCCL uses the first generation's limit for all generations.
  const double most_ll = (c.graphs.nodes == 1 ? figures : kFigures.generations[0]).most_ll[scale];
  if (c.Is(Algorithm::kRing, Protocol::kLl)) bus = std::min(most_ll, bus / 2);
  if (c.Is(Algorithm::kRing, Protocol::kLl128))
    bus = std::min(bus * .92, count * figures.most_ring_ll128[scale]);
  if (c.algorithm == Algorithm::kTree) {
    bus = std::min(bus * .92, count * figures.most_tree[scale]);
    if (c.protocol == Protocol::kLl) bus = std::min(bus / 3.8, most_ll);
    if (c.protocol == Protocol::kLl128)
      bus =
          std::min(bus * (c.graphs.nodes == 1 ? 7. / 9 : 120. / 128), count * figures.most_tree_ll128[scale]);
    return bus / 2;
  }
  if (c.algorithm == Algorithm::kPat) return bus * .75;
  if (c.algorithm == Algorithm::kNvls) {
    const double local = n / c.graphs.nodes;
    bus *= figures.nvls_share * (count - 1) / count;
    bus *= c.kind == Kind::kAllreduce ? 2 : (local - 1) / local;
  }
  return bus * n / c.Steps(c.graphs.ranks);
}

double Latency(const Case& c, int64_t bytes) {
  const Graphs& g = c.graphs;
  const auto a = static_cast<size_t>(c.algorithm), p = static_cast<size_t>(c.protocol);
  const bool simple = c.protocol == Protocol::kSimple;
  double intra = kFigures.hop_us[g.nvlink ? 0 : 1][a][p];
  const double inter = kFigures.hop_us[2][a][p];
  const int32_t chain = g.ranks / g.nodes - 1;  // hops of a tree within a host
  const double rounds = std::bit_width(static_cast<uint32_t>(g.nodes)) - 1;
  switch (c.algorithm) {
    case Algorithm::kTree:
      return kFigures.base_us[a][p] + 2 * (chain * intra + rounds * inter);
    case Algorithm::kNvls:
      return kFigures.base_us[a][p] + intra;
    case Algorithm::kPat:
      return kFigures.base_us[a][p] + rounds * inter / 3.5 + 2.8 * g.ranks;
    default:
      break;
  }
  // NCCL counts one hop for a broadcast or a reduce, because their pieces follow each other along the ring.
  if (c.kind == Kind::kBroadcast || c.kind == Kind::kReduce)
    return kFigures.base_us[a][p] + kFigures.hop_us[g.nodes > 1 ? 2 : g.nvlink ? 0 : 1][a][p];
  if (g.nodes > 1) intra = std::max(intra, kFigures.network_us * (simple ? 3 : 1));
  const int32_t between = g.nodes > 1 ? c.Steps(g.nodes) : 0;
  double us = kFigures.base_us[a][p] + (c.Steps(g.ranks) - between) * intra + between * inter;
  const double per_ring = static_cast<double>(bytes) / g.ring.count / g.ranks;
  if (simple && g.nodes > 1 && c.kind == Kind::kAllreduce && per_ring >= 64)
    us *= g.generation < Generation::kAmpere ? 1.9 : 1.4;
  return us;
}

double Microseconds(const Case& c, int64_t bytes) {
  double bandwidth = Bandwidth(c);
  const auto size = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(bytes >> 6)));
  if (c.algorithm == Algorithm::kTree && size >= 1 && size <= std::size(kFigures.tree_share[0]))
    bandwidth *= kFigures.tree_share[static_cast<size_t>(c.protocol)][size - 1];
  return Latency(c, bytes) + static_cast<double>(bytes) / (1000 * bandwidth);
}

}  // namespace

std::optional<Kind> CollectiveOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kBroadcast:
      return Kind::kBroadcast;
    case CollectiveKind::kReduce:
      return Kind::kReduce;
    case CollectiveKind::kAllgather:
      return Kind::kAllgather;
    case CollectiveKind::kReduceScatter:
      return Kind::kReduceScatter;
    case CollectiveKind::kAllreduce:
      return Kind::kAllreduce;
    default:
      return std::nullopt;
  }
}

std::vector<Estimate> Estimates(const Graphs& graphs, Kind collective, int64_t bytes) {
  std::vector<Estimate> times;
  for (int a = 0; a < nccl_tuner::kNumAlgorithms; ++a)
    for (int p = 0; p < nccl_tuner::kNumProtocols; ++p) {
      const Case c{graphs, collective, static_cast<Algorithm>(a), static_cast<Protocol>(p)};
      if (IsOffered(c))
        times.push_back({c.algorithm, c.protocol, c.channels().count, Microseconds(c, bytes)});
    }
  return times;
}

Estimate Choice(const Graphs& graphs, Kind collective, int64_t bytes) {
  const std::vector<Estimate> times = Estimates(graphs, collective, bytes);
  return *std::ranges::min_element(times, {}, &Estimate::us);
}

}  // namespace xccl::nccl
