// Finds the elements of the group that take a link l to a damaged link f of one orbit. Let r be the lowest
// link of the orbit, and g an element with g·r = l. The group is abelian, so the elements are h·g^-1 for all
// h with h·r = f. All images of r are sorted once, and binary search finds g and every h.
#include "ir/damaged.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace xccl {
namespace {

// The elements that take the lowest link of an orbit to each of its links.
class Carriers {
 public:
  Carriers(const SymmetryGroup& group, int32_t orbit) : group_(group) {
    const LinkId lowest = group.LinkRepresentative(orbit);
    pairs_.reserve(static_cast<size_t>(group.order()));
    for (int64_t e = 0; e < group.order(); ++e) pairs_.emplace_back(group.Image(e, lowest).value, e);
    std::ranges::sort(pairs_);
  }
  // Calls visit(e) for each element that takes one link of the orbit to the other.
  template <typename Visit>
  void ForEach(LinkId from, LinkId to, Visit visit) const {
    const int64_t back = group_.Inverse(First(from)->second);
    for (auto at = First(to); at != pairs_.end() && at->first == to.value; ++at)
      visit(group_.Compose(at->second, back));
  }

 private:
  std::vector<std::pair<int32_t, int64_t>>::const_iterator First(LinkId l) const {
    return std::ranges::lower_bound(pairs_, std::pair<int32_t, int64_t>(l.value, 0));
  }
  const SymmetryGroup& group_;
  std::vector<std::pair<int32_t, int64_t>> pairs_;  // (image, element)
};

uint64_t HashOf(std::span<const LinkId> links) {
  uint64_t hash = 14695981039346656037ULL;  // FNV-1a, a link at a time
  for (const LinkId l : links) hash = (hash ^ static_cast<uint64_t>(l.value)) * 1099511628211ULL;
  return hash;
}

}  // namespace

std::vector<LinkId> DamagedLinks(const MissingLinks& missing, int32_t links_of_whole) {
  std::vector<LinkId> damaged;
  for (const auto& [link, bandwidth] : missing.slow) damaged.push_back(link);
  for (size_t i = 0; i < missing.lost.size(); ++i)
    damaged.push_back(
        LinkId(static_cast<int64_t>(links_of_whole) - std::ssize(missing.lost) + static_cast<int64_t>(i)));
  return damaged;
}

std::vector<Rank> LostRanks(const Topology& whole, const MissingLinks& missing) {
  std::vector<Rank> ranks;
  for (int32_t r = 0; r < whole.num_ranks(); ++r)
    if (IsLost(whole.NodeOf(Rank(r)), whole, missing)) ranks.emplace_back(r);
  return ranks;
}

StatusOr<Topology> WholeOf(const Schedule& schedule, const Topology& topology) {
  return MakeWhole(topology, schedule.missing);
}

StatusOr<Collective> WholeOf(const MissingLinks& missing, const Collective& collective,
                             const Topology& whole) {
  const CollectiveKind kind = collective.kind();
  if (kind != CollectiveKind::kAllgather && kind != CollectiveKind::kReduceScatter &&
      kind != CollectiveKind::kAllreduce && kind != CollectiveKind::kAlltoall)
    return InvalidInput(
        fmt::format("lost hosts in a plan of {}; expected allgather, reduce_scatter, allreduce or alltoall",
                    collective.name()));
  const std::vector<Rank> lost = LostRanks(whole, missing);
  const int32_t members = collective.num_members(),
                ranks = whole.num_ranks() - static_cast<int32_t>(lost.size());
  for (const Rank r : collective.ranks())
    if (r.value >= ranks) return InvalidInput(fmt::format("no rank {}; ranks are 0..{}", r.value, ranks - 1));
  if (members != ranks)
    return InvalidInput(fmt::format("{} of {} ranks; expected all, since hosts are lost", members, ranks));
  const int32_t blocks = kind == CollectiveKind::kAllreduce ? members : 1;
  if (collective.even_chunks() == 0 || collective.even_chunks() % blocks != 0)
    return InvalidInput(fmt::format("chunks of {} that differ from rank to rank; expected as many equal ones",
                                    collective.name()));
  const int32_t chunks = collective.even_chunks() / blocks;
  CollectiveSpec spec = collective.spec();
  spec.ranks.insert(spec.ranks.end(), lost.begin(), lost.end());
  XCCL_ASSIGN_OR_RETURN(const Collective of_all, Collective::Create(std::move(spec)));
  return of_all.WithChunks(chunks * (kind == CollectiveKind::kAllreduce ? of_all.num_members() : 1));
}

