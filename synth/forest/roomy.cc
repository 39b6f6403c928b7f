#include "synth/forest/roomy.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/bounds/bound.h"

namespace xccl::forest {
namespace {

constexpr size_t kMostKinds = 12;
constexpr double kSame = 1 + 1e-4;  // relative: rates this near are equal

// How many of its ends are GPUs, the kinds of its ends, and the bandwidth. Links without GPUs come first.
using LinkKind = std::tuple<int32_t, NodeKind, NodeKind, int64_t>;

LinkKind KindOf(const Topology& topology, const Link& link) {
  const NodeKind from = topology.node(link.from).kind, to = topology.node(link.to).kind;
  return {(from == NodeKind::kGpu) + (to == NodeKind::kGpu), std::min(from, to), std::max(from, to),
          link.bandwidth_bytes_per_s};
}

// `topology` is `whole` with other bandwidths. The kind of a link is that in `whole`.
Topology Relieved(const Topology& whole, const Topology& topology, const LinkKind& kind, double kept) {
  TopologySpec spec = topology.spec();
  for (size_t l = 0; l < spec.links.size(); ++l)
    if (Link& link = spec.links[l]; KindOf(whole, whole.spec().links[l]) == kind)
      link.bandwidth_bytes_per_s = std::llround(kept * static_cast<double>(link.bandwidth_bytes_per_s));
  return Topology::Create(std::move(spec)).value();
}

}  // namespace

std::optional<Topology> RoomyMachine(const SynthesisRequest& request, double kept) {
  std::set<LinkKind> kinds;
  for (const Link& link : request.topology->spec().links) kinds.insert(KindOf(*request.topology, link));
  if (kinds.size() < 2 || kinds.size() > kMostKinds) return std::nullopt;
  const auto bandwidth_ps = [&](const Topology& topology) {
    return BandwidthBoundPs(topology, *request.collective, request.size_bytes, BoundEffort::kFast);
  };
  const double full_ps = bandwidth_ps(*request.topology);
  std::optional<Topology> roomy;
  for (const LinkKind& kind : kinds) {
    Topology relieved = Relieved(*request.topology, roomy ? *roomy : *request.topology, kind, kept);
    if (bandwidth_ps(relieved) <= kSame * full_ps) roomy = std::move(relieved);
  }
  return roomy;
}

}  // namespace xccl::forest
