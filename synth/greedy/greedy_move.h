// What greedy's searches find: chunks that take paths, before they are a schedule.
#pragma once

#include <cstdint>

namespace xccl::greedy {

// One chunk moved once. Moves of equal (path, step) are one message. A path id is a link's id for that link
// alone; larger ids are indices into the search's own table.
struct GreedyMove {
  int32_t chunk = 0;
  int32_t path = 0;
  int32_t step = 0;
};

}  // namespace xccl::greedy