int64_t WholeSizeBytes(const Collective& collective, const Collective& whole, int64_t size_bytes) {
  if (whole.num_members() == collective.num_members()) return size_bytes;
  const auto rounded_up = [](int64_t n, int64_t by) { return (n + by - 1) / by; };
  const int64_t part_bytes = rounded_up(size_bytes, collective.num_members());
  return rounded_up(part_bytes, kDefaultElementBytes) * kDefaultElementBytes * whole.num_members();
}

Detours::Detours(const Topology& whole, const MissingLinks& missing, std::span<const Detour> detours)
    : whole_(whole), detours_(detours), damaged_(static_cast<size_t>(whole.num_links()), false) {
  for (const LinkId l : DamagedLinks(missing, whole.num_links())) damaged_[l.index()] = true;
  for (size_t d = 0; d < detours.size(); ++d) {
    const std::vector<LinkId>& links = detours[d].links;
    if (links.empty()) continue;
    rows_[HashOf(links)].push_back(d);
    std::vector<size_t>& lengths = lengths_[links.front().value];
    if (std::ranges::find(lengths, links.size()) == lengths.end()) lengths.push_back(links.size());
  }
  for (auto& [link, lengths] : lengths_) std::ranges::sort(lengths, std::greater<>());
}

// Returns the longest detour whose row the path begins with, or null.
const Detour* Detours::Find(std::span<const LinkId> path) const {
  const auto lengths = lengths_.find(path.front().value);
  if (lengths == lengths_.end()) return nullptr;
  for (const size_t length : lengths->second) {
    if (length > path.size()) continue;
    const std::span<const LinkId> row = path.first(length);
    const auto found = rows_.find(HashOf(row));
    if (found == rows_.end()) continue;
    for (const size_t d : found->second)
      if (std::ranges::equal(detours_[d].links, row)) return &detours_[d];
  }
  return nullptr;
}

void CutLoops(const Topology& topology, std::vector<LinkId>& links) {
  size_t kept = 0;
  for (const LinkId l : links) {
    const NodeId to = topology.link(l).to;
    size_t back = 0;
    while (back < kept && topology.link(links[back]).from != to) ++back;
    if (back == kept)
      links[kept++] = l;
    else
      kept = back;
  }
  links.resize(kept);
}

bool Detours::Apply(std::vector<LinkId>& path) const {
  taken_.clear();
  bool changed = false;
  for (size_t i = 0; i < path.size();) {
    const Detour* const detour = Find(std::span(path).subspan(i));
    if (detour == nullptr) {
      taken_.push_back(path[i++]);
      continue;
    }
    changed = true;
    taken_.insert(taken_.end(), detour->by.begin(), detour->by.end());
    i += detour->links.size();
  }
  if (!changed) return false;
  path = taken_;
  CutLoops(whole_, path);
  return true;
}

PathKinds PathKindsOf(const PathTable& paths, const Topology& whole, const SymmetryGroup& group) {
  PathKinds kinds;
  std::vector<LinkId> links;
  for (int32_t p = 0; p < paths.size(); ++p) {
    links.assign(paths[PathId(p)].begin(), paths[PathId(p)].end());
    const Rank tail = *whole.RankOf(whole.link(links.front()).from);
    const int64_t back = group.Inverse(group.ElementOf(tail));
    for (LinkId& l : links) l = group.Image(back, l);
    kinds.of_path.push_back(kinds.paths.Intern(links).value);
  }
  return kinds;
}

