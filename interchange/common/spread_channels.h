// Connections on more channels, for executors that bound the threadblocks of a rank on one channel.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace xccl {

// Moves connections to other channels, so that at most `most` threadblocks of a rank send on one channel, and
// at most `most` receive on it. The two connections of a threadblock that both sends and receives stay on one
// channel. A program that keeps the limit already stays as it is. Requires: a program that verifies, without
// groups. Cost: connections × channels.
Program WithFewPeersOnAChannel(const Program& program, int32_t most);

}  // namespace xccl
