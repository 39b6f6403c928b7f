// Sends the data of every rank over the levels of a symmetric machine, as a compressed schedule.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/levels/levels.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// Checks that chunks which an alltoall's columns move have ids: those of the lowest rank of each kind.
// Errors: kInvalidInput "ENGINE: chunk ...".
Status CheckChunkIds(const SymmetryGroup& group, const Collective& cut, std::string_view engine);

// Makes the schedule of copies of an allgather or an alltoall. `cut` has a block for each member, or for each
// pair; an allreduce counts as an allgather of its n blocks. On each level, from the outermost inwards, every
// rank sends in as many rounds as it has peers there: to the next peer in each round, all that this peer and
// the levels further in need. A level sends on what arrives from the levels before it in batches of rounds,
// which fill a message (LeastUsefulBytes, synth/common/cost_model.h). Requires: all ranks are members; in an
// alltoall, CheckChunkIds is OK. On a level of trees, a rank sends all once, over `tree` modulo their number.
Schedule SendOverLevels(const Levels& levels, const Topology& topology, const SymmetryGroup& group,
                        const Collective& cut, int64_t size_bytes, int32_t tree = 0);

// The time of SendOverLevels, and what it consists of.
struct LevelsCost {
  double time_ps = 0;           // the most loaded link's time for its bytes, and the latency
  double latency_ps = 0;        // of the levels, one after the other
  double links_ps = 0;          // the time of all links for their bytes together
  std::vector<double> load_ps;  // by orbit of links, the time of a link for its bytes
};
LevelsCost CostOverLevels(const Levels& levels, const Topology& topology, const SymmetryGroup& group,
                          const Collective& cut, int64_t size_bytes);

// True if two neighbouring levels share a link, by orbits.
bool ShareLinks(const Level& a, const Level& b, const SymmetryGroup& group);

}  // namespace xccl