namespace {

// Visits the damaged translates. A head is a kind without the last links that EndLinks::kCut drops. Kinds
// with equal heads are visited as one.
class Heads {
  // The most lost ranks × kinds for which last links are dropped. Each pair takes about 32 bytes, so that all
  // take at most 128 MiB.
  static constexpr int64_t kMostEnds = int64_t{1} << 22;

 public:
  Heads(const PathKinds& kinds, std::span<const double> bytes, const Detours& detours,
        const MissingLinks& missing, const Topology& whole, const SymmetryGroup& group, EndLinks ends)
      : detours_(detours), missing_(missing), whole_(whole), group_(group) {
    for (const LinkId l : DamagedLinks(missing, whole.num_links())) damaged_[group.OrbitOf(l)].push_back(l);
    for (const Detour& detour : detours.rows())
      for (const LinkId l : detour.links) in_rows_.insert(group.OrbitOf(l));
    const std::vector<Rank> lost_ranks = LostRanks(whole, missing);
    if (std::ssize(lost_ranks) * kinds.paths.size() > kMostEnds) ends = EndLinks::kKept;
    std::vector<int32_t> of_kind;
    for (int32_t k = 0; k < kinds.paths.size(); ++k) {
      const std::span<const LinkId> links = kinds.paths[PathId(k)];
      const size_t kept = ends == EndLinks::kKept ? links.size() : LinksKept(links);
      of_kind.push_back(kept == 0 ? -1 : paths_.Intern(links.first(kept)).value);
      if (kept == 0) continue;
      all_.resize(static_cast<size_t>(paths_.size()));
      Sum& sum = all_[static_cast<size_t>(of_kind.back())];
      ++sum.kinds;
      sum.bytes += bytes.empty() ? 0 : bytes[static_cast<size_t>(k)];
    }
    // Adds up the translates that end at a lost rank. ForEachDamaged() subtracts them.
    for (const Rank m : lost_ranks)
      for (int32_t k = 0; ends == EndLinks::kCut && k < kinds.paths.size(); ++k) {
        const Rank end = EndOf(kinds.paths[PathId(k)]);
        if (of_kind[static_cast<size_t>(k)] < 0 || group.OrbitOf(end) != group.OrbitOf(m)) continue;
        const int64_t e = group.Compose(group.ElementOf(m), group.Inverse(group.ElementOf(end)));
        Sum& sum = lost_[KeyOf(of_kind[static_cast<size_t>(k)], e)];
        ++sum.kinds;
        sum.bytes += bytes.empty() ? 0 : bytes[static_cast<size_t>(k)];
      }
  }

  void ForEachDamaged(const std::function<void(std::vector<LinkId>&, double)>& visit) {
    std::vector<LinkId> path;
    for (int32_t h = 0; h < paths_.size(); ++h) {
      const std::span<const LinkId> links = paths_[PathId(h)];
      for (size_t i = 0; i < links.size(); ++i) {
        const auto found = damaged_.find(group_.OrbitOf(links[i]));
        if (found == damaged_.end()) continue;
        const Carriers& carriers = CarriersOf(found->first);
        for (const LinkId broken : found->second)
          carriers.ForEach(links[i], broken, [&](int64_t e) {
            Sum sum = all_[static_cast<size_t>(h)];
            if (const auto lost = lost_.find(KeyOf(h, e)); lost != lost_.end()) {
              sum.kinds -= lost->second.kinds;
              sum.bytes -= lost->second.bytes;
            }
            const auto is_lost = [&](NodeId n) { return IsLost(group_.Image(e, n), whole_, missing_); };
            if (sum.kinds == 0 || is_lost(whole_.link(links.front()).from) ||
                is_lost(whole_.link(links.back()).to))
              return;
            path.clear();
            for (const LinkId l : links) path.push_back(group_.Image(e, l));
            // A path with several damaged links is visited only for the first of them.
            if (std::find_if(path.begin(), path.end(), [&](LinkId l) { return detours_.IsDamaged(l); }) ==
                path.begin() + static_cast<std::ptrdiff_t>(i))
              visit(path, sum.bytes);
          });
      }
    }
  }

