// Hosts (or domains) of equal size. allgather: along rails, rings that join the k-th GPU of every host,
// first; then rings inside every host. Played backwards, that is inside first; an allreduce goes inside,
// across, inside. broadcast: the root deals its host's GPUs a piece each, the pieces run along the rails, and
// every host gathers them.
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"
#include "synth/textbook/rings.h"

namespace xccl {
namespace {

class Hierarchy {
 public:
  static StatusOr<Hierarchy> Create(const RankGraph& graph, std::span<const Rank> members) {
    Hierarchy made;
    XCCL_ASSIGN_OR_RETURN(made.hosts_, EqualDomains(graph, members, "hierarchical-ring"));
    for (const std::vector<Rank>& host : made.hosts_) {
      XCCL_ASSIGN_OR_RETURN(Rings rings, PlaceRings(graph, host, "hierarchical-ring"));
      made.lanes_ = std::min(made.lanes_, static_cast<int32_t>(rings.rings.size()));
      made.inside_latency_ = std::max(made.inside_latency_, static_cast<double>(rings.latency_ps));
      if (host.size() > 1)
        made.inside_ = std::min(made.inside_, static_cast<double>(rings.bandwidth_bytes_per_s));
      made.rings_.push_back(std::move(rings));
    }
    made.member_.resize(static_cast<size_t>(graph.num_ranks()), -1);
    made.place_.resize(static_cast<size_t>(graph.num_ranks()), -1);
    for (size_t i = 0; i < members.size(); ++i) made.member_[members[i].index()] = static_cast<int32_t>(i);
    for (const std::vector<Rank>& host : made.hosts_)
      for (size_t k = 0; k < host.size(); ++k) made.place_[host[k].index()] = static_cast<int32_t>(k);
    return made;
  }

  int32_t lanes() const { return lanes_; }
  int32_t host_size() const { return static_cast<int32_t>(hosts_[0].size()); }

  void Allgather(const Blocks& blocks, Moves& moves) const {
    const int32_t m = num_hosts(), g = host_size();
    std::vector<int32_t> sent;
    for (int32_t s = 0; s + 1 < m; ++s) {
      for (int32_t h = 0; h < m; ++h) {
        for (int32_t k = 0; k < g; ++k) {
          sent = {MemberAt((h - s + m) % m, k)};
          SendBlocks(blocks, sent, hosts_[h][k], hosts_[(h + 1) % m][k], s, moves);
        }
      }
    }
    for (int32_t h = 0; h < m; ++h) {
      Inside(h, m - 1, moves, [&](int32_t k, int32_t lane, auto&& send) {
        for (int32_t other = 0; other < m; ++other)
          send(Share(blocks[MemberAt(other, k)], lane, lanes_, other + k));
      });
    }
  }

  void Broadcast(Rank root, ChunkRange all, Moves& moves) const {
    const int32_t m = num_hosts(), g = host_size();
    int32_t home = 0;
    for (int32_t h = 0; h < m; ++h)
      if (std::find(hosts_[h].begin(), hosts_[h].end(), root) != hosts_[h].end()) home = h;
    for (int32_t k = 0; k < g; ++k)
      moves.Add({Piece(all, k, g), root, hosts_[home][k], 0, TransferOp::kCopy, std::nullopt});
    for (int32_t s = 0; s + 1 < m; ++s)
      for (int32_t k = 0; k < g; ++k)
        moves.Add({Piece(all, k, g), hosts_[(home + s) % m][k], hosts_[(home + s + 1) % m][k], s + 1,
                   TransferOp::kCopy, std::nullopt});
    for (int32_t h = 0; h < m; ++h)
      Inside(h, m, moves,
             [&](int32_t k, int32_t lane, auto&& send) { send(Piece(Piece(all, k, g), lane, lanes_)); });
  }

  Cost AllgatherCost(const RankGraph& graph) const {
    double rail_latency = 0, rail = 1e18;
    const int32_t m = num_hosts(), g = host_size();
    for (int32_t h = 0; h < m; ++h) {
      for (int32_t k = 0; k < g; ++k) {
        const std::optional<HopId> hop = graph.Find(hosts_[h][k], hosts_[(h + 1) % m][k]);
        if (!hop) continue;
        rail_latency = std::max(rail_latency, static_cast<double>(graph.hop(*hop).latency_ps));
        rail = std::min(rail, static_cast<double>(graph.hop(*hop).bandwidth_bytes_per_s));
      }
    }
    Cost cost;
    cost.fixed_ps = (m - 1) * rail_latency + (g - 1) * inside_latency_;
    cost.ps_per_byte = (m - 1.0) / m / g * 1e12 / rail + (g - 1.0) / g / lanes_ * 1e12 / inside_;
    return cost;
  }

 private:
  int32_t num_hosts() const { return static_cast<int32_t>(hosts_.size()); }
  int32_t MemberAt(int32_t host, int32_t place) const { return member_[hosts_[host][place].index()]; }

  // Ring allgather inside a host of what `ranges` lists for (place, lane).
  template <typename F>
  void Inside(int32_t h, int32_t step, Moves& moves, F ranges) const {
    const int32_t g = host_size();
    for (int32_t s = 0; s + 1 < g; ++s) {
      for (int32_t lane = 0; lane < lanes_; ++lane) {
        const Ring& ring = rings_[h].rings[lane];
        for (int32_t p = 0; p < g; ++p) {
          const Rank owner = ring.order[(p - s + g) % g];
          ranges(place_[owner.index()], lane, [&](ChunkRange range) {
            moves.Add(
                {range, ring.order[p], ring.order[(p + 1) % g], step + s, TransferOp::kCopy, ring.hops[p]});
          });
        }
      }
    }
  }

  std::vector<std::vector<Rank>> hosts_;
  std::vector<Rings> rings_;     // by host
  std::vector<int32_t> member_;  // by rank
  std::vector<int32_t> place_;   // by rank: within its host
  int32_t lanes_ = kMaxRings;
  double inside_ = 1e18, inside_latency_ = 0;
};

StatusOr<Recipe> PlaceHierarchicalRing(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Hierarchy hierarchy, Hierarchy::Create(graph, request.collective->ranks()));
  Recipe recipe;
  recipe.root = request.collective->ranks()[0];
  recipe.lanes = hierarchy.lanes();
  recipe.broadcast_pieces = hierarchy.host_size() * hierarchy.lanes();
  recipe.repeats = request.collective->kind() == CollectiveKind::kBroadcast ||
                   request.collective->kind() == CollectiveKind::kReduce;
  recipe.pipelines = true;
  recipe.allgather_cost = hierarchy.AllgatherCost(graph);
  recipe.allgather = [hierarchy](const Blocks& blocks, Moves& moves) { hierarchy.Allgather(blocks, moves); };
  recipe.broadcast = [hierarchy](Rank root, ChunkRange all, Moves& moves) {
    hierarchy.Broadcast(root, all, moves);
  };
  return recipe;
}

}  // namespace

const TextbookEngine& HierarchicalRingEngine() {
  static const TextbookEngine engine = {
      "hierarchical-ring",
      "rings inside hosts and along rails across them: few bytes over the fabric; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast,
       CollectiveKind::kReduce, CollectiveKind::kBarrier},
      PlaceHierarchicalRing};
  return engine;
}

}  // namespace xccl
