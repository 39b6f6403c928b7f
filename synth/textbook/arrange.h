// Arranges members as vertices of a grid: the machine's own, or rows and columns as equal as possible.
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
  bool is_machine = false;  // the grid's lines are links of the machine
  Positions positions;      // by vertex of the grid
};

// Returns the machine's own grid if all ranks are members and the grid has two or more dimensions or at most
// 3 ranks. Otherwise, if all members are neighbours, returns rows and columns, or a line of at most 3.
// Errors: kInvalidInput "ENGINE: ..." if neither is possible, as for a prime number of members above 3.
StatusOr<Arrangement> Arrange(const RankGraph& graph, std::span<const Rank> members, std::string_view engine);

// Returns whether some hop has several links, as over a switch. All copies that a rank sends then count as
// sharing the rank's port.
bool HasSharedPorts(const RankGraph& graph);

// Returns the estimated cost of an allgather that goes along one dimension after another. With `all_at_once`,
// an equal share of the data starts with each dimension. On a line, the rank at the end gets all data over
// one link. On a ring, both directions share the data. If ports are shared, neither both directions nor
// `all_at_once` save time.
Cost GridAllgatherCost(const Grid& grid, const RankGraph& graph, bool all_at_once);

}  // namespace xccl
