// Connections on more channels, for executors that bound the threadblocks of a rank on one channel.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace xccl {

// The same program with connections on other channels, so that at most `most` threadblocks of a rank send,
// and receive, on one. Connections that a threadblock joins stay on one channel. Where the program keeps to
// that already, it stays as it is. Requires: a program that verifies, without groups. Cost: connections ×
// channels.
Program WithFewPeersOnAChannel(const Program& program, int32_t most);

}  // namespace xccl
