// Plans single groups, and reuses the plan of an earlier group with the same surroundings. A plan is made on
// one of two machines: the submachine of the members alone (topologies/submachine.h), or the whole machine,
// with the other ranks as relays. Groups that are alike (alike.h) have one plan, which a translation moves;
// equal submachines have equal plans as well. Links may be narrowed to the bandwidth that other groups leave.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "ir/bounds/bound.h"
#include "ir/time_model.h"
#include "synth/common/synthesizer.h"
#include "synth/groups/alike.h"
#include "synth/groups/groups.h"
#include "synth/groups/joint.h"
#include "topologies/submachine.h"
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

// A plan as the engine made it, on a submachine; it may be compressed.
struct LonePlan {
  Submachine alone;
  Synthesis made;  // simulated
};

// A plan, and the translation that takes the group for which the plan was made to the group that the plan
// serves.
struct MovedPlan {
  std::shared_ptr<const MemberPlan> plan;
  int64_t element = 0;
};

class MemberPlans {
 public:
  // Keeps references to all arguments except the options. Later calls return the engine's errors.
  MemberPlans(const Topology& topology, const std::vector<ProcessGroup>& groups,
              const MemberPlanOptions& options);

  // Returns true if the links between the members join them all, without relays.
  bool IsJoinedAlone(size_t group);
  // Returns a plan without relays. Requires: IsJoinedAlone. `eighths`, if given, has for each link of the
  // whole machine the share of its bandwidth that is available, from 1 to 8.
  StatusOr<MovedPlan> Alone(size_t group, const std::vector<uint8_t>* eighths = nullptr);
  // Returns a plan on the links of the group's submachine that belong to no other group's submachine. Returns
  // nullopt if these links do not join the members, or if they are all links of the submachine.
  StatusOr<std::optional<MovedPlan>> OnOwnLinks(size_t group);
  // Returns the engine's plan on the whole machine, in which other ranks may relay. `eighths` as in Alone.
  StatusOr<MovedPlan> OnWhole(size_t group, const std::vector<uint8_t>* eighths = nullptr);
  // Return the plan of the first group of the group's kind, without moving it to the whole machine. Lone uses
  // other ranks as relays only where the links between the members do not join them. LoneOnOwnLinks returns
  // null where OnOwnLinks returns nullopt for the first group. The plans live as long as this object.
  StatusOr<const LonePlan*> Lone(size_t group);
  StatusOr<const LonePlan*> LoneOnOwnLinks(size_t group);
  // Returns the lower bound of the group's time with the machine for itself.
  StatusOr<Bound> BoundOf(size_t group);

  const AlikeGroups& alike() const { return alike_; }
  // Returns the number of engine searches so far.
  int64_t searches() const { return searches_; }
  // Returns the faults (Synthesis::faults) of all searches.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  using Planned = StatusOr<std::shared_ptr<const MemberPlan>>;
  struct Kind {                       // what is known of the groups of one kind
    std::optional<Submachine> alone;  // of its first group, like all that follows
    std::optional<bool> is_joined_alone;
    std::optional<Planned> on_whole;
    std::optional<StatusOr<Bound>> bound;
    std::optional<StatusOr<LonePlan>> lone, lone_on_own;
    std::map<std::vector<bool>, Planned> on_own;  // by AreOwn() of a group of the kind
  };

  Kind& KindOf(size_t group) { return kinds_[alike_.KindOf(group)]; }
  const ProcessGroup& FirstOf(size_t group) const { return groups_[alike_.FirstOf(alike_.KindOf(group))]; }
  // Returns the submachine of the first group of the group's kind.
  const Submachine& SubmachineOf(size_t group);
  // Counts for each link the groups whose submachines have it.
  void CountUsers();
  // Returns for each link of the group's submachine whether no other group's submachine has the link.
  std::vector<bool> AreOwn(size_t group);
  // Returns the submachine of the kind's first group with only the links for which is_own is true. Returns
  // nullopt if these links do not join the members.
  std::optional<Submachine> WithSome(size_t group, const std::vector<bool>& is_own);
  // Plans the first group of the kind on its submachine `alone`. `machine` is that submachine, in which links
  // may be narrower. An earlier plan is used if the machine and the collective are equal.
  Planned PlanOn(size_t group, const Submachine& alone, const Topology& machine, const Collective& collective,
                 bool rough);
  // Returns the engine's plan for the group on a submachine, or the earlier plan for an equal one.
  StatusOr<Synthesis>& Found(const Topology& machine, const Collective& collective, int64_t size_bytes,
                             bool rough);
  // Returns the engine's simulated plan for the group on a machine. `rough`: a rough simulation is enough.
  StatusOr<Synthesis> Ask(const Topology& machine, const Collective& collective, int64_t size_bytes,
                          bool rough);

  const Topology& topology_;
  const std::vector<ProcessGroup>& groups_;
  const MemberPlanOptions options_;
  const AlikeGroups alike_;
  std::vector<Kind> kinds_;
  std::vector<int32_t> users_;  // by link: submachines that have the link; empty: not counted yet
  std::map<std::vector<int64_t>, StatusOr<Synthesis>> found_;  // by KeyOf of a submachine and its collective
  std::map<std::vector<int64_t>, Planned> placed_;  // by the same key, then the submachine's ranks and links
  int64_t searches_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace xccl
