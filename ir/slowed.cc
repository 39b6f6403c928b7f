// Keeps loads by link where the damage changes them, and by orbit where it does not.
#include "ir/slowed.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/damaged.h"
#include "ir/taken_over.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

int64_t LatencyOf(const Topology& topology, std::span<const LinkId> path) {
  int64_t latency = 0;
  for (const LinkId l : path) latency += topology.link(l).latency_ps + topology.link(l).overhead_ps;
  return latency;
}

// How the damage changes the links.
struct Changes {
  std::unordered_map<int32_t, double> bytes;       // by link: additional bytes; has all damaged links
  std::unordered_map<int32_t, int64_t> longer_ps;  // by orbit of links: the most by which a path takes longer
};

class Changing {
 public:
  Changing(const Schedule& schedule, const CollectiveSizes& sizes, const PathKinds& kinds,
           std::span<const double> bytes, const Topology& whole, const Translations& translations)
      : schedule_(schedule),
        sizes_(sizes),
        kinds_(kinds),
        bytes_(bytes),
        whole_(whole),
        translations_(translations),
        group_(translations.group()),
        detours_(whole, schedule.missing, schedule.detours) {}

  Changes Find() {
    for (const LinkId l : DamagedLinks(schedule_.missing, whole_.num_links())) changes_.bytes[l.value] = 0;
    TakeDetours();
    if (HasLostHosts(schedule_)) {
      LeaveOutLost();
      TakeOver();
    }
    return std::move(changes_);
  }

 private:
  void Load(std::span<const LinkId> path, double bytes) {
    for (const LinkId l : path) changes_.bytes[l.value] += bytes;
  }
  // Notes that `path` takes the place of the path `before`, which has the link.
  void Lengthen(LinkId link, std::span<const LinkId> path, std::span<const LinkId> before) {
    int64_t& longer = changes_.longer_ps[group_.OrbitOf(link)];
    longer = std::max(longer, LatencyOf(whole_, path) - LatencyOf(whole_, before));
  }

  void TakeDetours() {
    std::vector<LinkId> before;
    ForEachDamaged(kinds_, bytes_, detours_, schedule_.missing, whole_, group_, EndLinks::kCut,
                   [&](std::vector<LinkId>& path, double bytes) {
                     before = path;
                     if (!detours_.Apply(path)) return;
                     Load(before, -bytes);
                     Load(path, bytes);
                     Lengthen(*std::ranges::find_if(before, [&](LinkId l) { return detours_.IsDamaged(l); }),
                              path, before);
                   });
  }

  // Takes away the bytes that lost ranks would send and receive. Bytes of their chunks between other ranks
  // stay, so loads are rather too large.
  void LeaveOutLost() {
    const auto is_lost = [&](Rank r) { return IsLost(whole_.NodeOf(r), whole_, schedule_.missing); };
    std::vector<LinkId> links;
    for (const Rank lost : LostRanks(whole_, schedule_.missing))
      for (int32_t k = 0; k < kinds_.paths.size(); ++k)
        for (const bool sends : {true, false}) {
          const std::span<const LinkId> path = kinds_.paths[PathId(k)];
          const Rank src = *whole_.RankOf(whole_.link(path.front()).from),
                     dst = *whole_.RankOf(whole_.link(path.back()).to), end = sends ? src : dst;
          if (group_.OrbitOf(end) != group_.OrbitOf(lost)) continue;
          const int64_t e = group_.Compose(group_.ElementOf(lost), group_.Inverse(group_.ElementOf(end)));
          if (!sends && is_lost(group_.Image(e, src))) continue;
          links.clear();
          for (const LinkId l : path) links.push_back(group_.Image(e, l));
          Load(links, -bytes_[static_cast<size_t>(k)]);
        }
  }

  void TakeOver() {
    const PathsBetween paths(schedule_, kinds_, whole_, group_);
    std::vector<LinkId> path, before;
    for (const TakenOver& t : TransfersTakenOver(schedule_, translations_, whole_)) {
      if (!paths.Find(t.src, t.dst, path)) continue;
      Load(path, static_cast<double>(sizes_.ChunkBytes(t.chunk)));
      if (paths.FindTranslate(t.heir_sends ? t.lost : t.src, t.heir_sends ? t.dst : t.lost, before))
        Lengthen(before.front(), path, before);
    }
  }

  const Schedule& schedule_;
  const CollectiveSizes& sizes_;
  const PathKinds& kinds_;
  const std::span<const double> bytes_;
  const Topology& whole_;
  const Translations& translations_;
  const SymmetryGroup& group_;
  const Detours detours_;
  Changes changes_;
};

}  // namespace

SlowedMachine SlowedOf(const Schedule& schedule, const CollectiveSizes& sizes, const Topology& topology,
                       const Translations& translations) {
  const Topology whole = WholeOf(schedule, topology).value();
  const SymmetryGroup& group = translations.group();
  const PathKinds kinds = PathKindsOf(schedule.paths, whole, group);
  const std::vector<double> bytes = BytesOfKinds(schedule, sizes, kinds);
  const std::vector<double> columns = BytesOfOrbits(kinds, bytes, group);
  const Changes changes = Changing(schedule, sizes, kinds, bytes, whole, translations).Find();
  // By orbit: the most seconds that a link needs for its bytes.
  std::unordered_map<int32_t, double> seconds;
  for (const auto& [link, changed] : changes.bytes) {
    const LinkId l(link);
    const int32_t orbit = group.OrbitOf(l);
    double& most = seconds[orbit];
    const double all = columns[static_cast<size_t>(orbit)] * group.LinkShare(orbit);
    most = std::max(most, all / static_cast<double>(whole.link(l).bandwidth_bytes_per_s));
    if (link >= topology.num_links()) continue;  // a lost link carries nothing
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
