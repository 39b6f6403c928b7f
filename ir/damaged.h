// Compressed schedules of damaged machines. The whole machine has the hosts and links that are lost, and slow
// links have their full bandwidth there (topologies/whole.h). A schedule with `missing` hosts or links is one
// of the whole machine: its generators and the links of its paths are of that machine, and so are its ranks
// and chunks. A translate whose path passes a damaged link takes detours. Ranks of lost hosts take no part
// (ir/taken_over.h). docs/ir.md, section 3.
//
// Work and memory grow with the damaged translates, those whose paths pass a damaged link, and with the lost
// ranks × the paths of the columns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/sizes.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

inline bool IsOfDamaged(const Schedule& schedule) { return !schedule.missing.empty(); }
inline bool HasLostHosts(const Schedule& schedule) { return !schedule.missing.hosts.empty(); }

// True if the node of the whole machine is one of a lost host.
inline bool IsLost(NodeId n, const Topology& whole, const MissingLinks& missing) {
  const std::optional<HostId> host = whole.node(n).host;
  return host && host->value >= whole.num_hosts() - std::ssize(missing.hosts);
}
// The ranks of lost hosts, which are the last ones.
std::vector<Rank> LostRanks(const Topology& whole, const MissingLinks& missing);

// The machine that the schedule's symmetry keeps. Errors: those of MakeWhole.
StatusOr<Topology> WholeOf(const Schedule& schedule, const Topology& topology);

// The collective that the columns are of. With lost hosts it has the ranks of these, too, as its last
// members, and as many chunks for each. Errors: kInvalidInput if the collective has no such form.
StatusOr<Collective> WholeOf(const MissingLinks& missing, const Collective& collective,
                             const Topology& whole);

// The size at which a part of the whole machine's collective has the bytes that it has in the collective.
int64_t WholeSizeBytes(const Collective& collective, const Collective& whole, int64_t size_bytes);

// The machine and the collective that the symmetry of a schedule keeps: those that are given if nothing is
// missing. Requires: the schedule verifies, and the arguments outlive it.
class SymmetricMachine {
 public:
  SymmetricMachine(const Schedule& schedule, const Collective& collective, const Topology& topology)
      : collective_(collective), topology_(topology) {
    if (IsOfDamaged(schedule)) whole_ = WholeOf(schedule, topology).value();
    if (HasLostHosts(schedule)) of_all_ = WholeOf(schedule.missing, collective, *whole_).value();
  }
  const Topology& operator*() const { return whole_ ? *whole_ : topology_; }
  const Collective& collective() const { return of_all_ ? *of_all_ : collective_; }

 private:
  const Collective& collective_;
  const Topology& topology_;
  std::optional<Topology> whole_;
  std::optional<Collective> of_all_;
};

// The links that are lost or slow.
std::vector<LinkId> DamagedLinks(const MissingLinks& missing, int32_t links_of_whole);

// Where a chain of links comes back to a node, leaves out the links between.
void CutLoops(const Topology& topology, std::vector<LinkId>& links);

// Leads paths around damaged links.
class Detours {
 public:
  // Requires: the topologies and the detours outlive it.
  Detours(const Topology& whole, const MissingLinks& missing, std::span<const Detour> detours);

  std::span<const Detour> rows() const { return detours_; }
  bool IsDamaged(LinkId l) const { return damaged_[l.index()]; }
  // Goes along the path. Where a detour's links begin, the longest such detour is taken; then where the path
  // comes back to a node, the links between are left out. Returns true if the path changed.
  bool Apply(std::vector<LinkId>& path) const;

 private:
  const Detour* Find(std::span<const LinkId> path) const;

  const Topology& whole_;
  std::span<const Detour> detours_;
  std::vector<bool> damaged_;                                 // by link
  std::unordered_map<int32_t, std::vector<size_t>> lengths_;  // of rows by first link, the longest first
  std::unordered_map<uint64_t, std::vector<size_t>> rows_;    // detours by the hash of their row
  mutable std::vector<LinkId> taken_;
};

// The paths that are no translates of each other: each begins at the lowest rank of an orbit.
struct PathKinds {
  PathTable paths;
  std::vector<int32_t> of_path;  // by path of the schedule: its kind
};
// Requires: chains of links that begin at GPUs.
PathKinds PathKindsOf(const PathTable& paths, const Topology& whole, const SymmetryGroup& group);

// kCut: paths without the links at their ends that are not damaged, in no row of a detour, or damaged only
// where an end of the path is lost. Paths that are alike then are one.
enum class EndLinks : uint8_t { kKept, kCut };
// Calls visit(path, bytes) for every translate of a kind, between ranks that are not lost, that passes a
// damaged link. `path` may be changed. `bytes`: of a translate of each kind, or none; a path has the bytes of
// all that are one with it.
void ForEachDamaged(const PathKinds& kinds, std::span<const double> bytes, const Detours& detours,
                    const MissingLinks& missing, const Topology& whole, const SymmetryGroup& group,
                    EndLinks ends, const std::function<void(std::vector<LinkId>&, double)>& visit);

// The bytes that a translate of each kind carries, and those of the columns on the links of each orbit.
std::vector<double> BytesOfKinds(const Schedule& schedule, const CollectiveSizes& sizes,
                                 const PathKinds& kinds);
std::vector<double> BytesOfOrbits(const PathKinds& kinds, std::span<const double> bytes,
                                  const SymmetryGroup& group);

}  // namespace xccl
