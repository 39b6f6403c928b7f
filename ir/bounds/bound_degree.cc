// Bounds for one rank at a time. A rank that does not hold what it must end with receives at least that
// part once, as copies or as a sum. A rank that alone holds a contribution which another needs sends at
// least that part once: switches can copy what it sends, but it must send it.
#include <algorithm>

#include "base/units.h"
#include "ir/bounds/bound_bandwidth.h"

namespace xccl {
namespace {

// Bytes that must cross each rank's own links.
class Traffic {
 public:
  Traffic(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes)
      : collective_(collective),
        sizes_(sizes),
        in(static_cast<size_t>(topology.num_ranks()), 0),
        out(static_cast<size_t>(topology.num_ranks()), 0) {
    const CollectiveSpec& spec = collective.spec();
    if (spec.kind == CollectiveKind::kCustom) {
      AddTables();
      return;
    }
    if (spec.ranks.size() < 2) return;
    double total = 0;
    for (int32_t p = 0; p < collective.num_parts(); ++p) total += Bytes(p);
    for (size_t i = 0; i < spec.ranks.size(); ++i) AddMember(i, total);
  }

 private:
  double Bytes(int64_t part) const { return static_cast<double>(sizes_.PartBytes(PartId(part))); }

  void AddMember(size_t member, double total) {
    const CollectiveSpec& spec = collective_.spec();
    const Rank rank = spec.ranks[member];
    const int64_t n = collective_.num_members(), i = static_cast<int64_t>(member);
    double& taken = in[rank.index()];
    double& given = out[rank.index()];
    const bool root = spec.root == rank;
    switch (spec.kind) {
      case CollectiveKind::kAllgather:
      case CollectiveKind::kAllgatherv:
        taken = total - Bytes(i);
        given = Bytes(i);
        break;
      case CollectiveKind::kReduceScatter:
      case CollectiveKind::kReduceScatterv:
        taken = Bytes(i);
        given = total - Bytes(i);
        break;
      case CollectiveKind::kAllreduce:
        taken = given = total;
        break;
      case CollectiveKind::kBroadcast:
        (root ? given : taken) = total;
        break;
      case CollectiveKind::kReduce:
        (root ? taken : given) = total;
        break;
      case CollectiveKind::kGather:
        (root ? taken : given) = root ? total - Bytes(i) : Bytes(i);
        break;
      case CollectiveKind::kScatter:
        (root ? given : taken) = root ? total - Bytes(i) : Bytes(i);
        break;
      case CollectiveKind::kAlltoall:
      case CollectiveKind::kAlltoallv:
        for (int64_t j = 0; j < n; ++j) {
          if (j == i) continue;
          given += Bytes(i * n + j);
          taken += Bytes(j * n + i);
        }
        break;
      case CollectiveKind::kSendrecv:
        for (size_t p = 0; p < spec.pairs.size(); ++p) {
          if (spec.pairs[p].first == spec.pairs[p].second) continue;
          if (spec.pairs[p].first == rank) given += Bytes(static_cast<int64_t>(p));
          if (spec.pairs[p].second == rank) taken += Bytes(static_cast<int64_t>(p));
        }
        break;
      case CollectiveKind::kBarrier:
      case CollectiveKind::kCustom:
        break;
    }
  }

  void AddTables() {
    std::vector<Holding> before, after;
    for (int32_t p = 0; p < collective_.num_parts(); ++p) {
      if (Bytes(p) == 0) continue;
      collective_.Before(collective_.FirstChunk(PartId(p)), before);
      for (int32_t i = 0; i < collective_.ChunksOf(PartId(p)); ++i) {
        collective_.After(ChunkId(collective_.FirstChunk(PartId(p)).value + i), after);
        if (!after.empty()) break;
      }
      for (const Holding& wanted : after) {
        const bool met = std::ranges::any_of(before, [&](const Holding& held) {
          return held.rank == wanted.rank && std::ranges::equal(held.contributions, wanted.contributions);
        });
        if (!met) in[wanted.rank.index()] += Bytes(p);
      }
      for (const Holding& held : before) {
        const auto needed_elsewhere = [&](Rank contribution) {
          const auto has = [&](const Holding& h) {
            return h.rank != held.rank && std::ranges::binary_search(h.contributions, contribution);
          };
          return std::ranges::none_of(before, has) && std::ranges::any_of(after, has);
        };
        if (std::ranges::any_of(held.contributions, needed_elsewhere)) out[held.rank.index()] += Bytes(p);
      }
    }
  }

  const Collective& collective_;
  const CollectiveSizes& sizes_;

 public:
  std::vector<double> in, out;
};

}  // namespace

double DegreeBoundPs(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes) {
  const Traffic traffic(topology, collective, sizes);
  double seconds = 0;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) {
    const NodeId node = topology.NodeOf(Rank(r));
    double in = 0, out = 0;
    for (LinkId l : topology.In(node)) in += static_cast<double>(topology.link(l).bandwidth_bytes_per_s);
    for (LinkId l : topology.Out(node)) out += static_cast<double>(topology.link(l).bandwidth_bytes_per_s);
    const size_t i = static_cast<size_t>(r);
    if (traffic.in[i] > 0) seconds = std::max(seconds, traffic.in[i] / in);
    if (traffic.out[i] > 0) seconds = std::max(seconds, traffic.out[i] / out);
  }
  return seconds * static_cast<double>(kPsPerSecond);
}

}  // namespace xccl
