// A simple form of NCCL's search for channels.
// 1. Take the next bandwidth of NCCL's list, the largest first.
// 2. A depth-first search places ring after ring through the GPUs of one host. Each ring takes this
//    bandwidth from its links; a link with less bandwidth left cannot be used.
// 3. On several hosts, limit the number of rings to what the host's NICs can carry.
// 4. Keep the bandwidth with the largest sum over all its rings. Stop far below the first
//    bandwidth that fits.
// 5. Split wide channels in two, as NCCL does.
// 6. Keep the least count and the least bandwidths of all hosts, because all hosts run the same channels.
// The search first uses NVLinks alone. If there is no ring of NVLinks, it uses all links.
#include "pipeline/nccl/graphs.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/nccl/figures.h"
#include "synth/common/rank_graph.h"
#include "topologies/gpu_links.h"

namespace xccl::nccl {
namespace {

// The most ranks that the search tries for one bandwidth, which takes milliseconds.
constexpr int64_t kMostTried = 20'000;

std::optional<Generation> GenerationOfArch(std::string_view arch) {
  int32_t number = 0;
  if (!arch.starts_with("sm")) return std::nullopt;
  if (std::from_chars(arch.data() + 2, arch.data() + arch.size(), number).ec != std::errc() || number < 70)
    return std::nullopt;
  return number >= 100  ? Generation::kBlackwell
         : number >= 90 ? Generation::kHopper
         : number >= 80 ? Generation::kAmpere
                        : Generation::kVolta;
}

// Returns the bandwidths of a channel that NCCL tries, in GB/s, the largest first.
std::span<const double> BandwidthsToTry(Generation generation, bool inter) {
  const GenerationFigures& figures = kFigures.generations[static_cast<size_t>(generation)];
  const std::span<const double> list = inter ? figures.inter_gb_per_s : figures.intra_gb_per_s;
  return list.first(static_cast<size_t>(std::ranges::find(list, 0.0) - list.begin()));
}

// Searches rings through all GPUs of a host. Each ring takes bandwidth from its links.
class RingSearch {
 public:
  RingSearch(const RankGraph& graph, std::vector<double> gb_per_s, std::vector<Rank> ranks, bool nvlink)
      : graph_(graph),
        links_(graph.topology()),
        left_(std::move(gb_per_s)),
        ranks_(std::move(ranks)),
        nvlink_(nvlink),
        taken_(static_cast<size_t>(graph.num_ranks()), false) {}

  // Returns the largest number of rings of this bandwidth that the search finds.
  int32_t Count(double gb_per_s) {
    wanted_ = gb_per_s;
    tried_ = 0;
    found_ = 0;
    most_ = kFigures.most_channels;
    for (const Rank r : ranks_) most_ = std::min(most_, RingsThrough(r));
    const std::vector<double> whole = left_;
    if (most_ > 0) Ring(0);
    left_ = whole;
    return found_;
  }

 private:
  // Returns an upper bound of the rings through a rank: the rings that its outgoing links can carry.
  int32_t RingsThrough(Rank rank) const {
    const Topology& topology = graph_.topology();
    int32_t rings = 0;
    for (const LinkId l : topology.Out(topology.NodeOf(rank)))
      rings += static_cast<int32_t>(std::min<double>(left_[l.index()] / wanted_, kFigures.most_channels));
    return rings;
  }

  // Searches for one more ring after `rings` rings have been placed. Returns true if the search is over.
  bool Ring(int32_t rings) {
    found_ = std::max(found_, rings);
    if (found_ == most_) return true;
    const std::vector<bool> outer = taken_;
    std::fill(taken_.begin(), taken_.end(), false);
    taken_[ranks_[0].index()] = true;
    const bool over = Extend(ranks_[0], 1, rings);
    taken_ = outer;
    return over;
  }

  bool Extend(Rank at, size_t length, int32_t rings) {
    if (++tried_ > kMostTried) return true;
    if (ranks_.size() == 1) return Ring(rings + 1);  // takes no bandwidth inside the host
    if (length == ranks_.size()) return Take(at, ranks_[0], [&] { return Ring(rings + 1); });
    std::vector<std::pair<double, Rank>> candidates;
    for (const Rank next : ranks_)
      if (const double width = taken_[next.index()] ? 0 : Width(at, next); width >= wanted_)
        candidates.emplace_back(-width, next);
    std::ranges::stable_sort(candidates, {}, &std::pair<double, Rank>::first);
    for (const auto& candidate : candidates) {
      const Rank next = candidate.second;
      taken_[next.index()] = true;
      if (Take(at, next, [&] { return Extend(next, length + 1, rings); })) return true;
      taken_[next.index()] = false;
    }
    return false;
  }

