// Proves the result of each pass of lowering, where LowerOptions::verify_passes asks for it. Schedules and
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

  // Rules S1 to S7.
  Status Check(std::string_view pass, const Schedule& schedule) const;
  // Each path is a chain of links between its two ranks; a group's paths use its links and share its root.
  Status Check(const Paths& paths) const;
  // There is an order of all sends and receives in which every move sends the value that its feed left, adds
  // no contribution twice, and writes directly after `previous`. Readers and overwriters are as the moves
  // say; the postcondition holds.
  Status Check(const Moves& moves) const;
  // All that Check(moves) says holds in this order. Connections are first-in-first-out, with at most
  // order.slots moves under way.
  Status Check(const Ordered& ordered) const;
  // Threadblocks name the peers and channels of their paths, at most one path in each direction. No two paths
  // are the same connection.
  Status Check(const Assignment& assignment, const Paths& paths) const;
  // All that Check(ordered) says, with `slots`, holds in the order in which a fused send happens at its
  // receive. A fused pair shares a threadblock.
  Status Check(const Ordered& ordered, const Assignment& assignment, const Fusion& fusion,
               int32_t slots) const;
  // Every value that is sent, received or copied has a slot for its chunk.
  Status Check(const Moves& moves, const Fusion& fusion, const Buffers& buffers) const;
  // All that Check(ordered) says, but for slots, holds in the order in which runs are sent and received. A
  // run is consecutive chunks of one path, at most `max_count`.
  Status Check(const Ordered& ordered, const Fusion& fusion, const Runs& runs, int32_t max_count) const;
  // Rules P1 to P9 hold; without dependencies, P1 to P5.
  Status Check(std::string_view pass, const Program& program, bool has_dependencies = true) const;

 private:
  const bool on_;
  const Collective& collective_;
  const Topology& topology_;
};

}  // namespace xccl::lowering
