// Plans single groups, and reuses the plan of an earlier group with the same surroundings. A plan is made on
// one of two machines. The first is the submachine of the members alone (topologies/submachine.h); equal
// submachines have equal plans. The second is the whole machine, with the other ranks as relays; groups share
// a plan if a translation of the machine takes one to the other. Links may be narrowed to the bandwidth that
// other groups leave.
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
  Deadline deadline = Deadline();  // one deadline for all searches together
};

struct MemberPlan {
  GroupSchedule plan;
  std::string engine;
  int64_t time_ps = 0;  // on the links that the plan was made for
};

class MemberPlans {
 public:
  // Keeps references to all arguments except the options. Later calls return the engine's errors.
  MemberPlans(const Topology& topology, const std::vector<ProcessGroup>& groups,
              const MemberPlanOptions& options);

  // Returns true if the links between the members join all of them, without relays.
  bool IsJoinedAlone(size_t group);
  // Returns a plan without relays. Requires: IsJoinedAlone. `eighths`, if given, has for each link of the
  // whole machine the share of its bandwidth that is available, from 1 to 8.
  StatusOr<MemberPlan> Alone(size_t group, const std::vector<uint8_t>* eighths = nullptr);
  // Returns a plan on the links of the group's submachine that belong to no other group's submachine. Returns
  // nullopt if these links do not join the members, or if no other group has any link that Alone uses.
  StatusOr<std::optional<MemberPlan>> OnOwnLinks(size_t group);
  // Returns the engine's plan on the whole machine, in which other ranks may relay. `eighths` as in Alone.
  StatusOr<MemberPlan> OnWhole(size_t group, const std::vector<uint8_t>* eighths = nullptr);
  // Returns the lower bound of the group's time with the machine for itself.
  StatusOr<Bound> BoundOf(size_t group);

  // Returns the number of engine searches so far.
  int64_t searches() const { return searches_; }
  // Returns the faults (Synthesis::faults) of all searches.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  struct Seen {  // what is known of a group on the whole machine
    size_t group = 0;
    std::optional<MemberPlan> plan;
    std::optional<Bound> bound;
  };
  const Submachine& SubmachineOf(size_t group);
  // Returns the submachine without the links that belong to another group's submachine as well.
  std::optional<Submachine> OwnLinksOf(size_t group);
  // Plans the group on its submachine `alone`. `machine` is that submachine, in which links may be narrower.
  // An earlier plan is used if the machine and the collective are equal.
  StatusOr<MemberPlan> PlanOn(size_t group, const Submachine& alone, const Topology& machine,
                              const Collective& collective, bool rough);
  // Returns an entry of seen_ for which `has` holds and whose group a translation takes to this group, and
  // the translation.
  std::optional<std::pair<const Seen*, int64_t>> Translate(size_t group, bool (*has)(const Seen&));
  // Returns the engine's simulated plan for the group on a machine. `rough`: a rough simulation is enough.
  StatusOr<Synthesis> Ask(const Topology& machine, const Collective& collective, size_t group, bool rough);

  const Topology& topology_;
  const std::vector<ProcessGroup>& groups_;
  const MemberPlanOptions options_;
  std::vector<std::optional<Submachine>> submachines_;
  std::vector<int32_t> users_;  // by link: submachines that have the link; empty: not counted yet
  std::map<std::vector<int64_t>, StatusOr<Synthesis>>
      alone_;  // by KeyOf of a group's submachine and collective
  std::vector<Seen> seen_;
  std::optional<SymmetryGroup> translations_;
  int64_t searches_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace xccl
