// Proves the result of each pass of lowering, if LowerOptions::verify_passes asks for it. Schedules and
// programs go to the verifiers of ir/verify. The values in between are replayed: every move is sent and
// received once, in an order that the value itself implies, with sets of ranks in place of data. Shares no
// code with the passes.
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
  // Unless `on`, every function returns OK at once. `collective` and `topology` must outlive the verifier.
  PassVerifier(bool on, const Collective& collective, const Topology& topology)
      : on_(on), collective_(collective), topology_(topology) {}

  // Checks rules S1 to S9. `pass` is the pass that made the schedule.
  Status Check(std::string_view pass, const Schedule& schedule) const;
  // Checks that each path is a chain of links between its two ranks, and that a group's paths use the group's
  // links and share its root.
  Status Check(const Paths& paths) const;
  // Checks that there is an order of all sends and receives in which every move sends the value that its feed
  // left, adds no contribution twice, and writes directly after `previous`. Checks that readers and
  // overwriters are as the moves say, and that the postcondition holds.
  Status Check(const Moves& moves) const;
  // Checks in the given order all that Check(moves) checks. Checks that connections are first-in-first-out,
  // with at most order.slots moves under way.
  Status Check(const Ordered& ordered) const;
  // Checks that threadblocks name the peers and channels of their paths, at most one path in each direction,
  // and that no two paths are the same connection.
  Status Check(const Assignment& assignment, const Paths& paths) const;
  // Checks all that Check(ordered) checks, with `slots`, in the order in which a fused send happens at its
  // receive. Checks that a fused pair shares a threadblock.
  Status Check(const Ordered& ordered, const Assignment& assignment, const Fusion& fusion,
               int32_t slots) const;
  // Checks that every value that is sent or stored, and every input that a receive adds to, has a slot.
  Status Check(const Moves& moves, const Fusion& fusion, const Buffers& buffers) const;
  // Checks all that Check(ordered) checks, except slots, in the order in which runs are sent and received.
  // Checks that a run is consecutive chunks of one path, at most `max_count`.
  Status Check(const Ordered& ordered, const Fusion& fusion, const Runs& runs, int32_t max_count) const;
  // Checks rules P1 to P9; without dependencies, only P1 to P5. `pass` is the pass that made the program.
  Status Check(std::string_view pass, const Program& program, bool has_dependencies = true) const;

 private:
  const bool on_;
  const Collective& collective_;
  const Topology& topology_;
};

}  // namespace xccl::lowering