  // Returns the total bandwidth that is left on all parallel hops between two ranks.
  double Width(Rank a, Rank b) const {
    const std::optional<HopId> best = graph_.Find(a, b);
    double width = 0;
    for (int32_t k = 0; best && k < graph_.Parallel(*best); ++k) {
      double hop = std::numeric_limits<double>::infinity();
      for (const LinkId l : graph_.Links(HopId(best->value + k))) hop = std::min(hop, left_[l.index()]);
      width += hop;
    }
    return width;
  }

  // Takes the ring's bandwidth from a hop from a to b and calls `then`. If `then` returns false, gives the
  // bandwidth back and tries the next parallel hop.
  template <typename Then>
  bool Take(Rank a, Rank b, const Then& then) {
    const std::optional<HopId> best = graph_.Find(a, b);
    if (!best) return false;
    for (int32_t k = 0; k < graph_.Parallel(*best); ++k) {
      const std::span<const LinkId> path = graph_.Links(HopId(best->value + k));
      if (nvlink_ && !links_.Have(path)) continue;
      if (std::ranges::any_of(path, [&](LinkId l) { return left_[l.index()] < wanted_; })) continue;
      for (const LinkId l : path) left_[l.index()] -= wanted_;
      if (then()) return true;
      for (const LinkId l : path) left_[l.index()] += wanted_;
    }
    return false;
  }

  const RankGraph& graph_;
  const GpuLinks links_;
  std::vector<double> left_;  // by link
  std::vector<Rank> ranks_;
  bool nvlink_;
  std::vector<bool> taken_;
  double wanted_ = 0;
  int32_t found_ = 0, most_ = 0;  // rings
  int64_t tried_ = 0;             // ranks
};

// Returns the rate in GB/s at which each NIC of a host can send to other hosts.
std::vector<double> NicsOf(const Topology& topology, HostId host) {
  std::vector<double> nics;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    const Node& node = topology.node(NodeId(n));
    if (node.kind != NodeKind::kNic || node.host != host) continue;
    double out = 0;
    for (const LinkId l : topology.Out(NodeId(n)))
      if (topology.node(topology.link(l).to).host != host)
        out += static_cast<double>(topology.link(l).bandwidth_bytes_per_s) / 1e9;
    if (out > 0) nics.push_back(out);
  }
  return nics;
}

int32_t ChannelsOf(const std::vector<double>& nics, double gb_per_s) {
  int32_t channels = 0;
  for (const double nic : nics) channels += static_cast<int32_t>(nic / gb_per_s);
  return channels;
}

// Splits wide channels in two, as NCCL's ncclTopoDupChannels does.
void Double(Channels& channels, Generation generation) {
  if (channels.intra_gb_per_s < 25) return;
  if (generation >= Generation::kHopper && channels.intra_gb_per_s < 50 && channels.count > 4) return;
  const int32_t doubled = std::min(2 * channels.count, kFigures.most_channels);
  const int32_t parts = (doubled + channels.count - 1) / channels.count;  // rounded up, as NCCL does
  channels = {doubled, channels.intra_gb_per_s / parts, channels.inter_gb_per_s / parts};
}

Channels RingsOf(RingSearch& search, Generation generation, const std::vector<double>* nics) {
  Channels best;
  double widest = 0;
  for (const double wanted : BandwidthsToTry(generation, nics != nullptr)) {
    if (widest > 0 && wanted < kFigures.least_share * widest) break;
    int32_t count = search.Count(wanted);
    if (nics != nullptr) count = std::min(count, ChannelsOf(*nics, wanted));
    if (count == 0) continue;
    if (widest == 0) widest = wanted;
    if (count * wanted > best.count * best.intra_gb_per_s) best = {count, wanted, wanted};
  }
  if (best.count > 0) Double(best, generation);
  return best;
}

// Returns the channels of NVLS, which are multicast trees. Their bandwidth is the largest of NCCL's list with
// which a GPU's links to multicast switches carry all of them.
Channels NvlsOf(const Topology& topology, const MachineModel& machine, Generation generation) {
  const auto& nodes = topology.spec().nodes;
  if (generation < Generation::kHopper || topology.num_hosts() > 1) return {};
  if (std::ranges::none_of(nodes, [](const Node& node) { return node.multicast && node.reduce; })) return {};
  const std::vector<int64_t> reached = ReachedBandwidths(topology, machine);
  double gpu = 0;
  for (const LinkId l : topology.Out(topology.NodeOf(Rank(0))))
    if (topology.node(topology.link(l).to).multicast) gpu += static_cast<double>(reached[l.index()]) / 1e9;
  for (const double wanted : BandwidthsToTry(generation, false))
    if (wanted * kFigures.nvls_channels <= gpu) return {kFigures.nvls_channels, wanted, wanted};
  return {};
}

// Returns the rates of a host's NICs and those of all links out of each GPU. Hosts with the same rates count
// as equal and are searched once.
std::vector<double> RatesOf(const Topology& topology, const std::vector<double>& gb_per_s,
                            const std::vector<Rank>& ranks) {
  std::vector<double> rates = NicsOf(topology, topology.HostOf(ranks[0]));
  for (const Rank r : ranks) {
    rates.push_back(-1);  // begins the list of a GPU
    for (const LinkId l : topology.Out(topology.NodeOf(r))) rates.push_back(gb_per_s[l.index()]);
  }
  return rates;
}

struct HostRings {
  Channels ring;
  bool nvlink = false;
};

// Errors: kInvalidInput if no ring joins the GPUs of the host, or if it must reach other hosts and has no NIC
// that leads to them.
StatusOr<HostRings> RingsOfHost(const RankGraph& graph, const std::vector<double>& gb_per_s,
                                const std::vector<Rank>& ranks, Generation generation, bool several) {
  const Topology& topology = graph.topology();
  const HostId host = topology.HostOf(ranks[0]);
  const std::string name =
      several ? fmt::format("{}: host {}", topology.name(), topology.spec().hosts[host.index()].name)
              : topology.name();
  const std::vector<double> nics = several ? NicsOf(topology, host) : std::vector<double>();
  if (several && nics.empty()) return InvalidInput(fmt::format("{}: no NIC leads to other hosts", name));
  for (const bool nvlink : {true, false}) {
    RingSearch search(graph, gb_per_s, ranks, nvlink);
    const Channels ring = RingsOf(search, generation, several ? &nics : nullptr);
    if (ring.count > 0) return HostRings{ring, nvlink};
  }
  return InvalidInput(fmt::format("{}: no ring joins its GPUs", name));
}

Channels LeastOf(const Channels& a, const Channels& b) {
  return {std::min(a.count, b.count), std::min(a.intra_gb_per_s, b.intra_gb_per_s),
          std::min(a.inter_gb_per_s, b.inter_gb_per_s)};
}

}  // namespace

