// What `verify_passes` proves after each pass of lowering. Schedules and programs go to the verifiers of
// ir/verify. The values in between are replayed: every move is sent and received once, in an order that the
// value itself implies, with sets of ranks in place of data. Shares no code with the passes.
//
// Every function returns OK, or kBug with `lower: after PASS: what is wrong`.
#pragma once

#include <string_view>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/lower/buffers.h"
#include "ir/lower/fuse.h"
#include "ir/lower/merge.h"
#include "ir/lower/moves.h"
#include "ir/lower/order.h"
#include "ir/lower/paths.h"
#include "ir/lower/threadblocks.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::lowering {

class PassVerifier {
 public:
  // Not `on`: every function returns OK at once. The rest must outlive this.
  PassVerifier(bool on, const Collective& collective, const Topology& topology)
      : on_(on), collective_(collective), topology_(topology) {}

  // Rules S1 to S7.
  Status Check(std::string_view pass, const Schedule& schedule) const;
  // Each path is a chain of links between its two ranks; a group's paths use its links and share its root.
  Status Check(const Paths& paths) const;
  // Some order of all sends and receives has every move send what its feed left, add what is not yet in the
  // sum, and write after `previous`; readers and overwriters are as stated; the postcondition holds.
  Status Check(const Moves& moves) const;
  // The same in this order; connections are first-in-first-out with at most order.slots moves under way.
  Status Check(const Ordered& ordered) const;
  // Threadblocks name the peers and channels of their paths, one path a direction; no two paths are one
  // connection.
  Status Check(const Assignment& assignment, const Paths& paths) const;
  // What Check(ordered) says, for the order in which fused sends happen, with `slots`; a fused pair shares a
  // threadblock.
  Status Check(const Ordered& ordered, const Assignment& assignment, const Fusion& fusion,
               int32_t slots) const;
  // Every value that is sent, received or copied has a slot that stands for its chunk.
  Status Check(const Moves& moves, const Fusion& fusion, const Buffers& buffers) const;
  // What Check(ordered) says, without slots, for the order in which runs are sent and received; runs are
  // consecutive chunks of one path, at most `max_count`.
  Status Check(const Ordered& ordered, const Fusion& fusion, const Runs& runs, int32_t max_count) const;
  // Rules P1 to P9; without dependencies P1 to P5.
  Status Check(std::string_view pass, const Program& program, bool has_dependencies = true) const;

 private:
  const bool on_;
  const Collective& collective_;
  const Topology& topology_;
};

}  // namespace xccl::lowering
