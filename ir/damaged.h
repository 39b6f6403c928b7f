// Compressed schedules of damaged machines. The whole machine has the links that failed, and slow links have
// their full bandwidth there (topologies/whole.h). A schedule with `missing` links is one of the whole
// machine: its generators and the links of its paths are of that machine. A translate whose path passes a
// damaged link takes detours. docs/ir.md, section 3.
//
// Work and memory grow with the damaged translates: those whose paths pass a damaged link.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/schedule.h"
#include "ir/sizes.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

inline bool IsOfDamaged(const Schedule& schedule) { return !schedule.missing.empty(); }

// The machine that the schedule's symmetry keeps. Errors: those of MakeWhole.
StatusOr<Topology> WholeOf(const Schedule& schedule, const Topology& topology);

// The machine that the symmetry of a schedule keeps: the machine itself if nothing is missing. Requires: the
// schedule verifies, and the topology outlives it.
class SymmetricMachine {
 public:
  SymmetricMachine(const Schedule& schedule, const Topology& topology) : topology_(topology) {
    if (IsOfDamaged(schedule)) whole_ = WholeOf(schedule, topology).value();
  }
  const Topology& operator*() const { return whole_ ? *whole_ : topology_; }

 private:
  const Topology& topology_;
  std::optional<Topology> whole_;
};

// Leads paths around damaged links.
class Detours {
 public:
  // Requires: the topologies and the detours outlive it.
  Detours(const Topology& whole, const MissingLinks& missing, std::span<const Detour> detours);

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

// Calls visit(kind, path) for every translate of a kind that passes a damaged link. `path` may be changed.
void ForEachDamaged(const PathKinds& kinds, const Detours& detours, const MissingLinks& missing,
                    const Topology& whole, const SymmetryGroup& group,
                    const std::function<void(int32_t, std::vector<LinkId>&)>& visit);

// The bytes that a translate of each kind carries, and those of the columns on the links of each orbit.
std::vector<double> BytesOfKinds(const Schedule& schedule, const CollectiveSizes& sizes,
                                 const PathKinds& kinds);
std::vector<double> BytesOfOrbits(const PathKinds& kinds, std::span<const double> bytes,
                                  const SymmetryGroup& group);

// A machine on which each link of an orbit is as slow as the slowest one: with the bytes of detours, the
// missing bandwidth, and the latency by which detours are longer.
struct SlowedMachine {
  Topology topology;     // the whole machine's nodes and links
  int64_t least_ps = 0;  // what links need for detours that no path of the columns takes
};
SlowedMachine SlowedOf(const Schedule& schedule, const CollectiveSizes& sizes, const Topology& topology,
                       const SymmetryGroup& group);

}  // namespace xccl
