// A topology family: a ladder of 2 × `rungs` GPUs, two lines of them with a cable between each pair.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "topologies/families/networks.h"
#include "topologies/topology.h"

namespace xccl {

// GPU 2i and 2i + 1 stand on rung i. Errors: kInvalidInput for no rung.
StatusOr<Topology> Ladder(int32_t rungs, const LinkNumbers& link);

}  // namespace xccl
