// Elements that take a link to a damaged link are found by orbits: all images of the orbit's lowest link are
// sorted once. An abelian group takes a link l = g·r to f by the elements h·g^-1 with h·r = f.
#include "ir/damaged.h"

#include <algorithm>
#include <utility>

#include "base/units.h"

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

std::vector<LinkId> DamagedLinks(const MissingLinks& missing, int32_t links) {
  std::vector<LinkId> damaged;
  for (const auto& [link, bandwidth] : missing.slow) damaged.push_back(link);
  for (size_t i = 0; i < missing.lost.size(); ++i)
    damaged.push_back(
        LinkId(static_cast<int64_t>(links) - std::ssize(missing.lost) + static_cast<int64_t>(i)));
  return damaged;
}

uint64_t HashOf(std::span<const LinkId> links) {
  uint64_t hash = 14695981039346656037ULL;  // FNV-1a, a link at a time
  for (const LinkId l : links) hash = (hash ^ static_cast<uint64_t>(l.value)) * 1099511628211ULL;
  return hash;
}

int64_t LatencyOf(const Topology& topology, std::span<const LinkId> path) {
  int64_t latency = 0;
  for (const LinkId l : path) latency += topology.link(l).latency_ps + topology.link(l).overhead_ps;
  return latency;
}

}  // namespace

StatusOr<Topology> WholeOf(const Schedule& schedule, const Topology& topology) {
  return MakeWhole(topology, schedule.missing);
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
  path.clear();
  for (const LinkId l : taken_) {
    const NodeId to = whole_.link(l).to;
    size_t keep = path.size();
    for (size_t i = 0; i < path.size() && keep == path.size(); ++i)
      if (whole_.link(path[i]).from == to) keep = i;
    if (keep == path.size())
      path.push_back(l);
    else
      path.resize(keep);
  }
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

void ForEachDamaged(const PathKinds& kinds, const Detours& detours, const MissingLinks& missing,
                    const Topology& whole, const SymmetryGroup& group,
                    const std::function<void(int32_t, std::vector<LinkId>&)>& visit) {
  std::unordered_map<int32_t, std::vector<LinkId>> damaged;  // by orbit
  for (const LinkId l : DamagedLinks(missing, whole.num_links())) damaged[group.OrbitOf(l)].push_back(l);
  std::unordered_map<int32_t, Carriers> carriers;
  std::vector<LinkId> path;
  for (int32_t k = 0; k < kinds.paths.size(); ++k) {
    const std::span<const LinkId> links = kinds.paths[PathId(k)];
    for (size_t i = 0; i < links.size(); ++i) {
      const int32_t orbit = group.OrbitOf(links[i]);
      const auto found = damaged.find(orbit);
      if (found == damaged.end()) continue;
      const Carriers& carrier = carriers.try_emplace(orbit, group, orbit).first->second;
      for (const LinkId broken : found->second)
        carrier.ForEach(links[i], broken, [&](int64_t e) {
          path.clear();
          for (const LinkId l : links) path.push_back(group.Image(e, l));
          // A path is visited for the first of its damaged links.
          if (std::find_if(path.begin(), path.end(), [&](LinkId l) { return detours.IsDamaged(l); }) ==
              path.begin() + static_cast<std::ptrdiff_t>(i))
            visit(k, path);
        });
    }
  }
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

namespace {

// How detours change the links.
struct Changes {
  std::unordered_map<int32_t, double> bytes;       // by link; damaged links are there in any case
  std::unordered_map<int32_t, int64_t> longer_ps;  // by orbit of damaged links: the most
};

Changes ChangesOf(const Schedule& schedule, const PathKinds& kinds, std::span<const double> bytes,
                  const Topology& whole, const SymmetryGroup& group) {
  const Detours detours(whole, schedule.missing, schedule.detours);
  Changes changes;
  std::vector<LinkId> before;
  for (const LinkId l : DamagedLinks(schedule.missing, whole.num_links())) changes.bytes[l.value] = 0;
  ForEachDamaged(kinds, detours, schedule.missing, whole, group, [&](int32_t k, std::vector<LinkId>& path) {
    before = path;
    if (!detours.Apply(path)) return;
    for (const LinkId l : before) changes.bytes[l.value] -= bytes[static_cast<size_t>(k)];
    for (const LinkId l : path) changes.bytes[l.value] += bytes[static_cast<size_t>(k)];
    const auto broken = std::ranges::find_if(before, [&](LinkId l) { return detours.IsDamaged(l); });
    int64_t& longer = changes.longer_ps[group.OrbitOf(*broken)];
    longer = std::max(longer, LatencyOf(whole, path) - LatencyOf(whole, before));
  });
  return changes;
}

}  // namespace

SlowedMachine SlowedOf(const Schedule& schedule, const CollectiveSizes& sizes, const Topology& topology,
                       const SymmetryGroup& group) {
  const Topology whole = WholeOf(schedule, topology).value();
  const PathKinds kinds = PathKindsOf(schedule.paths, whole, group);
  const std::vector<double> bytes = BytesOfKinds(schedule, sizes, kinds);
  const std::vector<double> columns = BytesOfOrbits(kinds, bytes, group);
  const Changes changes = ChangesOf(schedule, kinds, bytes, whole, group);
  // By orbit: the most seconds that a link needs for its bytes.
  std::unordered_map<int32_t, double> seconds;
  for (const auto& [link, changed] : changes.bytes) {
    const LinkId l(link);
    const int32_t orbit = group.OrbitOf(l);
    double& most = seconds[orbit];
    const double all = columns[static_cast<size_t>(orbit)] * group.LinkShare(orbit);
    most = std::max(most, all / static_cast<double>(whole.link(l).bandwidth_bytes_per_s));
    if (link >= topology.num_links()) continue;  // it lost all of its bytes
    most = std::max(most, (all + changed) / static_cast<double>(topology.link(l).bandwidth_bytes_per_s));
  }
  TopologySpec spec = whole.spec();
  double least_s = 0;
  for (size_t l = 0; l < spec.links.size(); ++l) {
    Link& link = spec.links[l];
    const int32_t orbit = group.OrbitOf(LinkId(static_cast<int64_t>(l)));
    const int64_t share = group.order() / group.LinkOrbitSize(orbit);
    link.bandwidth_bytes_per_s /= share;
    if (const auto slow = seconds.find(orbit); slow != seconds.end()) {
      least_s = std::max(least_s, slow->second);
      if (columns[static_cast<size_t>(orbit)] > 0)
        link.bandwidth_bytes_per_s =
            std::min(link.bandwidth_bytes_per_s,
                     static_cast<int64_t>(columns[static_cast<size_t>(orbit)] / slow->second));
    }
    link.bandwidth_bytes_per_s = std::max<int64_t>(1, link.bandwidth_bytes_per_s);
    link.overhead_ps = std::min(kForeverPs, link.overhead_ps) * share;
    if (const auto longer = changes.longer_ps.find(orbit); longer != changes.longer_ps.end())
      link.latency_ps = std::min(kForeverPs, link.latency_ps + longer->second);
  }
  return {Topology::Create(std::move(spec)).value(),
          static_cast<int64_t>(
              std::min(least_s * static_cast<double>(kPsPerSecond), static_cast<double>(kForeverPs)))};
}

}  // namespace xccl