 private:
  // Sums over all kinds of a head, or over the kinds whose translate under one element ends at a lost rank.
  struct Sum {
    int32_t kinds = 0;
    double bytes = 0;
  };

  uint64_t KeyOf(int32_t head, int64_t e) const {
    return static_cast<uint64_t>(head) * static_cast<uint64_t>(group_.order()) + static_cast<uint64_t>(e);
  }
  Rank EndOf(std::span<const LinkId> links) const { return *whole_.RankOf(whole_.link(links.back()).to); }
  const Carriers& CarriersOf(int32_t orbit) {
    return carriers_.try_emplace(orbit, group_, orbit).first->second;
  }

  // Returns how many links of a kind's path EndLinks::kCut keeps. A last link is kept if a detour replaces
  // it, or if it is damaged in a translate between ranks that are not lost.
  size_t LinksKept(std::span<const LinkId> links) {
    const NodeId from = whole_.link(links.front()).from, to = whole_.link(links.back()).to;
    const auto is_lost = [&](int64_t e, NodeId n) { return IsLost(group_.Image(e, n), whole_, missing_); };
    size_t kept = links.size();
    for (; kept > 0; --kept) {
      const LinkId last = links[kept - 1];
      const int32_t orbit = group_.OrbitOf(last);
      if (in_rows_.contains(orbit)) break;
      const auto found = damaged_.find(orbit);
      if (found == damaged_.end()) continue;
      bool changes = false;
      for (const LinkId broken : found->second) {
        CarriersOf(orbit).ForEach(
            last, broken, [&](int64_t e) { changes = changes || !(is_lost(e, to) || is_lost(e, from)); });
        if (changes) break;
      }
      if (changes) break;
    }
    return kept;
  }

  const Detours& detours_;
  const MissingLinks& missing_;
  const Topology& whole_;
  const SymmetryGroup& group_;
  std::unordered_map<int32_t, std::vector<LinkId>> damaged_;  // by orbit
  std::unordered_set<int32_t> in_rows_;                       // orbits of links that detours replace
  std::unordered_map<int32_t, Carriers> carriers_;            // by orbit
  PathTable paths_;
  std::vector<Sum> all_;                    // by head
  std::unordered_map<uint64_t, Sum> lost_;  // by head and element
};

}  // namespace

void ForEachDamaged(const PathKinds& kinds, std::span<const double> bytes, const Detours& detours,
                    const MissingLinks& missing, const Topology& whole, const SymmetryGroup& group,
                    EndLinks ends, const std::function<void(std::vector<LinkId>&, double)>& visit) {
  Heads(kinds, bytes, detours, missing, whole, group, ends).ForEachDamaged(visit);
}

std::vector<double> BytesOfKinds(const Schedule& schedule, const CollectiveSizes& sizes,
                                 const PathKinds& kinds) {
  std::vector<double> bytes(static_cast<size_t>(kinds.paths.size()), 0);
  for (int64_t t = 0; t < schedule.size(); ++t)
    for (int32_t i = 0; i < schedule.count[t]; ++i)
      bytes[static_cast<size_t>(kinds.of_path[schedule.path[t].index()])] +=
          static_cast<double>(sizes.ChunkBytes(ChunkId(schedule.first[t].value + i)));
  return bytes;
}

std::vector<double> BytesOfOrbits(const PathKinds& kinds, std::span<const double> bytes,
                                  const SymmetryGroup& group) {
  std::vector<double> columns(static_cast<size_t>(group.num_link_orbits()), 0);
  for (int32_t k = 0; k < kinds.paths.size(); ++k)
    for (const LinkId l : kinds.paths[PathId(k)])
      columns[static_cast<size_t>(group.OrbitOf(l))] += bytes[static_cast<size_t>(k)];
  return columns;
}

}  // namespace xccl
