// Compressed schedules of damaged machines. The whole machine (topologies/whole.h) has the lost hosts and
// links, too, and its slow links have their full bandwidth. A schedule whose `missing` is not empty is made
// for the whole machine: its generators, links, ranks and chunks are those of the whole machine. A translate
// whose path passes a damaged link takes detours. Ranks of lost hosts take no part (ir/taken_over.h).
// docs/ir.md, section 3.
//
// Work and memory grow with the number of translates whose paths pass a damaged link, and with the lost ranks
// × the paths of the columns.
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

// Returns whether a node of the whole machine belongs to a lost host.
inline bool IsLost(NodeId n, const Topology& whole, const MissingLinks& missing) {
  const std::optional<HostId> host = whole.node(n).host;
  return host && host->value >= whole.num_hosts() - std::ssize(missing.hosts);
}
// Returns the ranks of lost hosts, which are the last ranks of the whole machine.
std::vector<Rank> LostRanks(const Topology& whole, const MissingLinks& missing);

// Returns the whole machine, for which the schedule is made. Errors: those of MakeWhole.
StatusOr<Topology> WholeOf(const Schedule& schedule, const Topology& topology);

// Returns the collective for which the columns are made. If hosts are lost, the lost ranks are its last
// members, and each has as many chunks as any other member. Errors: kInvalidInput if the collective has no
// such form.
StatusOr<Collective> WholeOf(const MissingLinks& missing, const Collective& collective,
                             const Topology& whole);

// Returns the size of `whole` at which each member has as many bytes as in `collective` at `size_bytes`,
// rounded up.
int64_t WholeSizeBytes(const Collective& collective, const Collective& whole, int64_t size_bytes);

// The machine and the collective for which a schedule is made: those of the whole machine or, if nothing is
// missing, the given ones. Requires: the schedule verifies, and the arguments outlive it.
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

// Returns the links of the whole machine that are lost or slow.
std::vector<LinkId> DamagedLinks(const MissingLinks& missing, int32_t links_of_whole);

// Cuts loops out of a chain of links: if the chain comes back to a node, drops the links in between.
void CutLoops(const Topology& topology, std::vector<LinkId>& links);

// Leads paths around damaged links.
class Detours {
 public:
  // Requires: the topologies and the detours outlive it.
  Detours(const Topology& whole, const MissingLinks& missing, std::span<const Detour> detours);

  std::span<const Detour> rows() const { return detours_; }
  bool IsDamaged(LinkId l) const { return damaged_[l.index()]; }
  // Goes along the path, puts detours in the place of the links that they replace, and cuts loops. If several
  // detours fit at one place, takes the one that replaces the most links. Returns whether the path changed.
  bool Apply(std::vector<LinkId>& path) const;

 private:
  const Detour* Find(std::span<const LinkId> path) const;

  const Topology& whole_;
  std::span<const Detour> detours_;
  std::vector<bool> damaged_;  // by link
  // By first link: how many links the detours replace that begin there; the most first.
  std::unordered_map<int32_t, std::vector<size_t>> lengths_;
  std::unordered_map<uint64_t, std::vector<size_t>> rows_;  // detours by the hash of what they replace
  mutable std::vector<LinkId> taken_;
};

// One path of each kind; paths of one kind are translates of each other. The path of a kind begins at the
// lowest rank of an orbit.
struct PathKinds {
  PathTable paths;
  std::vector<int32_t> of_path;  // by path of the schedule: its kind
};
// Returns the kinds of paths. Requires: chains of links that begin at GPUs.
PathKinds PathKindsOf(const PathTable& paths, const Topology& whole, const SymmetryGroup& group);

// Whether ForEachDamaged keeps the last links of a path if the damage does not change them. kCut drops a last
// link that no detour replaces and that is not damaged in any translate between ranks that are not lost.
// Paths that are equal without such links are visited as one.
enum class EndLinks : uint8_t { kKept, kCut };
// Calls visit(path, bytes) for every translate of a kind that passes a damaged link between ranks that are
// not lost. `visit` may change the path. The list `bytes` has the bytes of a translate of each kind, or is
// empty. A path that stands for several paths is visited with the bytes of all of them.
void ForEachDamaged(const PathKinds& kinds, std::span<const double> bytes, const Detours& detours,
                    const MissingLinks& missing, const Topology& whole, const SymmetryGroup& group,
                    EndLinks ends, const std::function<void(std::vector<LinkId>&, double)>& visit);

// BytesOfKinds() returns the bytes that a translate of each kind carries. BytesOfOrbits() returns the bytes
// that the columns put on the links of each orbit.
std::vector<double> BytesOfKinds(const Schedule& schedule, const CollectiveSizes& sizes,
                                 const PathKinds& kinds);
std::vector<double> BytesOfOrbits(const PathKinds& kinds, std::span<const double> bytes,
                                  const SymmetryGroup& group);

}  // namespace xccl
