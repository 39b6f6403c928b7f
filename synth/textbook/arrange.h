// Members as the vertices of a grid: the machine's own, or one of nearly equal sides.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "synth/common/rank_graph.h"
#include "synth/textbook/grid.h"

namespace xccl {

struct Arrangement {
  Grid grid;
  bool is_machine = false;      // its lines are the machine's links
  std::vector<Rank> rank;       // by vertex
  std::vector<int32_t> member;  // by vertex: index into the collective's ranks
};

// The grid that the machine is where all its ranks are members; else, if all are next to each other, rows and
// columns. Errors: kInvalidInput "ENGINE: ..." where they are neither, or their number has no divisor.
StatusOr<Arrangement> Arrange(const RankGraph& graph, std::span<const Rank> members, std::string_view engine);

}  // namespace xccl
