// Makes a compressed schedule that sends the data of every rank over the levels of a symmetric machine.
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

// Returns the number of chunks of a block: of a rank's data or, in an alltoall, of its data for one rank.
int64_t ChunksOfBlock(const Collective& cut);

// Checks that chunks have ids that fit 32 bits, as far as the columns of an alltoall move them: the chunks of
// the lowest rank of each kind. Errors: kInvalidInput "ENGINE: chunk ...".
Status CheckChunkIds(const SymmetryGroup& group, const Collective& cut, std::string_view engine);

// Makes the schedule of copies of an allgather or an alltoall. `cut` has a block for each member, or for each
// pair; an allreduce counts as an allgather of its n blocks. Levels send from the outermost inwards. Each
// level has one round for each peer of a rank. In that round the rank sends all data that the peer and the
// levels further in need. The data of outer levels is sent on in batches. A batch has so many rounds that its
// data fills a message (LeastUsefulBytes, synth/common/cost_model.h). On a level of trees, a rank sends to
// all peers at once, over the tree with the number `tree` modulo the number of trees. Requires: all ranks are
// members; in an alltoall, CheckChunkIds is OK.
Schedule SendOverLevels(const Levels& levels, const Topology& topology, const SymmetryGroup& group,
                        const Collective& cut, int64_t size_bytes, int32_t tree = 0);

// The estimated time of SendOverLevels, and its parts.
struct LevelsCost {
  double time_ps = 0;           // latency_ps + the time of the most loaded link for its bytes
  double latency_ps = 0;        // sum over the levels of the latency of the longest path
  double links_ps = 0;          // sum over all links of a link's time for its bytes
  std::vector<double> load_ps;  // by orbit of links: a link's time for its bytes
};
LevelsCost CostOverLevels(const Levels& levels, const Topology& topology, const SymmetryGroup& group,
                          const Collective& cut, int64_t size_bytes);

// Returns whether paths of the two levels have links of the same orbit.
bool ShareLinks(const Level& a, const Level& b, const SymmetryGroup& group);

}  // namespace xccl
