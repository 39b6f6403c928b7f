// Members as the vertices of a grid: the machine's own, or one of nearly equal sides.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "synth/common/rank_graph.h"
#include "synth/textbook/grid.h"
#include "synth/textbook/positions.h"

namespace xccl {

struct Arrangement {
  Grid grid;
  bool is_machine = false;  // its lines are the machine's links
  Positions positions;      // by vertex
};

// The machine's own grid, if it is one and all ranks are members; else rows and columns, if all members are
// neighbours. Errors: kInvalidInput "ENGINE: ..." in all other cases, and for a prime number of members.
StatusOr<Arrangement> Arrange(const RankGraph& graph, std::span<const Rank> members, std::string_view engine);

// Do copies of one rank share its port, as behind a switch?
bool HasSharedPorts(const RankGraph& graph);

// The estimate of an allgather along one dimension after the other, or with an equal share of the data in
// each: the end of a line gets all over one link, and both directions of a ring share it.
Cost GridAllgatherCost(const Grid& grid, const RankGraph& graph, bool all_at_once);

}  // namespace xccl