StatusOr<Generation> GenerationOf(const Topology& topology) {
  const std::optional<Generation> generation = GenerationOfArch(topology.gpu_arch());
  if (!generation)
    return InvalidInput(
        topology.gpu_arch().empty()
            ? fmt::format("{}: its GPUs are not known; NCCL's model needs their architecture; "
                          "hint: --gpu-arch=sm90",
                          topology.name())
            : fmt::format("{}: its GPUs are {}; expected sm70 or later, as NCCL's model has", topology.name(),
                          topology.gpu_arch()));
  return *generation;
}

StatusOr<Graphs> FindGraphs(const Topology& topology, const MachineModel& machine) {
  if (topology.num_ranks() == 1)
    return InvalidInput(fmt::format("{}: one GPU; expected several, since NCCL's model is of rings and trees",
                                    topology.name()));
  XCCL_ASSIGN_OR_RETURN(const Generation generation, GenerationOf(topology));
  Graphs graphs;
  graphs.generation = generation;
  graphs.ranks = topology.num_ranks();
  graphs.nvlink = true;
  std::vector<std::vector<Rank>> hosts(static_cast<size_t>(topology.num_hosts()));
  for (const Rank r : AllRanks(topology.num_ranks())) hosts[topology.HostOf(r).index()].push_back(r);
  std::erase_if(hosts, [](const std::vector<Rank>& ranks) { return ranks.empty(); });
  graphs.nodes = static_cast<int32_t>(hosts.size());
  for (const auto& ranks : hosts)
    if (ranks.size() != hosts[0].size())
      return InvalidInput(
          fmt::format("{}: hosts of {} and of {} GPUs; expected hosts of one size, as NCCL's model has",
                      topology.name(), hosts[0].size(), ranks.size()));
  const RankGraph graph(topology);
  std::vector<double> gb_per_s;
  for (const int64_t reached : ReachedBandwidths(topology, machine))
    gb_per_s.push_back(static_cast<double>(reached) / 1e9);
  std::set<std::vector<double>> seen;
  for (const std::vector<Rank>& ranks : hosts) {
    if (!seen.insert(RatesOf(topology, gb_per_s, ranks)).second) continue;
    XCCL_ASSIGN_OR_RETURN(const HostRings found,
                          RingsOfHost(graph, gb_per_s, ranks, generation, graphs.nodes > 1));
    graphs.nvlink = graphs.nvlink && found.nvlink;
    graphs.ring = seen.size() == 1 ? found.ring : LeastOf(graphs.ring, found.ring);
  }
  graphs.nvls = NvlsOf(topology, machine, generation);
  return graphs;
}

}  // namespace xccl::nccl
