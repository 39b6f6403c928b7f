// Plans of single groups, each made once for all groups with identical surroundings. A plan is on the
// submachine of the members alone (topologies/submachine.h), where equal submachines have equal plans. Or it
// is on the whole machine with the other ranks as relays; groups that a translation of the machine takes to
// each other then share a plan. Links may have less bandwidth than the machine says: what other groups leave.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "ir/bounds/bound.h"
#include "ir/time_model.h"
#include "synth/common/synthesizer.h"
#include "synth/groups/groups.h"
#include "synth/groups/joint.h"
#include "topologies/submachine.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

struct MemberPlanOptions {
  std::string engine = kDefaultEngine;
  TimeModel model = TimeModel::kPipelined;
  uint64_t seed = 0;
  bool allow_divergent = false;
  Deadline deadline = Deadline();  // of all searches together
};

struct MemberPlan {
  GroupSchedule plan;
  std::string engine;
  int64_t time_ps = 0;  // on the links that it was made for
};

class MemberPlans {
 public:
  // Keeps references. Errors of later calls come from the engine.
  MemberPlans(const Topology& topology, const std::vector<ProcessGroup>& groups,
              const MemberPlanOptions& options);

  // Can the members do without relays?
  bool IsJoinedAlone(size_t group);
  // Requires: IsJoinedAlone. `eighths`, where given, is the share of each link that is available, 1..8.
  StatusOr<MemberPlan> Alone(size_t group, const std::vector<uint8_t>* eighths = nullptr);
  // A plan on links that lie between no other group's members, so that no other group uses them. Absent where
  // these links do not join the members, and where no other group has any link that Alone may use.
  StatusOr<std::optional<MemberPlan>> OnOwnLinks(size_t group);
  // A plan with relays, by the engine on the whole machine.
  StatusOr<MemberPlan> OnWhole(size_t group, const std::vector<uint8_t>* eighths = nullptr);
  // The lower bound of the group with the machine for itself.
  StatusOr<Bound> BoundOf(size_t group);

  // The number of times that an engine was asked.
  int64_t searches() const { return searches_; }
  // As Synthesis::faults, of all of them.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  struct Seen {  // a group on the whole machine
    size_t group = 0;
    std::optional<MemberPlan> plan;
    std::optional<Bound> bound;
  };
  const Submachine& SubmachineOf(size_t group);
  // The submachine without the links that other groups' submachines have, too.
  std::optional<Submachine> OwnLinksOf(size_t group);
  // Asks the engine for a plan on a submachine of the group whose links may be narrower in `machine`.
  StatusOr<MemberPlan> PlanOn(size_t group, const Submachine& alone, const Topology& machine,
                              const Collective& collective, bool rough);
  // Finds a seen group for which `has` holds and that a translation takes to this one; returns it with the
  // translation.
  std::optional<std::pair<const Seen*, int64_t>> Translate(size_t group, bool (*has)(const Seen&));
  // The engine's plan for the group on a machine, simulated, roughly where its time is shown nowhere.
  StatusOr<Synthesis> Ask(const Topology& machine, const Collective& collective, size_t group, bool rough);

  const Topology& topology_;
  const std::vector<ProcessGroup>& groups_;
  const MemberPlanOptions options_;
  std::vector<std::optional<Submachine>> submachines_;
  std::vector<int32_t> users_;  // by link: submachines that have it; empty: not counted
  std::map<std::vector<int64_t>, StatusOr<Synthesis>>
      alone_;  // by what the submachine and the collective are
  std::vector<Seen> seen_;
  std::optional<SymmetryGroup> translations_;
  int64_t searches_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace xccl
